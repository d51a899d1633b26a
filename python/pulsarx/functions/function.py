"""The interface of a function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.functions.context import Context


class Function:
    """Base of the functions that are classes; the user's subclass processes each message."""

    def process(self, input: Any, context: Context) -> Any:
        """Process one message.

        Args:
            input: Its value, deserialized.
            context: The context of the function.

        Returns:
            What goes to the output topic; None: nothing does.
        """
