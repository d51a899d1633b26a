"""A consumer as its dispatcher sees it: where entries go, with permits and what it holds.

EntrySink is the base of what consumers receive with: Receiver decodes messages in process,
ConnectionSink hands whole entries to a connection. Dispatcher is the face of all dispatchers
towards sinks and consumers; it knows this base alone. Everything is called with the subscription's
mutex held unless it says otherwise.

A sink holds slices. A message that left the queue otherwise (acknowledged, taken back) stays in its
slice and is passed over when its turn comes: `claim` says whether it is still this slice's.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.batch_decode cimport BatchMessage
from pulsarx._core.message_runs cimport MessageRuns
from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.work_pool cimport SerialWork
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkLimits
from pulsarx._pycore.dispatch.crowd_member cimport CrowdMember
from pulsarx._pycore.dispatch.entry_source cimport EntrySource
from pulsarx._pycore.dispatch.redelivery cimport Redelivery
from pulsarx._pycore.dispatch.slice_queue cimport (
    Slice, SliceItem, SlicePlace, SliceQueue, slices_reserve,
)
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks

cdef extern from *:
    void __builtin_prefetch(const void* at) noexcept nogil

cdef enum:
    ITEMS_AHEAD = 3

cdef enum Claim:
    CLAIM_STALE = -1                     # the message is not to be handed out

cdef struct Given:
    # What consumers were given, redeliveries included.
    uint64_t messages
    uint64_t size                        # bytes of entries, of a part its share


cdef class Dispatcher


cdef class ConsumerEvents:
    """Tells a consumer that the broker made it active, or inactive. Telling is one step."""
    cdef SerialWork work                 # looks at what waits
    cdef object waiting                  # deque of (active, partition)

    cdef int tell(self, bint active, int partition) except -1


cdef class EntrySink:
    # what it was made with
    cdef readonly Dispatcher dispatcher
    cdef EntryContext context
    cdef readonly str consumer_name
    cdef readonly int32_t priority_level
    cdef readonly uint32_t queue_size    # messages; 0: one at a time, when asked
    cdef uint16_t index                  # the dispatcher's; PENDING_NOBODY: it left
    cdef object properties               # of the consumer, for statistics
    cdef Redelivery redelivery
    cdef ConsumerEvents events           # told when it becomes active or inactive; or None
    cdef int partition                   # what they are told it is active on
    cdef ChunkLimits chunk_limits
    # what it has; permits + queued + taken is queue_size, except with a queue of 0
    cdef int64_t permits                 # messages that may still be pushed
    cdef uint32_t queued                 # in the queue and still to be handed out
    cdef uint32_t taken                  # handed out since permits were last given back
    cdef uint64_t unacknowledged         # queued, held, or waiting for redelivery in its name
    cdef bint blocked                    # too much is unacknowledged
    cdef bint by_flow                    # permits come when asked for, not by taking
    # gets all there is of an entry for any permit, which may leave less than none; else no more
    # than there are
    cdef bint takes_entries
    cdef bint passes_on                  # never looks into payloads
    cdef Given given
    cdef SliceQueue queue                # behind the slice in hand
    cdef EntryView view                  # of the slice in hand; None: none is
    cdef SlicePlace place                # in it
    # reads a key or fetches a ledger: to be called unlocked before the next take; or None
    cdef object key_wanted
    cdef CrowdMember member              # of a ConsumerCrowd, also after it left; None: of none

    cdef Message take(self)
    """The next message, decoded; None when there is none. Of a Receiver alone."""

    cdef inline void locate_next(self, uint32_t* at, uint32_t* index) noexcept:
        """Say where the next message of the current slice is."""
        if self.place.items == NULL:
            at[0] = self.place.at
            index[0] = self.place.index
        else:
            at[0] = self.place.items[self.place.item_at].at
            index[0] = self.place.items[self.place.item_at].index

    cdef inline bint was_read(self, EntryView view, BatchMessage* message) noexcept:
        """Whether the next message of the current slice was read when it was queued: where its
        payload is, and its flags."""
        cdef const SliceItem* item
        if self.place.items == NULL:
            return False
        item = &self.place.items[self.place.item_at]
        if item.header_size == 0 or (
                <uint64_t>item.at + item.header_size + item.payload_size > view.payload_size):
            return False
        message.payload = view.c_payload + item.at + item.header_size
        message.encoded_metadata_size = item.header_size - 4
        message.payload_size = item.payload_size
        message.flags = item.flags
        return True

    cdef inline void step(self, uint32_t at, uint32_t index) noexcept:
        """The next message was read; what follows it in the entry is at offset at."""
        cdef const uint8_t* after
        if self.place.items != NULL:
            self.place.item_at += 1
            if self.place.item_at == self.place.end:
                self.drop_view()
                return
            if self.place.item_at + ITEMS_AHEAD < self.place.end:
                # It lies anywhere: brought near while those before it are worked on.
                after = self.view.c_payload + self.place.items[self.place.item_at + ITEMS_AHEAD].at
                __builtin_prefetch(after)
                __builtin_prefetch(after + 64)
            return
        self.place.at = at
        self.place.index = index + 1
        if self.place.index == self.place.end:
            self.view = None

    cdef bint fill(self) except -1
    """Make the next slice the current one; False when there is none."""

    cdef inline int reserve_slice(self) except -1:
        """Have room for one more slice. First of all: what raises here has changed nothing."""
        return slices_reserve(&self.queue, 1)

    cdef inline EntryView view_to_queue(self, EntryView view):
        """The view, or one that takes no memory for what was decompressed. To be asked before
        push."""
        return view if view.plain is None else self.bounded_view(view)

    cdef EntryView bounded_view(self, EntryView view)
    cdef int reserve_slices(self, uint32_t count) except -1
    """Like reserve_slice, for count slices."""

    cdef void push(self, const Slice* slice) noexcept
    """Queue a slice, for which there is room; its view and items are the queue's from now on."""

    cdef void push_first(self, const Slice* slice) noexcept
    """Like push, in front of the queued slices."""

    cdef inline void count_given(self, EntryView view, uint64_t messages) noexcept:
        """Count messages of an entry as given to the consumer."""
        cdef uint64_t size = view.entry_size
        if view.chunked is not None:
            size = view.chunked.entries_size()
            messages = view.chunked.count    # as they count that were published
        elif messages < view.message_count:
            size = size * messages // view.message_count
        self.given.messages += messages
        self.given.size += size
        self.dispatcher.core.counts.given_messages += messages
        self.dispatcher.core.counts.given_size += size

    cdef uint32_t slice_messages(self) noexcept
    """How many messages the current slice and those behind it hold."""

    cdef inline void give_permit(self) noexcept:
        """One message may be pushed again. A queue of 0 gets a permit only when it is asked."""
        if self.queue_size:
            self.permits += 1

    cdef inline void give_back_permits(self) noexcept:
        """Half of the queue was taken: so many messages may be pushed again, except by Flow."""
        if self.queue_size and not self.by_flow:
            self.permits += self.taken
        self.taken = 0

    cdef void forget_given(self) noexcept
    """The consumer need not be told of what it was given."""

    cdef bint next_slice(self) noexcept
    """Make the first queued slice the current one."""

    cdef bint slice_at(self, uint32_t number, Slice* slice) noexcept
    """Show the rest of the current slice (number 0) or of one behind it (from 1 on), as a run from
    first to end of items or of batch indexes; it belongs to the queue and may only be read. False:
    none."""

    cdef void drop_view(self) noexcept
    cdef void clear(self) noexcept
    """Throw away what is queued; permits and counts are the dispatcher's business."""

    cdef bint has_let_go(self) noexcept
    """Whether nothing is handed out any more of what it got before the last rewind or move."""

    cdef inline void stop_asking(self) noexcept
    """Nobody asks for a message any more: without a queue it is not to be sent one."""

    cdef int64_t ack_due_ms(self) except -1
    """When the acknowledgement of a message received now is overdue: at a tick."""


