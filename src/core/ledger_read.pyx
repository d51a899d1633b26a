"""Reads frames and entries from a mapping, verifies them, and finds one by entry, message or
publish time."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport EntryFrame, entry_frame_decode, entry_frame_span
from pulsarx._core.ledger_index cimport (
    FIND_ENTRY, FIND_MESSAGE, IndexRecord, LedgerIndex, ledger_index_before,
)
from pulsarx._core.limits cimport ENTRY_ALIGNMENT, ENTRY_FRAME_SIZE, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK, STATUS_OUT_OF_RANGE

cdef enum:
    ENTRY_MAGIC_SIZE = 6


cdef int ledger_read_frame(const LedgerRead* self, uint64_t offset, uint64_t end,
                           EntryFrame* frame) noexcept nogil:
    cdef EntryFrame found
    cdef int status
    if offset == end:
        return STATUS_END
    if (offset < LEDGER_HEADER_SIZE or offset > end or end > self.mapped_size
            or offset % ENTRY_ALIGNMENT != 0):
        return STATUS_OUT_OF_RANGE
    if end - offset < ENTRY_FRAME_SIZE:
        return STATUS_CORRUPT
    status = entry_frame_decode(self.base + offset, self.seed, offset, &found)
    # Zeros below the published end are damage: something was written there.
    if status != STATUS_OK or entry_frame_span(found.entry_size) > end - offset:
        return STATUS_CORRUPT
    frame[0] = found
    return STATUS_OK


cdef int entry_check(const uint8_t* entry, const EntryFrame* frame) noexcept nogil:
    cdef uint32_t size = frame.entry_size
    cdef uint32_t stored
    cdef uint64_t at
    if size < ENTRY_MAGIC_SIZE or entry[0] != 0x0E or entry[1] != 0x01:
        return STATUS_CORRUPT
    stored = (<uint32_t>entry[2] << 24) | (<uint32_t>entry[3] << 16)
    stored |= (<uint32_t>entry[4] << 8) | entry[5]
    if stored != crc32c(0, entry + ENTRY_MAGIC_SIZE, size - ENTRY_MAGIC_SIZE):
        return STATUS_CORRUPT
    for at in range(size, entry_frame_span(size) - ENTRY_FRAME_SIZE):
        if entry[at]:
            return STATUS_CORRUPT
    return STATUS_OK


cdef int ledger_read_entry(const LedgerRead* self, uint64_t offset, uint64_t end,
                           EntryFrame* frame, const uint8_t** entry,
                           uint64_t* next_offset) noexcept nogil:
    cdef int status = ledger_read_frame(self, offset, end, frame)
    if status != STATUS_OK:
        return status
    next_offset[0] = offset + entry_frame_span(frame.entry_size)
    entry[0] = self.base + offset + ENTRY_FRAME_SIZE
    return entry_check(entry[0], frame)


cdef int ledger_read_pass(const LedgerRead* self, uint64_t offset, uint64_t end,
                          uint64_t* next_offset) noexcept nogil:
    cdef EntryFrame frame
    cdef uint64_t at = offset + ENTRY_ALIGNMENT
    if end > self.mapped_size or offset < LEDGER_HEADER_SIZE or offset % ENTRY_ALIGNMENT != 0:
        return STATUS_OUT_OF_RANGE
    while at + ENTRY_FRAME_SIZE <= end:
        # Most words cannot be the start of a frame; looking at the sizes alone is a tenth of the
        # checksum.
        if (<const uint64_t*>(self.base + at))[0] != 0:
            if ledger_read_frame(self, at, end, &frame) == STATUS_OK:
                next_offset[0] = at
                return STATUS_OK
        at += ENTRY_ALIGNMENT
    return STATUS_END


cdef inline bint frame_answers(const EntryFrame* frame, int kind, uint64_t value) noexcept nogil:
    if kind == FIND_ENTRY:
        return frame.entry_id >= value
    if kind == FIND_MESSAGE:
        return frame.first_message + frame.message_count > value
    return frame.publish_time_ms >= <int64_t>value


cdef inline bint frame_is_behind(const EntryFrame* frame, int kind, uint64_t value) noexcept nogil:
    """Whether what is looked for may have been in front of the frame, which answers."""
    if kind == FIND_ENTRY:
        return frame.entry_id > value
    if kind == FIND_MESSAGE:
        return frame.first_message > value
    return True


cdef inline bint frame_is_recorded(const EntryFrame* frame,
                                   const IndexRecord* record) noexcept nogil:
    return frame.entry_id == record.entry_id and frame.first_message == record.first_message


cdef int ledger_read_find(const LedgerRead* self, int kind, uint64_t value, uint64_t end,
                          const LedgerIndex* index, uint64_t* offset,
                          LedgerGap* gap) noexcept nogil:
    cdef EntryFrame frame
    cdef IndexRecord record
    cdef LedgerGap passed
    cdef uint64_t at = LEDGER_HEADER_SIZE
    cdef bint indexed = False
    cdef int status
    if gap != NULL:
        gap.offset = 0
    if end > self.mapped_size:
        return STATUS_OUT_OF_RANGE
    if end <= LEDGER_HEADER_SIZE:
        return STATUS_END
    passed.offset = passed.entry_id = passed.first_message = 0
    if index != NULL and ledger_index_before(index, kind, value, end, &record):
        indexed = record.offset > LEDGER_HEADER_SIZE and record.offset % ENTRY_ALIGNMENT == 0
    if indexed:
        at = record.offset
        passed.entry_id = record.entry_id
        passed.first_message = record.first_message
    while True:
        status = ledger_read_frame(self, at, end, &frame)
        if status == STATUS_OK and indexed and at == record.offset and (
                not frame_is_recorded(&frame, &record)):
            # The index is not of these entries: they are passed one by one.
            indexed = False
            at = LEDGER_HEADER_SIZE
            passed.entry_id = passed.first_message = 0
            continue
        if status == STATUS_CORRUPT:
            passed.offset = at
            status = ledger_read_pass(self, at, end, &at)
            if status == STATUS_OK:
                continue
        if status == STATUS_END and gap != NULL:
            gap[0] = passed
        if status != STATUS_OK:
            return status
        if frame_answers(&frame, kind, value):
            if gap != NULL and passed.offset and frame_is_behind(&frame, kind, value):
                gap[0] = passed
            offset[0] = at
            return STATUS_OK
        at += entry_frame_span(frame.entry_size)
        passed.offset = 0
        passed.entry_id = frame.entry_id + 1
        passed.first_message = frame.first_message + frame.message_count
