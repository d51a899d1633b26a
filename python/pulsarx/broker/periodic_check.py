"""A check that is made again and again, on the broker's clock, as long as something needs it."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx._pycore.ground.job_queue import JobQueue
    from pulsarx.clock import Clock, Timer


class PeriodicCheck:
    """Runs as a job of a queue. Any thread may call."""

    def __init__(
        self, clock: Clock, jobs: JobQueue, interval_ms: int, run: Callable[[], bool]
    ) -> None:
        """run: whether it is to be run again, as it is after what it raises."""
        self._clock = clock
        self._jobs = jobs
        self._interval_ms = interval_ms
        self._run = run
        self._lock = Lock()
        self._timer: Timer | None = None
        self._closed = False

    def arm(self) -> None:
        """Run after the interval, unless it will already."""
        with self._lock:
            if self._timer is None and not self._closed:
                self._timer = self._clock.call_after(self._interval_ms, self._due)

    def _due(self) -> None:
        self._jobs.post(self._look)

    def _look(self) -> None:
        with self._lock:
            timer, self._timer = self._timer, None
            if self._closed:
                return
        if timer is not None:
            timer.cancel()  # armed by this very look, where it is taken again for want of memory
        again = True
        try:
            again = self._run()
        finally:
            if again:
                self.arm()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
