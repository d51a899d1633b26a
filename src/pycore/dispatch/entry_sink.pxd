"""A consumer as its dispatcher sees it: where entries go, with permits and what it holds.

EntrySink is the base of what consumers receive with: Receiver decodes messages in process,
ConnectionSink hands whole entries to a connection. Dispatcher is the face of all dispatchers
towards sinks and consumers; it knows this base alone. Everything is called with the subscription's
mutex held unless it says otherwise.

A sink holds slices: a run of messages of one entry, or picked ones. A message that left the queue
otherwise (acknowledged, taken back) stays in its slice and is passed over when its turn comes:
`claim` says whether it is still this slice's.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.work_pool cimport SerialWork
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore

cdef extern from *:
    void __builtin_prefetch(const void* at) noexcept nogil

cdef enum:
    ITEMS_AHEAD = 3

cdef enum CryptoFailureAction:   # ConsumerCryptoFailureAction
    CRYPTO_FAIL = 0
    CRYPTO_DISCARD = 1
    CRYPTO_CONSUME = 2

cdef enum ChunkStep:
    CHUNK_ORDINARY               # the entry is a message of its own all the same
    CHUNK_WAITS                  # nothing is to be delivered for it now
    CHUNK_WHOLE                  # `whole` is the message whose last chunk it is

cdef enum Claim:
    CLAIM_STALE = -1                     # the message is not to be handed out

cdef struct SliceItem:
    uint32_t at                          # offset of the message in the entry's payload
    uint32_t index                       # its batch index

cdef struct Slice:
    void* view                           # owned reference to an EntryView
    SliceItem* items                     # owned; NULL: all from `first` on
    uint32_t at                          # without items: offset and index of the first message
    uint32_t first
    uint32_t end                         # without items: one behind the last index
    uint32_t item_count
    uint32_t tag
    uint32_t plain_size                  # what its view had decompressed when it was queued


cdef class Dispatcher


cdef class DeadLetterSink:
    """Where a consumer's messages go that were redelivered too often. Handing over is one step."""
    cdef JobQueue jobs
    cdef object handler                  # job: takes what waits and moves it
    cdef object waiting                  # deque of (receiver, list of messages)

    cpdef int hand_over(self, object receiver, list messages) except -1


