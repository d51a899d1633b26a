from collections.abc import Callable

from pulsarx._pycore.ground.clock_core import SystemClockCore
from pulsarx._pycore.ground.deadline import Deadline

def retry_by(clock: SystemClockCore) -> None:
    """Set the clock by which queues ask again for a thread that they were refused."""

class JobQueue:
    """A thread that runs jobs one after another, in the order they were put. Any thread."""

    name: str
    def __init__(self, name: str) -> None: ...
    def post(self, job: Callable[[], object]) -> None:
        """Have job() run soon, in the thread; at any moment. What it raises is logged."""

    def wait(self, deadline: Deadline | None = None) -> bool:
        """Return when every job put before has run; False: the deadline came first. Called by a
        job: at once."""

    def close(self) -> None:
        """Run what is queued and end the thread. Idempotent."""

    def start_again(self) -> None:
        """Start the thread once more; called by the clock."""

    def run_rest(self) -> None:
        """Run what is queued in the calling thread: that of a job which needs them done, or at the
        end, when there is no other."""

    def runs_here(self) -> bool:
        """Whether the calling thread is this one."""

    def busy_with(self) -> list[str]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def idle(self) -> bool: ...
