"""Dispatches a non-persistent topic to a subscription or reader: what is published goes at once
into the queue of a receiver that has room, and is dropped where none has.

Exclusive and Failover: to the active receiver. Shared: to the next one in turn, a batch whole.
Key_Shared: to the owner of the key; a batch of several keys is split. Nothing is delivered again,
so nothing is known of a message that was handed out. A receiver with any room gets a whole batch,
as in Pulsar. With the subscription's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.pending_acks cimport PENDING_NOBODY
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.dispatch.hash_range_selector cimport HashRangeSelector
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.rate_counter cimport RateCounter
from pulsarx._pycore.message.entry_target cimport EntryTarget
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class NonPersistentDispatcher(Dispatcher):
    cdef list receivers                  # in the order they came
    cdef list owners                     # by the index the selector knows; None: not in use
    cdef EntrySink active                # Exclusive, Failover: who gets everything
    cdef HashRangeSelector selector      # Key_Shared; else None
    cdef bint exclusive
    cdef bint shared                     # Shared or Key_Shared
    cdef bint spread                     # messages without a key do not have one key together
    cdef int partition_index             # of the topic; -1: it is no partition
    cdef uint32_t turn                   # Shared: whose turn was it
    cdef readonly RateCounter drops      # messages

    cdef uint32_t hand_out(self, bytes entry, bytes plain, const EntryFrame* frame,
                           bint* taken) except? 4294967295
    """See EntryTarget.offer."""

    cdef uint32_t select_published(self, bytes entry, bytes plain,
                                   const EntryFrame* frame) except? 4294967295
    """Ask core.filter, which is not None, about an entry: how many of its messages are wanted."""

    cdef int push_wanted(self, EntrySink receiver, EntryView view, uint32_t wanted) except -1
    """Queue the messages of an entry that core.filter, which was asked about it, lets pass."""

    cdef bint splits(self, const EntryFrame* frame) noexcept
    cdef uint32_t split(self, bytes entry, bytes plain, const EntryFrame* frame,
                        bint* taken) except? 4294967295
    cdef uint32_t find_owners(self, EntryView view, uint32_t* offsets, uint16_t* owners,
                              uint32_t* counts) noexcept
    cdef int push_picked(self, EntrySink receiver, EntryView view, const uint32_t* offsets,
                         const uint16_t* owners, uint32_t count) except -1
    cdef EntrySink owner_of(self, bytes entry, const EntryFrame* frame)
    cdef EntrySink next_receiver(self)
    cdef int activate(self) except -1
    cdef int take_index(self, EntrySink receiver, object key_shared) except -1
    cdef int next_slice(self, EntrySink receiver) except -1
    cdef int requeue_current(self, EntrySink receiver) except -1


cdef class SubscriptionTarget(EntryTarget):
    cdef SubscriptionCore core


cdef inline uint32_t held_by(EntrySink receiver) noexcept:
    """How many messages the receiver has: behind the current slice, and what is left of that."""
    if receiver.view is None:
        return receiver.queued
    return receiver.queued + receiver.place.end - (
        receiver.place.item_at if receiver.place.items != NULL else receiver.place.index)


cdef inline void ask_for_one(EntrySink receiver) noexcept:
    """Without a queue, a message may come while somebody waits for it."""
    if receiver.queue_size == 0 and not receiver.by_flow and receiver.index != PENDING_NOBODY:
        receiver.permits = 1


cdef inline int64_t room_of(EntrySink receiver) noexcept:
    """How many messages may be queued; with a queue of 0, one while somebody asks for it. Over a
    connection, the permits of its client: what is sent lies in the client's queue."""
    if receiver.queue_size == 0 or receiver.by_flow:
        return receiver.permits
    return <int64_t>receiver.queue_size - held_by(receiver)


cdef inline void count_pushed(EntrySink receiver, uint32_t count) noexcept:
    receiver.queued += count
    if receiver.queue_size == 0 or receiver.by_flow:
        receiver.permits -= count
