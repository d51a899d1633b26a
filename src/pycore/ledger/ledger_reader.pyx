# cython: language_level=3
"""Body of ledger_reader.pxd."""

from libc.stdint cimport uint64_t

from pulsarx import errors
from pulsarx._core.ledger_read cimport ledger_read_entry
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_END, STATUS_OK, STATUS_TRUNCATED
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail, ledger_span_end
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    WALK_MESSAGES_MAX = 512      # nearer than this, walking frame by frame beats a search


cdef class LedgerReader:
    """A read position. One thread at a time."""

    def __init__(self, LedgerTail tail not None, str topic_name not None):
        self.tail = tail
        self.topic_name = topic_name

    def locate(self, uint64_t ledger_id, uint64_t message) -> tuple:
        """(span, offset) to go to for a message; may open a file. Needs no mutex.

        A ledger that is gone or cannot be read: (None, 0), reading begins with the next one.
        """
        cdef LedgerSpan span = None
        try:
            if ledger_id:
                span = control_plane.perform_whole(
                    self.tail.managed_ledger.span_of, (ledger_id,))
        except errors.CorruptDataError:
            pass  # whoever reads it is told
        if span is None:
            return None, 0
        return span, span.file.find_message(message, ledger_span_end(span))

    cdef int go(self, LedgerSpan span, uint64_t offset, uint64_t ledger_id,
                uint64_t message) noexcept:
        self.span = span
        self.offset = offset
        self.next_message = message if span is not None else 0
        self.passed_ledger_id = ledger_id
        if span is None and ledger_id:
            self.passed_ledger_id = ledger_id - 1
        self.told_ledger_id = 0
        self.c_entry = NULL
        return 0

    cdef int find(self, uint64_t ledger_id, uint64_t message) except -1:
        self.go(None, 0, ledger_id, message)
        span, offset = self.locate(ledger_id, message)
        return self.go(span, offset, ledger_id, message)

    cdef bint next_entry(self) except -1:
        cdef uint64_t end
        cdef uint64_t next_offset
        cdef int status
        while True:
            if self.span is None and not self.advance():
                return False
            end = ledger_span_end(self.span)
            if self.offset >= end:
                if not self.advance():
                    return False
                continue
            next_offset = 0
            status = ledger_read_entry(&self.span.file.c_read, self.offset, end, &self.c_frame,
                                       &self.c_entry, &next_offset)
            if status == STATUS_END:
                if not self.advance():
                    return False
                continue
            if status != STATUS_OK:
                self.c_entry = NULL
                self.pass_damage(status, self.c_frame.entry_id, next_offset, end)
            self.entry_offset = self.offset
            self.offset = next_offset
            self.next_message = self.c_frame.first_message + self.c_frame.message_count
            return True

    cdef void unread(self) noexcept:
        self.offset = self.entry_offset
        self.next_message = self.c_frame.first_message
        self.c_entry = NULL

    cdef bint read_message(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef bint near = self.span is not None and self.span.ledger_id == ledger_id
        if near and self.c_entry != NULL and message >= self.c_frame.first_message and (
                message < self.next_message):
            return True
        if not near or message < self.next_message or (
                message - self.next_message > WALK_MESSAGES_MAX):
            span, offset = self.locate(ledger_id, message)
            if span is None:
                return False
            self.go(span, offset, ledger_id, message)
        while self.span is not None and self.span.ledger_id == ledger_id:
            try:
                if not self.next_entry():
                    return False
            except errors.CorruptDataError:
                continue       # what comes behind the damage tells whether it was this one
            if self.span.ledger_id != ledger_id or message < self.c_frame.first_message:
                return False
            if message < self.next_message:
                return True
        return False

    cdef int skip_to(self, uint64_t message) except -1:
        self.offset = self.span.file.find_message(message, ledger_span_end(self.span))
        self.next_message = message
        return 0

    cdef bint advance(self) except -1:
        """Go to the next ledger when this one is read to its final end; False when there is nothing
        to read."""
        cdef LedgerSpan span
        if self.span is not None:
            if self.span.writer is not None and self.span.writer is self.tail.writer:
                return False
            # The tail was switched away before we looked: its last end is final now, and we may not
            # have seen it.
            if self.offset < ledger_span_end(self.span):
                return True
            if self.span.missing_size and self.told_ledger_id != self.span.ledger_id:
                self.tell_missing()
        try:
            span = control_plane.perform_whole(
                self.tail.managed_ledger.span_after,
                (self.span, self.passed_ledger_id, self.offset))
        except errors.CorruptDataError:
            # Nothing of the next ledger can be read: said once, then reading goes on behind it.
            self.passed_ledger_id = control_plane.perform_whole(
                self.tail.managed_ledger.ledger_id_after, (self.passed_ledger_id,))
            self.span = None
            raise
        if span is None:
            return False
        if self.span is None or span.ledger_id != self.span.ledger_id:
            self.offset = LEDGER_HEADER_SIZE
            self.next_message = 0
        self.span = span
        self.c_entry = NULL
        self.passed_ledger_id = span.ledger_id
        return True

    cdef int tell_missing(self) except -1:
        self.told_ledger_id = self.span.ledger_id
        raise_status(STATUS_TRUNCATED, 0, (
            f"read ledger {self.span.ledger_id} of {self.topic_name} on from offset "
            f"{self.offset}: "
            f"{self.span.missing_size} bytes are missing at the end of {self.span.file.path}; "
            f"reading goes on with the next ledger"))

    cdef int pass_damage(self, int status, object entry_id, uint64_t next_offset,
                         uint64_t end) except -1:
        cdef uint64_t damaged = self.offset
        if next_offset == 0:
            # Not even its frame can be read: it is the one before the next that can.
            next_offset = self.span.file.pass_damaged(damaged, end)
            frame = self.span.file.frame(next_offset, end)
            entry_id = "at the end" if frame is None else frame["entry_id"] - 1
        self.offset = next_offset
        raise_status(status, 0, (
            f"read entry {entry_id} at offset {damaged} of ledger {self.span.ledger_id} of "
            f"{self.topic_name}; "
            f"reading goes on at offset {next_offset}"))
