"""Dispatches a Shared subscription, whose consumers share the messages one by one; the base of the
dispatcher of Key_Shared.

Messages are pushed into receiver queues, as many as permits allow: what is to be delivered again
first, then what became due, then new entries. That happens whenever somebody looks: a receiver
whose queue is empty, or who comes or goes. The law it keeps: when something can be delivered and a
receiver has permits, the next look delivers it. With the subscription's mutex held unless a method
says otherwise.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.ack_bits cimport ack_bits_has
from pulsarx._core.cursor_state cimport CursorState, LedgerAcks
from pulsarx._core.pending_acks cimport PendingAck
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.dispatch.pending_dispatcher cimport PendingDispatcher
from pulsarx._pycore.dispatch.consumer_crowd cimport ConsumerCrowd
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink


cdef class SharedDispatcher(PendingDispatcher):
    cdef readonly ConsumerCrowd crowd    # those of connections
    cdef readonly LedgerReader reader
    cdef uint32_t receiver_count
    cdef uint32_t turn                   # who was served last
    # the entry that is being handed out, and its next message; view None: the reader goes on
    cdef EntryView view
    cdef uint32_t view_at
    cdef uint32_t view_index
    cdef bint delayed_delivery
    cdef int64_t early_ms                # how much before its time a message may be delivered

    cdef int dispatch(self, EntrySink target) except -1
    cdef bint lets_pass(self) except -1
    """Whether the dispatch rate lets something be delivered; core.throttle is not None."""

    cdef bint step(self) except -1
    """Deliver something, or pass over something; False: nothing can be done."""

    cdef bint dispatch_all(self) except -1
    """Deliver what fills the receivers' queues; False: there was nothing. No receiver asks: only
    the log tells of damage, no ledger is fetched, and Key_Shared looks no further for keys of
    receivers with room."""

    cdef int joined(self, EntrySink receiver, object key_shared) except -1
    cdef int left(self, EntrySink receiver) except -1
    cdef int give_all_back(self, EntrySink receiver) except -1
    cdef EntrySink next_receiver(self)
    cdef inline uint64_t room(self, EntrySink receiver) noexcept
    """How many messages may be pushed to it."""

    cdef bint read_new(self, EntryContext context, bint packed) except -1
    """Make the next entry with something to deliver the view; False: there is none yet."""

    cdef bint look_again(self) noexcept
    cdef inline uint64_t next_open(self, uint64_t ledger_id, uint64_t message,
                                   uint64_t end) noexcept
    """The first message of [message, end) that nobody dealt with, else end."""

    cdef uint32_t key_hash_of(self, LedgerReader reader) noexcept
    """The hash of the sticky key of the entry read last."""

    cdef int delay(self) except -1
    cdef int skip_far(self) except -1
    cdef bint give_due(self, EntrySink receiver) except -1
    cdef bint give_new(self, EntrySink receiver) except -1
    cdef uint32_t give_run(self, EntrySink receiver, uint64_t room, uint32_t key_hash,
                           uint16_t key_hint) except? 4294967295
    cdef void unqueue(self, EntryView view, uint64_t end, uint32_t tag) noexcept
    cdef bint is_unread(self, uint64_t ledger_id, uint64_t message) noexcept
    """Whether reading will come to a message, in its order."""

    cdef int give_back_untold(self, uint64_t ledger_id, uint64_t message) except -1
    """A message of which nothing but its redelivery count is known comes again, counted, unless it
    is for later."""

    cdef bint learn_key(self, uint64_t ledger_id, uint64_t message, uint32_t* key_hash) except -1
    """The hash of the sticky key of a message whose frame was read again; False: it cannot be
    read."""

    cdef int key_given(self, uint32_t key_hash, uint16_t key_hint, uint32_t count) noexcept
    """Key_Shared: so many messages of one key were queued with its owner."""

    cdef int restart(self) except -1
    cdef int keys_cleared(self) except -1
    """Key_Shared forgets what it knows of keys."""


# What is done for each of many messages, without a call.

cdef inline bint is_acknowledged(CursorState* state, LedgerAcks* acks, uint64_t ledger_id,
                                 uint64_t message) noexcept:
    """acks: what cursor_state_find says of the ledger."""
    return ledger_id < state.acknowledged_below or (
        acks != NULL and ack_bits_has(&acks.bits, message))
