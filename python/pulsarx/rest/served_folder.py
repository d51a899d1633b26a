"""The folder behind an HTTP port: owned by this process, by another one, or by none."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.clock import Clock
    from pulsarx.rest.server_figures import LogCount

    PerSecond = Callable[..., tuple[float, ...]]

    class ServedFolder(Protocol):
        """Any thread may call."""

        @property
        def broker(self) -> Broker:
            """OperationNotSupported: it is not this process's."""

        @property
        def clock(self) -> Clock: ...
        @property
        def is_open(self) -> bool: ...
        @property
        def place(self) -> str:
            """The place of the folder, as people call it."""

        def owner(self) -> int | None:
            """The process that owns it; None: none does."""

        def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
            """See broker.verbs.table."""

        def post(self, job: Callable[[], object]) -> None:
            """Have it done soon, in the background of the folder."""

        def counters(self) -> dict[Any, tuple[int, ...]]:
            """For Rates."""

        def figures(
            self,
            per_second: PerSecond,
            consumers: bool,
            sees: Callable[[str], bool] | None,
            log: LogCount,
        ) -> Iterator[bytes]:
            """The answer of /metrics, in pieces. sees, log: see Figures."""

        def client(self) -> AbstractContextManager[Client]:
            """One that publishes and acknowledges."""
