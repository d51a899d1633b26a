from collections.abc import Callable

from pulsarx._pycore.ground.deadline import Deadline

class WorkPool:
    """At most `size` daemon threads, started one by one. Any thread may call."""

    def __init__(self, size: int, name: str = "pulsarx-listener") -> None: ...
    size: int
    started: int
    def grow(self) -> None:
        """Get ready for one more consumer that posts jobs: a thread more, up to the size."""

    def post(self, job: Callable[[], object]) -> None:
        """Run job in a thread of the pool, at any moment and with whatever mutex held."""

    def is_wanted(self) -> bool:
        """Whether a job waits for a thread."""

    def wait(self, deadline: Deadline | None = None) -> bool:
        """Return when nothing runs or waits to; False: the deadline came first."""

    def busy_with(self) -> list[str]:
        """Return the names of the jobs that run now."""

    def runs_here(self) -> bool:
        """Whether the calling thread is one of the pool's."""

    def close(self) -> None:
        """End the threads when what is posted has run; does not wait for them."""

    @property
    def idle(self) -> bool: ...

class SerialWork:
    """A step that runs in the pool whenever it is due: never twice at a time, never forgotten."""

    def __init__(self, pool: WorkPool, step: Callable[[], bool], name: str) -> None:
        """step: does some work and says whether there is more. name: what it is, for messages."""

    def due_now(self) -> None:
        """Like due, by a thread that is about to sleep, with no mutex held."""

    def due(self) -> int: ...
