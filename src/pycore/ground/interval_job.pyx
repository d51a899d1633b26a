"""Body of interval_job.pxd."""

from libc.stdint cimport int64_t

from pulsarx._pycore.ground.clock_core cimport SystemClockCore, Timer
from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class IntervalJob:
    """See the pxd."""

    def __init__(self, SystemClockCore clock not None, JobQueue jobs not None,
                 int64_t interval_ms, job not None) -> None:
        self.clock = clock
        self.jobs = jobs
        self.interval_ms = interval_ms
        self.job = job

    cpdef int arm(self) except -1:
        if self.armed or self.job is None:
            return 0
        self.armed = True                # first: the timer may fire before arming it returns
        try:
            self.timer = self.clock.call_after(self.interval_ms, self.due)
        except BaseException:
            self.armed = False
            raise
        return 0

    def due(self) -> None:
        """The interval is over."""
        self.jobs.put(self.run)

    def run(self) -> None:
        """Do it; in the thread of the queue."""
        job, timer = self.job, self.timer
        self.timer = None
        self.armed = False               # what is asked for from now on needs another run
        if timer is not None:
            timer.cancel()               # where it runs once more, for want of memory
        if job is None:
            return
        try:
            job()
        except MemoryError:
            self.arm()                   # what was asked for is still to be done
            raise

    def close(self) -> None:
        """Never run the job again."""
        cdef Timer timer = self.timer
        self.timer = None
        self.job = None
        if timer is not None:
            timer.cancel()
