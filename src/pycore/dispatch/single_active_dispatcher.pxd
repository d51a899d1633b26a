"""Dispatches everything in order to one receiver at a time: Exclusive and Failover subscriptions,
readers.

The active receiver takes entries straight from the ledger when it is asked for a message; nothing
is queued. With the subscription's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.cursor_state cimport LedgerAcks
from pulsarx._core.pending_acks cimport PendingAck
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink


cdef class SingleActiveDispatcher(Dispatcher):
    cdef readonly LedgerReader reader     # of a compacted topic another kind
    cdef list receivers                  # in the order they came
    cdef readonly EntrySink active        # None: nobody reads
    # were active, and may still hand out what they got; or None. The active one gets nothing before
    # they have let go
    cdef list deposed
    cdef bint exclusive
    cdef int partition_index             # of the topic; -1: it is no partition
    # where reading began may be inside an entry: messages of this ledger below this ordinal are not
    # wanted
    cdef uint64_t skip_ledger_id
    cdef uint64_t skip_messages

    cdef EntryView ahead                 # read, and waiting for the dispatch rate; None: none is
    cdef uint64_t ahead_generation

    cdef list later                      # messages in chunks that come before what is read next
    cdef ChunkedMessage late             # of those, in hand; None: the entry read last is
    cdef bint has_gaps                   # what is read was compacted
    cdef EntryView next_view(self, EntrySink receiver)
    cdef EntryView next_later(self, EntrySink receiver)
    cdef uint64_t wanted_count(self, EntryView view) noexcept

    cdef EntryView throttled_view(self, EntrySink receiver)
    """Like next_view; None also while the dispatch rate lets nothing pass."""

    cdef EntryView view_ahead(self, EntrySink receiver)
    """Return the view that waits for the dispatch rate, or else next_view. It waits from now on."""

    cdef int pass_gap(self, bint to_end) except -1
    """Acknowledge the messages between the entry read before and this one, or the end: compaction
    removed them."""

    cdef bint takes_rewritten(self, EntryView view) except -1
    """Whether any message is wanted of a batch from which compaction took some out."""

    cdef void ask_about_view(self, uint64_t ledger_id, uint64_t end) noexcept
    cdef bint is_whole(self, EntryView view) noexcept
    cdef bint has_wanted(self, EntrySink receiver) noexcept
    cdef bint is_wanted(self, EntryView view, uint64_t message) noexcept
    cdef int activate(self) except -1
    cdef int activate_again(self) except -1
    cdef bint must_wait(self) except -1
    """Whether a deposed receiver may still hand something out; `deposed` is not None."""

    cdef int go(self, uint64_t ledger_id, uint64_t message) except -1
    cdef int keep_late(self) except -1
    cdef int rewind_to_mark_delete(self) except -1
    cdef int rewind_from(self, uint64_t ledger_id, uint64_t message, bint counts_all) except -1
    cdef int redeliver_later(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                             int64_t delay_ms) except -1
    cdef uint64_t held_count(self) except? 0
    cdef int delivered_end(self, uint64_t* ledger_id, uint64_t* message) except -1
    cdef uint64_t messages_in(self, LedgerAcks* acks) except? 0
    cdef int count_all(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1
    cdef int count_refused(self, uint64_t ledger_id, uint64_t message, uint64_t end_ledger,
                           uint64_t end) except -1
    cdef int count_one(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
