"""Counts events and says how many a second there were in the last minute. One thread at a time."""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    RATE_SECONDS = 60


cdef class RateCounter:
    cdef readonly uint64_t total
    cdef uint64_t counts[RATE_SECONDS]   # by second, modulo RATE_SECONDS
    cdef int64_t seconds[RATE_SECONDS]   # since 1970: of which second each is

    cdef void add(self, uint64_t count, int64_t at_ms) noexcept
    """So many events happened at a time of the clock."""
