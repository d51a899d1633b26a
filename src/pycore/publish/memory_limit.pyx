# cython: language_level=3
"""Body of memory_limit.pxd."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.wait_event cimport wait_event_enter, wait_event_leave, wait_event_wake
from pulsarx._pycore.ground.waits cimport wait_on


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
                failure = None
                for notify in wanted:
                    try:
                        try:
                            notify()
                        except MemoryError:
                            notify()     # once more: it is told this once
                    except MemoryError as error:
                        failure = error  # the others are told all the same
                if failure is not None:
                    raise failure
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
        cdef uint32_t seen
        while self.is_full() and not unless:
            seen = wait_event_enter(&self.changed)
            if self.is_full() and not unless:
                wait_on(&self.changed, seen, -1)
            else:
                wait_event_leave(&self.changed)
        return 0
