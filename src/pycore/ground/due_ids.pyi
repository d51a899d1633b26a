from collections.abc import Callable

class DueIds:
    """Which producers or consumers of a connection have something due, so that the others are not
    looked at: a client may have thousands of them. Any thread may call, with any mutex held."""

    def __init__(self, wake: Callable[[], object]) -> None:
        """wake: has the session take them soon; it may only enqueue something or set an event."""

    def mark(self, number: int) -> int:
        """There is something to do, and the session is woken."""

    def marking(self, number: int) -> Callable[[], None]:
        """What marks that one."""

    def keep(self, number: int) -> None:
        """It stays due, or becomes so by what the session does just now."""

    def take(self) -> list[int]:
        """Those that are due, in the order in which they became so; they are not any more."""
