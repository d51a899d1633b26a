# cython: language_level=3
"""Body of pending_dispatcher.pxd."""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport ENTRY_CHUNK
from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_DEAD, PENDING_DELAYED, PENDING_DUE, PENDING_HELD, PENDING_NACKED,
    PENDING_NOBODY, PENDING_NONE, PENDING_QUEUED, PendingAck, pending_acks_find, pending_acks_next,
    pending_acks_next_due, pending_acks_remove, pending_acks_set_state,
)
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport TIMER_NONE
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_PLAIN, ENTRY_UNREADABLE, EntryContext, EntryView, entry_view_chunked,
    entry_view_decrypt, entry_view_join, entry_view_new, entry_view_share,
)
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_DAMAGE, READ_ENTRY
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.message cimport (
    Message, message_extent, message_new, message_ordinal,
)
from pulsarx._pycore.message.message_at cimport message_in, message_place
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.dispatch.entry_sink cimport CLAIM_STALE, Dispatcher, EntrySink
from pulsarx._pycore.dispatch.entry_source cimport CHUNK_WAITS, CHUNK_WHOLE
from pulsarx._pycore.dispatch.slice_queue cimport Slice, SliceItem
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore

cdef enum:
    REDELIVERY_SHIFT = 16        # Message.flags holds the redelivery count above the others
    PICKED_MIN = 8
    AGAIN_KEPT_MAX = 1 << 20     # bytes that stay decompressed for the next message of an entry


cdef int picked_begin(PickedItems* self, EntrySink receiver, EntryView view) except -1:
    receiver.reserve_slice()
    if self.items == NULL:
        picked_grow(self)
    if view.context is not receiver.context or view.encryption != ENTRY_PLAIN:
        view = entry_view_share(view, receiver.context)
    view = receiver.view_to_queue(view)
    Py_INCREF(view)
    self.view = <void*>view
    return 0


cdef int picked_grow(PickedItems* self) except -1:
    cdef uint32_t capacity = 2 * self.capacity
    cdef SliceItem* grown
    if capacity == 0:
        # Entries of a topic are alike: as many as the last time, and mostly none is too many.
        capacity = max(self.usual, <uint32_t>PICKED_MIN)
    grown = <SliceItem*>PyMem_Realloc(self.items, capacity * sizeof(SliceItem))
    if grown == NULL:
        raise MemoryError(f"queue {capacity} messages of an entry for a consumer: out of memory")
    self.items = grown
    self.capacity = capacity
    return 0


cdef void picked_push(PickedItems* self, EntrySink receiver, uint32_t tag) noexcept:
    cdef Slice slice
    cdef SliceItem* cut
    self.room = 0
    if self.view == NULL:
        return
    if self.count == 0:
        Py_DECREF(<object>self.view)
        self.view = NULL
        return
    memset(&slice, 0, sizeof(slice))
    if self.capacity - self.count > self.count // 4:
        cut = <SliceItem*>PyMem_Realloc(self.items, self.count * sizeof(SliceItem))
        if cut != NULL:
            self.items = cut
    slice.view = self.view
    slice.items = self.items
    slice.item_count = self.count
    slice.tag = tag
    self.usual = self.count
    self.view = NULL
    self.items = NULL
    self.count = 0
    self.capacity = 0
    receiver.push(&slice)


cdef void picked_free(PickedItems* self) noexcept:
    if self.view != NULL:
        Py_DECREF(<object>self.view)
        self.view = NULL
    PyMem_Free(self.items)
    self.items = NULL


cdef inline int let_go_of(PendingDispatcher self, PendingAck* ack) except -1:
    """PendingDispatcher.let_go without a call: every acknowledgement comes here."""
    cdef PyObject* holder                # borrowed: nothing here runs Python
    if ack.state != PENDING_QUEUED and ack.state != PENDING_HELD and ack.state != PENDING_NACKED:
        return 0
    if ack.consumer >= PyList_GET_SIZE(self.receivers):
        return 0
    holder = <PyObject*>PyList_GET_ITEM(self.receivers, ack.consumer)
    if holder == <PyObject*>None:
        return 0
    if ack.state == PENDING_QUEUED:
        (<EntrySink>holder).queued -= 1
        (<EntrySink>holder).give_permit()
    (<EntrySink>holder).unacknowledged -= 1
    if self.unacknowledged == self.unacknowledged_max and self.core.pending.due_count:
        self.wakes = True      # there is room again for what goes out although it is blocked
    self.unacknowledged -= 1
    if (<EntrySink>holder).blocked and (
            2 * (<EntrySink>holder).unacknowledged <= self.receiver_max):
        (<EntrySink>holder).blocked = False
        self.wakes = True
    if self.blocked and 2 * self.unacknowledged <= self.unacknowledged_max:
        self.blocked = False
        self.wakes = True
    return 0


