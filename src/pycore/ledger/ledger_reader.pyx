# cython: language_level=3
"""Body of ledger_reader.pxd."""

from libc.stdint cimport UINT64_MAX, uint64_t

from pulsarx import errors
from pulsarx._core.entry_frame cimport (
    ENTRY_CHUNK, ENTRY_COMPRESSED, ENTRY_TRANSACTION, EntryFrame, entry_frame_span,
)
from pulsarx._core.ledger_append cimport ledger_append_is_final
from pulsarx._core.ledger_index cimport FIND_MESSAGE
from pulsarx._core.ledger_read cimport (
    LedgerGap, LedgerRead, ledger_read_entry, ledger_read_frame, ledger_read_pass,
)
from pulsarx._core.limits cimport ENTRY_MESSAGES_MAX, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ledger.ledger_tail cimport (
    LedgerSpan, LedgerTail, ledger_span_counts, ledger_span_end,
)
from pulsarx._pycore.ground.raise_status cimport status_reason

cdef enum:
    WALK_MESSAGES_MAX = 512      # nearer than this, walking frame by frame beats a search
    PLAIN_AHEAD_MAX = 4          # entries that plain_ahead counts

cdef uint64_t ENTRY_UNKNOWN = UINT64_MAX


cdef class LedgerReader:
    """A read position. One thread at a time."""

    def __init__(self, LedgerTail tail not None, str topic_name not None):
        self.tail = tail
        self.topic_name = topic_name
        self.next_entry_id = ENTRY_UNKNOWN
        self.seen_changes = UINT64_MAX

    def locate(self, uint64_t ledger_id, uint64_t message) -> tuple:
        """(span, offset, entry id) to go to for a message; may open a file. Needs no mutex.

        A message that lies in a damaged place: the begin of that place. A ledger that is gone or
        cannot be read: span is None, reading begins with it, or the next one.
        """
        cdef LedgerSpan span = None
        cdef uint64_t entry_id = ENTRY_UNKNOWN
        cdef uint64_t offset = 0
        try:
            if ledger_id:
                span = self.tail.span_of(ledger_id)
        except errors.CorruptDataError:
            pass  # its readers are told
        if span is not None and not find_in(span, message, &offset, &entry_id):
            span = None
        return span, offset, entry_id

    cdef int go(self, LedgerSpan span, uint64_t offset, uint64_t entry_id, uint64_t ledger_id,
                uint64_t message) noexcept:
        self.span = span
        self.offset = offset
        self.next_message = message
        self.next_entry_id = entry_id
        self.seen_changes = UINT64_MAX
        self.inside = True
        self.passed_ledger_id = ledger_id
        self.start_ledger_id = 0
        if span is None:
            self.start_ledger_id = ledger_id
            if ledger_id:
                self.passed_ledger_id = ledger_id - 1
        self.c_entry = NULL
        return 0

    cdef int find(self, uint64_t ledger_id, uint64_t message) except -1:
        self.go(None, 0, ENTRY_UNKNOWN, ledger_id, message)
        span, offset, entry_id = self.locate(ledger_id, message)
        return self.go(span, offset, entry_id, ledger_id, message)

    cdef int next_entry(self) except -1:
        cdef uint64_t end
        cdef uint64_t next_offset
        cdef int status
        cdef int step
        while True:
            end = ledger_span_end(self.span) if self.span is not None else 0
            if self.offset >= end:
                step = self.advance()
                if step != READ_AGAIN:
                    return step
                continue
            next_offset = 0
            status = ledger_read_entry(&self.span.file.c_read, self.offset, end, &self.c_frame,
                                       &self.c_entry, &next_offset)
            if status != STATUS_OK or self.c_frame.first_message != self.next_message or (
                    self.c_frame.entry_id != self.next_entry_id):
                step = self.pass_damage(status, next_offset, end)
                if step == READ_AGAIN:
                    continue
                if step == READ_DAMAGE:
                    return step
            self.entry_offset = self.offset
            self.offset = next_offset
            self.next_message = self.c_frame.first_message + self.c_frame.message_count
            self.next_entry_id = self.c_frame.entry_id + 1
            self.inside = False
            if self.c_frame.flags & ENTRY_TRANSACTION and self.tail.hides(
                    self.span.ledger_id, self.c_frame.first_message):
                continue
            return READ_ENTRY

    cdef int plain_ahead(self) noexcept:
        cdef LedgerSpan span = self.span
        cdef EntryFrame frame
        cdef uint64_t offset = self.offset
        cdef uint64_t end
        cdef int count = 0
        if span is None or span.writer is None or span.writer is not self.tail.writer:
            return -1
        end = ledger_span_end(span)
        while offset < end:
            if count == PLAIN_AHEAD_MAX or ledger_read_frame(
                    &span.file.c_read, offset, end, &frame) != STATUS_OK or (
                    frame.flags & (ENTRY_COMPRESSED | ENTRY_CHUNK | ENTRY_TRANSACTION)):
                return -1
            offset += entry_frame_span(frame.entry_size)
            count += 1
        return count

    def is_at_end(self) -> bool:
        """Whether nothing is published that was not read. Changes nothing."""
        cdef LedgerSpan span = self.span
        if span is not None:
            if self.passed_aborted(span, self.offset) < ledger_span_end(span):
                return False
            if span.writer is not None and span.writer is self.tail.writer:
                return True
        if self.tail.is_same(self.seen_changes):
            return True
        try:
            span = self.tail.span_after(span, self.passed_ledger_id, self.offset)
        except errors.CorruptDataError:
            return False
        return span is None or ledger_span_end(span) <= self.passed_aborted(span, max(
            self.offset if self.span is span else 0, <uint64_t>LEDGER_HEADER_SIZE))

    cdef uint64_t passed_aborted(self, LedgerSpan span, uint64_t offset) except? 0:
        cdef EntryFrame frame
        cdef uint64_t end = ledger_span_end(span)
        while offset < end and ledger_read_frame(&span.file.c_read, offset, end,
                                                 &frame) == STATUS_OK and (
                frame.flags & ENTRY_TRANSACTION) and (
                self.tail.hides(span.ledger_id, frame.first_message)):
            offset += entry_frame_span(frame.entry_size)
        return offset

    cdef bint turns(self, bint is_lost) except -1:
        return False

    cdef void let_go(self) noexcept:
        self.span = None
        self.c_entry = NULL

    def leave_gone(self, uint64_t first_id) -> None:
        """Give the mapping of a ledger back that was read to its end and is gone, for it keeps the
        blocks of its file. first_id: of the ledgers that the topic has, or behind all. With the
        mutex of the dispatcher."""
        cdef LedgerSpan span = self.span
        if span is None or span.ledger_id >= first_id:
            return
        if self.offset < ledger_span_end(span) or self.next_message < span.message_count:
            return
        self.go(None, 0, 0, 0, 0)
        self.passed_ledger_id = span.ledger_id

    cdef void unread(self) noexcept:
        self.offset = self.entry_offset
        self.next_message = self.c_frame.first_message
        self.next_entry_id = self.c_frame.entry_id
        self.c_entry = NULL

    cdef int read_message(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef bint near = self.span is not None and self.span.ledger_id == ledger_id
        cdef int step
        if near and self.c_entry != NULL and message >= self.c_frame.first_message and (
                message < self.next_message):
            return READ_ENTRY
        if not near or message < self.next_message or (
                message - self.next_message > WALK_MESSAGES_MAX):
            self.find(ledger_id, message)
        while True:
            step = self.next_entry()
            if step == READ_DAMAGE:
                if self.lost_ledger_id == ledger_id and (
                        self.lost_first <= message < self.lost_end
                        or self.lost_end == self.lost_first):
                    return READ_DAMAGE
            if step == READ_NOTHING or self.passed_ledger_id != ledger_id or (
                    self.next_message > message and step == READ_DAMAGE):
                return READ_NOTHING
            if step == READ_ENTRY and message < self.next_message:
                return READ_ENTRY if message >= self.c_frame.first_message else READ_NOTHING

    cdef int skip_to(self, uint64_t message) except -1:
        return self.find(self.span.ledger_id, message)

    cdef int advance(self) except -1:
        """Go to the next ledger when this one is read to its final end."""
        cdef LedgerSpan span
        cdef uint64_t changes
        if self.span is not None:
            if self.span.writer is not None and self.span.writer is self.tail.writer:
                return READ_NOTHING
            # A full one that is not all flushed still grows for its readers.
            if self.span.writer is not None and not ledger_append_is_final(
                    &self.span.writer.c_ledger):
                return READ_NOTHING
            # The tail was switched away before we looked: its last end is final now, and we may not
            # have seen it.
            if self.offset < ledger_span_end(self.span):
                return READ_AGAIN
            if self.next_message < self.span.message_count:
                return self.pass_rest()
        # Asking is a call of the control plane: not at each look at an idle topic. Counted before
        # it is asked, so that a ledger that comes meanwhile is asked for.
        if self.tail.is_same(self.seen_changes):
            return READ_NOTHING
        changes = self.tail.changes
        try:
            span = self.tail.span_after(self.span, self.passed_ledger_id, self.offset,
                                        self.defers)
        except errors.CorruptDataError as error:
            return READ_TURN if self.turns(True) else self.pass_ledger(error)
        # Behind it: what trimming removed in front of the ledger found was compacted before.
        if self.turns(False):
            return READ_TURN
        if span is None:
            self.seen_changes = changes
            return READ_NOTHING
        if self.span is None and span.ledger_id == self.start_ledger_id and (
                find_in(span, self.next_message, &self.offset, &self.next_entry_id)):
            pass
        elif self.span is None or span.ledger_id != self.span.ledger_id:
            self.offset = LEDGER_HEADER_SIZE
            self.next_message = 0
            self.next_entry_id = 0
        self.span = span
        self.c_entry = NULL
        self.passed_ledger_id = span.ledger_id
        return READ_AGAIN

    cdef int pass_rest(self) except -1:
        """The last messages of a sealed ledger are not in its file."""
        why = "the last entries are not there"
        if self.span.missing_size:
            why = f"{self.span.missing_size} bytes are missing at the end of {self.span.file.path}"
        return self.lose(self.span.message_count,
                         f"read ledger {self.span.ledger_id} of {self.topic_name} on from offset "
                         f"{self.offset}", why, "with the next ledger")

    cdef int pass_ledger(self, object error) except -1:
        """Nothing (more) of a ledger can be read: reading goes on behind it."""
        cdef uint64_t ledger_id = getattr(error, "ledger_id", 0)
        cdef uint64_t first = 0
        cdef uint64_t end
        if not ledger_id:
            ledger_id = self.tail.ledger_id_after(self.passed_ledger_id)
        end = self.tail.messages_in(ledger_id)
        if ledger_id == self.start_ledger_id or (
                self.span is not None and self.span.ledger_id == ledger_id):
            first = self.next_message
        self.go(None, 0, 0, 0, 0)
        self.passed_ledger_id = ledger_id
        self.lost_ledger_id = ledger_id
        self.lost_first = first
        self.lost_end = max(first, end)
        self.lost_what = f"read ledger {ledger_id} of {self.topic_name}"
        self.lost_why = errors.detail_of(error).removeprefix(f"{self.lost_what}: ")
        self.lost_next = "with the next ledger"
        return READ_DAMAGE

    cdef bint fits(self, const EntryFrame* frame, uint64_t message_count) noexcept nogil:
        cdef uint64_t end = frame.first_message + frame.message_count
        cdef uint64_t entries
        cdef uint64_t messages
        if end <= self.next_message or end > message_count:
            return False
        if self.next_entry_id == ENTRY_UNKNOWN:
            return True
        if frame.entry_id <= self.next_entry_id or frame.first_message <= self.next_message:
            return frame.entry_id == self.next_entry_id and (
                frame.first_message <= self.next_message)
        # Each entry that is skipped has a message, and none has more than can be.
        entries = frame.entry_id - self.next_entry_id
        messages = frame.first_message - self.next_message
        return (entries <= messages or self.inside) and messages // ENTRY_MESSAGES_MAX < entries

    cdef bint next_frame(self, const LedgerRead* read, uint64_t* offset, uint64_t end,
                         uint64_t message_count, EntryFrame* frame) noexcept nogil:
        while offset[0] < end:
            if ledger_read_frame(read, offset[0], end, frame) == STATUS_OK and (
                    self.fits(frame, message_count)):
                return True
            if ledger_read_pass(read, offset[0], end, offset) != STATUS_OK:
                return False
        return False

    cdef int pass_damage(self, int status, uint64_t next_offset, uint64_t end) except -1:
        """Pass over damage: what was read at offset is not the entry that comes next. READ_ENTRY:
        it is all the same; READ_AGAIN: the ledger grew meanwhile."""
        cdef uint64_t entry_count, count
        cdef bint counted = ledger_span_counts(self.span, end, &entry_count, &count)
        cdef uint64_t damaged = self.offset
        cdef uint64_t at = next_offset
        cdef uint64_t lost_end
        cdef const LedgerRead* read = &self.span.file.c_read
        # An entry that verified is there, also where another process has stored the end of its
        # ledger and not the counts yet.
        cdef bint whole = status == STATUS_OK and self.span.c_slot != NULL
        cdef bint fits = next_offset != 0 and self.fits(&self.c_frame,
                                                        UINT64_MAX if whole else count)
        cdef bint found
        cdef EntryFrame frame
        if fits and status == STATUS_OK and self.c_frame.first_message <= self.next_message:
            return READ_ENTRY
        self.c_entry = NULL
        why = status_reason(status) if status != STATUS_OK else "its frame is of another place"
        if fits and status == STATUS_OK:
            # Entries in front of it are missing although nothing there is damaged.
            frame = self.c_frame
            at = damaged
            found = True
            why = "entries that belong in front of it are missing"
        elif fits:
            # Its frame says how many messages it holds; the next one bears it out.
            lost_end = self.c_frame.first_message + self.c_frame.message_count
            found = ledger_read_frame(read, at, end, &frame) == STATUS_OK
            if not found or frame.entry_id != self.c_frame.entry_id + 1 or (
                    frame.first_message > lost_end or frame.first_message < self.next_message):
                frame = self.c_frame
                frame.entry_id += 1
                frame.first_message = lost_end
            found = True
        else:
            if at == 0:
                at = damaged
            with nogil:
                found = self.next_frame(read, &at, end, count, &frame)
        if not found and not counted:
            return READ_AGAIN
        if not found:
            at = end
            frame.entry_id = entry_count
            frame.first_message = count
        what = (f"read {entries_between(self.next_entry_id, frame.entry_id)} at offset {damaged} "
                f"of ledger {self.span.ledger_id} of {self.topic_name}")
        self.offset = at
        self.lose(frame.first_message, what, why, f"at offset {self.offset}")
        self.next_entry_id = frame.entry_id
        return READ_DAMAGE

    cdef int lose(self, uint64_t end, object what, object why, object following) except -1:
        """Messages of this ledger from the next one on cannot be read, up to end."""
        self.lost_ledger_id = self.span.ledger_id
        self.lost_first = self.next_message
        self.lost_end = max(end, self.next_message)
        self.lost_what = what
        self.lost_why = why
        self.lost_next = following
        self.next_message = self.lost_end
        self.inside = False
        return READ_DAMAGE

    cdef int lose_entry(self, object why) except -1:
        cdef EntryFrame frame
        cdef uint64_t end = ledger_span_end(self.span)
        self.lost_ledger_id = self.span.ledger_id
        self.lost_first = self.c_frame.first_message
        self.lost_end = self.next_message
        # Where its frame says too much, the next one tells how many messages it holds.
        if self.offset < end and ledger_read_frame(&self.span.file.c_read, self.offset, end,
                                                   &frame) == STATUS_OK and (
                frame.entry_id == self.next_entry_id
                and self.lost_first < frame.first_message < self.lost_end):
            self.lost_end = frame.first_message
            self.next_message = frame.first_message
        self.lost_what = (f"read entry {self.c_frame.entry_id} at offset {self.entry_offset} of "
                          f"ledger {self.span.ledger_id} of {self.topic_name}")
        self.lost_why = why
        self.lost_next = f"at offset {self.offset}"
        return READ_DAMAGE

    cdef str damage_text(self, str count):
        if self.lost_end == self.lost_first:
            count = "how many messages are missing is not known"
        return f"{self.lost_what}: {self.lost_why}; {count}; reading goes on {self.lost_next}"


cdef bint find_in(LedgerSpan span, uint64_t message, uint64_t* offset,
                  uint64_t* entry_id) except -1:
    """Find where to read on for a message: at its entry, or at the damaged place it lies in.
    entry_id: of the entry there, if that is known. False: the ledger was sealed elsewhere a moment
    ago, and has to be looked up again."""
    cdef LedgerGap gap
    cdef uint64_t entries, messages
    cdef uint64_t end = ledger_span_end(span)
    entry_id[0] = ENTRY_UNKNOWN
    if end == 0:
        return False
    span.file.c_find(FIND_MESSAGE, message, end, offset, &gap)
    ledger_span_counts(span, end, &entries, &messages)
    if gap.offset and message < messages:
        offset[0] = gap.offset
        entry_id[0] = gap.entry_id
    return True


cdef str entries_between(uint64_t first, uint64_t following):
    """The entries that are skipped, as far as they are known: first is the one expected,
    following the next one that can be read."""
    if first == ENTRY_UNKNOWN or first + 1 >= following:
        return f"entry {following - 1 if following else 0}"
    return f"entries {first} to {following - 1}"
