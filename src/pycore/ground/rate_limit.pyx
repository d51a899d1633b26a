# cython: language_level=3
"""Body of rate_limit.pxd."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.rate_counter cimport RateCounter


cdef class PublishMeter:
    """See the pxd."""

    def __init__(self, ClockCore clock not None) -> None:
        self.clock = clock
        self.message_count = RateCounter()
        self.byte_count = RateCounter()

    cdef int add(self, int64_t messages, int64_t size) except -1:
        # The time of the entry is its client's.
        cdef int64_t at_ms = self.clock.now()
        self.message_count.add(<uint64_t>messages, at_ms)
        self.byte_count.add(<uint64_t>size, at_ms)
        return 0


cdef class RateLimit:
    """See the pxd. Any thread may call."""

    def __init__(self, ClockCore clock not None) -> None:
        """Without a limit until `limit` is called."""
        self.clock = clock
        self.period_ms = 1000
        self.begun_ms = clock.monotonic()

    def limit(self, int64_t messages, int64_t size, int64_t period_ms,
              PublishMeter meter=None) -> None:
        """From now on so many messages and bytes a period; 0: no limit. What was used of this
        period stays used. meter: what is published on the topic in a period is allowed besides."""
        self.renew(self.clock.monotonic())
        self.message_limit = messages
        self.byte_limit = size
        self.period_ms = period_ms
        self.meter = meter
        self.begin(self.begun_ms)

    cdef int begin(self, int64_t now_ms) except -1:
        """A period begins."""
        self.begun_ms = now_ms
        self.message_permits = self.message_limit
        self.byte_permits = self.byte_limit
        if self.meter is not None:
            at_ms = self.clock.now()
            self.message_permits = permits_beside(
                self.message_limit, self.meter.message_count.per_second(at_ms), self.period_ms)
            self.byte_permits = permits_beside(
                self.byte_limit, self.meter.byte_count.per_second(at_ms), self.period_ms)
        return 0

    cdef int renew(self, int64_t now_ms) except -1:
        cdef int64_t periods
        if self.used_messages == 0 and self.used_bytes == 0:
            return self.begin(now_ms)
        if now_ms - self.begun_ms < self.period_ms:
            return 0
        periods = (now_ms - self.begun_ms) // self.period_ms
        self.used_messages = unpaid(self.used_messages, self.message_permits, periods)
        self.used_bytes = unpaid(self.used_bytes, self.byte_permits, periods)
        if self.used_messages or self.used_bytes:
            now_ms = self.begun_ms + periods * self.period_ms
        return self.begin(now_ms)

    cdef int64_t waits_until(self) except -1:
        cdef int64_t periods = 0
        self.renew(self.clock.monotonic())
        if self.message_permits and self.used_messages >= self.message_permits:
            periods = self.used_messages // self.message_permits
        if self.byte_permits and self.used_bytes >= self.byte_permits:
            periods = max(periods, self.used_bytes // self.byte_permits)
        if periods == 0:
            return 0
        if self.meter is not None:
            periods = 1                      # the next one may allow more
        if periods > (INT64_MAX - self.begun_ms) // self.period_ms:
            return INT64_MAX - 1
        return self.begun_ms + periods * self.period_ms

    cdef bint lacks_messages(self) noexcept:
        return self.message_permits != 0 and self.used_messages >= self.message_permits

    cdef int take(self, int64_t messages, int64_t size) except -1:
        self.renew(self.clock.monotonic())
        if self.message_limit and self.used_messages < INT64_MAX - messages:
            self.used_messages += messages
        if self.byte_limit and self.used_bytes < INT64_MAX - size:
            self.used_bytes += size
        return 0


cdef int64_t permits_beside(int64_t limit, double per_second, int64_t period_ms) noexcept:
    """A limit and what is published a period; 0: there is no limit."""
    cdef double found = limit + per_second * period_ms / 1000.0
    if limit == 0:
        return 0
    return INT64_MAX if found >= 9e18 else <int64_t>found


cdef int64_t unpaid(int64_t used, int64_t permits, int64_t periods) noexcept:
    """Return how much of what was used is still to be paid, so many periods later."""
    if permits == 0 or periods > used // permits:
        return 0
    return used - periods * permits
