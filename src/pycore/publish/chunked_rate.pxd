"""Counts the chunks that a producer has published in the last minute. Beneath batcher and entry
intake; the mutex of the producer orders who counts, and any thread asks."""

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.rate_counter cimport RateCounter


cdef class ChunkedRate:
    cdef ClockCore clock
    cdef RateCounter chunks              # None: there was none yet

    cdef int begin(self) except -1
    """A chunk is about to be published."""

    cdef void count(self) noexcept
    """One was published. Nothing fails: what is stored must not look as if it were not."""
