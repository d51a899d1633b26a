"""Decides when messages of one consumer are delivered again, and when they are given up instead.
Beneath entry_sink and the dispatchers; with the subscription's mutex held, but for the delays: a
backoff is the user's code.
"""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.message.message cimport Message


cdef class DeadLetterSink:
    """Hands messages that a consumer gave up, as redelivered too often, to its dead letter topic.
    Handing over is one step. They wait as they are stored: what takes memory of its own, for it was
    decompressed, decrypted or put together, is one entry at a time (`open`)."""
    cdef JobQueue jobs
    cdef object handler                  # job: takes what waits and moves it
    cdef object waiting                  # deque of (receiver, list of messages)
    cdef uint32_t decompressed_size_max
    cdef EntryView opened_of             # of the letter that was opened last, as it waited
    cdef EntryView opened

    cpdef int hand_over(self, object receiver, list messages) except -1
    """The list is the sink's from now on."""


cdef Message packed_letter(Message message, list dead)
"""A message as it waits: without what takes memory of its own. dead: (receiver, message) of those
before it."""


cdef class Redelivery:
    cdef int64_t nack_delay_ms
    cdef object nack_backoff             # None, or next(redelivery count) -> ms
    cdef int64_t ack_timeout_ms          # 0: none
    cdef int64_t ack_timeout_tick_ms
    cdef object ack_timeout_backoff      # None, or as nack_backoff
    cdef bint timed                      # Shared: it has an ack timeout, or the messages expire
    cdef uint32_t max_redeliver_count    # 0: no dead letters
    cdef DeadLetterSink dead_letters     # where messages go that are given up; None: nowhere

    cdef inline bint is_too_often(self, uint32_t redelivery_count) noexcept:
        """Whether a message that came again so often is given up."""
        return self.max_redeliver_count != 0 and redelivery_count > self.max_redeliver_count

    cdef int64_t nack_delay(self, uint32_t redelivery_count) except -1
    """After how many milliseconds a negatively acknowledged message comes again."""

    cdef int64_t at_tick(self, int64_t due_ms) noexcept
    """When a deadline of acknowledgement counts: at the next tick."""

    cdef int64_t overdue_delay(self, uint32_t redelivery_count, str consumer_name,
                               str topic_name) except -1
    """After how many milliseconds more an overdue message comes again. A backoff that raises is
    none, said in the log."""
