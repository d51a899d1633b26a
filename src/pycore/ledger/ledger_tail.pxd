"""The growing end of a topic, and where its readers read: the part of a managed ledger that hot
calls touch.

LedgerTail is one per topic, shared by its producers, dispatchers and the managed ledger above,
which alone may switch it. LedgerSpan is one ledger as a reader sees it: its mapping and how far it
may be read.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._core.published_end cimport PublishedEnd
from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


cdef class LedgerTail:
    # the open ledger; None while nothing was published in this session
    cdef readonly LedgerWriter writer
    cdef object managed_ledger           # the list of ledgers; asked in the control plane alone
    cdef readonly int partition          # index among its topic's partitions; -1: it is none
    cdef list attached                   # writers that wake c_event
    # what readers of the topic sleep on; woken by every publish. Its memory stays, and may be that
    # of another topic later: who wakes it late wakes others in vain.
    cdef WaitEvent* c_event
    cdef WaitEvent* own_event
    cdef object event_owner              # keeps c_event alive when it lies in a shared mapping
    cdef public IntervalJob flush        # durability interval: armed by each publish; else None
    cdef LedgerWriter prepared           # takes the entries when writer is full; None: nothing is
    cdef list left                       # full writers, until the managed ledger settles them
    cdef readonly uint64_t newest_id     # of the last writer there was
    cdef JobQueue lane                   # of the managed ledger; None: nothing is prepared
    # An entry at or behind one of these asks for the next ledger: see `asks`.
    cdef uint64_t ask_at_entry
    cdef uint64_t ask_at_offset
    cdef int64_t ask_at_ms
    cdef public int64_t roll_over_at_ms  # what is published then or later goes to the next ledger
    cdef public int64_t roll_over_ms     # how long a ledger is open; INT64_MAX: for ever
    cdef uint64_t changes                # of the list of ledgers, counted
    cdef public object transactions      # OpenTransactions; None: there was none yet
    cdef list held                       # ledgers of which readers may not see all, by their ids
    # of the messages of transactions those that nobody is to see: {ledger id: [(first, end), ...]},
    # ascending; None: the managed ledger is asked
    cdef public dict aborted
    # what to call when messages became visible, besides waking c_event
    cdef list watchers
    cdef unsigned long at_once_thread    # that notifies at once; 0: none
    # of them, those that stand for several: for how many; None: there was none
    cdef dict crowds
    # above 0: c_event is not woken, so a waiting reader looks again after so long
    cdef public int poll_ms

    cdef int wake_sleepers(self) except -1
    """Make the threads that sleep until messages come look again, and tell no watcher."""

    cdef int wake_at_once(self) except -1
    """Like `wake`, for a caller that holds no mutex. The GIL is given up meanwhile: who wakes would
    else sleep anew, until the caller gives it up for another reason."""

    cdef int notify(self) except -1
    cdef int notify_at_once(self) except -1
    """Like notify, by a thread that may give the GIL up, for a message whose sender waits: a
    watcher may send it to another process itself, where `is_at_once`."""

    cdef bint is_at_once(self) noexcept
    cdef int open_next(self) except -1
    cdef int roll_over(self, LedgerWriter full, int64_t now_ms) except -1
    """Let the next entry go to another ledger: to the one that is prepared, without a call of the
    control plane, or else to one that is made now."""

    cdef bint use_prepared(self, LedgerWriter full, int64_t now_ms) except -1
    cdef int attach(self, LedgerWriter writer) except -1
    cdef int go_to(self, LedgerWriter writer, int64_t now_ms) except -1
    cdef bint note_held(self) except -1
    """Whether readers do not see all of the ledger that is about to be left, or of one before."""

    cdef int hold(self, LedgerWriter writer) except -1
    """Readers see nothing of the empty ledger that follows."""

    cdef int hold_reopened(self, LedgerWriter writer) except -1
    """Readers see nothing of a ledger that was left open and is not appended to any more."""

    cdef list held_writers(self)
    """The ledgers of which readers do not see all, by their ids."""


    cdef int ask_never(self) except -1
    cdef int ask_at_part(self, LedgerWriter writer, uint64_t entry_count, uint64_t end,
                         int64_t now_ms) except -1
    cdef int ask(self) except -1
    """Have the next ledger prepared, in the lane of the managed ledger."""

    # What readers ask of the list of ledgers. Calls of the control plane: they may open a file.

    cdef bint is_same(self, uint64_t changes) noexcept
    """Whether the list is what it was when `changes` were counted. False: it cannot be told."""

    cdef bint hides(self, uint64_t ledger_id, uint64_t message) except -1
    """Whether an entry of a transaction, which begins with this message, is to be passed over."""

    cdef LedgerSpan span_of(self, uint64_t ledger_id)
    """None: the ledger is gone. CorruptDataError: its file cannot be read."""

    cdef LedgerSpan span_after(self, LedgerSpan span, uint64_t passed_ledger_id, uint64_t offset,
                               bint defers=*)
    """Return the span where a reader goes on that has read this one to an offset; None: it
    waits."""

    cdef uint64_t ledger_id_after(self, uint64_t ledger_id) except? 0
    cdef uint64_t messages_in(self, uint64_t ledger_id) except? 0
    cdef uint64_t entries_between(self, uint64_t ledger_id, uint64_t end_id) except? 0
    """Entries of the ledgers between two."""


cdef inline bint ledger_tail_asks(LedgerTail self, uint64_t entry_id, uint64_t offset,
                                  int64_t publish_time_ms) noexcept:
    """Whether an entry that was just stored fills the ledger so far that the next one is to be
    asked for."""
    return (entry_id >= self.ask_at_entry or offset >= self.ask_at_offset
            or publish_time_ms >= self.ask_at_ms)


cdef class LedgerSpan:
    cdef readonly uint64_t ledger_id
    cdef readonly LedgerFile file
    cdef LedgerWriter writer             # set: open in this process, grows
    cdef object __weakref__
    cdef object slot_owner               # set: open in another process, grows
    cdef const PublishedEnd* c_slot
    cdef const uint64_t* c_end           # what may be read, in bytes of the file
    cdef const uint64_t* c_switching     # odd while that changes for several ledgers at once
    cdef uint64_t fixed_end              # sealed: the end
    cdef uint64_t missing_size           # sealed: bytes that the file was cut by since
    cdef uint64_t entry_count            # sealed: how many there are, damaged ones included
    cdef uint64_t message_count


cdef uint64_t ledger_span_end_after(LedgerSpan self) noexcept


cdef inline uint64_t ledger_span_end(LedgerSpan self) noexcept:
    """How far the ledger may be read now; 0 when its slot went to another ledger (it was sealed
    meanwhile)."""
    cdef uint64_t seen = atomic_load_u64(self.c_switching)
    cdef uint64_t end = atomic_load_u64(self.c_end)
    if seen & 1 or atomic_load_u64(self.c_switching) != seen:
        end = ledger_span_end_after(self)
    if self.c_slot != NULL and atomic_load_u64(&self.c_slot.ledger_id) != self.ledger_id:
        return 0
    return end


cdef bint ledger_span_counts(LedgerSpan self, uint64_t end, uint64_t* entries,
                             uint64_t* messages) noexcept
"""How many entries and messages lie below end, as ledger_span_end just answered it. False: not
known now, for the ledger grew meanwhile; both are UINT64_MAX then."""