cdef inline int key_gone(PendingDispatcher self, uint8_t state, uint32_t key_hash,
                         uint16_t key_hint, uint64_t ledger_id, uint64_t message) except -1:
    """A message that was in this state is in none."""
    if state == PENDING_HELD or state == PENDING_QUEUED:
        if self.has_keys:
            self.key_returned(key_hash, key_hint)
    elif state == PENDING_DUE or state == PENDING_NACKED:
        self.key_forgotten(key_hash, ledger_id, message)
    return 0


cdef class PendingDispatcher(Dispatcher):
    """Keeps account of what was delivered to whom."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, object limits):
        """limits: a DispatchLimits of the broker."""
        super().__init__(core, tail, topic_name, decompressed_size_max)
        self.shares = True
        self.has_several = True
        self.again = LedgerReader(tail, topic_name)
        self.receivers = []
        self.receiver_max = limits.unacknowledged_per_consumer
        self.unacknowledged_max = limits.unacknowledged_per_subscription

    def __dealloc__(self):
        picked_free(&self.c_picked)

    cdef EntrySink holder_of(self, PendingAck* ack):
        if ack.consumer >= len(self.receivers):
            return None
        return <EntrySink>PyList_GET_ITEM(self.receivers, ack.consumer)

    # Received -------------------------------------------------------------------------------------

    cdef int claim(self, EntrySink receiver, EntryView view, uint32_t index) except -2:
        cdef uint64_t message = view.first_message + index
        cdef uint32_t timer = TIMER_NONE
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
        if ack == NULL or ack.state != PENDING_QUEUED or ack.tag != receiver.place.tag or (
                ack.consumer != receiver.index):
            return CLAIM_STALE
        if receiver.redelivery.is_too_often(ack.redelivery_count) and (
                view.encryption != ENTRY_UNREADABLE):
            # Counted under another policy, or before a restart: it was handed out often enough.
            if self.give_up(view.ledger_id, message, ack, receiver):
                return CLAIM_STALE
        if receiver.redelivery.timed:
            if self.core.ttl_ms and self.core.is_expired(view.publish_time_ms):
                self.expire_view(view)
                return CLAIM_STALE
            if receiver.redelivery.ack_timeout_ms:
                # First, for it calls Python: what raises there leaves the message in the queue.
                timer = self.core.arm_wait(receiver.ack_due_ms(), view.ledger_id, message)
        receiver.queued -= 1
        receiver.taken += 1
        # As Pulsar's clients: permits go back when half of the queue was taken.
        if 2 * receiver.taken >= receiver.queue_size:
            receiver.give_back_permits()
        ack.state = PENDING_HELD
        ack.tag = timer
        if self.has_keys:
            self.key_held(ack)
        return ack.redelivery_count

    cdef int unclaim(self, EntrySink receiver, EntryView view, uint32_t index) except -1:
        cdef uint64_t message = view.first_message + index
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
        return self.give_back(view.ledger_id, message, ack) if ack != NULL else 0

    cdef int unreceive(self, EntrySink receiver, list messages) except -1:
        cdef Message each
        cdef uint64_t message
        cdef PendingAck* ack
        for each in messages:
            for message in range(message_ordinal(each),
                                 message_ordinal(each) + message_extent(each)):
                ack = pending_acks_find(&self.core.pending, each.entry.ledger_id, message)
                if ack != NULL and ack.state == PENDING_HELD and ack.consumer == receiver.index:
                    self.give_back(each.entry.ledger_id, message, ack)
        return 0

    cdef int take_back(self, EntrySink receiver, uint64_t ledger_id, uint64_t first,
                       uint64_t count) except -1:
        cdef uint64_t message
        cdef PendingAck* ack
        for message in range(first, first + count):
            ack = pending_acks_find(&self.core.pending, ledger_id, message)
            if ack != NULL and ack.state == PENDING_HELD and ack.consumer == receiver.index:
                self.give_back(ledger_id, message, ack)
        return 0

    cdef int rewind(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    uint64_t unseen_ledger, uint64_t unseen) except -1:
        cdef PendingAck* ack
        if unseen_ledger == 0:
            return 0             # what is to come again was named, and given back
        ledger_id = message = 0
        while True:              # what waits for its time comes now
            ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
            if ack == NULL:
                return self.core.rearm()
            if ack.consumer == receiver.index and ack.state == PENDING_NACKED:
                self.again_or_dead(ledger_id, message, ack)
            message += 1

    cdef int pass_over(self, EntrySink receiver, EntryView view, uint32_t index) except -1:
        return self.lost(view.ledger_id, view.first_message + index)

    cdef int lost(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack != NULL:
            self.drop(ledger_id, message, ack)
        return 0

    # Expired --------------------------------------------------------------------------------------

    def ttl_changed(self) -> None:
        cdef EntrySink each
        for each in self.receivers:
            if each is not None:
                each.redelivery.timed = each.redelivery.ack_timeout_ms != 0 or self.core.ttl_ms != 0

    cdef int expire_queued(self, EntrySink receiver) except -1:
        cdef Slice slice
        cdef EntryView view
        cdef uint32_t at
        for at in range(receiver.queue.count + 1):
            if receiver.slice_at(at, &slice):
                view = <EntryView>slice.view
                if self.core.is_expired(view.publish_time_ms):
                    self.expire_view(view)
        return 0

    # Acknowledged ---------------------------------------------------------------------------------

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = first
        cdef PendingAck* ack
        if count == 1:
            ack = pending_acks_find(&self.core.pending, ledger_id, first)
            return self.drop(ledger_id, first, ack) if ack != NULL else 0
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger != ledger_id or at - first >= count:
                return 0
            self.drop(at_ledger, at, ack)
            at += 1

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger > ledger_id or (at_ledger == ledger_id and at >= end):
                return 0
            self.drop(at_ledger, at, ack)
            at += 1

    cdef int drop(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef uint32_t key_hash = ack.key_hash
        cdef uint16_t key_hint = ack.key_hint
        cdef uint8_t state = ack.state
        let_go_of(self, ack)
        if ack.tag != TIMER_NONE:
            self.core.cancel_timer(ack)
        pending_acks_remove(&self.core.pending, ledger_id, message)
        return key_gone(self, state, key_hash, key_hint, ledger_id, message)

    cdef int put_aside(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef uint32_t key_hash = ack.key_hash
        cdef uint16_t key_hint = ack.key_hint
        cdef uint8_t state = ack.state
        let_go_of(self, ack)
        self.core.unread(ledger_id, message, ack)
        return key_gone(self, state, key_hash, key_hint, ledger_id, message)

    cdef int set_aside(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef uint64_t at_ledger = ledger_id
        cdef uint64_t at = first
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger != ledger_id or at - first >= count:
                return 0
            self.put_aside(at_ledger, at, ack)
            at += 1

    cdef int set_aside_through(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.core.pending, &at_ledger, &at)
            if ack == NULL or at_ledger > ledger_id or (at_ledger == ledger_id and at >= end):
                return 0
            self.put_aside(at_ledger, at, ack)
            at += 1

    cdef int let_go(self, PendingAck* ack) except -1:
        return let_go_of(self, ack)

    def was_delivered(self, uint64_t ledger_id, uint64_t message) -> bool:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        return ack != NULL and ack.state not in (PENDING_NONE, PENDING_DELAYED, PENDING_COUNTED)

    def forget_before(self, uint64_t ledger_id) -> None:
        """Ledgers below this one are gone. Mutex held."""
        self.acknowledged_through(ledger_id, 0)

    def leave_gone(self, uint64_t first_id) -> None:
        """The topic begins with this ledger. Mutex held."""
        if self.again is not None and self.again.span is not None and (
                self.again.span.ledger_id < first_id):
            self.again.let_go()

    # Delivered again ------------------------------------------------------------------------------

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        # What went on to another consumer is that one's by now.
        if ack == NULL or ack.consumer != receiver.index or (
                ack.state != PENDING_HELD and ack.state != PENDING_QUEUED
                and ack.state != PENDING_NACKED):
            return 0
        self.postpone(ledger_id, message, delay_ms)
        return 0

    cdef int postpone(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef EntrySink holder
        cdef uint32_t timer
        if delay_ms == 0:
            return self.again_or_dead(ledger_id, message, ack)
        timer = self.core.arm_wait(
            self.core.gathered_ms(delay_ms) if self.comes_together else
            self.core.later_ms(delay_ms), ledger_id, message)
        ack = pending_acks_find(&self.core.pending, ledger_id, message)
        self.core.cancel_timer(ack)
        if ack.state == PENDING_QUEUED:
            holder = self.holder_of(ack)
            holder.queued -= 1
            holder.give_permit()
        if ack.state != PENDING_NACKED:
            self.key_waits(ack.key_hash, ledger_id, message, False)
            self.key_returned(ack.key_hash, ack.key_hint)
            self.key_recalled(ack.consumer, ack.key_hash, ledger_id, message)
        ack.state = PENDING_NACKED
        ack.tag = timer
        return 0

    cdef EntrySink asks_backoff(self, uint64_t ledger_id, uint64_t message):
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef EntrySink holder
        if ack == NULL or ack.state != PENDING_HELD or ack.tag != TIMER_NONE:
            return None
        holder = self.holder_of(ack)
        if holder is None or holder.redelivery.ack_timeout_backoff is None:
            return None
        return holder

    cdef int due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or (ack.state != PENDING_HELD and ack.state != PENDING_NACKED
                           and ack.state != PENDING_DELAYED):
            return 0       # the tag of others is none of a timer
        ack.tag = TIMER_NONE
        if ack.state == PENDING_DELAYED:
            return self.delay_over(ledger_id, message, ack)
        if ack.state == PENDING_HELD and backoff_ms:
            return self.postpone(ledger_id, message, backoff_ms)
        return self.again_or_dead(ledger_id, message, ack)

    cdef int at_once(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        return self.give_back(ledger_id, message, ack)

    cdef int delay_over(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        return self.give_back(ledger_id, message, ack)

    cdef int again_or_dead(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef EntrySink holder = self.holder_of(ack)
        self.core.count_redelivery(ledger_id, message, ack)
        if holder is not None and holder.redelivery.is_too_often(ack.redelivery_count):
            if self.give_up(ledger_id, message, ack, holder):
                return 0
        return self.give_back(ledger_id, message, ack)

    cdef int give_back(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef uint8_t state = ack.state
        cdef uint16_t holder = ack.consumer
        cdef EntrySink had = self.holder_of(ack)
        self.let_go(ack)
        if had is not None:
            had.blocked = False      # it may have back what it refused, as in Pulsar
        self.core.cancel_timer(ack)
        ack.consumer = PENDING_NOBODY
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DUE)
        self.wakes = True
        if state == PENDING_NACKED:
            return self.key_ready(ack.key_hash, ledger_id, message)
        self.key_waits(ack.key_hash, ledger_id, message, True)
        if state == PENDING_HELD or state == PENDING_QUEUED:
            self.key_returned(ack.key_hash, ack.key_hint)
            self.key_recalled(holder, ack.key_hash, ledger_id, message)
        return 0

    cdef bint give_up(self, uint64_t ledger_id, uint64_t message, PendingAck* ack,
                      EntrySink receiver) except -1:
        """It goes to the dead letters of the receiver, once the mutex is released. False: it is no
        letter, for the receiver cannot decrypt it, and nothing was changed."""
        cdef uint8_t state = ack.state
        cdef Message dead
        # First: what raises there changes nothing.
        if not self.find_again(receiver.context, ledger_id, message):
            return True
        if self.again_view.encryption != ENTRY_PLAIN:
            self.again_view = entry_view_share(self.again_view, receiver.context)
        if self.again_view.chunked is not None and not self.join_again(ledger_id, message):
            return True
        dead = self.found_message(receiver.context, message, ack.redelivery_count)
        if dead is None:
            return False
        self.bury(receiver, dead)
        self.let_go(ack)
        self.core.cancel_timer(ack)
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DEAD)
        if state == PENDING_NACKED:
            self.key_forgotten(ack.key_hash, ledger_id, message)
        else:
            self.key_returned(ack.key_hash, ack.key_hint)
        return True

    cdef Message found_message(self, EntryContext context, uint64_t message,
                               uint32_t redelivery_count):
        """The message that find_again walked to. None: the context cannot decrypt it."""
        cdef EntryView view = self.again_view
        cdef BatchMessage found
        cdef uint32_t at = self.again_at
        cdef uint32_t flags = redelivery_count << REDELIVERY_SHIFT
        if view.encryption != ENTRY_PLAIN:
            return self.decrypted_message(view, message, redelivery_count)
        if view.context is not context:
            view = entry_view_share(view, context)
        if view.metadata_flags & METADATA_BATCH == 0:
            return message_new(view, view.c_payload, view.payload_size, -1, 0,
                               view.metadata_flags | flags)
        batch_decode_next(view.c_payload, view.payload_size, &at, &found)
        return message_new(view, found.payload, found.payload_size, <int>self.again_index,
                           found.encoded_metadata_size, found.flags | flags)

    cdef Message decrypted_message(self, EntryView view, uint64_t message,
                                   uint32_t redelivery_count):
        # The dispatcher's own view stays sealed.
        self.again_view = None
        try:
            if view.chunked is None and not entry_view_decrypt(view, self.decompressed_size_max):
                return None
        except errors.CorruptDataError:
            return None          # told when it is delivered
        if view.encryption == ENTRY_UNREADABLE:
            return None
        return message_in(view, <uint32_t>(message - view.first_message), redelivery_count)

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or ack.state != PENDING_DEAD:
            return 0
        if self.core.tracker.is_acknowledged(ledger_id, message):
            pending_acks_remove(&self.core.pending, ledger_id, message)     # by a seek
            return 0
        ack.consumer = PENDING_NOBODY
        if delay_ms == 0:
            return self.give_back(ledger_id, message, ack)
        timer = self.core.arm_wait(self.core.later_ms(delay_ms), ledger_id, message)
        self.key_waits(ack.key_hash, ledger_id, message, False)
        ack.state = PENDING_NACKED
        ack.tag = timer
        return 0

    cdef int redeliver(self, EntrySink receiver) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        if receiver.index == PENDING_NOBODY:
            return 0
        self.all_go_back = True
        try:
            while True:
                ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
                if ack == NULL:
                    break
                if ack.consumer == receiver.index:
                    if ack.state == PENDING_QUEUED:
                        self.give_back(ledger_id, message, ack)    # nobody saw it: not counted
                    elif ack.state == PENDING_HELD or ack.state == PENDING_NACKED:
                        self.again_or_dead(ledger_id, message, ack)
                message += 1
        finally:
            self.all_go_back = False
        receiver.clear()
        self.core.rearm()
        return 0

    cdef bint find_again(self, EntryContext context, uint64_t ledger_id,
                         uint64_t message) except -1:
        cdef EntryView view = self.again_view
        cdef BatchMessage found
        cdef uint32_t index
        cdef uint32_t at
        cdef int status
        if view is None or view.ledger_id != ledger_id or message < view.first_message or (
                message >= view.first_message + view.message_count):
            if not self.read_again(context, ledger_id, message):
                self.lost(ledger_id, message)
                return False
            view = self.again_view
        if view.metadata_flags & METADATA_BATCH == 0:
            return True
        index = <uint32_t>(message - view.first_message)
        if view.encryption != ENTRY_PLAIN:
            self.again_at = 0    # found by who decrypts it
            self.again_index = index
            return True
        if index < self.again_index:
            self.again_at = 0
            self.again_index = 0
        status = message_place(view, index, &self.again_at, &self.again_index)
        at = self.again_at
        if status == STATUS_OK:
            status = batch_decode_next(view.c_payload, view.payload_size, &at, &found)
        if status == STATUS_OK:
            return True
        self.note_loss(self.count_rest(view, self.again_index, view.message_count, status))
        self.lost(ledger_id, message)
        return False

    cdef bint still_selected(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef SubscriptionCore core = self.core
        if core.filter.wants(self.again_view, self.again_at):
            core.counts.accepted += 1
            return True
        core.counts.rejected += self.reject(ledger_id, message, message + 1)
        if core.losses is not None:
            core.losses.keep_soon()
        return False

    cdef bint join_again(self, uint64_t ledger_id, uint64_t message) except -1:
        try:
            entry_view_join(self.again_view, self.decompressed_size_max)
        except errors.UnreadableEntryError as error:
            self.note_loss(f"{errors.detail_of(error)}; it stays unacknowledged")
            self.lost(ledger_id, message)
            self.again_view = None
            return False
        except errors.CorruptDataError as error:
            if self.lose_messages(ledger_id, message, message + 1):
                self.note_loss(f"{errors.detail_of(error)}; {self.count_text(1)}")
            self.again_view = None
            return False
        return True

    cdef int note_loss(self, str text) except -1:
        """Messages that go out again cannot be read; None: that was told before."""
        if text is not None:
            self.report_loss(text)
            self.unsaid = text
        return 0

    cdef int say_loss(self) except -1:
        """Raise what note_loss was told, for the consumer that was to have the message."""
        text, self.unsaid = self.unsaid, None
        if text is not None:
            raise self.loss(errors.CorruptDataError, text)
        return 0

    cdef bint read_again(self, EntryContext context, uint64_t ledger_id,
                         uint64_t message) except -1:
        cdef ChunkedMessage chunked = None
        self.again_view = None
        self.again_at = 0
        self.again_index = 0
        if self.core.chunks is not None:
            chunked = self.core.chunks.find(ledger_id, message)
            if chunked is not None:
                self.again_view = entry_view_chunked(chunked, context)
                return True
        if not self.frame_again(ledger_id, message):
            return False
        if self.again.c_frame.flags & ENTRY_CHUNK:
            # The reader passed it, as the cursor knew more of it than of the chunks before it.
            step = self.read_chunk(self.again)
            if step == CHUNK_WHOLE:
                self.again_view = entry_view_chunked(self.whole, context)
                return True
            if step == CHUNK_WAITS:
                return False
        try:
            self.again_view = entry_view_new(
                self.again.span.file, context, ledger_id, &self.again.c_frame,
                self.again.c_entry, self.decompressed_size_max)
        except errors.CorruptDataError as error:
            try:
                self.lose_entry(self.again, error)
            except errors.CorruptDataError as told:
                self.unsaid = errors.detail_of(told)
            return False
        return True

    cdef int forget_large(self, EntrySink receiver) except -1:
        if receiver.takes_entries and self.again_view is not None and (
                self.again_view.plain is not None and len(self.again_view.plain) > AGAIN_KEPT_MAX):
            self.again_view = None
        return 0

    cdef bint frame_again(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef int step = self.again.read_message(ledger_id, message)
        if step == READ_DAMAGE:
            self.note_loss(self.count_damage(self.again))
        return step == READ_ENTRY

    cdef int enqueue(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                     PendingAck* ack, uint32_t key_hash, uint32_t tag) except -1:
        queue_for(self, receiver.index, ledger_id, message, ack, key_hash, ack.key_hint, tag)
        count_queued(self, receiver, 1)
        return 0

    cdef uint32_t push_due(self, EntrySink receiver, uint64_t room) except? 4294967295:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint64_t end
        cdef uint64_t of_ledger
        cdef uint32_t given
        cdef PendingAck* ack = pending_acks_next_due(&self.core.pending, &ledger_id, &message)
        if ack == NULL:
            return 0
        of_ledger = ledger_id
        self.unsaid = None
        if not self.find_again(receiver.context, ledger_id, message):
            return 0
        self.last_tag += 1
        end = self.again_view.first_message + self.again_view.message_count
        picked_begin(&self.c_picked, receiver, self.again_view)
        try:
            while ack != NULL and ledger_id == of_ledger and message < end and (
                    self.c_picked.count < room):
                if not self.find_again(receiver.context, ledger_id, message):
                    break
                if self.core.filter is not None and not self.still_selected(ledger_id, message):
                    message += 1
                    ack = pending_acks_next_due(&self.core.pending, &ledger_id, &message)
                    continue
                if self.again_view.encryption != ENTRY_PLAIN or receiver.takes_entries:
                    room = UINT64_MAX    # as in SharedDispatcher.give_run
                picked_reserve(&self.c_picked)
                self.enqueue(receiver, ledger_id, message, ack, ack.key_hash, self.last_tag)
                picked_add(&self.c_picked, self.again_at, self.again_index)
                message += 1
                ack = pending_acks_next_due(&self.core.pending, &ledger_id, &message)
        finally:
            given = self.c_picked.count
            picked_push(&self.c_picked, receiver, self.last_tag)
        return given

    def set_unacknowledged_limits(self, uint64_t of_receiver, uint64_t of_all) -> None:
        """How many messages may be unacknowledged, of one receiver and of all; 0: no limit. Who has
        so many already gets none until it has half of that."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            if of_receiver != self.receiver_max:
                self.receiver_max = of_receiver
                for each in self.receivers:
                    if each is not None:
                        each.blocked = of_receiver != 0 and each.unacknowledged >= of_receiver
                self.wakes = True
            if of_all != self.unacknowledged_max:
                self.unacknowledged_max = of_all
                self.blocked = of_all != 0 and self.unacknowledged >= of_all
                self.wakes = True
        finally:
            mutex_unlock(&self.core.mutex)
        self.settle()

    def given(self) -> list:
        """See Dispatcher."""
        cdef EntrySink each
        return [(each.consumer_name, each.given.messages, each.given.size)
                for each in list(self.receivers) if each is not None]

    def unacknowledged_messages(self) -> int:
        """See Dispatcher."""
        return self.unacknowledged

    @property
    def is_blocked(self) -> bool:
        """Whether too much is unacknowledged for new messages to be delivered."""
        return bool(self.blocked)

    def check(self) -> list:
        """Recount and return where the counts are wrong; for tests."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            found = check_counts(self)
            found += self.check_keys()
        finally:
            mutex_unlock(&self.core.mutex)
        return found

    def check_keys(self) -> list:
        return []

    # Key_Shared overrides these.

    cdef void key_held(self, const PendingAck* ack) noexcept:
        pass

    cdef int key_waits(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message,
                       bint ready) except -1:
        return 0

    cdef int key_ready(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message) except -1:
        return 0

    cdef int key_returned(self, uint32_t key_hash, uint16_t key_hint) except -1:
        return 0

    cdef int key_forgotten(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        return 0

    cdef int key_came_back(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        return 0

    cdef int key_recalled(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message) except -1:
        return 0


cdef list check_counts(PendingDispatcher self):
    """Permits, queues and what is unacknowledged, against the table and the queues themselves."""
    cdef uint64_t ledger_id = 0
    cdef uint64_t message = 0
    cdef uint64_t due = 0
    cdef uint64_t total = 0
    cdef PendingAck* ack
    cdef EntrySink each
    cdef list queued = [0] * len(self.receivers)
    cdef list had = [0] * len(self.receivers)
    cdef list found = []
    while True:
        ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
        if ack == NULL:
            break
        due += ack.state == PENDING_DUE
        each = self.holder_of(ack)
        if each is not None and ack.state in (PENDING_QUEUED, PENDING_HELD, PENDING_NACKED):
            had[ack.consumer] += 1
            queued[ack.consumer] += ack.state == PENDING_QUEUED
        elif ack.state == PENDING_NONE or ack.state == PENDING_QUEUED or ack.state == PENDING_HELD:
            found.append(f"{ledger_id}:{message} is in state {ack.state} of nobody")
        message += 1
    if due != self.core.pending.due_count:
        found.append(f"{due} messages are due, not {self.core.pending.due_count}")
    for each in self.receivers:
        if each is None:
            continue
        total += each.unacknowledged
        counts = (each.queued, queued_live(self, each), each.unacknowledged)
        right = (queued[each.index], queued[each.index], had[each.index])
        if counts != right:
            found.append(f"{each.consumer_name}: queued, in slices, unacknowledged {counts}, "
                         f"not {right}")
        if each.permits + each.queued + each.taken != each.queue_size and each.queue_size and (
                not each.by_flow):
            found.append(f"{each.consumer_name}: {each.permits} permits + {each.queued} queued + "
                         f"{each.taken} taken are not {each.queue_size}")
    if total != self.unacknowledged:
        found.append(f"{total} unacknowledged messages, not {self.unacknowledged}")
    return found


cdef uint64_t queued_live(PendingDispatcher self, EntrySink receiver) except? 0:
    """The messages in the receiver's slices that it will be handed."""
    cdef uint64_t count = 0
    cdef uint32_t at
    cdef uint32_t number
    cdef Slice slice
    cdef PendingAck* ack
    for at in range(receiver.queue.count + 1):
        if not receiver.slice_at(at, &slice):
            continue
        view = <EntryView>slice.view
        for number in range(slice.first, slice.end):
            index = slice.items[number].index if slice.items != NULL else number
            ack = pending_acks_find(&self.core.pending, view.ledger_id, view.first_message + index)
            count += ack != NULL and ack.state == PENDING_QUEUED and ack.tag == slice.tag and (
                ack.consumer == receiver.index)
    return count
