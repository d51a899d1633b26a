# cython: language_level=3
"""Body of subscription_core.pxd."""

from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t

from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_COUNT_MAX, PENDING_DEAD, PENDING_DELAYED, PENDING_HELD,
    PENDING_NACKED, PENDING_NOBODY, PENDING_NONE, PendingAck,
    pending_acks_add, pending_acks_free, pending_acks_init, pending_acks_next,
    pending_acks_remove, pending_acks_set_state,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport (
    TIMER_NONE, timer_wheel_cancel, timer_wheel_free, timer_wheel_init, timer_wheel_insert,
    timer_wheel_next_due,
)
from pulsarx._pycore.ack_tracker cimport AckTracker
from pulsarx._pycore.mutex cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock


cdef class SubscriptionCore:
    """The state of one subscription or reader. Any thread may call; the mutex orders them."""

    def __cinit__(self):
        mutex_init(&self.mutex)
        pending_acks_init(&self.pending)
        timer_wheel_init(&self.wheel)
        self.armed_ms = UINT64_MAX

    def __init__(self, AckTracker tracker, object clock):
        """tracker: None for a reader. clock: of the broker."""
        self.tracker = tracker
        self.clock = clock

    def __dealloc__(self):
        pending_acks_free(&self.pending)
        timer_wheel_free(&self.wheel)
        mutex_destroy(&self.mutex)

    def locked(self, object work):
        """Call work() with the mutex held: for what must see the tracker at rest."""
        mutex_lock(&self.mutex)
        try:
            return work()
        finally:
            mutex_unlock(&self.mutex)

    cdef int64_t now_ms(self) except -1:
        return self.clock.now_ms()

    cdef uint32_t arm(self, int64_t due_ms, uint64_t ledger_id,
                      uint64_t message) except? 4294967295:
        cdef uint32_t timer = TIMER_NONE
        if timer_wheel_insert(&self.wheel, <uint64_t>max(due_ms, 0), ledger_id, message,
                              &timer) != STATUS_OK:
            raise MemoryError("arm a timer for a message: out of memory")
        if <uint64_t>due_ms < self.armed_ms:
            self.rearm()
        return timer

    cdef int rearm(self) except -1:
        """Have the clock call at the earliest deadline."""
        cdef uint64_t due_ms = timer_wheel_next_due(&self.wheel)
        if due_ms == self.armed_ms:
            return 0
        timer, self.timer = self.timer, None
        self.armed_ms = UINT64_MAX
        if timer is not None:
            timer.cancel()
        if due_ms != UINT64_MAX and self.on_due is not None:
            self.timer = self.clock.call_at(due_ms, self.on_due)
            self.armed_ms = due_ms
        return 0

    cdef PendingAck* add(self, uint64_t ledger_id, uint64_t message) except NULL:
        cdef PendingAck* ack = pending_acks_add(&self.pending, ledger_id, message)
        if ack == NULL:
            raise MemoryError("remember a delivered message: out of memory")
        return ack

    cdef int cancel_timer(self, PendingAck* ack) noexcept:
        if (ack.state == PENDING_HELD or ack.state == PENDING_NACKED
                or ack.state == PENDING_DELAYED) and ack.tag != TIMER_NONE:
            timer_wheel_cancel(&self.wheel, ack.tag)
            ack.tag = TIMER_NONE
        return 0

    cdef int count_redelivery(self, uint64_t ledger_id, uint64_t message,
                              PendingAck* ack) except -1:
        if ack.redelivery_count < PENDING_COUNT_MAX:
            ack.redelivery_count += 1
        return 0

    cdef int forget(self, bint delayed_too, bint counts_too) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.pending, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.state != PENDING_DEAD and (delayed_too or ack.state != PENDING_DELAYED):
                self.cancel_timer(ack)
                ack.consumer = PENDING_NOBODY
                ack.flags = 0
                if ack.redelivery_count and not counts_too:
                    pending_acks_set_state(&self.pending, ledger_id, message, ack, PENDING_COUNTED)
                else:
                    pending_acks_remove(&self.pending, ledger_id, message)
            message += 1
        self.rearm()
        return 0

    def stop(self) -> None:
        """No deadline is kept any more; the subscription is closed or removed."""
        mutex_lock(&self.mutex)
        self.on_due = None
        timer, self.timer = self.timer, None
        self.armed_ms = UINT64_MAX
        mutex_unlock(&self.mutex)
        if timer is not None:
            timer.cancel()
