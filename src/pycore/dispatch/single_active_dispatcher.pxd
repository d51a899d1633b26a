"""Dispatches everything in order to one receiver at a time: Exclusive and Failover subscriptions,
readers.

The active receiver takes entries straight from the ledger when it is asked for a message; nothing
is queued. With the subscription's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.cursor_state cimport LedgerAcks
from pulsarx._core.message_runs cimport MessageRuns, message_runs_has
from pulsarx._core.pending_acks cimport PendingAck
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink


cdef struct RepeatPlace:                 # of reading
    uint64_t ledger_id                   # the message that is handed out next
    uint64_t message
    uint64_t end_ledger                  # the first one that was not handed out before
    uint64_t end


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

    # messages that come again out of turn: reading went back, and up to where it was it hands out
    # these alone
    cdef bint repeating
    cdef MessageRuns repeats
    cdef uint64_t repeats_end_ledger     # where it was
    cdef uint64_t repeats_end
    cdef int repeat(self, const MessageRuns* runs, const RepeatPlace* place) except -1
    """Hand out messages again, with those that were to be and were not yet, then go on where
    reading was, at the place. What it raises for want of memory leaves what was to be repeated."""

    cdef int repeat_messages(self, list messages) except -1
    cdef int find_place(self, RepeatPlace* place) except -1
    cdef int pass_repeats(self) except -1

    cdef int next_repeat(self) except -1
    """Go on to the next of them, or to where reading was; `repeating` is True."""

    cdef bint repeat_before(self, uint64_t ledger_id, uint64_t message) except -1
    """Reading is to go on from a message: hand out first those that lie before it. False: there are
    none, and nothing is repeated any more."""

    cdef int end_repeats(self) noexcept
    cdef inline bint is_repeated(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether a message is to be handed out now; `repeating` is True."""
        return ledger_id > self.repeats_end_ledger or (
            ledger_id == self.repeats_end_ledger and message >= self.repeats_end) or (
            message_runs_has(&self.repeats, ledger_id, message))

    cdef int handed_out_end(self, uint64_t* ledger_id, uint64_t* message) except -1
    """The message that is handed out next, or where reading goes on."""

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
    cdef uint64_t count_repeats(self) except? 0
    cdef uint64_t count_untaken(self, uint64_t ledger_id, uint64_t first, uint64_t end) except? 0
    cdef int delivered_end(self, uint64_t* ledger_id, uint64_t* message) except -1
    cdef uint64_t messages_in(self, LedgerAcks* acks) except? 0
    cdef int count_all(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1
    cdef int count_refused(self, uint64_t ledger_id, uint64_t message, uint64_t end_ledger,
                           uint64_t end) except -1
    cdef int count_one(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
