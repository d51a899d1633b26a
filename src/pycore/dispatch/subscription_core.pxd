"""Keeps what outlives the consumers of a subscription: its mutex, acknowledgements, pending
messages, deadlines. A reader has one too, without acknowledgements.

Lock order: this mutex, then whatever the core takes. Methods want it held unless they say
otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.pending_acks cimport PendingAck, PendingAcks
from pulsarx._core.timer_wheel cimport TimerWheel
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.mutex cimport OwnedMutex
from pulsarx._pycore.cursor.sections_source cimport SectionsSource
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkAssembler, ChunkLimits
from pulsarx._pycore.dispatch.dispatch_throttle cimport DispatchThrottle
from pulsarx._pycore.dispatch.transacted_acks cimport TransactedAcks
from pulsarx._pycore.message.message_filter cimport MessageFilter


cdef class DeadlineCall:
    """The callback of a clock for the earliest deadline of a subscription. Keeps nothing alive."""
    cdef object core                     # weak reference


cdef class LossLog:
    """Says in the log which messages a subscription lost, and has kept and trimmed what counts as
    acknowledged by that. Telling is one step, whatever is held."""
    cdef str subscription
    cdef public object owner             # weak reference to the broker's Subscription; or None
    cdef JobQueue jobs
    cdef IntervalJob flush               # of the cursor
    cdef object trim                     # removes ledgers nobody needs
    cdef object waiting                  # deque of texts; None: nothing was told yet
    cdef bint keeping                    # the job that keeps what expired is on its way

    cdef int tell(self, str text) except -1
    """The subscription's mutex is held."""

    cdef int keep_soon(self) except -1
    """Like tell, for acknowledgements that the log does not tell."""


cdef class Expiries:
    """Counts what became too old to be delivered. The subscription's mutex is held."""
    cdef uint64_t messages
    cdef uint64_t entries                # that held one of them
    cdef object last                     # deque of (when, messages, entries), a minute

    cdef int drop_old(self, int64_t now_ms) except -1


cdef struct Deadlines:                   # by one of the clock's two times
    TimerWheel wheel
    uint64_t armed_ms                    # when the clock calls for the earliest; UINT64_MAX: never


cdef struct DispatchCounts:
    # that its consumers were given, redeliveries included, and bytes of the entries
    uint64_t given_messages
    uint64_t given_size
    # messages that a filter let pass, also those that came again, and those it did not
    uint64_t accepted
    uint64_t rejected


