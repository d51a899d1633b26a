"""Counts the chunks that a producer has published in the last minute. Beneath batcher and entry
intake; the mutex of the producer orders who counts, and any thread asks."""

from libc.stdint cimport int64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore


cdef class ChunkedRate:
    cdef ClockCore clock
    cdef object published_ms             # deque, of a minute; None: there was none yet

    cdef int count(self) except -1
    """One was published."""
