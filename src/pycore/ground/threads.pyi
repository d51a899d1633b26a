from collections.abc import Callable

def await_beginnings() -> None: ...
def forget_beginnings() -> None: ...
def rest_for_memory() -> None:
    """Sleep a moment, in a thread that cannot go on without memory and that others need."""

class OwnThread:
    """A daemon thread that others may wait for; see threads.pxd."""

    def __init__(self, work: Callable[[], object], name: str) -> None: ...
    def start(self) -> None:
        """Have it run work(). RuntimeError: the system, or the interpreter that ends, gives no
        thread."""

    def runs_here(self) -> bool:
        """Whether the calling thread is this one."""

    def join(self) -> None:
        """Return when it has ended, at once where it was not started. A signal may end it."""
