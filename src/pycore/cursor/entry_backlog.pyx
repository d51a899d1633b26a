# cython: language_level=3
"""Counts the entries of a ledger that hold a message that is not acknowledged. For statistics."""

from libc.stdint cimport uint64_t

from pulsarx._core.ack_bits cimport ack_bits_count_below, ack_bits_end
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, EntryFrame, entry_frame_span
from pulsarx._core.ledger_index cimport FIND_MESSAGE
from pulsarx._core.ledger_read cimport LedgerGap, LedgerRead, ledger_read_frame, ledger_read_pass
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, ledger_span_end


def open_entries(AckTracker tracker not None, object span_of, uint64_t ledger_id,
                 uint64_t entry_count, uint64_t message_count) -> int:
    """Entries of a ledger, of its first entry_count, with an unacknowledged message. message_count:
    in these.

    The subscription's mutex is held. span_of: called without arguments for the LedgerSpan if
    frames must be read: those between the first hole in the acknowledgements and the last one.
    """
    cdef LedgerAcks* acks = cursor_state_find(&tracker.c_state, ledger_id)
    cdef uint64_t acknowledged = ack_bits_count_below(&acks.bits, message_count) if acks else 0
    if ledger_id < tracker.c_state.acknowledged_below or acknowledged == message_count:
        return 0
    if acknowledged == 0:
        return entry_count
    if entry_count == message_count:
        return entry_count - acknowledged
    return walk(tracker, span_of(), ledger_id, entry_count, message_count,
                ack_bits_end(&acks.bits))


def hidden_chunks(AckTracker tracker not None, LedgerSpan span not None, uint64_t ledger_id,
                  uint64_t message_count) -> int:
    """Unacknowledged chunks of a ledger, of its first message_count messages, that are not the last
    one of their message: the message is counted with that one. The subscription's mutex is held."""
    cdef uint64_t at = tracker.next_unacknowledged(ledger_id, 0, message_count)
    cdef uint64_t end = ledger_span_end(span)
    cdef uint64_t offset = 0
    cdef uint64_t total = 0
    cdef LedgerGap gap
    cdef EntryFrame frame
    cdef EntryParts parts
    if at == message_count:
        return 0
    span.file.c_find(FIND_MESSAGE, at, end, &offset, &gap)
    while offset < end and read_next(&span.file.c_read, &offset, end, &frame):
        if frame.first_message >= message_count:
            break
        if frame.flags & ENTRY_CHUNK and tracker.next_unacknowledged(
                ledger_id, frame.first_message, frame.first_message + 1) == frame.first_message:
            if entry_decode(span.file.c_read.base + offset + ENTRY_FRAME_SIZE, frame.entry_size,
                            False, &parts) == STATUS_OK and (
                    parts.metadata.chunk_id + 1 < parts.metadata.chunk_count):
                total += 1
        offset += entry_frame_span(frame.entry_size)
    return total


cdef uint64_t walk(AckTracker tracker, LedgerSpan span, uint64_t ledger_id, uint64_t entry_count,
                   uint64_t message_count, uint64_t acknowledged_end) except? 0:
    """acknowledged_end: no message from there on is acknowledged. What cannot be read counts, until
    its messages are acknowledged."""
    cdef uint64_t first = tracker.next_unacknowledged(ledger_id, 0, acknowledged_end)
    cdef uint64_t end = ledger_span_end(span)
    cdef uint64_t offset = 0
    cdef uint64_t passed = 0       # entries so far,
    cdef uint64_t message_end = 0  # and messages
    cdef uint64_t total = 0
    cdef LedgerGap gap
    cdef EntryFrame frame
    span.file.c_find(FIND_MESSAGE, first, end, &offset, &gap)
    if gap.offset:
        passed = gap.entry_id
        message_end = gap.first_message
    elif ledger_read_frame(&span.file.c_read, offset, end, &frame) == STATUS_OK:
        passed = frame.entry_id
        message_end = frame.first_message
    while passed < entry_count and read_next(&span.file.c_read, &offset, end, &frame):
        if frame.entry_id < passed or frame.first_message < message_end:
            break
        if tracker.next_unacknowledged(ledger_id, message_end,
                                       frame.first_message) < frame.first_message:
            total += frame.entry_id - passed
        passed = frame.entry_id
        message_end = frame.first_message
        if message_end >= acknowledged_end:
            break
        message_end += frame.message_count
        if tracker.next_unacknowledged(ledger_id, frame.first_message, message_end) < message_end:
            total += 1
        passed += 1
        offset += entry_frame_span(frame.entry_size)
    if passed < entry_count and (
            tracker.next_unacknowledged(ledger_id, message_end, message_count) < message_count):
        total += entry_count - passed
    return total


cdef bint read_next(const LedgerRead* read, uint64_t* offset, uint64_t end,
                    EntryFrame* frame) noexcept:
    """Read the first frame from offset on that holds; False: there is none."""
    if ledger_read_frame(read, offset[0], end, frame) == STATUS_OK:
        return True
    with nogil:
        if ledger_read_pass(read, offset[0], end, offset) != STATUS_OK:
            return False
    return ledger_read_frame(read, offset[0], end, frame) == STATUS_OK
