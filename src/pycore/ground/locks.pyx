"""Body of locks.pxd."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns
from pulsarx._pycore.ground.waits cimport lock_was_given, lock_was_taken, sleep_on, wait_on

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept


cdef class Lock:
    """Like threading.Lock; the thread that took it gives it back."""

    def acquire(self, blocking=True, timeout=-1) -> bool:
        return self.take(timeout if blocking else 0)

    def release(self) -> None:
        self.give()

    def locked(self) -> bool:
        return self.owner != 0

    def __enter__(self) -> bool:
        return self.take(-1)

    # Three names, for which a call makes no tuple: without memory for that nothing was given back.
    def __exit__(self, kind, error, traceback) -> None:
        self.give()

    cdef bint take(self, double timeout) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        cdef Deadline deadline = None
        cdef int64_t left_ns = -1
        cdef uint32_t seen
        while self.owner != 0 and not (self.is_reentrant and self.owner == me):
            if timeout == 0:
                return False
            if timeout > 0:
                if deadline is None:
                    deadline = Deadline(timeout * 1000)
                left_ns = deadline.remaining_ns()
                if left_ns == 0:
                    return False
            seen = wait_event_enter(&self.freed)
            if self.owner == 0:
                wait_event_leave(&self.freed)
            else:
                wait_on(&self.freed, seen, left_ns)
        self.owner = me
        self.depth += 1
        lock_was_taken()
        return True

    cdef int give(self) except -1:
        if self.owner != PyThread_get_thread_ident():
            raise RuntimeError("release of a lock that this thread does not hold")
        self.depth -= 1
        lock_was_given()
        if self.depth == 0:
            self.owner = 0
            wait_event_wake(&self.freed)
        return 0

    cdef int retake(self) except -1:
        cdef uint32_t seen
        while self.owner != 0:
            seen = wait_event_enter(&self.freed)
            if self.owner != 0:
                with nogil:
                    wait_event_sleep(&self.freed, seen, -1)
            wait_event_leave(&self.freed)
        self.owner = PyThread_get_thread_ident()
        self.depth = 1
        lock_was_taken()
        return 0


cdef class RLock(Lock):
    """Like threading.RLock."""

    def __cinit__(self) -> None:
        self.is_reentrant = True


cdef class Condition:
    """Like threading.Condition, with a lock that is given or one of its own, which is reentrant."""

    def __cinit__(self, Lock lock=None) -> None:
        self.lock = RLock() if lock is None else lock

    def acquire(self, blocking=True, timeout=-1) -> bool:
        return self.lock.take(timeout if blocking else 0)

    def release(self) -> None:
        self.lock.give()

    def __enter__(self) -> bool:
        return self.lock.take(-1)

    def __exit__(self, kind, error, traceback) -> None:
        self.lock.give()

    cdef int take(self) except -1:
        self.lock.take(-1)
        return 0

    cdef int give(self) except -1:
        return self.lock.give()

    def wait(self, timeout=None) -> bool:
        """The lock is held, and is again on return; False: the time (seconds) is over."""
        cdef Deadline deadline = Deadline(None if timeout is None else timeout * 1000)
        cdef uint32_t depth = self.lock.depth
        cdef uint32_t at
        cdef uint32_t seen
        cdef int64_t left_ns
        cdef int status
        if self.lock.owner != PyThread_get_thread_ident():
            raise RuntimeError("wait on a condition whose lock this thread does not hold")
        seen = wait_event_enter(&self.changed)
        for at in range(depth):
            self.lock.give()
        try:
            while True:
                left_ns = deadline.remaining_ns()
                if left_ns == 0:
                    return False
                # Entered all the time: who notifies between two sleeps is heard.
                status = sleep_on(&self.changed, seen, signals_sleep_ns(left_ns))
                signals_check()
                if status == STATUS_OK:
                    return True          # notified, and not a signal whose handler returned
        finally:
            wait_event_leave(&self.changed)
            self.lock.retake()
            for at in range(1, depth):
                self.lock.take(-1)

    def wait_for(self, predicate, timeout=None):
        """Wait until predicate() is true; what it said last."""
        cdef Deadline deadline = Deadline(None if timeout is None else timeout * 1000)
        cdef int64_t left_ns
        found = predicate()
        while not found:
            left_ns = deadline.remaining_ns()
            if left_ns == 0:
                break
            self.wait(None if left_ns < 0 else left_ns / 1e9)
            found = predicate()
        return found

    def notify_all(self) -> None:
        wait_event_wake(&self.changed)


cdef class Event:
    """Like threading.Event."""

    def is_set(self) -> bool:
        return self.flag

    def set(self) -> None:
        self.flag = True
        wait_event_wake(&self.changed)

    def clear(self) -> None:
        self.flag = False

    def wait(self, timeout=None) -> bool:
        """Whether it was set; False: the time (seconds) is over."""
        cdef Deadline deadline = Deadline(None if timeout is None else timeout * 1000)
        cdef int64_t left_ns
        cdef uint32_t seen
        while not self.flag:
            left_ns = deadline.remaining_ns()
            if left_ns == 0:
                return False
            seen = wait_event_enter(&self.changed)
            if self.flag:
                wait_event_leave(&self.changed)
            else:
                wait_on(&self.changed, seen, left_ns)
        return True