cdef class ConsumerEvents:
    """What a consumer is told by the broker: that it became active, or inactive. Telling is one
    step."""
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
    # redelivery
    cdef int64_t nack_delay_ms
    cdef object nack_backoff             # None, or next(redelivery count) -> ms
    cdef int64_t ack_timeout_ms          # 0: none
    cdef bint timed                      # Shared: there is one, or the messages expire
    cdef int64_t ack_timeout_tick_ms
    cdef object ack_timeout_backoff
    cdef uint32_t max_redeliver_count    # 0: no dead letters
    cdef DeadLetterSink dead_letters     # where messages go that are given up; None: nowhere
    cdef ConsumerEvents events           # told when it becomes active or inactive; or None
    cdef int partition                   # what they are told it is active on
    # messages in chunks, see ChunkAssembler
    cdef uint64_t chunked_pending_max
    cdef bint acks_oldest_chunked
    cdef int64_t chunked_expiry_ms
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
    # for statistics: what it was given, redeliveries included
    cdef uint64_t given_messages
    cdef uint64_t given_size             # bytes of entries, of a part its share
    # the queue behind the current slice
    cdef Slice* slices                   # owned ring
    cdef uint32_t slice_head
    cdef uint32_t slice_count
    cdef uint32_t slice_capacity
    # the slice being handed out
    cdef EntryView view
    cdef SliceItem* items                # owned
    cdef uint64_t view_generation
    cdef uint32_t view_at                # offset of its next message in the payload
    cdef uint32_t view_index             # batch index of its next message
    cdef uint32_t view_end               # one behind its last index, or the number of items
    cdef uint32_t item_at
    cdef uint32_t tag
    cdef bint view_filtered              # each message must be claimed
    # reads a key or fetches a ledger: to be called unlocked before the next take; or None
    cdef object key_wanted
    # of a ConsumerCrowd
    cdef object notify                   # has its connection look; None: it is in none
    cdef object connection               # its CrowdConnection
    cdef bint is_looker                  # it was told that something may have come, or looks
    cdef bint is_stalled                 # its connection takes no more
    cdef bint was_given                  # others queued something for it, and it was not told yet

    cdef Message take(self)
    """The next message, decoded; None when there is none. Of a Receiver alone."""

    cdef inline void locate_next(self, uint32_t* at, uint32_t* index) noexcept:
        """Where the next message of the current slice is."""
        if self.items == NULL:
            at[0] = self.view_at
            index[0] = self.view_index
        else:
            at[0] = self.items[self.item_at].at
            index[0] = self.items[self.item_at].index

    cdef inline void step(self, uint32_t at, uint32_t index) noexcept:
        """The next message was read; what follows it in the entry is at offset at."""
        cdef const uint8_t* after
        if self.items != NULL:
            self.item_at += 1
            if self.item_at == self.view_end:
                self.drop_view()
                return
            if self.item_at + ITEMS_AHEAD < self.view_end:
                # It lies anywhere: brought near while those before it are worked on.
                after = self.view.c_payload + self.items[self.item_at + ITEMS_AHEAD].at
                __builtin_prefetch(after)
                __builtin_prefetch(after + 64)
            return
        self.view_at = at
        self.view_index = index + 1
        if self.view_index == self.view_end:
            self.view = None

    cdef bint fill(self) except -1
    """Make the next slice the current one; False when there is none."""

    cdef inline int reserve_slice(self) except -1:
        """Have room for one more slice. First of all: what raises here has changed nothing."""
        if self.slice_count == self.slice_capacity:
            self.make_room()
        return 0

    cdef inline EntryView view_to_queue(self, EntryView view):
        """The view, or one that takes no memory for what was decompressed. To be asked before
        push."""
        return view if view.plain is None else self.bounded_view(view)

    cdef EntryView bounded_view(self, EntryView view)
    cdef int reserve_slices(self, uint32_t count) except -1
    cdef void push(self, const Slice* slice) noexcept
    """Queue a slice, for which there is room; its view and items are the queue's from now on."""

    cdef void push_first(self, const Slice* slice) noexcept
    """As push, in front of what is queued."""

    cdef inline void count_given(self, EntryView view, uint64_t messages) noexcept:
        """It is given so many messages of an entry."""
        cdef uint64_t size = view.entry_size
        if view.chunked is not None:
            size = view.chunked.entries_size()
        elif messages < view.message_count:
            size = size * messages // view.message_count
        self.given_messages += messages
        self.given_size += size
        self.dispatcher.core.given_messages += messages
        self.dispatcher.core.given_size += size

    cdef int make_room(self) except -1
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
    """It need not be told of what it was given."""

    cdef bint next_slice(self) noexcept
    """Make the first queued slice the current one."""

    cdef bint slice_at(self, uint32_t number, Slice* slice) noexcept
    """What is left of the current slice (number 0) or of one behind it (from 1 on), as a run from
    first to end of items or of batch indexes; the queue's own, to be looked at. False: none."""

    cdef void drop_view(self) noexcept
    cdef void clear(self) noexcept
    """Throw away what is queued; permits and counts are the dispatcher's business."""

    cdef bint has_let_go(self) noexcept
    """Whether nothing is handed out any more of what it got before the last rewind or move."""

    cdef inline void stop_asking(self) noexcept
    """Nobody asks for a message any more: without a queue it is not to be sent one."""

    cdef int64_t redelivery_delay(self, uint32_t redelivery_count) except -1
    """After how many milliseconds a negatively acknowledged message comes again."""

    cdef int64_t ack_due_ms(self) except -1
    """When the acknowledgement of a message received now is overdue: at a tick."""

    cdef int64_t overdue_delay(self, uint32_t redelivery_count) except -1
    """After how many milliseconds more an overdue message comes again. A backoff that raises is
    none, said in the log."""