cdef class SubscriptionCore(SectionsSource):
    # guards everything here, the dispatcher, the tracker and the receivers
    cdef OwnedMutex mutex
    cdef readonly AckTracker tracker     # None: a reader, which remembers nothing
    cdef PendingAcks pending
    cdef TransactedAcks transacted       # None: no transaction holds anything of it
    cdef Deadlines delays                # at a time of day: delayed messages
    cdef Deadlines waits                 # in monotonic time: all else that waits for a while
    cdef Timer delay_timer               # of the clock, for the earliest; None: not armed
    cdef Timer wait_timer
    cdef public object dispatcher        # the one in force; None: a reader's
    cdef ClockCore clock                 # of the broker; None: a reader, which has no deadline
    cdef DeadlineCall on_due             # what it calls; None: no deadline is kept
    cdef LossLog losses                  # told what can never be delivered; None: a reader's
    cdef ChunkAssembler chunks           # None: no chunk was read yet
    cdef readonly DispatchThrottle throttle   # None: nothing limits how fast messages are given
    cdef DispatchThrottle throttle_made  # also when none does: it has counted. None: none ever did
    # what it is made with, as the consumer that came last asks for
    cdef ChunkLimits chunk_limits
    cdef set told_ledgers                # of which an unknown number of messages is lost
    cdef object __weakref__
    cdef uint64_t delayed_changed        # delayed messages found since the last snapshot
    cdef int64_t fold_failed_ms          # when the cursor could not be written; 0: it could
    cdef int64_t ttl_ms                  # messages that are older are not delivered; 0: all are
    cdef Expiries expired                # None: nothing has
    cdef DispatchCounts counts
    cdef MessageFilter filter            # which messages are delivered; None: all are
    cdef list gathered                   # those times, ascending; None: nothing was refused yet
    cdef bint unarmed                    # memory ran out for that: the next dispatch does it

    cdef inline bint is_taken(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether a message is acknowledged, be it in a transaction; of no reader."""
        return self.tracker.is_acknowledged(ledger_id, message) or (
            self.transacted is not None and self.transacted.has(ledger_id, message))

    cdef inline uint64_t next_untaken(self, uint64_t ledger_id, uint64_t message,
                                      uint64_t end) noexcept:
        """The first message of [message, end) that is not, else end."""
        if self.transacted is None:
            return self.tracker.next_unacknowledged(ledger_id, message, end)
        return self.transacted.next_untaken(self.tracker, ledger_id, message, end)

    cdef ChunkAssembler assembler(self)
    """The assembler of the messages that are in chunks."""

    cdef int64_t now_ms(self) except -1
    cdef int64_t later_ms(self, int64_t delay_ms) except -1
    """The monotonic time after a delay; the latest there is for one that is longer."""

    cdef int64_t gathered_ms(self, int64_t delay_ms) except -1
    """Like later_ms; or the time of an earlier refusal that is due no more than a tick before, so
    that both come again together."""

    cdef uint32_t arm(self, int64_t due_ms, uint64_t ledger_id, uint64_t message) except? 4294967295
    """Let on_due be called at a time of day, for a message that becomes PENDING_DELAYED; answers
    the handle to cancel it by."""

    cdef uint32_t arm_wait(self, int64_t due_ms, uint64_t ledger_id,
                           uint64_t message) except? 4294967295
    """Like arm, at a monotonic time, for a message in any other state."""

    cdef uint32_t arm_for(self, Deadlines* deadlines, int64_t due_ms, uint64_t ledger_id,
                          uint64_t message) except? 4294967295
    cdef int rearm(self) except -1
    """Have the clock call at the earliest deadlines. MemoryError: it calls as it was to, or not at
    all, until this is called again; see unarmed."""

    cdef Timer armed(self, Deadlines* deadlines, bint by_wall, Timer before)
    cdef Timer timer_at(self, uint64_t due_ms, bint by_wall, Timer before, uint64_t before_ms)
    cdef int disarm(self) except -1
    cdef bint is_expired(self, int64_t publish_time_ms) except -1
    """Whether a message of that time is older than the subscription delivers. To be asked only
    where ttl_ms is not 0."""

    cdef int count_expired(self, uint64_t count, uint64_t entries) except -1
    cdef PendingAck* add(self, uint64_t ledger_id, uint64_t message) except NULL
    cdef int unread(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) noexcept
    """Nothing is known of the message but its redelivery count, if it has one."""

    cdef int cancel_timer(self, PendingAck* ack) noexcept
    """Take back the deadline of a message, if it has one."""

    cdef bytes section(self, uint32_t tag)
    cdef int restore(self) except -1
    cdef int keep_delayed(self, bint every_one) except -1
    """Write the delayed messages found so far, so that a restart does not look for them again."""

    cdef int count_redelivery(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) except -1
    """One redelivery more; survives a restart, unless the cursor cannot be written."""

    cdef bint fold_now(self) except -1
    """Make room in the cursor; False: it cannot be written now, said in the log."""

    cdef bint acknowledge_lost(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1
    """Messages that can never be delivered count as acknowledged. False: the cursor cannot keep it
    now, so they are told as lost once more."""

    cdef bint was_told(self, uint64_t ledger_id) except -1
    """Whether this was asked of the ledger before. A reader is told each time."""

    cdef uint32_t redelivery_count(self, uint64_t ledger_id, uint64_t message) noexcept
    """How often a message was redelivered."""

    cdef int forget(self, bint delayed_too, bint counts_too) except -1
    """Forget all deliveries: every message is unread again, or acknowledged."""
