# cython: language_level=3
"""Body of dispatcher.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_read cimport ledger_read_entry
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_END, STATUS_OK, STATUS_TRUNCATED
from pulsarx._pycore.ack_tracker cimport AckTracker
from pulsarx._pycore.entry_view cimport EntryContext, EntryView, entry_view_new
from pulsarx._pycore.ledger_tail cimport LedgerSpan, LedgerTail, ledger_span_end
from pulsarx._pycore.mutex cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.raise_status cimport raise_status


cdef class Dispatcher:
    """The read position of one subscription or reader. Any thread may call; the mutex orders
    them."""

    def __cinit__(self):
        mutex_init(&self.mutex)

    def __init__(self, LedgerTail tail not None, AckTracker tracker,
                 uint32_t decompressed_size_max):
        """tracker: None for a reader."""
        self.tail = tail
        self.tracker = tracker
        self.decompressed_size_max = decompressed_size_max

    def __dealloc__(self):
        mutex_destroy(&self.mutex)

    def use(self, EntryContext context not None) -> None:
        """Give what is delivered from now on to the consumer with this context."""
        self.context = context

    def locked(self, object work):
        """Call work() with the mutex held: for what must see the tracker at rest."""
        mutex_lock(&self.mutex)
        try:
            return work()
        finally:
            mutex_unlock(&self.mutex)

    def reset(self, uint64_t ledger_id, uint64_t message) -> None:
        """Seek: everything before the position is acknowledged, nothing from it on; durable on
        return."""
        mutex_lock(&self.mutex)
        try:
            self.tracker.reset(ledger_id, message)
        finally:
            mutex_unlock(&self.mutex)
        self.move(ledger_id, message)

    def move(self, uint64_t ledger_id, uint64_t message) -> None:
        """Read on from this message of this ledger (a ledger that is gone: from the next one there
        is).

        ledger_id 0: from the first ledger. Entries handed out before are stale from now on.
        """
        cdef object managed_ledger = self.tail.managed_ledger
        cdef LedgerSpan span = None
        cdef uint64_t offset = 0
        try:
            if ledger_id:
                span = managed_ledger.span_of(ledger_id)
        except errors.CorruptDataError:
            pass  # whoever reads it is told
        if span is not None:
            offset = span.file.find_message(message, ledger_span_end(span))
        mutex_lock(&self.mutex)
        self.generation += 1
        self.span = span
        self.offset = offset
        self.passed_ledger_id = ledger_id if span is not None else max(<object>ledger_id - 1, 0)
        self.skip_ledger_id = ledger_id
        self.skip_messages = message
        self.told_ledger_id = 0
        mutex_unlock(&self.mutex)

    def rewind(self) -> None:
        """Read on from the first message that is not acknowledged."""
        cdef uint64_t ledger_id
        cdef uint64_t message
        ledger_id, message = self.locked(self.tracker.mark_delete)
        self.move(ledger_id, message)

    def position(self) -> tuple:
        """(ledger id, offset) of the next frame to be read; for statistics and tests."""
        return (self.passed_ledger_id if self.span is None else self.span.ledger_id, self.offset)

    cdef EntryView next_view(self):
        """The next entry with something to deliver, None when nothing more is published. Mutex
        held.

        Raises CorruptDataError for a damaged entry, once; the call after it goes on behind the
        damage.
        """
        cdef EntryFrame frame
        cdef const uint8_t* entry
        cdef uint64_t end
        cdef uint64_t next_offset
        cdef uint64_t last
        cdef int status
        while True:
            if self.span is None and not self.advance():
                return None
            end = ledger_span_end(self.span)
            if self.offset >= end:
                if not self.advance():
                    return None
                continue
            next_offset = 0
            status = ledger_read_entry(&self.span.file.c_read, self.offset, end, &frame, &entry,
                                       &next_offset)
            if status == STATUS_END:
                if not self.advance():
                    return None
                continue
            if status != STATUS_OK:
                self.pass_damage(status, frame.entry_id, next_offset, end)
            self.offset = next_offset
            last = frame.first_message + frame.message_count
            if self.tracker is not None:
                if self.tracker.next_unacknowledged(self.span.ledger_id, frame.first_message,
                                                    last) >= last:
                    continue
            elif self.span.ledger_id == self.skip_ledger_id and last <= self.skip_messages:
                continue
            return entry_view_new(
                self.span.file, self.context, self.span.ledger_id, &frame, entry,
                self.decompressed_size_max)

    cdef bint is_wanted(self, EntryView view, uint64_t message) noexcept:
        """Whether this message of a view is still to be delivered. Mutex held."""
        if self.tracker is not None:
            return not self.tracker.is_acknowledged(view.ledger_id, message)
        return view.ledger_id != self.skip_ledger_id or message >= self.skip_messages

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
            span = self.tail.managed_ledger.span_after(self.span, self.passed_ledger_id,
                                                       self.offset)
        except errors.CorruptDataError:
            # Nothing of the next ledger can be read: said once, then reading goes on behind it.
            self.passed_ledger_id = self.tail.managed_ledger.ledger_id_after(self.passed_ledger_id)
            self.span = None
            raise
        if span is None:
            return False
        if self.span is None or span.ledger_id != self.span.ledger_id:
            self.offset = LEDGER_HEADER_SIZE
        self.span = span
        self.passed_ledger_id = span.ledger_id
        return True

    cdef int tell_missing(self) except -1:
        self.told_ledger_id = self.span.ledger_id
        raise_status(STATUS_TRUNCATED, 0, (
            f"read ledger {self.span.ledger_id} of {self.context.topic_name} on from offset "
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
            f"{self.context.topic_name}; "
            f"reading goes on at offset {next_offset}"))
