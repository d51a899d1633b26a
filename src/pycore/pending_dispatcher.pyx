# cython: language_level=3
"""Body of pending_dispatcher.pxd."""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.pending_acks cimport (
    PENDING_DEAD, PENDING_DELAYED, PENDING_DUE, PENDING_HELD, PENDING_NACKED, PENDING_NOBODY,
    PENDING_QUEUED, PendingAck, pending_acks_find, pending_acks_next, pending_acks_remove,
    pending_acks_set_state,
)
from pulsarx._core.timer_wheel cimport TIMER_NONE
from pulsarx._pycore.entry_view cimport EntryView
from pulsarx._pycore.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger_tail cimport LedgerTail
from pulsarx._pycore.message cimport Message
from pulsarx._pycore.message_at cimport message_at
from pulsarx._pycore.receiver cimport CLAIM_STALE, Dispatcher, Receiver
from pulsarx._pycore.subscription_core cimport SubscriptionCore


cdef inline int let_go_of(PendingDispatcher self, PendingAck* ack) except -1:
    """PendingDispatcher.let_go without a call: every acknowledgement comes here."""
    cdef Receiver holder
    if ack.state != PENDING_QUEUED and ack.state != PENDING_HELD and ack.state != PENDING_NACKED:
        return 0
    if ack.consumer >= PyList_GET_SIZE(self.receivers):
        return 0
    if <object>PyList_GET_ITEM(self.receivers, ack.consumer) is None:
        return 0
    holder = <Receiver>PyList_GET_ITEM(self.receivers, ack.consumer)
    if ack.state == PENDING_QUEUED:
        holder.queued -= 1
        holder.permits += 1
    holder.unacknowledged -= 1
    if self.unacknowledged == self.unacknowledged_max and self.core.pending.due_count:
        self.wakes = True      # there is room again for what goes out although it is blocked
    self.unacknowledged -= 1
    if holder.blocked and 2 * holder.unacknowledged <= self.receiver_max:
        holder.blocked = False
        self.wakes = True
    if self.blocked and 2 * self.unacknowledged <= self.unacknowledged_max:
        self.blocked = False
        self.wakes = True
    return 0


