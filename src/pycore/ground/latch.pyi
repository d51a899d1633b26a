from collections.abc import Callable

class Latch:
    """Threads wait until it is set, once and for good. Any thread, also from a signal handler."""

    @property
    def is_set(self) -> bool: ...
    def set(self) -> None:
        """Let all pass that wait, or will."""

    def tell(self, notify: Callable[[], object]) -> None:
        """Call notify() once when it is set, in whatever thread: it may only enqueue something."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return when it is set; False: the time (seconds) is over. A signal may end it."""

    def wait_or(self, leave: Callable[[], object]) -> None:
        """Like wait; interrupted, leave() is called first, in the control plane."""
