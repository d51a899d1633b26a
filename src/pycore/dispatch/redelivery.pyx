# cython: language_level=3
"""Body of redelivery.pxd."""

from collections import deque

from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class DeadLetterSink:
    """See the pxd."""

    def __init__(self, JobQueue jobs not None, handler) -> None:
        """handler: a job; it takes what `take` gives until that is None."""
        self.jobs = jobs
        self.handler = handler
        self.waiting = deque()

    cpdef int hand_over(self, object receiver, list messages) except -1:
        self.waiting.append((receiver, messages))
        return self.jobs.put(self.handler)

    def take(self) -> tuple[object, list] | None:
        """The receiver, whose revive takes what could not be given up, and the messages that have
        waited longest, oldest first. None: none do."""
        return self.waiting.popleft() if self.waiting else None


cdef class Redelivery:
    """See the pxd."""

    def __init__(self, object settings) -> None:
        """settings: a ReceiverSettings of the broker; None for a reader."""
        self.nack_delay_ms = 60000
        if settings is not None:
            self.nack_delay_ms = settings.nack_delay_ms
            self.nack_backoff = settings.nack_backoff
            self.ack_timeout_ms = settings.ack_timeout_ms
            self.ack_timeout_tick_ms = settings.ack_timeout_tick_ms
            self.ack_timeout_backoff = settings.ack_timeout_backoff

    cdef int64_t nack_delay(self, uint32_t redelivery_count) except -1:
        cdef int64_t delay_ms = self.nack_delay_ms
        if self.nack_backoff is not None:
            delay_ms = self.nack_backoff.next(redelivery_count)
        return max(delay_ms, 0)

    cdef int64_t at_tick(self, int64_t due_ms) noexcept:
        cdef int64_t tick_ms = self.ack_timeout_tick_ms
        if due_ms > INT64_MAX - tick_ms:
            return due_ms
        return (due_ms + tick_ms - 1) // tick_ms * tick_ms

    cdef int64_t overdue_delay(self, uint32_t redelivery_count, str consumer_name,
                               str topic_name) except -1:
        cdef int64_t delay_ms
        if self.ack_timeout_backoff is None:
            return 0
        try:
            delay_ms = self.ack_timeout_backoff.next(redelivery_count)
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception(
                "%s: the ack_timeout_backoff of consumer %s failed; the message comes again now",
                topic_name, consumer_name)
            return 0
        return max(delay_ms, 0)
