# cython: language_level=3
"""Body of ledger_tail.pxd."""

cimport cython
from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint64_t

from pulsarx._core.atomic cimport (
    atomic_load_u64, atomic_store_u32, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.ledger_state cimport LEDGER_FENCED, LEDGER_OPEN
from pulsarx._core.limits cimport ENTRY_ALIGNMENT, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_TRUNCATED, STATUS_UNBORN
from pulsarx._core.wait_event cimport wait_event_wake
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.ledger.published_ends cimport PublishedEnds
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.watchers cimport watchers_call, watchers_remove


@cython.no_gc_clear
cdef class LedgerTail:
    """Where a topic grows. Made and switched by its managed ledger; hot calls only look."""

    def __cinit__(self):
        self.own_event.event = 0
        self.own_event.waiters = 0
        self.c_event = &self.own_event

    def __init__(self, object managed_ledger, int partition=-1):
        self.managed_ledger = managed_ledger
        self.partition = partition
        self.roll_over_at_ms = INT64_MAX
        self.attached = []
        self.watchers = []

    def __dealloc__(self):
        # No gc_clear: the list must still be there, or a writer would go on to wake freed memory.
        cdef LedgerWriter writer
        for writer in self.attached:
            writer.c_ledger.topic_event = NULL

    def switch(self, LedgerWriter writer) -> None:
        """Let the next entry go to writer (None: nowhere). The writer before must be fenced and
        fully published."""
        if writer is not None:
            writer.c_ledger.topic_event = self.c_event
            self.attached.append(writer)
        self.writer = writer
        self.wake()

    def detach(self, LedgerWriter writer not None) -> None:
        """The writer is closed: nothing it does can concern this topic any more."""
        writer.c_ledger.topic_event = NULL
        if writer in self.attached:
            self.attached.remove(writer)

    def wake(self) -> None:
        """Make everybody who waits for messages of this topic look again."""
        self.changes += 1
        wait_event_wake(self.c_event)
        self.notify()

    def watch(self, object notify not None) -> None:
        """Call notify() whenever messages may have come, in whatever thread and with whatever mutex
        held: it may only enqueue something or set an event. Taken back by unwatch."""
        self.watchers.append(notify)

    def unwatch(self, object notify not None) -> None:
        watchers_remove(self.watchers, notify)

    cdef int notify(self) except -1:
        """Tell the watchers; who publishes does it after the messages became visible."""
        return watchers_call(self.watchers)

    cdef int open_next(self) except -1:
        control_plane.perform(self.managed_ledger.open_writer)
        return 0

    cdef int roll_over(self, LedgerWriter full) except -1:
        control_plane.perform(self.managed_ledger.roll_over, (full,))
        return 0

    cdef bint is_same(self, uint64_t changes) noexcept:
        # Of what another process changes nobody here is told.
        return changes == self.changes and self.event_owner is None and self.poll_ms == 0

    cdef LedgerSpan span_of(self, uint64_t ledger_id):
        return control_plane.perform(self.managed_ledger.span_of, (ledger_id,))

    cdef LedgerSpan span_after(self, LedgerSpan span, uint64_t passed_ledger_id, uint64_t offset):
        return control_plane.perform(self.managed_ledger.span_after,
                                     (span, passed_ledger_id, offset))

    cdef uint64_t ledger_id_after(self, uint64_t ledger_id) except? 0:
        return control_plane.perform(self.managed_ledger.ledger_id_after, (ledger_id,))

    cdef uint64_t messages_in(self, uint64_t ledger_id) except? 0:
        return control_plane.perform(self.managed_ledger.messages_in, (ledger_id,))

    cdef int appended(self, LedgerWriter writer, int64_t publish_time_ms) except -1:
        return 0

    def listen(self, PublishedEnds ends, int slot) -> None:
        """Sleep on the slot another process publishes into (a folder opened read-only)."""
        self.event_owner = ends
        self.c_event = &ends.c_slot(slot).event

    def __repr__(self) -> str:
        return f"LedgerTail(writer={self.writer!r})"


cdef class LedgerSpan:
    """One ledger as a reader sees it. Immutable but for its end."""

    @staticmethod
    def sealed(uint64_t ledger_id, LedgerFile file not None, uint64_t end, uint64_t entry_count,
               uint64_t message_count) -> LedgerSpan:
        """A ledger that does not change any more; end: bytes of the file up to its index; counts:
        with what is damaged."""
        cdef LedgerSpan self = LedgerSpan.__new__(LedgerSpan)
        self.ledger_id = ledger_id
        self.file = file
        self.fixed_end = end
        self.entry_count = entry_count
        self.message_count = message_count
        self.c_end = &self.fixed_end
        if file.unborn and end > LEDGER_HEADER_SIZE:
            raise_status(STATUS_UNBORN, 0, (
                f"read ledger {ledger_id} at {file.path}: {file.c_file_size} bytes without a "
                f"header and without one of its {entry_count} entries"))
        if end > file.c_read.mapped_size:
            self.fixed_end = file.c_read.mapped_size // ENTRY_ALIGNMENT * ENTRY_ALIGNMENT
            self.missing_size = end - self.fixed_end
        return self

    @staticmethod
    def growing(LedgerWriter writer not None, LedgerFile file not None) -> LedgerSpan:
        """The open ledger of this process."""
        cdef LedgerSpan self = LedgerSpan.__new__(LedgerSpan)
        self.ledger_id = writer.ledger_id
        self.file = file
        self.writer = writer
        self.c_end = &writer.c_ledger.end
        if writer.c_ledger.publish_on_flush:
            self.c_end = &writer.c_ledger.durable_end
        return self

    @staticmethod
    def published(uint64_t ledger_id, LedgerFile file not None, PublishedEnds ends not None,
                  int slot) -> LedgerSpan:
        """A ledger that another process appends to."""
        cdef LedgerSpan self = LedgerSpan.__new__(LedgerSpan)
        self.ledger_id = ledger_id
        self.file = file
        self.slot_owner = ends
        self.c_slot = ends.c_slot(slot)
        self.c_end = &self.c_slot.end
        # Else a look at what is not there would end this process.
        cdef uint64_t end = ledger_span_end(self)
        if end > LEDGER_HEADER_SIZE and end > file.c_file_size and end > file.c_size_now():
            raise_status(STATUS_TRUNCATED, 0, (
                f"read ledger {ledger_id} at {file.path}: the file has {file.c_file_size} bytes, "
                f"its owner has published {end}"))
        return self

    @property
    def end(self) -> int:
        """How far it may be read now, in bytes of the file; 0 when another ledger has its slot."""
        return ledger_span_end(self)

    @property
    def is_growing(self) -> bool:
        return self.writer is not None or self.slot_owner is not None

    def __repr__(self) -> str:
        return f"LedgerSpan(ledger_id={self.ledger_id}, end={self.end})"


cdef bint ledger_span_counts(LedgerSpan self, uint64_t end, uint64_t* entries,
                             uint64_t* messages) noexcept:
    cdef uint64_t found_end
    if self.writer is not None:
        writer_counts(self.writer, &found_end, entries, messages)
    elif self.c_slot == NULL:
        entries[0] = self.entry_count
        messages[0] = self.message_count
        return True
    else:
        # The writer stores the end first, so these are of this end or of an earlier one.
        messages[0] = atomic_load_u64(&self.c_slot.message_count)
        entries[0] = atomic_load_u64(&self.c_slot.entry_count)
        found_end = ledger_span_end(self)
    if found_end != end:
        entries[0] = messages[0] = UINT64_MAX
    return found_end == end


cdef void writer_counts(LedgerWriter writer, uint64_t* end, uint64_t* entries,
                        uint64_t* messages) noexcept:
    """What readers may see of an open ledger: in a topic of durability sync, what is flushed."""
    with nogil:
        if writer.c_ledger.publish_on_flush:
            pthread_mutex_lock(&writer.c_ledger.flush_mutex)
            end[0] = writer.c_ledger.durable_end
            entries[0] = writer.c_ledger.durable_count
            messages[0] = writer.c_ledger.durable_messages
            pthread_mutex_unlock(&writer.c_ledger.flush_mutex)
        else:
            pthread_mutex_lock(&writer.c_ledger.append_mutex)
            end[0] = writer.c_ledger.end
            entries[0] = writer.c_ledger.entry_count
            messages[0] = writer.c_ledger.message_count
            pthread_mutex_unlock(&writer.c_ledger.append_mutex)


def fence(LedgerWriter writer not None) -> None:
    """Refuse further appends; what is stored stays, and can be flushed and sealed."""
    with nogil:
        pthread_mutex_lock(&writer.c_ledger.append_mutex)
        if writer.c_ledger.state == LEDGER_OPEN:
            atomic_store_u32(&writer.c_ledger.state, LEDGER_FENCED)
        pthread_mutex_unlock(&writer.c_ledger.append_mutex)


def published_counts(LedgerWriter writer not None) -> tuple:
    """(entries, messages) that readers may see: in a topic of durability sync, what is flushed."""
    cdef uint64_t end, entries, messages
    writer_counts(writer, &end, &entries, &messages)
    return entries, messages
