# cython: language_level=3
"""Body of rate_counter.pxd."""

from libc.stdint cimport int64_t, uint64_t


cdef class RateCounter:
    """See the pxd."""

    def __cinit__(self) -> None:
        cdef int at
        for at in range(RATE_SECONDS):
            self.seconds[at] = -1

    cdef void add(self, uint64_t count, int64_t at_ms) noexcept:
        cdef int64_t second = max(at_ms, <int64_t>0) // 1000
        cdef int64_t at = second % RATE_SECONDS
        if self.seconds[at] != second:
            self.seconds[at] = second
            self.counts[at] = 0
        self.counts[at] += count
        self.total += count

    def count(self, uint64_t count, int64_t at_ms) -> None:
        """See add."""
        self.add(count, at_ms)

    def per_second(self, int64_t now_ms) -> float:
        """Events a second of the last minute; a clock that was set back is believed."""
        cdef int64_t now = max(now_ms, <int64_t>0) // 1000
        cdef uint64_t found = 0
        cdef int at
        for at in range(RATE_SECONDS):
            if self.seconds[at] >= 0 and now - RATE_SECONDS < self.seconds[at] <= now:
                found += self.counts[at]
        return found / <double>RATE_SECONDS
