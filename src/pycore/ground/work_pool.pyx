"""Body of work_pool.pxd."""

try:
    from _collections import deque     # _queue is a library of its own, to be opened by each start
except ImportError:
    from collections import deque

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64, atomic_store_u64
from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
    wait_event_wake_one,
)
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.failure_log cimport log_failure
from pulsarx._pycore.ground.threads cimport await_memory, thread_start
from pulsarx._pycore.ground.waits cimport wait_on

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept


cdef class WorkPool:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.came.event = 0
        self.came.waiters = 0
        self.progress.event = 0
        self.progress.waiters = 0
        self.running = {}

    def __init__(self, size, str name not None="pulsarx-listener") -> None:
        """name: of the threads, before their number."""
        self.jobs = deque()
        self.name = name
        self.size = max(size, 1)

    cdef int put(self, object job) except -1:
        self.put_count += 1              # first: it may be over before this goes on
        try:
            self.put_job(job)
        except BaseException:
            self.put_count -= 1
            raise
        return 0

    cdef int put_job(self, object job) except -1:
        try:
            self.jobs.append(job)
        except MemoryError:
            self.jobs.append(job)        # once more: many whom nobody asks again depend on it
        wait_event_wake_one(&self.came)
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
        """Run job in a thread of the pool, at any moment and with whatever mutex held."""
        self.put(job)

    def grow(self) -> None:
        """Get ready for one more consumer that posts jobs: a thread more, up to the size."""
        if self.closed or self.started == self.size:
            return
        self.started += 1
        try:
            thread_start(self.run, f"{self.name}-{self.started}")
        except BaseException:
            self.started -= 1
            raise

    def is_wanted(self) -> bool:
        """Whether a job waits for a thread."""
        return bool(self.jobs)

    cdef bint is_idle(self) noexcept:
        return atomic_load_u64(&self.done_count) == self.put_count

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits to."""
        return self.closed or self.is_idle()

    def runs_here(self) -> bool:
        """Whether the calling thread is one of the pool's."""
        return PyThread_get_thread_ident() in self.running

    def busy_with(self) -> list[str]:
        """Return the names of the jobs that run now."""
        return [(<SerialWork>each).name if isinstance(each, SerialWork) else repr(each)
                for each in list(self.running.values()) if each is not None]

    def wait(self, Deadline deadline=None) -> bool:
        """Return when nothing runs or waits to; False: the deadline came first."""
        cdef int64_t left_ns = -1
        cdef uint32_t seen
        while not self.is_idle() and not self.closed:
            if deadline is not None:
                left_ns = deadline.remaining_ns()
                if left_ns == 0:
                    return False
            seen = wait_event_enter(&self.progress)
            if self.is_idle():
                wait_event_leave(&self.progress)
            else:
                wait_on(&self.progress, seen, left_ns)
        return True

    def close(self) -> None:
        """End the threads when what is posted has run; does not wait for them."""
        cdef uint32_t number
        if self.closed:
            return
        for number in range(self.started):
            self.put_job(None)
        self.closed = True               # last: where there was no memory, it can be closed again

    def run(self) -> None:
        """Run one thread of the pool."""
        me = self.register()
        while True:
            job = self.take()
            if job is None:
                break
            self.running[me] = job
            try:
                job()
            except BaseException as error:
                log_failure("pulsarx", error, "a job of the %s threads failed", self.name)
            self.running[me] = None
            del job      # what it refers to must not live on while this thread sleeps
            atomic_store_u64(&self.done_count, self.done_count + 1)
            wait_event_wake(&self.progress)
        self.running.pop(me, None)

    cdef object register(self):
        """The number of this thread, under which `running` names its job."""
        while True:
            try:
                me = PyThread_get_thread_ident()
                self.running[me] = None
                return me
            except MemoryError:
                with nogil:
                    await_memory()


cdef class SerialWork:
    """See the pxd."""

    def __init__(self, WorkPool pool not None, step, str name not None) -> None:
        """step: does some work and says whether there is more. name: what it is, for messages."""
        self.pool = pool
        self.step = step
        self.name = name

    cpdef int due(self) except -1:
        self.is_due = True
        if not self.taken:
            self.taken = True
            try:
                self.pool.put(self)
            except BaseException:
                self.taken = False
                raise
        return 0

    def due_now(self) -> None:
        """Like due, by a thread that is about to sleep, with no mutex held: the one that is woken
        has the GIL at once, and does not sleep once more until this one gives it up."""
        cdef WorkPool pool = self.pool
        self.is_due = True
        if self.taken:
            return
        self.taken = True
        pool.put_count += 1
        try:
            pool.jobs.append(self)
        except BaseException:
            pool.put_count -= 1
            self.taken = False
            raise
        with nogil:
            wait_event_wake_one(&pool.came)

    def __call__(self) -> None:
        """Take the step; in a thread of the pool."""
        while True:
            more = False
            self.is_due = False
            try:
                try:
                    more = self.step()
                except MemoryError:
                    more = self.step()   # what it held is free, and nobody may ask again
            except BaseException as error:
                log_failure("pulsarx", error, "a step of %s failed", self.name)
            # What is put in a closed pool is never run: the threads end before they come to it.
            if more:
                if self.pool.closed:
                    continue
                try:
                    self.pool.put(self)  # behind the jobs of others
                except MemoryError:
                    continue
                return
            self.taken = False
            if not self.is_due:
                return
            self.taken = True
            if not self.pool.closed:
                try:
                    self.pool.put(self)
                except MemoryError:
                    continue
                return
