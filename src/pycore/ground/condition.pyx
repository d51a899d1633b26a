"""Body of condition.pxd."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept


cdef class Condition:
    """As threading.Condition, reentrant, as far as concurrent.futures uses it. Any thread."""

    def __cinit__(self) -> None:
        self.changed.event = 0
        self.changed.waiters = 0
        self.freed.event = 0
        self.freed.waiters = 0

    def acquire(self) -> bool:
        self.take()
        return True

    def release(self) -> None:
        self.give()

    cdef int take(self) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        cdef int64_t sleep_ns
        cdef uint32_t seen
        while self.owner != 0 and self.owner != me:
            seen = wait_event_enter(&self.freed)
            sleep_ns = signals_sleep_ns(-1)
            if self.owner != 0:
                with nogil:
                    wait_event_sleep(&self.freed, seen, sleep_ns)
            wait_event_leave(&self.freed)
            signals_check()
        self.owner = me
        self.depth += 1
        return 0

    cdef int give(self) except -1:
        if self.owner != PyThread_get_thread_ident():
            raise RuntimeError("release of a lock that this thread does not hold")
        self.depth -= 1
        if self.depth == 0:
            self.owner = 0
            wait_event_wake(&self.freed)
        return 0

    def __enter__(self) -> bool:
        self.take()
        return True

    def __exit__(self, *_) -> None:
        self.give()

    def wait(self, timeout=None) -> bool:
        """The lock is held, and is again on return; False: the time (seconds) is over."""
        cdef Deadline deadline = Deadline(None if timeout is None else timeout * 1000)
        cdef uint32_t depth = self.depth
        cdef uint32_t seen = wait_event_enter(&self.changed)
        cdef int64_t left_ns
        cdef bint over = False
        self.depth = 1
        self.give()
        try:
            while True:
                left_ns = deadline.remaining_ns()
                over = left_ns == 0
                if over:
                    break
                left_ns = signals_sleep_ns(left_ns)
                with nogil:
                    status = wait_event_sleep(&self.changed, seen, left_ns)
                signals_check()
                if status == STATUS_OK:
                    break                # notified, and not a signal whose handler returned
        finally:
            wait_event_leave(&self.changed)
            self.retake()
            self.depth = depth
        return not over

    cdef int retake(self) except -1:
        """Take it whatever signals arrive: the caller gives it back."""
        cdef unsigned long me = PyThread_get_thread_ident()
        cdef uint32_t seen
        while self.owner != 0:
            seen = wait_event_enter(&self.freed)
            if self.owner != 0:
                with nogil:
                    wait_event_sleep(&self.freed, seen, -1)
            wait_event_leave(&self.freed)
        self.owner = me
        return 0

    def notify_all(self) -> None:
        wait_event_wake(&self.changed)
