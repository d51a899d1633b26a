# cython: language_level=3
"""Body of chunked_rate.pxd."""

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.rate_counter cimport RateCounter


cdef class ChunkedRate:
    """See the pxd."""

    def __cinit__(self, ClockCore clock not None) -> None:
        self.clock = clock

    cdef int begin(self) except -1:
        if self.chunks is None:
            self.chunks = RateCounter()
        return 0

    cdef void count(self) noexcept:
        self.chunks.add(1, self.clock.now())

    def per_second(self) -> float:
        """Chunks a second, over the last minute."""
        return 0.0 if self.chunks is None else self.chunks.per_second(self.clock.now())
