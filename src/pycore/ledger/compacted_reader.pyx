# cython: language_level=3
"""Body of compacted_reader.pxd."""

from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t

from pulsarx._core.compacted_entry cimport (
    COMPACTED_HEADER_SIZE, CompactedPlace, compacted_entry_decode,
)
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_read cimport ledger_read_entry, ledger_read_frame, ledger_read_pass
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.raise_status cimport status_reason
from pulsarx._pycore.ledger.compacted_ledger cimport CompactedLedger
from pulsarx._pycore.ledger.ledger_reader cimport (
    READ_DAMAGE, READ_ENTRY, READ_NOTHING, READ_TURN, LedgerReader,
)
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail


cdef class CompactedReader(LedgerReader):
    """A read position. One thread at a time."""

    def __init__(self, LedgerTail tail not None, str topic_name not None, source):
        """source: with compacted_ledger()."""
        super().__init__(tail, topic_name)
        self.source = source
        self.asks = True

    cdef int go(self, LedgerSpan span, uint64_t offset, uint64_t entry_id, uint64_t ledger_id,
                uint64_t message) noexcept:
        LedgerReader.go(self, span, offset, entry_id, ledger_id, message)
        self.compacted = None
        self.was_compacted = False
        self.asks = True
        self.at_ledger_id = ledger_id
        self.at_message = message
        self.has_gap = False
        return 0

    cdef bint ask(self) except -1:
        """Go to the compacted ledger if the position lies in front of its horizon."""
        cdef CompactedLedger found = control_plane.perform_whole(self.source.compacted_ledger, ())
        self.asks = False
        if found is None or (self.at_ledger_id, self.at_message) >= (
                found.horizon_ledger_id, found.horizon_message):
            return False
        found.find(self.at_ledger_id, self.at_message, &self.cursor)
        self.compacted = found
        self.c_entry = NULL
        return True

    cdef bint turns(self, bint is_lost) except -1:
        # A result that came since reading began lacks removals of keys that were read before: it
        # is gone on with only where it alone has what comes next.
        if not is_lost and not control_plane.perform_whole(
                self.source.is_trimmed_from, (self.passed_ledger_id,)):
            return False
        if self.span is not None:
            self.at_ledger_id = self.span.ledger_id
            self.at_message = self.next_message
        elif self.start_ledger_id:
            self.at_ledger_id = self.start_ledger_id
            self.at_message = self.next_message
        else:
            self.at_ledger_id = self.passed_ledger_id
            self.at_message = UINT64_MAX if self.passed_ledger_id else 0
        return self.ask()

    cdef int next_entry(self) except -1:
        cdef int step
        self.damage_key = 0
        while True:
            if self.asks:
                self.ask()
            if self.compacted is None:
                step = LedgerReader.next_entry(self)
                if step == READ_TURN:
                    continue
                if step == READ_ENTRY and self.was_compacted:
                    self.was_compacted = False
                return step
            step = self.next_compacted()
            if step != READ_NOTHING:
                return step
            self.leave()

    def is_at_end(self) -> bool:
        """Like LedgerReader.is_at_end."""
        return self.compacted is None and not self.asks and LedgerReader.is_at_end(self)

    cdef int leave(self) except -1:
        """Everything in front of the horizon was read: go on there."""
        cdef uint64_t gap_ledger_id = self.gap_ledger_id if self.has_gap else self.at_ledger_id
        cdef uint64_t gap_message = self.gap_message if self.has_gap else self.at_message
        cdef uint64_t ledger_id = self.compacted.horizon_ledger_id
        cdef uint64_t message = self.compacted.horizon_message
        self.find(ledger_id, message)
        self.asks = False
        self.has_gap = True
        self.gap_ledger_id = gap_ledger_id
        self.gap_message = gap_message
        return 0

    cdef int next_compacted(self) except -1:
        cdef CompactedLedger compacted = self.compacted
        cdef CompactedPlace place
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint64_t next_offset = 0
        cdef int status
        if compacted.file is None or self.cursor.offset >= compacted.end:
            if self.cursor.message >= compacted.message_count:
                return READ_NOTHING
            return self.lose_compacted(0)
        status = ledger_read_entry(&compacted.file.c_read, self.cursor.offset, compacted.end,
                                   &frame, &entry, &next_offset)
        if status == STATUS_OK and (frame.entry_id != self.cursor.entry_id
                                    or frame.first_message != self.cursor.message):
            status = STATUS_CORRUPT
        if status == STATUS_OK:
            status = compacted_entry_decode(entry, frame.entry_size, &place)
        if status != STATUS_OK:
            self.lost_why = status_reason(status)
            return self.lose_compacted(next_offset)
        if not self.has_gap and (
                place.ledger_id > self.at_ledger_id
                or (place.ledger_id == self.at_ledger_id
                    and place.first_message > self.at_message)):
            self.has_gap = True
            self.gap_ledger_id = self.at_ledger_id
            self.gap_message = self.at_message
        self.before = self.cursor
        self.cursor.offset = next_offset
        self.cursor.entry_id = frame.entry_id + 1
        self.cursor.message = frame.first_message + frame.message_count
        if not self.was_compacted or self.span is None or (
                self.span.ledger_id != place.ledger_id
                or self.span.file is not compacted.file):
            self.span = LedgerSpan.sealed(place.ledger_id, compacted.file, compacted.end, 0, 0)
        self.was_compacted = True
        self.entry_offset = self.offset
        self.offset = next_offset
        frame.entry_size -= COMPACTED_HEADER_SIZE
        frame.entry_id = place.entry_id
        frame.first_message = place.first_message
        frame.message_count = place.message_count
        self.c_frame = frame
        self.c_entry = entry + COMPACTED_HEADER_SIZE
        self.at_ledger_id = self.passed_ledger_id = place.ledger_id
        self.at_message = self.next_message = place.first_message + place.message_count
        self.next_entry_id = place.entry_id + 1
        return READ_ENTRY

    cdef int lose_compacted(self, uint64_t next_offset) except -1:
        """Pass over what cannot be read; the frames say how many survivors that costs."""
        cdef CompactedLedger compacted = self.compacted
        cdef EntryFrame frame
        cdef uint64_t damaged = self.cursor.offset
        cdef uint64_t first = self.cursor.message
        cdef uint64_t at = next_offset
        cdef bint found = False
        if compacted.file is not None:
            while damaged < compacted.end and not found:
                if at == 0 and ledger_read_pass(&compacted.file.c_read, self.cursor.offset,
                                                compacted.end, &at) != STATUS_OK:
                    break
                if ledger_read_frame(&compacted.file.c_read, at, compacted.end,
                                     &frame) != STATUS_OK:
                    if at >= compacted.end:
                        break
                    self.cursor.offset = at
                    at = 0
                    continue
                # Where frames of other places were copied here, none of them counts.
                found = frame.entry_id > self.cursor.entry_id and (
                    first < frame.first_message <= compacted.message_count)
                if not found:
                    self.cursor.offset = at
                    at = 0
        if found:
            self.cursor.offset = at
            self.cursor.entry_id = frame.entry_id
            self.cursor.message = frame.first_message
        else:
            if damaged >= compacted.end or compacted.file is None:
                self.lost_why = compacted.lost_why or "the last entries are not there"
                self.lost_why = self.lost_why.removeprefix(
                    f"read the compacted ledger {compacted.ledger_id} of {self.topic_name}: ")
            self.cursor.offset = compacted.end
            self.cursor.entry_id = compacted.entry_count
            self.cursor.message = compacted.message_count
        self.c_entry = NULL
        self.lost_ledger_id = compacted.ledger_id
        self.lost_first = first
        self.lost_end = self.cursor.message
        self.lost_what = (f"read the compacted ledger {compacted.ledger_id} of {self.topic_name} "
                          f"from offset {damaged} on")
        self.lost_next = f"at offset {self.cursor.offset}"
        self.damage_key = compacted.ledger_id << 40 ^ damaged ^ <uint64_t>1 << 63
        return READ_DAMAGE

    cdef int lose_entry(self, object why) except -1:
        if not self.was_compacted:
            return LedgerReader.lose_entry(self, why)
        self.lost_ledger_id = self.span.ledger_id
        self.lost_first = self.c_frame.first_message
        self.lost_end = self.next_message
        self.lost_what = (f"read entry {self.c_frame.entry_id} of ledger {self.span.ledger_id} of "
                          f"{self.topic_name}, at offset {self.before.offset} of its compacted "
                          "ledger")
        self.lost_why = why
        self.lost_next = f"at offset {self.cursor.offset}"
        return READ_DAMAGE

    cdef void unread(self) noexcept:
        if not self.was_compacted:
            LedgerReader.unread(self)
            return
        self.cursor = self.before
        self.offset = self.entry_offset
        self.at_ledger_id = self.span.ledger_id
        self.at_message = self.next_message = self.c_frame.first_message
        self.next_entry_id = self.c_frame.entry_id
        self.c_entry = NULL
