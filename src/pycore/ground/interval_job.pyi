from collections.abc import Callable

from pulsarx._pycore.ground.clock_core import SystemClockCore
from pulsarx._pycore.ground.job_queue import JobQueue

class IntervalJob:
    """Runs a job once, a while after it was first asked for. Any thread may call."""

    def __init__(
        self,
        clock: SystemClockCore,
        jobs: JobQueue,
        interval_ms: int,
        job: Callable[[], object],
    ) -> None:
        """clock: the interval is real time. jobs: where the job runs."""

    def arm(self) -> int:
        """The job runs before the interval is over."""

    def close(self) -> None:
        """Never run the job again."""