cdef class Dispatcher:
    cdef readonly SubscriptionCore core
    cdef readonly LedgerTail tail
    cdef readonly str topic_name
    cdef uint32_t decompressed_size_max
    # moves with every seek or rewind: slices of before are stale
    cdef uint64_t generation
    cdef bint shares                     # messages are tracked one by one in core.pending
    cdef bint has_several                # consumers at a time: none acknowledges cumulatively
    cdef bint comes_together             # with a message all behind it come again
    cdef uint64_t again_ledger           # the first of those that are to come again, once all that
    cdef uint64_t again_message          # are due now are known; 0: none is
    cdef bint keeps_nothing              # of a non-persistent topic: receivers have all there is
    cdef bint wakes                      # something became receivable: tell who waits, unlocked
    cdef uint32_t given_count            # receivers of the crowd that are to be told
    cdef bint loss_kept                  # the messages lost last count as acknowledged
    cdef ChunkedMessage whole            # of CHUNK_WHOLE
    cdef bint came_later                 # whole_later was called: look once more
    cdef list dead                       # (receiver, message) to be given up, unlocked; or None
    cdef list told                       # (receiver, active) to be told, unlocked; or None
    # (whether it is an error, text) for the log, unlocked; or None
    cdef list undecrypted
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

    cdef int chunk_limits(self, EntrySink receiver) except -1
    """A receiver came, whose limits count for messages in chunks from now on."""

    cdef int read_chunk(self, LedgerReader reader) except -1
    """The entry read last says that it is a chunk: a ChunkStep."""

    cdef int whole_later(self, ChunkedMessage chunked) except -1
    """A message in chunks that was read some time ago is to be delivered now."""

    cdef int join_chunks(self, EntrySink receiver, EntryView view) except -1
    """Put the payload of a claimed message in chunks together, decrypted; the receiver's view is
    gone where it is not to be delivered. CorruptDataError: it cannot be, and is lost."""

    cdef int failure_action(self, EntrySink receiver) except -1
    """What becomes of what the receiver cannot decrypt: a CryptoFailureAction."""

    cdef int discard(self, EntryView view, uint32_t index) except -1
    """A message that cannot be decrypted counts as acknowledged."""

    cdef int tell_undecrypted(self, EntryView view, int action) except -1
    """Say in the log what was done with an entry that cannot be decrypted, once unlocked."""

    cdef int chunks_acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages were acknowledged; core.chunks is not None."""

    cdef int look_for_chunks(self, uint64_t ledger_id, uint64_t end) except -1
    """Everything before a message is about to be acknowledged: know the chunks in front of it, also
    those that were not read yet."""

    cdef int acknowledge_sparing(self, uint64_t ledger_id, uint64_t end, list spared) except -1
    """Acknowledge everything before a message but the messages (ledger id, ordinal) of spared,
    which is in order and not empty."""

    cdef int lose_rest(self, EntryView view, uint32_t index, int status) except -1
    """The batch cannot be read from this message on: its other messages are lost. Raises
    CorruptDataError, unless that was told before."""

    cdef int lose_one(self, EntryView view, uint32_t index, int status) except -1
    """As lose_rest, of this message alone."""

    cdef str count_rest(self, EntryView view, uint32_t index, uint32_t end, int status)
    """What messages index .. end - 1 of a batch cost that cannot be read, in words; None: nobody
    misses them."""

    cdef int lose_entry(self, LedgerReader reader, object error) except -1
    """As lose_rest, of the entry the reader read last, which cannot be taken apart."""

    cdef int tell_damage(self, LedgerReader reader) except -1
    """As lose_rest, of what the reader found damaged."""

    cdef str count_damage(self, LedgerReader reader)
    """What the reader found damaged, in words; None: nobody misses anything of it."""

    cdef str count_text(self, uint64_t missing)
    cdef int raise_loss(self, str text) except -1
    cdef object loss(self, kind, str text)
    cdef uint64_t lose_messages(self, uint64_t ledger_id, uint64_t first,
                                uint64_t end) except? 18446744073709551615
    """Messages first .. end - 1 will never be delivered: they count as acknowledged, so that
    backlog, mark-delete position and trimming go on. How many of them were not acknowledged."""

    cdef int expire(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1
    """Messages first .. end - 1 are too old to be delivered: they count as acknowledged."""

    cdef bint take_before(self, uint64_t ledger_id, uint64_t message, uint64_t* count) except -1
    cdef int expire_view(self, EntryView view) except -1
    """As expire, of the whole entry."""

    cdef int report_loss(self, str text) except -1
    """Have the subscription say in the log what was lost."""

    cdef int64_t bytes_ahead(self) noexcept
    """About how much is published behind the current slice; 0: unknown."""

    cdef int plain_ahead(self) noexcept
    """See LedgerReader: of what a receiver is supplied with next. -1: it may need Python, or wait
    for something."""

    cdef bint is_ready(self, EntrySink receiver) except -1
    """Whether take would find something; dispatches for it."""

    cdef bint has_next(self, EntrySink receiver) except -1
    """As is_ready, or of a reader whether there is something for which only the dispatch rate makes
    it wait."""

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages were acknowledged: whatever was known of them goes."""

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1
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
    """Who must be asked how long a message waits before it is delivered again, because its
    acknowledgement is overdue; None: nobody."""

    cdef int pop_due(self) except -1
    cdef int try_due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1
    cdef int ask_backoffs(self) except -1
    cdef void rearm_later(self) noexcept
    cdef int due_again(self, uint64_t ledger_id, uint64_t message) except -1
    cdef int at_once(self, uint64_t ledger_id, uint64_t message) except -1
    """Deliver a message again, for which not even a timer can be had."""

    cdef int redeliver(self, EntrySink receiver) except -1
    """Everything the receiver has goes out again."""

    cdef int wake_sleepers(self) except -1
    """Make the threads that sleep in `sleep` look again, for one of their consumers is closed."""

    cdef int sleep(self, WaitEvent* event, uint32_t seen, int64_t left_ns) except -1
    """Sleep until an event moves that was entered, on which those sleep who wait for a message; at
    most so long, -1: for ever. May end early. No mutex held."""

    cdef int settle(self) except -1
    """Unlocked: wake who waits, tell who became active, give up what is dead."""
