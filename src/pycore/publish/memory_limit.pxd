"""Limits how many bytes of messages the producers of one client may have on their way. Beneath
batcher and publishers; any thread, each step is one to a signal handler.
"""

from libc.stdint cimport int64_t

from pulsarx._core.wait_event cimport WaitEvent


cdef class MemoryLimit:
    cdef readonly int64_t limit
    cdef readonly int64_t used
    cdef WaitEvent changed               # it is full no more
    cdef list wanted                     # what is called once when it is; None: nothing

    cdef bint is_full(self) noexcept
    """Whether no further message is taken. One may go over the limit, as in the official client,
    so that a message larger than the limit can be sent at all."""

    cdef int release(self, int64_t size) except -1
    """Messages of so many bytes are confirmed, or failed."""

    cdef int want(self, object notify) except -1
    """Call it once when there is room, with whatever mutex held."""

    cdef int look_again(self) except -1
    """Have those that wait look again."""

    cdef int wait(self, set unless) except -1
    """Return when it is not full, or the set, unless it is None, has an element. No mutex held."""