cdef class PendingDispatcher(Dispatcher):
    """Keeps account of what was delivered to whom."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, object limits):
        """limits: a DispatchLimits of the broker."""
        super().__init__(core, tail, topic_name, decompressed_size_max)
        self.shares = True
        self.again = LedgerReader(tail, topic_name)
        self.receivers = []
        self.receiver_max = limits.unacknowledged_per_consumer
        self.unacknowledged_max = limits.unacknowledged_per_subscription

    cdef Receiver holder_of(self, PendingAck* ack):
        if ack.consumer >= len(self.receivers):
            return None
        return <Receiver>PyList_GET_ITEM(self.receivers, ack.consumer)

    # Received -------------------------------------------------------------------------------------

    cdef int claim(self, Receiver receiver, EntryView view, uint32_t index) except -2:
        cdef uint64_t message = view.first_message + index
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
        if ack == NULL or ack.state != PENDING_QUEUED or ack.tag != receiver.tag or (
                ack.consumer != receiver.index):
            return CLAIM_STALE
        receiver.queued -= 1
        receiver.taken += 1
        # As Pulsar's clients: permits go back when half of the queue was taken.
        if 2 * receiver.taken >= receiver.queue_size:
            if receiver.queue_size:
                receiver.permits += receiver.taken
            receiver.taken = 0
        ack.state = PENDING_HELD
        ack.tag = TIMER_NONE
        if self.has_keys:
            self.key_held(ack.key_hash)
        if receiver.max_redeliver_count and ack.redelivery_count > receiver.max_redeliver_count:
            # Counted under another policy, or before a restart: it was handed out often enough.
            self.give_up(view.ledger_id, message, ack, receiver)
            return CLAIM_STALE
        if receiver.ack_timeout_ms:
            ack.tag = self.core.arm(receiver.ack_due_ms(), view.ledger_id, message)
        return ack.redelivery_count

    cdef int unclaim(self, Receiver receiver, EntryView view, uint32_t index) except -1:
        cdef uint64_t message = view.first_message + index
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, view.ledger_id, message)
        return self.give_back(view.ledger_id, message, ack) if ack != NULL else 0

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
        cdef uint8_t state = ack.state
        let_go_of(self, ack)
        if ack.tag != TIMER_NONE:
            self.core.cancel_timer(ack)
        pending_acks_remove(&self.core.pending, ledger_id, message)
        if state == PENDING_HELD or state == PENDING_QUEUED:
            if self.has_keys:
                self.key_returned(key_hash)
        elif state == PENDING_DUE or state == PENDING_NACKED:
            self.key_forgotten(key_hash, ledger_id, message)
        return 0

    cdef int let_go(self, PendingAck* ack) except -1:
        return let_go_of(self, ack)

    def forget_before(self, uint64_t ledger_id) -> None:
        """Ledgers below this one are gone. Mutex held."""
        self.acknowledged_through(ledger_id, 0)

    # Delivered again ------------------------------------------------------------------------------

    cdef int nack(self, Receiver receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or (ack.state != PENDING_HELD and ack.state != PENDING_QUEUED
                           and ack.state != PENDING_NACKED):
            return 0
        if delay_ms < 0:
            delay_ms = receiver.redelivery_delay(ack.redelivery_count)
        self.postpone(ledger_id, message, delay_ms)
        return 0

    cdef int postpone(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef Receiver holder
        cdef uint32_t timer
        if delay_ms == 0:
            return self.again_or_dead(ledger_id, message, ack)
        timer = self.core.arm(self.core.now_ms() + delay_ms, ledger_id, message)
        ack = pending_acks_find(&self.core.pending, ledger_id, message)
        self.core.cancel_timer(ack)
        if ack.state == PENDING_QUEUED:
            holder = self.holder_of(ack)
            holder.queued -= 1
            holder.permits += 1
        if ack.state != PENDING_NACKED:
            self.key_waits(ack.key_hash, ledger_id, message, False)
            self.key_returned(ack.key_hash)
            self.key_recalled(ack.consumer, ack.key_hash, ledger_id, message)
        ack.state = PENDING_NACKED
        ack.tag = timer
        return 0

    cdef int due(self, uint64_t ledger_id, uint64_t message) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef Receiver holder
        cdef int64_t delay_ms
        if ack == NULL:
            return 0
        ack.tag = TIMER_NONE
        if ack.state == PENDING_DELAYED:
            return self.delay_over(ledger_id, message, ack)
        if ack.state == PENDING_HELD:
            holder = self.holder_of(ack)
            delay_ms = holder.overdue_delay(ack.redelivery_count) if holder is not None else 0
            if delay_ms:
                return self.postpone(ledger_id, message, delay_ms)
        if ack.state == PENDING_HELD or ack.state == PENDING_NACKED:
            return self.again_or_dead(ledger_id, message, ack)
        return 0

    cdef int delay_over(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        return self.give_back(ledger_id, message, ack)

    cdef int again_or_dead(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef Receiver holder = self.holder_of(ack)
        self.core.count_redelivery(ledger_id, message, ack)
        if holder is not None and holder.max_redeliver_count and (
                ack.redelivery_count > holder.max_redeliver_count):
            return self.give_up(ledger_id, message, ack, holder)
        return self.give_back(ledger_id, message, ack)

    cdef int give_back(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1:
        cdef uint8_t state = ack.state
        cdef uint16_t holder = ack.consumer
        self.let_go(ack)
        self.core.cancel_timer(ack)
        ack.consumer = PENDING_NOBODY
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DUE)
        self.wakes = True
        if state == PENDING_NACKED:
            return self.key_ready(ack.key_hash, ledger_id, message)
        self.key_waits(ack.key_hash, ledger_id, message, True)
        if state == PENDING_HELD or state == PENDING_QUEUED:
            self.key_returned(ack.key_hash)
            self.key_recalled(holder, ack.key_hash, ledger_id, message)
        return 0

    cdef int give_up(self, uint64_t ledger_id, uint64_t message, PendingAck* ack,
                     Receiver receiver) except -1:
        """It goes to the dead letters of the receiver, once the mutex is released."""
        cdef uint8_t state = ack.state
        cdef Message dead
        self.let_go(ack)
        self.core.cancel_timer(ack)
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DEAD)
        if state == PENDING_NACKED:
            self.key_forgotten(ack.key_hash, ledger_id, message)
        else:
            self.key_returned(ack.key_hash)
        dead = message_at(self.again, receiver.context, ledger_id, message, ack.redelivery_count,
                          self.decompressed_size_max)
        if dead is not None:
            self.bury(receiver, dead)
        return 0

    cdef int revive(self, Receiver receiver, uint64_t ledger_id, uint64_t message) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        if ack == NULL or ack.state != PENDING_DEAD:
            return 0
        delay_ms = receiver.redelivery_delay(ack.redelivery_count)
        ack.consumer = PENDING_NOBODY
        if delay_ms == 0:
            return self.give_back(ledger_id, message, ack)
        self.key_waits(ack.key_hash, ledger_id, message, False)
        ack.tag = TIMER_NONE
        ack.state = PENDING_NACKED
        ack.tag = self.core.arm(self.core.now_ms() + delay_ms, ledger_id, message)
        return 0

    cdef int redeliver(self, Receiver receiver) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        self.all_go_back = True
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
        self.all_go_back = False
        receiver.clear()
        self.core.rearm()
        return 0

    # Key_Shared overrides these.

    cdef void key_held(self, uint32_t key_hash) noexcept:
        pass

    cdef int key_waits(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message,
                       bint ready) except -1:
        return 0

    cdef int key_ready(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message) except -1:
        return 0

    cdef int key_returned(self, uint32_t key_hash) except -1:
        return 0

    cdef int key_forgotten(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        return 0

    cdef int key_recalled(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message) except -1:
        return 0
