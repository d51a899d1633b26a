from collections.abc import Callable, Iterable

class DueIds:
    """Collects the producers or consumers of a connection that have something due, so that the
    others are not looked at: a client may have thousands of them. Any thread may call, with any
    mutex held."""

    def __init__(self, wake: Callable[[], object]) -> None:
        """wake: has the session take them soon; it may only enqueue something or set an event."""

    def mark(self, number: int) -> int:
        """There is something to do, and the session is woken."""

    def marking(self, number: int) -> Callable[[], None]:
        """Return the callable that marks this number as due."""

    @property
    def are_any(self) -> bool:
        """Whether `take` would return some."""

    def keep(self, number: int) -> None:
        """Keep a number due, or make it so, by what the session does just now."""

    def take(self, everyone: Iterable[int]) -> list[int]:
        """Return the numbers that are due, in the order in which they became so, and unmark them.
        everyone: the numbers of all, for where there was no memory to note one."""
