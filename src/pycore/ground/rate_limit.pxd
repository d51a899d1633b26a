"""A limit of messages and bytes a period, for what publishes or dispatches.

As long as something is left of the period an entry passes as a whole; what it takes beyond that is
paid by the periods that follow. What a period leaves over is lost. A period begins with the first
entry after the one before has ended and is paid. The GIL orders the calls, each of which is one
step.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.rate_counter cimport RateCounter


cdef class PublishMeter:
    """Counts what is published on a topic, for limits that are relative to it."""
    cdef ClockCore clock
    cdef RateCounter message_count
    cdef RateCounter byte_count

    cdef int add(self, int64_t messages, int64_t size) except -1
    """An entry was published."""


cdef class RateLimit:
    cdef ClockCore clock
    cdef readonly int64_t message_limit  # a period; 0: no limit
    cdef readonly int64_t byte_limit
    cdef readonly int64_t period_ms
    cdef PublishMeter meter              # what is published a period is added; None: nothing is
    cdef readonly uint64_t limited_times # how often somebody had to wait
    cdef int64_t message_permits         # of the period that runs
    cdef int64_t byte_permits
    cdef int64_t used_messages           # with what is to be paid
    cdef int64_t used_bytes
    cdef int64_t begun_ms                # when the period began, in monotonic time

    cdef int64_t waits_until(self) except -1
    """When the next entry may pass, in monotonic time; 0: now."""

    cdef int take(self, int64_t messages, int64_t size) except -1
    """An entry passes."""

    cdef bint lacks_messages(self) noexcept
    """Whether messages are what there are no permits for, where waits_until is not 0."""

    cdef int renew(self, int64_t now_ms) except -1
    cdef int begin(self, int64_t now_ms) except -1
