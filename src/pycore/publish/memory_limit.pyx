# cython: language_level=3
"""Body of memory_limit.pxd."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns


cdef class MemoryLimit:
    """See the pxd."""

    def __cinit__(self, int64_t limit) -> None:
        """limit: in bytes, from 1."""
        self.limit = limit
        self.changed.event = 0
        self.changed.waiters = 0

    cdef bint is_full(self) noexcept:
        return self.used > self.limit

    cdef int release(self, int64_t size) except -1:
        cdef bint was_full = self.used > self.limit
        self.used -= size
        if was_full and self.used <= self.limit:
            wait_event_wake(&self.changed)
            if self.wanted is not None:
                wanted, self.wanted = self.wanted, None
                for notify in wanted:
                    notify()
        return 0

    cdef int want(self, object notify) except -1:
        if self.wanted is None:
            self.wanted = []
        if notify not in self.wanted:
            self.wanted.append(notify)
        return 0

    cdef int look_again(self) except -1:
        wait_event_wake(&self.changed)
        return 0

    cdef int wait(self, set unless) except -1:
        cdef int64_t sleep_ns
        cdef uint32_t seen
        while self.is_full() and not unless:
            seen = wait_event_enter(&self.changed)
            sleep_ns = signals_sleep_ns(-1)
            if self.is_full() and not unless:
                with nogil:
                    wait_event_sleep(&self.changed, seen, sleep_ns)
            wait_event_leave(&self.changed)
            signals_check()
        return 0
