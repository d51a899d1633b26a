# cython: language_level=3
"""Body of compacted_ledger.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.compacted_entry cimport (
    COMPACTED_HEADER_SIZE, CompactedPlace, compacted_entry_decode,
)
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, EntryFrame
from pulsarx._core.ledger_index cimport IndexRecord, ledger_index_record
from pulsarx._core.ledger_read cimport ledger_read_entry, ledger_read_frame, ledger_read_pass
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile


cdef class CompactedLedger:
    """See the pxd."""

    def __init__(self, LedgerFile file, uint64_t ledger_id, uint64_t end, uint64_t entry_count,
                 uint64_t message_count, uint64_t horizon_ledger_id, uint64_t horizon_message,
                 lost_why=None) -> None:
        """file: None where it cannot be read. end: bytes of the file up to its index. horizon: the
        position of the topic up to which it says all."""
        self.file = file
        self.ledger_id = ledger_id
        self.end = end
        self.entry_count = entry_count
        self.message_count = message_count
        self.horizon_ledger_id = horizon_ledger_id
        self.horizon_message = horizon_message
        self.lost_why = lost_why
        if file is not None:
            if end > file.c_read.mapped_size:
                self.end = file.c_read.mapped_size // 8 * 8
            if file.c_header.sealed:
                try:
                    file.c_footer_load()
                except Exception:
                    pass     # a damaged index only makes the search slow

    cdef int find(self, uint64_t ledger_id, uint64_t message, CompactedCursor* cursor) except -1:
        cdef CompactedPlace place
        cdef CompactedCursor damaged
        cdef CompactedCursor at
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset
        cdef bint is_damaged = False
        cdef int status
        cursor.offset = LEDGER_HEADER_SIZE
        cursor.entry_id = 0
        cursor.message = 0
        if self.file is None or ledger_id == 0:
            return 0
        self.begin(ledger_id, message, cursor)
        at = cursor[0]
        damaged = at
        with nogil:
            while at.offset < self.end:
                next_offset = 0
                status = ledger_read_entry(&self.file.c_read, at.offset, self.end, &frame, &entry,
                                           &next_offset)
                if status == STATUS_OK:
                    status = compacted_entry_decode(entry, frame.entry_size, &place)
                if status == STATUS_OK:
                    if place.ledger_id > ledger_id or (
                            place.ledger_id == ledger_id
                            and place.first_message + place.message_count > message):
                        break
                    is_damaged = False
                    at.offset = next_offset
                    at.entry_id = frame.entry_id + 1
                    at.message = frame.first_message + frame.message_count
                    continue
                if not is_damaged:
                    damaged = at
                    is_damaged = True
                if next_offset == 0 and ledger_read_pass(&self.file.c_read, at.offset, self.end,
                                                         &next_offset) != STATUS_OK:
                    next_offset = self.end
                at.offset = next_offset
                at.entry_id = self.entry_count
                at.message = self.message_count
                if ledger_read_frame(&self.file.c_read, next_offset, self.end,
                                     &frame) == STATUS_OK:
                    at.entry_id = frame.entry_id
                    at.message = frame.first_message
        cursor[0] = damaged if is_damaged else at
        return 0

    cdef int begin(self, uint64_t ledger_id, uint64_t message, CompactedCursor* cursor) except -1:
        """The last record of the index whose entry lies in front of the position."""
        cdef IndexRecord record
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset = 0
        cdef uint64_t low = 0
        cdef uint64_t high
        cdef uint64_t middle
        if self.file.c_index == NULL:
            return 0
        high = self.file.c_index.count
        while low < high:
            middle = low + (high - low) // 2
            ledger_index_record(self.file.c_index, middle, &record)
            if record.offset >= self.end or ledger_read_entry(
                    &self.file.c_read, record.offset, self.end, &frame, &entry,
                    &next_offset) != STATUS_OK or compacted_entry_decode(
                    entry, frame.entry_size, &place) != STATUS_OK:
                high = middle        # what lies behind is found by walking
            elif place.ledger_id > ledger_id or (place.ledger_id == ledger_id
                                                 and place.first_message > message):
                high = middle
            else:
                low = middle + 1
                cursor.offset = record.offset
                cursor.entry_id = frame.entry_id
                cursor.message = frame.first_message
        return 0

    def place_of_entry(self, ledger_id: int, entry_id: int) -> tuple[int, int, int, int] | None:
        """The first entry from an id of the topic on: (ledger id, entry id, ordinal of its first
        message, messages); None: there is none that can be read."""
        return self.place_at(self.offset_of(ledger_id, entry_id)) if self.file is not None else None

    def first_chunk(self, ledger_id: int, entry_id: int) -> tuple[int, int] | None:
        """(ledger id, entry id) of the first chunk of the message whose last chunk an entry is.
        None: it is not the last one, or survivors lie between its chunks."""
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef uint32_t count
        cdef bytes uuid
        if self.file is None or not self.read_chunk(self.offset_of(ledger_id, entry_id), &frame,
                                                    &place, &parts):
            return None
        count = parts.metadata.chunk_count
        uuid = parts.metadata.uuid[:parts.metadata.uuid_size]
        if (place.ledger_id, place.entry_id) != (ledger_id, entry_id) or (
                parts.metadata.chunk_id + 1 != count or frame.entry_id + 1 < count):
            return None
        if not self.read_chunk(self.file.find_entry(frame.entry_id + 1 - count, self.end), &frame,
                               &place, &parts):
            return None
        if parts.metadata.chunk_id != 0 or parts.metadata.chunk_count != count or (
                uuid != parts.metadata.uuid[:parts.metadata.uuid_size]):
            return None
        return place.ledger_id, place.entry_id

    cdef bint read_chunk(self, uint64_t offset, EntryFrame* frame, CompactedPlace* place,
                         EntryParts* parts) noexcept:
        """False: the entry there is no chunk, or cannot be read."""
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset = 0
        if offset >= self.end or ledger_read_entry(
                &self.file.c_read, offset, self.end, frame, &entry, &next_offset) != STATUS_OK:
            return False
        if frame.flags & ENTRY_CHUNK == 0 or compacted_entry_decode(
                entry, frame.entry_size, place) != STATUS_OK:
            return False
        return entry_decode(entry + COMPACTED_HEADER_SIZE, frame.entry_size - COMPACTED_HEADER_SIZE,
                            False, parts) == STATUS_OK and parts.metadata.uuid != NULL

    cdef uint64_t offset_of(self, uint64_t ledger_id, uint64_t entry_id) except? 0:
        """Return where the first entry is from an id of the topic on; the end when there is none
        that can be read."""
        cdef CompactedCursor cursor
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset
        cdef uint64_t at
        # An entry has a message at least.
        self.find(ledger_id, 0, &cursor)
        at = cursor.offset
        with nogil:
            while at < self.end:
                next_offset = 0
                if ledger_read_entry(&self.file.c_read, at, self.end, &frame, &entry,
                                     &next_offset) == STATUS_OK and compacted_entry_decode(
                        entry, frame.entry_size, &place) == STATUS_OK and (
                        place.ledger_id > ledger_id or (place.ledger_id == ledger_id
                                                        and place.entry_id >= entry_id)):
                    break
                if next_offset == 0 and ledger_read_pass(&self.file.c_read, at, self.end,
                                                         &next_offset) != STATUS_OK:
                    next_offset = self.end
                at = next_offset
        return at

    def place_at_time(self, publish_time_ms: int) -> tuple[int, int, int, int] | None:
        """Like place_of_entry, for the first one that was published at a time or later."""
        if self.file is None:
            return None
        return self.place_at(self.file.find_publish_time(publish_time_ms, self.end))

    cdef tuple place_at(self, uint64_t offset):
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset = 0
        if self.file is None or offset >= self.end or ledger_read_entry(
                &self.file.c_read, offset, self.end, &frame, &entry,
                &next_offset) != STATUS_OK or compacted_entry_decode(
                entry, frame.entry_size, &place) != STATUS_OK:
            return None
        return place.ledger_id, place.entry_id, place.first_message, place.message_count
