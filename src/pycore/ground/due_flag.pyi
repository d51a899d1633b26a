from collections.abc import Callable

class DueFlag:
    """Says that there is something to do, to the one thread that does it."""

    is_due: bool
    def __init__(self, wake: Callable[[], object] | None) -> None:
        """wake: has that thread look soon; it may only enqueue something or set an event. None:
        there is none yet."""

    def due(self) -> int:
        """There is something to do. In any thread, and with any mutex held."""
