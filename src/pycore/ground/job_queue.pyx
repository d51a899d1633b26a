"""Body of job_queue.pxd."""

try:
    from _collections import deque     # _queue is a library of its own, to be opened by each start
except ImportError:
    from collections import deque

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64, atomic_store_u64
from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.clock_core cimport SystemClockCore
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.failure_log cimport log_failure
from pulsarx._pycore.ground.threads cimport thread_start
from pulsarx._pycore.ground.waits cimport wait_on

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    AGAIN_MS = 20                        # until a thread is asked for again

cdef SystemClockCore process_clock = None


def retry_by(SystemClockCore clock) -> None:
    """Set the clock by which queues ask again for a thread that they were refused."""
    global process_clock
    process_clock = clock


cdef class JobQueue:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.came.event = 0
        self.came.waiters = 0
        self.progress.event = 0
        self.progress.waiters = 0
        self.state = JOBS_IDLE

    def __init__(self, str name not None) -> None:
        self.name = name
        self.jobs = deque()

    cdef int put(self, object job) except -1:
        if self.state == JOBS_CLOSED:
            # For what is finalized late. Never in this thread, which may hold anything.
            control_plane.post(job)
            return 0
        self.put_count += 1              # first: it may be over before this goes on
        try:
            self.put_job(job)
        except BaseException:
            self.put_count -= 1
            raise
        if self.state == JOBS_IDLE:
            self.start()
        return 0

    cdef int put_job(self, object job) except -1:
        try:
            self.jobs.append(job)
        except MemoryError:
            self.jobs.append(job)        # once more: many whom nobody asks again depend on it
        wait_event_wake(&self.came)
        return 0

    cdef object take(self):
        """The next job, when there is one."""
        cdef uint32_t seen
        while not self.jobs:
            seen = wait_event_enter(&self.came)
            if not self.jobs:
                with nogil:
                    wait_event_sleep(&self.came, seen, -1)
            wait_event_leave(&self.came)
        return self.jobs.popleft()

    def post(self, job) -> None:
        """Have job() run soon, in the thread; at any moment. What it raises is logged."""
        self.put(job)

    cdef int start(self) except -1:
        """No more threads or memory, or the interpreter ends: it is tried again."""
        self.begin()                     # first: a finalizer that puts now starts no second one
        try:
            thread_start(self.run, self.name)
        except Exception:
            self.end()
            self.start_later()
        except BaseException:
            self.end()
            raise
        return 0

    cdef int begin(self) except -1:
        """From now on one thread runs the jobs, and no other."""
        self.thread_ended = False
        if self.state == JOBS_IDLE:
            self.state = JOBS_RUNNING
        return 0

    cdef int end(self) except -1:
        self.thread = 0                  # another one may get the same number
        self.thread_ended = True
        if self.state == JOBS_RUNNING:
            self.state = JOBS_IDLE
        wait_event_wake(&self.progress)
        return 0

    cdef int start_later(self) except -1:
        """By the clock, as nobody may put another job. Where that has no thread either, jobs wait
        for the next call, or for close."""
        if self.is_retried or process_clock is None:
            return 0
        self.is_retried = True
        try:
            process_clock.call_after(AGAIN_MS, self.start_again)
        except Exception:
            self.is_retried = False
        return 0

    def start_again(self) -> None:
        """Start the thread once more; called by the clock."""
        self.is_retried = False
        if self.state == JOBS_IDLE and self.jobs:
            self.start()

    cdef bint is_idle(self) noexcept:
        return atomic_load_u64(&self.done_count) == self.put_count

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits to."""
        return self.state == JOBS_CLOSED or self.is_idle()

    def runs_here(self) -> bool:
        """Whether the calling thread is this one."""
        return self.thread == PyThread_get_thread_ident()

    def busy_with(self) -> list[str]:
        """Return the name of the queue, for messages."""
        return [self.name]

    @property
    def closed(self) -> bool:
        return self.state == JOBS_CLOSED

    def wait(self, Deadline deadline=None) -> bool:
        """Return when every job put before has run; False: the deadline came first. Called by a
        job: at once."""
        if self.state == JOBS_CLOSED or self.thread == PyThread_get_thread_ident():
            return True
        return self.put_count == 0 or self.wait_for(self.put_count, deadline)

    cdef int run_without_thread(self) except -1:
        """Jobs wait, and no thread is there: start it, or run them for this caller, who waits."""
        self.start()
        if self.state == JOBS_IDLE:
            control_plane.perform(self.run_here)
        return 0

    def run_here(self) -> None:
        """Run what is queued in the calling thread, unless the clock has started the thread."""
        if self.state != JOBS_IDLE:
            return
        self.run_alone()
        if self.state == JOBS_IDLE and self.jobs:
            self.start()

    cdef int run_alone(self) except -1:
        self.begin()
        self.thread = PyThread_get_thread_ident()
        try:
            self.run_rest()
        finally:
            self.end()
        return 0

    cdef bint has_ended(self, uint64_t job_count) noexcept:
        """Whether so many jobs have run; with 0: whether no thread runs them."""
        if job_count:
            return atomic_load_u64(&self.done_count) >= job_count
        return self.thread_ended

    cdef bint wait_for(self, uint64_t job_count, Deadline deadline) except -1:
        cdef int64_t left_ns = -1
        cdef uint32_t seen
        while not self.has_ended(job_count):
            if self.state == JOBS_IDLE:
                self.run_without_thread()
                continue
            if deadline is not None:
                left_ns = deadline.remaining_ns()
                if left_ns == 0:
                    return False
            seen = wait_event_enter(&self.progress)
            if self.has_ended(job_count) or self.state == JOBS_IDLE:
                wait_event_leave(&self.progress)
            else:
                wait_on(&self.progress, seen, left_ns)
        return True

    def close(self) -> None:
        """Run what is queued and what comes meanwhile, and end the thread. Idempotent."""
        if self.state == JOBS_CLOSED:
            return
        if self.state == JOBS_RUNNING:
            self.state = JOBS_CLOSING
            self.put_job(None)
        if self.thread == PyThread_get_thread_ident():
            self.run_rest()
            self.state = JOBS_CLOSED
            self.put_job(None)              # the thread ends when the job that closes it does
            return
        if self.state == JOBS_IDLE:
            self.state = JOBS_CLOSING       # the clock starts no thread beside this one
            self.thread_ended = True
        self.wait_for(0, None)
        while self.jobs:                    # that came when no thread was there any more
            self.run_alone()
            self.wait_for(0, None)
        self.state = JOBS_CLOSED

    def run(self) -> None:
        """Run the thread of the queue."""
        self.thread = PyThread_get_thread_ident()
        while True:
            if self.run_next():
                continue
            if not self.jobs:
                break
            self.put_job(None)          # behind what came meanwhile
        self.end()

    def run_rest(self) -> None:
        """Run what is queued in the calling thread: that of a job which needs them done, or at the
        end, when there is no other."""
        while self.jobs:
            self.run_next()

    cdef bint run_next(self) except -1:
        """False: it was the None of `close`."""
        job = self.take()
        if job is None:
            return False
        try:
            self.perform(job)
        finally:
            # First: what the end of its objects puts is put before who waits for the job goes on.
            del job
            atomic_store_u64(&self.done_count, self.done_count + 1)
            wait_event_wake(&self.progress)
        return True

    cdef int perform(self, object job) except -1:
        try:
            try:
                job()
            except MemoryError:
                job()                    # what it held is free, and nobody puts it again
        except BaseException as error:   # SystemExit too: the thread is needed
            log_failure("pulsarx", error, "%s: a job failed", self.name)
        return 0
