# cython: language_level=3
"""Body of ledger_tail.pxd."""

from bisect import bisect_right

cimport cython
from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc

from pulsarx._core.atomic cimport (
    atomic_load_u32, atomic_load_u64, atomic_store_u64, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.ledger_append cimport (
    ledger_append_end, ledger_append_fence, ledger_append_hold_all, ledger_append_is_final,
)
from pulsarx._core.ledger_state cimport LEDGER_OPEN
from pulsarx._core.limits cimport ENTRY_ALIGNMENT, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_TRUNCATED, STATUS_UNBORN
from pulsarx._core.wait_event cimport WaitEvent, wait_event_wake
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.ledger.published_ends cimport PublishedEnds
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.watchers cimport watchers_call, watchers_remove

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    EVENTS_AT_ONCE = 64
    # Ledgers that are filled in no time, or nearly: the next one is prepared at the first entry.
    SMALL_ENTRY_COUNT = 1024
    SMALL_SIZE = 16777216
    EARLY_MS = 60000                   # before a ledger's time is over, or half of it
    # Switching takes less than a microsecond a topic. An owner that was killed meanwhile never
    # ends it: its readers see what it had come to.
    SWITCH_TURNS_MAX = 100000


class LedgerWanted(Exception):
    """A ledger cannot be read before `fetch` was called, without a mutex, as that waits for an
    object store. Never leaves the consumer."""

    def __init__(self, fetch) -> None:
        self.fetch = fetch


# Of topics that are gone.
cdef list free_events = []


cdef WaitEvent* event_take() except NULL:
    """An event on which nobody sleeps; one step under the GIL."""
    cdef WaitEvent* made
    cdef Py_ssize_t at
    if not free_events:
        made = <WaitEvent*>calloc(EVENTS_AT_ONCE, sizeof(WaitEvent))
        if made == NULL:
            raise MemoryError("an event of a topic: out of memory")
        for at in range(1, EVENTS_AT_ONCE):
            free_events.append(<size_t>(made + at))
        return made
    return <WaitEvent*><size_t>free_events.pop()


# Of ledgers that do not change any more.
cdef uint64_t NEVER_SWITCHING = 0


cdef uint64_t ledger_span_end_after(LedgerSpan self) noexcept:
    """Like ledger_span_end, where what may be read is just being switched."""
    cdef uint64_t seen, end
    cdef int turn
    with nogil:
        for turn in range(SWITCH_TURNS_MAX):
            sched_yield()
            seen = atomic_load_u64(self.c_switching)
            end = atomic_load_u64(self.c_end)
            if not seen & 1 and atomic_load_u64(self.c_switching) == seen:
                break
        else:
            end = atomic_load_u64(self.c_end)
    return end


def id_of(LedgerWriter writer) -> int:
    return writer.ledger_id


cdef inline void wake_from(LedgerWriter writer, WaitEvent* event) noexcept:
    """From now on what is published in a ledger wakes an event; NULL: none. Its publishers need no
    GIL."""
    atomic_store_u64(<uint64_t*>&writer.c_ledger.topic_event, <uint64_t>event)


@cython.no_gc_clear
cdef class LedgerTail:
    """The growing end of a topic. Made and switched by its managed ledger; hot calls only look."""

    def __cinit__(self):
        self.c_event = self.own_event = event_take()

    def __init__(self, object managed_ledger, int partition=-1, JobQueue lane=None):
        """lane: for what is to be prepared and settled of the managed ledger; None: nothing is."""
        self.managed_ledger = managed_ledger
        self.partition = partition
        self.lane = lane
        self.roll_over_at_ms = INT64_MAX
        self.roll_over_ms = INT64_MAX
        self.ask_never()
        self.aborted = {}
        self.held = []
        self.attached = []
        self.left = []
        self.watchers = []

    def __dealloc__(self):
        # No gc_clear: the list must still be there, or a writer would go on to wake freed memory.
        cdef LedgerWriter writer
        for writer in self.attached:
            wake_from(writer, NULL)
        if self.own_event != NULL:
            free_events.append(<size_t>self.own_event)

    def switch(self, LedgerWriter writer, int64_t now_ms=0) -> None:
        """Let the next entry go to writer (None: nowhere). The writer before must be fenced and
        fully published, and nothing prepared."""
        cdef bint holds = self.note_held()
        if writer is not None:
            self.attach(writer)
            if holds:
                self.hold(writer)
        self.go_to(writer, now_ms)
        self.wake()

    cdef int attach(self, LedgerWriter writer) except -1:
        """Have what is published in the ledger wake those that wait for this topic."""
        self.attached.append(writer)
        wake_from(writer, self.c_event)
        return 0

    cdef int go_to(self, LedgerWriter writer, int64_t now_ms) except -1:
        self.writer = writer
        self.ask_never()
        self.roll_over_at_ms = INT64_MAX
        if writer is None:
            return 0
        self.newest_id = writer.ledger_id
        if self.roll_over_ms < INT64_MAX - now_ms:
            self.roll_over_at_ms = now_ms + self.roll_over_ms
        self.ask_at_part(writer, 0, LEDGER_HEADER_SIZE, now_ms)
        return 0

    cdef bint note_held(self) except -1:
        cdef LedgerWriter writer = self.writer
        if not self.held and (writer is None or not writer.is_held):
            return False
        return bool(self.held_writers())

    cdef int hold(self, LedgerWriter writer) except -1:
        if writer not in self.held:      # a try before may have run out of memory behind this
            self.held.append(writer)
        ledger_append_hold_all(&writer.c_ledger)
        return 0

    cdef int hold_reopened(self, LedgerWriter writer) except -1:
        self.attach(writer)
        self.held.append(writer)
        self.newest_id = writer.ledger_id
        return 0

    cdef list held_writers(self):
        cdef LedgerWriter writer = self.writer
        if writer is not None and writer not in self.held:
            self.held.append(writer)
        self.held = [each for each in self.held if each.is_held]
        return self.held

    # Preparing the next ledger --------------------------------------------------------------------

    cdef int ask_never(self) except -1:
        self.ask_at_entry = UINT64_MAX
        self.ask_at_offset = UINT64_MAX
        self.ask_at_ms = INT64_MAX
        return 0

    cdef int ask_at_part(self, LedgerWriter writer, uint64_t entry_count, uint64_t end,
                         int64_t now_ms) except -1:
        """Ask for the next ledger when half of what is left of this one is used; of a small one
        at its first entry."""
        cdef uint64_t entries = writer.c_ledger.entry_count_max
        cdef uint64_t size = writer.c_ledger.size_max
        if self.lane is None:
            return 0
        if entry_count == 0 and (entries <= SMALL_ENTRY_COUNT or size <= SMALL_SIZE):
            self.ask_at_entry = 0
            return 0
        # The entry of this number, or at this offset, is in the second half.
        self.ask_at_entry = entry_count + (entries - min(entry_count, entries)) // 2
        self.ask_at_offset = end + (size - min(end, size)) // 2
        if self.roll_over_at_ms != INT64_MAX:
            self.ask_at_ms = now_ms + max((self.roll_over_at_ms - now_ms) // 2,
                                          self.roll_over_at_ms - now_ms - EARLY_MS)
        return 0

    cdef int ask(self) except -1:
        self.ask_never()
        self.lane.put(self.managed_ledger.prepare)
        return 0

    def ask_again(self, int64_t now_ms) -> None:
        """Ask again, when half of what is left now is used, for the next ledger, which could not be
        prepared."""
        if self.writer is not None and self.prepared is None:
            self.ask_at_part(self.writer,
                             max(<uint64_t>1, atomic_load_u64(&self.writer.c_ledger.entry_count)),
                             atomic_load_u64(&self.writer.c_ledger.end), now_ms)

    def prepare(self, LedgerWriter writer not None) -> None:
        """Have a new ledger ready to take the entries when this one is full."""
        self.attach(writer)
        self.prepared = writer

    def take_prepared(self) -> LedgerWriter | None:
        """Take the ledger that was prepared, to be discarded: from here on no publisher switches to
        it."""
        cdef LedgerWriter prepared = self.prepared
        self.prepared = None
        return prepared

    def held_ledgers(self) -> list:
        """The writers of the ledgers of which readers do not see all, by their ids."""
        return list(self.held_writers())

    def entries_held(self) -> bool:
        """Whether readers do not see all that is stored, as transactions are open."""
        return self.note_held()

    def held_ledger_id(self) -> int:
        """The first ledger of which readers do not see all that is stored; 0: there is none."""
        cdef LedgerWriter first
        if not self.note_held():
            return 0
        first = min(self.held_writers(), key=id_of)
        return first.ledger_id

    def take_left(self) -> list:
        """The ledgers that were left for a prepared one since it was asked last, oldest first."""
        left, self.left = self.left, []
        return left

    cdef bint use_prepared(self, LedgerWriter full, int64_t now_ms) except -1:
        """Let the next entry go to what is prepared; False: nothing is, nothing was changed but
        that the full ledger may be fenced.

        The exchange is one step: the interpreter's lock is held from the second look on, no Python
        code runs in it, and each publisher that comes later finds another writer.
        """
        cdef LedgerWriter prepared
        if self.prepared is None or self.writer is not full:
            return self.writer is not full
        with nogil:
            # First: once readers go on to the next ledger, nothing may be added to this one.
            ledger_append_fence(&full.c_ledger)
        prepared = self.prepared
        if self.writer is not full:
            return True
        if prepared is None or atomic_load_u32(&prepared.c_ledger.state) != LEDGER_OPEN:
            return False
        if self.note_held():
            self.hold(prepared)
        self.left.append(full)
        prepared.follow(full)
        self.prepared = None
        self.changes += 1
        # Of another clock, an entry may be of any time: never before the ledger that is left.
        if self.roll_over_at_ms != INT64_MAX:
            now_ms = max(now_ms, self.roll_over_at_ms - self.roll_over_ms)
        self.go_to(prepared, now_ms)
        ledger_append_end(&full.c_ledger)
        wait_event_wake(self.c_event)
        self.lane.put(self.managed_ledger.settle_left)
        self.notify()
        return True

    @property
    def has_prepared(self) -> bool:
        """Whether the next ledger is ready."""
        return self.prepared is not None

    def uses(self, uint64_t ledger_id) -> bool:
        """Whether a ledger that the catalogue has as prepared takes entries, and the one in front
        of it will not be seen to grow any more."""
        cdef LedgerWriter writer = self.writer
        if ledger_id > self.newest_id:
            return False
        if writer is None or writer.ledger_id != ledger_id or writer.before is None:
            return True
        return ledger_append_is_final(&writer.before.c_ledger)

    def detach(self, LedgerWriter writer not None) -> None:
        """The writer is closed: nothing it does can concern this topic any more."""
        wake_from(writer, NULL)
        if writer in self.attached:
            self.attached.remove(writer)

    def wake(self) -> None:
        """Make all that wait for messages of this topic look again."""
        self.changes += 1
        wait_event_wake(self.c_event)
        watchers_call(self.watchers)
        if self.crowds:
            for each in list(self.crowds):
                each.tell_all()

    cdef int wake_sleepers(self) except -1:
        wait_event_wake(self.c_event)
        return 0

    cdef int wake_at_once(self) except -1:
        cdef WaitEvent* event = self.c_event
        owner = self.event_owner         # which may be another one by then
        self.changes += 1
        if atomic_load_u32(&event.waiters):
            with nogil:
                wait_event_wake(event)
        else:
            wait_event_wake(event)
        return self.notify()

    def watch(self, object notify not None) -> None:
        """Call notify() whenever messages may have come, in whatever thread and with whatever mutex
        held: it may only enqueue something or set an event. Taken back by unwatch."""
        self.watchers.append(notify)

    def unwatch(self, object notify not None) -> None:
        watchers_remove(self.watchers, notify)

    def watch_for(self, crowd not None) -> None:
        """Call crowd() as a watcher, once for all that are in it; crowd.tell_all() where each is to
        look, whatever came. Taken back by as many calls of unwatch_for."""
        if self.crowds is None:
            self.crowds = {}             # most topics have none
        count = self.crowds.get(crowd, 0)
        self.crowds[crowd] = count + 1
        if count == 0:
            self.watchers.append(crowd)

    def unwatch_for(self, crowd not None) -> None:
        count = self.crowds.get(crowd, 0) if self.crowds else 0
        if count > 1:
            self.crowds[crowd] = count - 1
        elif count:
            del self.crowds[crowd]
            watchers_remove(self.watchers, crowd)

    cdef int notify(self) except -1:
        """Tell the watchers; a publisher does it after the messages became visible."""
        return watchers_call(self.watchers)

    cdef int notify_at_once(self) except -1:
        self.at_once_thread = PyThread_get_thread_ident()
        try:
            return watchers_call(self.watchers)
        finally:
            self.at_once_thread = 0      # that of another one, too: it only costs time

    cdef bint is_at_once(self) noexcept:
        return self.at_once_thread == PyThread_get_thread_ident()

    cdef int open_next(self) except -1:
        control_plane.perform_held(self.managed_ledger.open_writer)
        return 0

    cdef int roll_over(self, LedgerWriter full, int64_t now_ms) except -1:
        if self.use_prepared(full, now_ms):
            return 0
        control_plane.perform_held(self.managed_ledger.roll_over, (full,))
        # Of another clock, an entry may be of any time: never behind the ledger made for it.
        if self.roll_over_at_ms <= now_ms:
            self.roll_over_at_ms = INT64_MAX
            if self.roll_over_ms < INT64_MAX - now_ms:
                self.roll_over_at_ms = now_ms + self.roll_over_ms
        return 0

    cdef bint is_same(self, uint64_t changes) noexcept:
        # Changes of another process are not counted here.
        return changes == self.changes and self.event_owner is None and self.poll_ms == 0

    cdef bint hides(self, uint64_t ledger_id, uint64_t message) except -1:
        if self.aborted is None:
            return control_plane.perform_whole(self.managed_ledger.aborted.hides,
                                               (ledger_id, message))
        if not self.aborted:
            return False
        ranges = self.aborted.get(ledger_id)
        if ranges is None:
            return False
        at = bisect_right(ranges, (message, UINT64_MAX))
        return at > 0 and message < ranges[at - 1][1]

    cdef LedgerSpan span_of(self, uint64_t ledger_id):
        return control_plane.perform_whole(self.managed_ledger.span_of, (ledger_id,))

    cdef LedgerSpan span_after(self, LedgerSpan span, uint64_t passed_ledger_id, uint64_t offset,
                               bint defers=False):
        return control_plane.perform_whole(self.managed_ledger.span_after,
                                           (span, passed_ledger_id, offset, defers))

    cdef uint64_t ledger_id_after(self, uint64_t ledger_id) except? 0:
        return control_plane.perform_whole(self.managed_ledger.ledger_id_after, (ledger_id,))

    cdef uint64_t messages_in(self, uint64_t ledger_id) except? 0:
        return control_plane.perform_whole(self.managed_ledger.messages_in, (ledger_id,))

    cdef uint64_t entries_between(self, uint64_t ledger_id, uint64_t end_id) except? 0:
        return control_plane.perform_whole(self.managed_ledger.entries_between,
                                           (ledger_id, end_id))

    def switch_to_prepared(self, LedgerWriter full not None, int64_t now_ms) -> bool:
        """See use_prepared."""
        return self.use_prepared(full, now_ms)

    def listen(self, PublishedEnds ends, int slot) -> None:
        """Sleep on the slot another process publishes into (a folder opened read-only)."""
        self.event_owner = ends
        self.c_event = &ends.c_slot(slot).event

    def __repr__(self) -> str:
        return f"LedgerTail(writer={self.writer!r})"


cdef class LedgerSpan:
    """A ledger as a reader sees it. Immutable but for its end."""

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
        self.c_switching = &NEVER_SWITCHING
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
        self.c_end = &writer.c_ledger.visible_end
        self.c_switching = writer.slots.c_switching()
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
        self.c_switching = ends.c_switching()
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
    """Count what readers may see of an open ledger: in a topic of durability sync, what is
    flushed; in front of open transactions."""
    with nogil:
        if writer.c_ledger.publish_on_flush:
            pthread_mutex_lock(&writer.c_ledger.flush_mutex)
            end[0] = writer.c_ledger.visible_end
            entries[0] = writer.c_ledger.visible_entries
            messages[0] = writer.c_ledger.visible_messages
            pthread_mutex_unlock(&writer.c_ledger.flush_mutex)
        else:
            pthread_mutex_lock(&writer.c_ledger.append_mutex)
            end[0] = writer.c_ledger.visible_end
            entries[0] = writer.c_ledger.visible_entries
            messages[0] = writer.c_ledger.visible_messages
            pthread_mutex_unlock(&writer.c_ledger.append_mutex)


def fence(LedgerWriter writer not None) -> None:
    """Refuse further appends; what is stored stays, and can be flushed and sealed."""
    with nogil:
        ledger_append_fence(&writer.c_ledger)


def is_final(LedgerWriter writer not None) -> bool:
    """Whether readers will never see more of a fenced ledger than they may now."""
    return ledger_append_is_final(&writer.c_ledger)


def published_counts(LedgerWriter writer not None) -> tuple:
    """(entries, messages) that readers may see: in a topic of durability sync, what is flushed."""
    cdef uint64_t end, entries, messages
    writer_counts(writer, &end, &entries, &messages)
    return entries, messages
