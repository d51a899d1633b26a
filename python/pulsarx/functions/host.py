"""The protocol by which the instances of a function call the runner that made them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any, Protocol

    from pulsarx.client import Client
    from pulsarx.functions.figures import Figures
    from pulsarx.functions.function_state import FunctionState
    from pulsarx.functions.pending_sends import PendingSends

    class Host(Protocol):
        """Any thread may call."""

        function: Any  # what the user gave
        function_id: str
        figures: Figures
        outputs: PendingSends
        logger: Logger

        @property
        def client(self) -> Client: ...
        def state(self) -> FunctionState:
            """Opened by the first call."""
            ...

        def flush_state(self) -> None: ...
        def output_producer(self) -> Any: ...
        def fail(self, error: BaseException) -> None: ...
