"""What a user writes: a function that is called with each message."""

from __future__ import annotations

from abc import abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.functions.context import Context


class Function:
    """Base of the functions of users. One instance is called by one thread at a time."""

    @abstractmethod
    def process(self, input: Any, context: Context) -> Any:
        """The output of one input; None: there is none."""
