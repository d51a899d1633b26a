# cython: language_level=3
"""Body of chunked_rate.pxd."""

from collections import deque

from libc.stdint cimport int64_t, uint32_t

from pulsarx._pycore.ground.clock_core cimport ClockCore

cdef enum Span:
    RATE_SPAN_MS = 60000


cdef class ChunkedRate:
    """See the pxd."""

    def __cinit__(self, ClockCore clock not None) -> None:
        self.clock = clock

    cdef int count(self) except -1:
        cdef int64_t now_ms = self.clock.now()
        if self.published_ms is None:
            self.published_ms = deque()
        self.published_ms.append(now_ms)
        while self.published_ms and now_ms - <int64_t>self.published_ms[0] >= RATE_SPAN_MS:
            self.published_ms.popleft()
        return 0

    def per_second(self) -> float:
        """Chunks a second, over the last minute."""
        cdef int64_t now_ms = self.clock.now()
        # Without the mutex: a publisher that rolls its ledger over has it, and may wait for those
        # who ask for statistics.
        cdef list published = list(self.published_ms or ())
        cdef int64_t at
        cdef uint32_t count = 0
        for at in published:
            count += now_ms - at < RATE_SPAN_MS
        return count * 1000.0 / RATE_SPAN_MS
