# cython: language_level=3
"""Body of redelivery.pxd."""

from collections import deque

from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from pulsarx import errors
from pulsarx._core.entry_frame cimport ENTRY_COMPRESSED
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_SEALED, ENTRY_UNREADABLE, EntryView, entry_view_decrypt, entry_view_join,
    entry_view_repacked, entry_view_share, entry_view_unpack,
)
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_new
from pulsarx._pycore.message.message_at cimport message_in


cdef class DeadLetterSink:
    """See the pxd."""

    def __init__(self, JobQueue jobs not None, handler) -> None:
        """handler: a job; it settles what `oldest` gives until that is None."""
        self.jobs = jobs
        self.handler = handler
        self.waiting = deque()

    cpdef int hand_over(self, object receiver, list messages) except -1:
        self.waiting.append((receiver, messages))
        return self.jobs.put(self.handler)

    def oldest(self) -> tuple[object, list] | None:
        """The receiver, whose revive takes what could not be given up, and the messages that have
        waited longest, oldest first. None: none do. The handler sets each to None that it has
        settled, so that one that runs again, for want of memory, settles the others."""
        self.opened_of = self.opened = None
        return self.waiting[0] if self.waiting else None

    def drop_oldest(self) -> None:
        """Forget these messages, which are settled."""
        self.waiting.popleft()

    def open(self, Message letter not None) -> Message:
        """Return the message that was handed over, with its content; by the handler, which lets go
        of it before the next one. CorruptDataError, CryptoError: that cannot be read."""
        cdef EntryView waited = letter.entry
        cdef EntryView view
        cdef Message found
        if not waits_packed(waited):
            return letter
        if self.opened_of is not waited:
            self.opened_of = self.opened = None
            view = entry_view_share(waited, waited.context)
            if view.chunked is not None:
                entry_view_join(view, self.decompressed_size_max)
            elif view.encryption == ENTRY_SEALED:
                entry_view_decrypt(view, self.decompressed_size_max)
            else:
                entry_view_unpack(view, self.decompressed_size_max)
            if view.encryption == ENTRY_UNREADABLE:
                raise errors.CryptoError(detail=view.undecrypted_why)
            self.opened_of, self.opened = waited, view
        found = message_in(self.opened, <uint32_t>max(letter.batch_index, 0),
                           letter.flags >> REDELIVERY_SHIFT)
        if found is None:
            raise errors.CorruptDataError(detail=f"its batch in {waited.context.topic_name} has "
                                          f"no message {letter.batch_index} any more")
        return found


cdef inline bint waits_packed(EntryView view) noexcept:
    return view.plain is None and (
        view.entry_flags & ENTRY_COMPRESSED != 0 or view.encryption == ENTRY_SEALED
        or view.chunked is not None)


cdef Message packed_letter(Message message, list dead):
    """Return the message in the form in which it waits: without memory of its own. dead: those
    before it."""
    cdef EntryView view = message.entry
    cdef EntryView packed = None
    if view.plain is None:
        return message
    if dead:
        packed = (<Message>dead[len(dead) - 1][1]).entry
    if packed is None or packed.plain is not None or packed.c_entry != view.c_entry or (
            packed.context is not view.context):
        packed = entry_view_repacked(view, view.context)
    return message_new(packed, NULL, 0, message.batch_index, 0, message.flags)


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