cdef class Dispatcher(EntrySource):
    # moves with every seek or rewind: slices of before are stale
    cdef uint64_t generation
    cdef bint shares                     # messages are tracked one by one in core.pending
    cdef bint has_several                # consumers at a time: none acknowledges cumulatively
    cdef bint comes_together             # with a message all behind it come again
    cdef uint64_t again_ledger           # the first of those that are to come again, once all that
    cdef uint64_t again_message          # are due now are known; 0: none is
    cdef bint keeps_nothing              # of a non-persistent topic: receivers have all there is
    cdef uint32_t given_count            # receivers of the crowd that are to be told
    cdef list dead                       # (receiver, message) to be given up, unlocked; or None
    cdef list told                       # (receiver, active) to be told, unlocked; or None
    # (receiver, ledger id, message, redeliveries): whose backoff is to be asked, unlocked; or None
    cdef list overdue

    cdef int tell_given(self) except -1
    """Tell the receivers of the crowd that were given something. Mutex held."""

    cdef bint supply(self, EntrySink receiver) except -1
    """Make the receiver's next slice its current one, dispatching what there is; False: nothing."""

    cdef int defer(self, bint defers) noexcept
    """Whether supplying raises LedgerWanted where it would fetch a ledger with the mutex."""

    cdef int claim(self, EntrySink receiver, EntryView view, uint32_t index) except -2
    """A message of the current slice is about to be handed out: its redelivery count, or
    CLAIM_STALE."""

    cdef int unclaim(self, EntrySink receiver, EntryView view, uint32_t index) except -1
    """A claimed message could not be handed out."""

    cdef int unreceive(self, EntrySink receiver, list messages) except -1
    """Messages that were taken, in this order, were shown to nobody: they come again, uncounted."""

    cdef int pass_over(self, EntrySink receiver, EntryView view, uint32_t index) except -1
    """A claimed message is nothing to hand out, and never will be."""

    cdef int failure_action(self, EntrySink receiver) except -1
    """Return the CryptoFailureAction for messages that the receiver cannot decrypt."""

    cdef int join_chunks(self, EntrySink receiver, EntryView view) except -1
    """Put the payload of a claimed message in chunks together, decrypted; the receiver's view is
    gone where it is not to be delivered. CorruptDataError: it cannot be, and is lost."""

    cdef bint take_before(self, uint64_t ledger_id, uint64_t message, uint64_t* count) except -1
    cdef int64_t bytes_ahead(self) noexcept
    """About how much is published behind the current slice; 0: unknown."""

    cdef int plain_ahead(self) noexcept
    """See LedgerReader: of what a receiver is supplied with next. -1: it may need Python, or wait
    for something."""

    cdef bint is_ready(self, EntrySink receiver) except -1
    """Whether take would find something; dispatches for it."""

    cdef bint has_next(self, EntrySink receiver) except -1
    """Like is_ready; for a reader also True when only the dispatch rate makes a message wait."""

    cdef int acknowledge_there(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Acknowledge messages where the cursor is, which is in another process. Takes the mutex."""

    cdef int acknowledge_through_there(self, uint64_t ledger_id, uint64_t end) except -1
    cdef bint ask_there(self) except -1
    """Return when what the process with the cursor has for the receivers has come. False: the
    cursor is here. No mutex held."""

    cdef bint asks_more(self) except -1
    """Whether that process was given room for more messages since it was asked: what had come was
    gone by then, or it was not for these receivers."""

    cdef int stopped_asking(self) except -1
    """A receiver without a queue has stopped asking."""

    cdef int take_back(self, EntrySink receiver, uint64_t ledger_id, uint64_t first,
                       uint64_t count) except -1
    """The receiver showed nobody these messages: they are delivered again, uncounted."""

    cdef int rewind(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    uint64_t unseen_ledger, uint64_t unseen) except -1
    """Deliver a message again, and all behind it that are not acknowledged; those count that were
    refused. Ledger id 0: all of them, and each counts. Those from `unseen` on the receiver showed
    nobody: they are not counted."""

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1
    """Deliver a message again after delay_ms. Nothing when nobody was given it, or it is
    acknowledged. Call `all_due` behind the last of several."""

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1
    """A dead message could not be given up: it is delivered again after delay_ms. Call `all_due`
    afterwards."""

    cdef int bury(self, EntrySink receiver, Message message) except -1
    """Give a message up when the mutex is released."""

    cdef int due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1
    """The deadline of a message has come; backoff_ms: wait so much longer if it is an
    acknowledgement that is overdue."""

    cdef int all_due(self) except -1
    """Every message that is due at this moment was told by `due` or `nack`: now is the time for
    what is done once for all of them. With the mutex that those had."""

    cdef int note_due(self, uint64_t ledger_id, uint64_t message) noexcept
    """A message is due that comes again with all behind it."""

    cdef int try_all_due(self) except -1
    cdef EntrySink asks_backoff(self, uint64_t ledger_id, uint64_t message)
    """Return the consumer whose backoff says how long a message waits before it is delivered again,
    because its acknowledgement is overdue; None: nobody."""

    cdef int pop_due(self) except -1
    cdef int try_due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1
    cdef int ask_backoffs(self) except -1
    cdef void rearm_later(self) noexcept
    cdef int due_again(self, uint64_t ledger_id, uint64_t message) except -1
    cdef int at_once(self, uint64_t ledger_id, uint64_t message) except -1
    """Deliver a message again, for which not even a timer can be had."""

    cdef int redeliver(self, EntrySink receiver) except -1
    """Everything the receiver has goes out again."""

    cdef int set_aside(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages are acknowledged in a transaction: like `acknowledged`, but that their redelivery
    counts stay."""

    cdef int set_aside_through(self, uint64_t ledger_id, uint64_t end) except -1
    """Everything before a message is."""

    cdef int come_back(self, TransactionAcks acks, const MessageRuns* runs) except -1
    """Messages that a transaction had acknowledged are not: those of them that were delivered come
    again, counted. What it raises leaves pending what did not come back."""

    cdef int wake_sleepers(self) except -1
    """Make the threads that sleep in `sleep` look again, for one of their consumers is closed."""

    cdef int sleep(self, WaitEvent* event, uint32_t seen, int64_t left_ns) except -1
    """Sleep until an event moves that was entered, on which those sleep who wait for a message; at
    most so long, -1: for ever. May end early. No mutex held."""

    cdef int settle(self) except -1
    """Unlocked: wake who waits, tell who became active, give up what is dead."""
