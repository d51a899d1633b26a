from collections.abc import Callable

from pulsarx._pycore.ground.job_queue import JobQueue

class CompletionQueue:
    """Flushes what asynchronous sends stored and runs their callbacks. Any thread may call."""

    jobs: JobQueue
    timeouts: JobQueue
    def __init__(self, ok: object, result_of: Callable[[Exception], object]) -> None:
        """ok, result_of: what callbacks are told of a success, and of an error."""

    def wait(self) -> None:
        """Return when every callback posted before has run."""

    def close(self) -> None: ...
