from collections.abc import Callable
from typing import Any

from pulsarx._pycore.ground.interval_job import IntervalJob
from pulsarx._pycore.ground.job_queue import JobQueue

class ConsumerHost:
    """Finds messages by id and does what follows from acknowledgements, for a consumer. Any thread
    may call."""

    def __init__(
        self,
        ledgers: Any,
        background: JobQueue | None = None,
        trim: Callable[[], object] | None = None,
        flush: IntervalJob | None = None,
    ) -> None:
        """ledgers: of the topic. trim: the job that removes unneeded ledgers."""

    flush: IntervalJob | None
