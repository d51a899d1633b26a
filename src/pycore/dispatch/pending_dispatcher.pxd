"""Keeps the state of each delivered message: received, acknowledged, to be delivered again, given
up. The lower half of SharedDispatcher.

The states are those of pulsarx._core.pending_acks. With the subscription's mutex held.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.pending_acks cimport (
    PENDING_GIVEN, PENDING_NONE, PENDING_QUEUED, PendingAck, pending_acks_set_state,
)
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.dispatch.slice_queue cimport SliceItem, slice_item_set

cdef struct PickedItems:                 # messages of one entry that a receiver gets, as a slice
    void* view                           # owned reference to its EntryView; NULL: not begun
    SliceItem* items                     # owned
    uint32_t count
    uint32_t capacity
    uint32_t usual                       # how many they were the last time
    # while an entry is routed: how many more its receiver may get, as far as that is known
    uint64_t room
    void* receiver                       # borrowed; NULL: it was not asked yet


cdef class PendingDispatcher(Dispatcher):
    cdef list receivers                  # by their index; None where nobody is
    cdef LedgerReader again              # reads single messages again
    cdef uint64_t unacknowledged         # of all receivers
    cdef uint64_t unacknowledged_max     # of the subscription; 0: no limit
    cdef uint64_t receiver_max           # of one receiver; 0: no limit
    cdef bint all_go_back                # of one receiver: nothing is recalled one by one
    cdef bint has_keys
    # nothing that was never delivered until half of them are acknowledged
    cdef bint blocked

    # what is delivered again: the entry read last, and how far it was walked
    cdef EntryView again_view
    cdef uint32_t again_at
    cdef uint32_t again_index

    cdef uint32_t last_tag               # of a slice

    cdef str unsaid                      # a loss that the log tells, and a consumer may be told

    cdef PickedItems c_picked            # owned: what is delivered again

    cdef EntrySink holder_of(self, PendingAck* ack)
    cdef int let_go(self, PendingAck* ack) except -1
    """Take the message from its holder: permits and counts."""

    cdef int give_back(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """Have the message delivered as soon as a receiver may take it."""

    cdef int postpone(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1
    """A message that is held, or waits already: it goes out again after a while."""

    cdef int again_or_dead(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """Deliver the message again, counted, or give it up when that was done often enough."""

    cdef int delay_over(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """The deliver-at time of a message has come."""

    cdef bint give_up(self, uint64_t ledger_id, uint64_t message, PendingAck* ack,
                      EntrySink receiver) except -1
    cdef int drop(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """Forget a message that was acknowledged, or is gone."""

    cdef int put_aside(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """Forget a message but for its redelivery count."""

    cdef int lost(self, uint64_t ledger_id, uint64_t message) except -1
    """Give up a message that was trimmed, or cannot be read any more."""

    cdef int expire_queued(self, EntrySink receiver) except -1
    """Take messages that are too old out of the receiver's queue."""

    cdef bint find_again(self, EntryContext context, uint64_t ledger_id, uint64_t message) except -1
    """Make again_view the entry that holds a message, walked to it. False: it is gone, or cannot be
    read, which the log tells; nothing is known of it any more."""

    cdef bint still_selected(self, uint64_t ledger_id, uint64_t message) except -1
    """Whether core.filter, which is not None, wants a message that find_again walked to; else it
    counts as acknowledged, and nothing is known of it any more."""

    cdef bint read_again(self, EntryContext context, uint64_t ledger_id,
                         uint64_t message) except -1
    """Make again_view the entry that holds a message; False: as find_again, but what is known of
    the message stays."""

    cdef int forget_large(self, EntrySink receiver) except -1
    """The receiver took all there is of again_view: keep no large payload."""

    cdef bint frame_again(self, uint64_t ledger_id, uint64_t message) except -1
    """Read the frame of the entry that holds a message; False: as read_again."""

    cdef bint join_again(self, uint64_t ledger_id, uint64_t message) except -1
    """Put the payload of again_view together, a message in chunks; False: it is lost, which the log
    tells."""

    cdef int note_loss(self, str text) except -1
    cdef int say_loss(self) except -1
    cdef Message found_message(self, EntryContext context, uint64_t message,
                               uint32_t redelivery_count)
    cdef Message decrypted_message(self, EntryView view, uint64_t message,
                                   uint32_t redelivery_count)

    cdef int enqueue(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                     PendingAck* ack, uint32_t key_hash, uint32_t tag) except -1
    """The message is in the receiver's queue from now on; the caller pushes its slice."""

    cdef uint32_t push_due(self, EntrySink receiver, uint64_t room) except? 4294967295
    """Queue the first messages that are due, as far as they are of one entry, which is again_view
    then: how many. 0: none is due, or the first one is lost, which say_loss says."""

    # What Key_Shared adds; nothing here. has_keys False: key_held and
    # key_returned need not be called.
    cdef void key_held(self, const PendingAck* ack) noexcept
    """A message of the key was received: it may be acknowledged soon."""

    cdef int key_waits(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message,
                       bint ready) except -1
    """A message waits. Here and below, what memory runs out for is done before the next dispatch:
    nothing raises, as half of a change is made by now."""

    cdef int key_ready(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message) except -1
    cdef int key_returned(self, uint32_t key_hash, uint16_t key_hint) except -1
    cdef int key_forgotten(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message) except -1
    cdef int key_came_back(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1
    """A message of the key waits that others of it may have been delivered behind."""

    cdef int key_recalled(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message) except -1
    """Take later messages of the key out of the holder's queue: they go behind this one."""


# A slice of picked messages. Begin it and reserve a place before a message is noted as queued: so
# memory that runs out leaves the message as it was, and what was picked before it is pushed.

cdef int picked_begin(PickedItems* self, EntrySink receiver, EntryView view) except -1
"""Have what pushing a slice of the view takes."""

cdef int picked_grow(PickedItems* self) except -1
cdef void picked_push(PickedItems* self, EntrySink receiver, uint32_t tag) noexcept
"""Queue what was picked, if something was, for the receiver that begin was told."""

cdef void picked_free(PickedItems* self) noexcept

cdef inline int picked_reserve(PickedItems* self) except -1:
    """Have a place for one more message."""
    return picked_grow(self) if self.count == self.capacity else 0

cdef inline void picked_add(PickedItems* self, uint32_t at, uint32_t index) noexcept:
    slice_item_set(&self.items[self.count], at, index)
    self.count += 1


# What is done for each of many messages, without a call.

cdef inline void queue_for(PendingDispatcher self, uint16_t receiver, uint64_t ledger_id,
                           uint64_t message, PendingAck* ack, uint32_t key_hash,
                           uint16_t key_hint, uint32_t tag) noexcept:
    """The message is in the queue of the receiver with this index from now on; call count_queued
    for it."""
    if ack.state == PENDING_NONE:
        ack.state = PENDING_QUEUED
    else:
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_QUEUED)
    ack.tag = tag
    ack.flags = PENDING_GIVEN
    ack.consumer = receiver
    ack.key_hash = key_hash
    ack.key_hint = key_hint


cdef inline void count_queued(PendingDispatcher self, EntrySink receiver, uint32_t count) noexcept:
    receiver.permits -= count
    receiver.queued += count
    receiver.unacknowledged += count
    if self.receiver_max and receiver.unacknowledged >= self.receiver_max:
        receiver.blocked = True
    self.unacknowledged += count
    if self.unacknowledged_max and self.unacknowledged >= self.unacknowledged_max:
        self.blocked = True
