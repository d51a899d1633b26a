# cython: language_level=3
"""Body of subscription_core.pxd."""

import weakref
from collections import deque

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free

from pulsarx._core.cursor_record cimport (
    CURSOR_RUN_MAX, CURSOR_SECTION_DUE, CURSOR_SECTION_REDELIVERY,
)
from pulsarx._core.cursor_sections cimport (
    RestoredMessage, SectionWriter, section_writer_add, section_writer_free, section_writer_start,
)
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.limits cimport LEDGER_MESSAGES_END
from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_COUNT_MAX, PENDING_DEAD, PENDING_DELAYED, PENDING_HELD,
    PENDING_NACKED, PENDING_NOBODY, PENDING_RESTORED, PendingAck,
    pending_acks_add, pending_acks_find, pending_acks_free, pending_acks_init, pending_acks_next,
    pending_acks_remove, pending_acks_set_state,
)
from pulsarx._core.status cimport STATUS_DUPLICATE, STATUS_FOLD, STATUS_OK
from pulsarx._core.timer_wheel cimport (
    TIMER_NONE, timer_wheel_cancel, timer_wheel_due_ms, timer_wheel_free, timer_wheel_init,
    timer_wheel_insert, timer_wheel_next_due,
)
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.cursor.sections_source cimport SectionsSource, take_section
from pulsarx._pycore.dispatch.chunk_assembler cimport ChunkAssembler
from pulsarx._pycore.dispatch.dispatch_throttle cimport DispatchThrottle
from pulsarx._pycore.dispatch.dispatch_throttle import throttle_statistics
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.message.message_filter cimport MessageFilter

cdef enum:
    DELAYED_KEPT_MIN = 50000     # so many delayed messages a killed process may have to find again
    RETRY_MS = 1000              # after what failed
    RATE_MS = 60000              # the time that rates are of
    GATHERED_MS = 256            # the precision of refusals that Pulsar's clients have by default
    GATHERED_PART = 4            # and no more than this part of the delay
    LOST_SPAN_MAX = 1073741824   # messages, a bit each


cdef class DeadlineCall:
    """See the pxd."""

    def __call__(self) -> None:
        cdef object found = referent(self.core)
        if found is not None:
            dispatcher = (<SubscriptionCore>found).dispatcher
            if dispatcher is not None:
                dispatcher.deadlines_due()


cdef class LossLog:
    """See the pxd."""

    def __init__(self, str subscription not None, JobQueue jobs not None,
                 IntervalJob flush not None, trim) -> None:
        """jobs: where it is done. flush: makes acknowledgements durable. trim: removes unneeded
        ledgers."""
        self.subscription = subscription
        self.jobs = jobs
        self.flush = flush
        self.trim = trim

    cdef int tell(self, str text) except -1:
        if self.waiting is None:       # most subscriptions never lose anything
            self.waiting = deque()
        self.waiting.append(text)
        return self.jobs.put(self.run)

    def run(self) -> None:
        """Do it for the texts that wait; a job."""
        import logging

        try:
            while self.waiting:
                try:
                    logging.getLogger("pulsarx").error(
                        "subscription %s: damage: %s", self.subscription, self.waiting[0])
                except MemoryError:
                    raise                # it is logged when the job is done once more
                except BaseException:
                    self.waiting.popleft()
                    raise                # a handler of the program's
                self.waiting.popleft()
        finally:
            self.settle()

    def settle(self) -> None:
        """Have acknowledgements kept and trimmed that no consumer made; a job."""
        self.flush.arm()
        self.trim()

    cdef int keep_soon(self) except -1:
        if self.keeping:
            return 0
        self.keeping = True
        try:
            return self.jobs.put(self.keep)
        except BaseException:
            self.keeping = False
            raise

    def keep(self) -> None:
        """Have acknowledgements kept, and trimmed what they held; a job."""
        self.keeping = False
        self.flush.arm()
        self.trim()


cdef class Expiries:
    """See the pxd."""

    def __cinit__(self):
        self.last = deque()

    cdef int drop_old(self, int64_t now_ms) except -1:
        while self.last and self.last[0][0] < now_ms - RATE_MS:
            self.last.popleft()
        return 0


cdef class SubscriptionCore(SectionsSource):
    """The state of one subscription or reader. Any thread may call; the mutex orders them."""

    def __cinit__(self):
        mutex_init(&self.mutex)
        pending_acks_init(&self.pending)
        timer_wheel_init(&self.delays.wheel)
        timer_wheel_init(&self.waits.wheel)
        self.delays.armed_ms = self.waits.armed_ms = UINT64_MAX
        self.chunk_limits.pending_max = 10   # of a reader, as of a consumer that does not say
        self.chunk_limits.expiry_ms = 60000

    def __init__(self, AckTracker tracker, ClockCore clock, LossLog losses=None):
        """tracker: None for a reader. clock: of the broker. losses: told what is lost."""
        self.tracker = tracker
        self.losses = losses
        self.clock = clock
        if tracker is not None:
            tracker.sections_source = self
            self.restore()

    def __dealloc__(self):
        pending_acks_free(&self.pending)
        timer_wheel_free(&self.delays.wheel)
        timer_wheel_free(&self.waits.wheel)

    def locked(self, object work):
        """Call work() with the mutex held: for what must see the tracker at rest."""
        mutex_lock(&self.mutex)
        try:
            return work()
        finally:
            mutex_unlock(&self.mutex)

    cdef ChunkAssembler assembler(self):
        cdef ChunkAssembler made = self.chunks
        if made is None:
            made = (ChunkAssembler(self.tracker, self.losses.jobs, self.losses.settle)
                    if self.losses is not None else ChunkAssembler(self.tracker, None, None))
            self.chunks = made
        made.limits = self.chunk_limits
        return made

    def limit_dispatch(self, RateLimit of_topic, RateLimit of_subscription, throttle) -> None:
        """Give messages as fast as these limits allow, from now on; None: there is none. throttle:
        makes a DispatchThrottle where there is none yet. The caller wakes who waits for the topic.
        Takes the mutex."""
        mutex_lock(&self.mutex)
        try:
            if of_topic is not None or of_subscription is not None:
                if self.throttle_made is None:
                    self.throttle_made = throttle()
                self.throttle = self.throttle_made
            # Without a limit its dispatcher forgets it, when nothing waits there any more.
            if self.throttle_made is not None:
                self.throttle_made.limit(of_topic, of_subscription)
        finally:
            mutex_unlock(&self.mutex)

    def dispatch_limit(self) -> RateLimit | None:
        """The limit of the subscription itself. Takes the mutex."""
        mutex_lock(&self.mutex)
        made = self.throttle_made
        found = None if made is None else made.of_subscription
        mutex_unlock(&self.mutex)
        return found

    def throttle_statistics(self) -> dict[str, int]:
        """See DispatchThrottle. Takes the mutex."""
        mutex_lock(&self.mutex)
        made = self.throttle_made
        mutex_unlock(&self.mutex)
        return throttle_statistics(made)

    @property
    def given_messages(self) -> int:
        """Messages that its consumers were given, redeliveries included."""
        return self.counts.given_messages

    @property
    def given_size(self) -> int:
        """Bytes of the entries of these."""
        return self.counts.given_size

    # Selectors ------------------------------------------------------------------------------------

    def set_filter(self, MessageFilter filter) -> None:
        """Deliver what it lets pass, from the next entry on; None: everything. Takes the mutex."""
        mutex_lock(&self.mutex)
        self.filter = filter
        mutex_unlock(&self.mutex)

    def filter_statistics(self) -> tuple[int, int]:
        """How many messages a filter let pass, and how many it did not. Takes the mutex."""
        cdef uint64_t accepted
        cdef uint64_t rejected
        mutex_lock(&self.mutex)
        accepted = self.counts.accepted
        rejected = self.counts.rejected
        mutex_unlock(&self.mutex)
        return accepted, rejected

    # What survives a restart ----------------------------------------------------------------------

    cdef int restore(self) except -1:
        """Take up what the cursor kept of single messages."""
        cdef RestoredMessage* counts = NULL
        cdef RestoredMessage* due = NULL
        cdef size_t counted = 0
        cdef size_t due_count = 0
        cdef size_t at
        cdef PendingAck* ack
        cdef uint32_t timer
        self.tracker.take_restored(&counts, &counted, &due, &due_count)
        try:
            for at in range(counted):
                ack = self.add(counts[at].ledger_id, counts[at].message)
                ack.redelivery_count = <uint16_t>min(counts[at].value, <uint64_t>PENDING_COUNT_MAX)
                pending_acks_set_state(&self.pending, counts[at].ledger_id, counts[at].message,
                                       ack, PENDING_COUNTED)
            for at in range(due_count):
                timer = self.arm(<int64_t>due[at].value, due[at].ledger_id, due[at].message)
                ack = self.add(due[at].ledger_id, due[at].message)
                pending_acks_set_state(&self.pending, due[at].ledger_id, due[at].message, ack,
                                       PENDING_DELAYED)
                ack.tag = timer
                ack.flags = PENDING_RESTORED
        finally:
            free(counts)
            free(due)
        return 0

    cdef bytes redelivery_section(self):
        return self.section(CURSOR_SECTION_REDELIVERY)

    cdef bytes due_section(self):
        self.delayed_changed = 0
        return self.section(CURSOR_SECTION_DUE)

    cdef bytes section(self, uint32_t tag):
        cdef SectionWriter writer
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint64_t value
        cdef PendingAck* ack
        section_writer_start(&writer, tag)
        while True:
            ack = pending_acks_next(&self.pending, &ledger_id, &message)
            if ack == NULL:
                return take_section(&writer)
            value = ack.redelivery_count
            if tag == CURSOR_SECTION_DUE:
                value = 0
                if ack.state == PENDING_DELAYED:
                    value = timer_wheel_due_ms(&self.delays.wheel, ack.tag)
            if value and section_writer_add(&writer, ledger_id, message, value) != STATUS_OK:
                section_writer_free(&writer)
                raise MemoryError("write down what is known of single messages: out of memory")
            message += 1

    cdef int keep_delayed(self, bint every_one) except -1:
        # Each time a quarter more, so that the snapshots together stay as large as the last few.
        if self.delayed_changed == 0 or self.tracker is None or not self.tracker.is_kept:
            return 0
        if every_one or (self.delayed_changed >= DELAYED_KEPT_MIN
                         and 4 * self.delayed_changed >= self.delays.wheel.count):
            self.tracker.fold()
        return 0

    def close(self) -> None:
        """Keep what survives a restart and let go of the cursor."""
        mutex_lock(&self.mutex)
        try:
            try:
                self.keep_delayed(True)
            finally:
                self.tracker.close()
        finally:
            mutex_unlock(&self.mutex)

    # Expiry ---------------------------------------------------------------------------------------

    def set_message_ttl(self, int64_t ttl_ms) -> None:
        """Deliver no message that is older, also of those that wait in receiver queues. 0: all.
        Takes the mutex."""
        mutex_lock(&self.mutex)
        try:
            if ttl_ms != self.ttl_ms:
                self.ttl_ms = ttl_ms
                if self.dispatcher is not None:
                    self.dispatcher.ttl_changed()
        finally:
            mutex_unlock(&self.mutex)

    cdef bint is_expired(self, int64_t publish_time_ms) except -1:
        # Without a difference, which a publish time of another's clock could overflow.
        return publish_time_ms < self.now_ms() - self.ttl_ms

    cdef int count_expired(self, uint64_t count, uint64_t entries) except -1:
        cdef int64_t now_ms
        if count == 0:
            return 0
        now_ms = self.now_ms()
        if self.expired is None:
            self.expired = Expiries()
        self.expired.messages += count
        self.expired.entries += entries
        self.expired.last.append((now_ms, count, entries))
        return self.expired.drop_old(now_ms)

    def expiry_statistics(self) -> tuple[int, float, int, float]:
        """How many messages expired, and how many a second in the last minute; the same of their
        entries. Takes the mutex."""
        cdef uint64_t count = 0
        cdef uint64_t entries = 0
        cdef Expiries found
        mutex_lock(&self.mutex)
        try:
            found = self.expired
            if found is None:
                return 0, 0.0, 0, 0.0
            found.drop_old(self.now_ms())
            for _, of_messages, of_entries in found.last:
                count += of_messages
                entries += of_entries
            return (found.messages, count * 1000.0 / RATE_MS,
                    found.entries, entries * 1000.0 / RATE_MS)
        finally:
            mutex_unlock(&self.mutex)

    # Deadlines ------------------------------------------------------------------------------------

    cdef int64_t now_ms(self) except -1:
        return self.clock.now()

    cdef int64_t later_ms(self, int64_t delay_ms) except -1:
        cdef int64_t now_ms = self.clock.monotonic()
        return now_ms + delay_ms if delay_ms < INT64_MAX - now_ms else INT64_MAX

    cdef int64_t gathered_ms(self, int64_t delay_ms) except -1:
        cdef int64_t due_ms = self.later_ms(delay_ms)
        cdef int64_t now_ms = self.later_ms(0)
        cdef list times = self.gathered
        cdef Py_ssize_t at
        if times is None:
            times = self.gathered = []
        while times and <int64_t>times[0] < now_ms:
            del times[0]
        at = len(times)
        while at > 0 and <int64_t>times[at - 1] > due_ms:
            at -= 1
        if at > 0 and due_ms - <int64_t>times[at - 1] <= min(
                delay_ms // GATHERED_PART, <int64_t>GATHERED_MS):
            return times[at - 1]
        times.insert(at, due_ms)
        return due_ms

    cdef uint32_t arm(self, int64_t due_ms, uint64_t ledger_id,
                      uint64_t message) except? 4294967295:
        return self.arm_for(&self.delays, due_ms, ledger_id, message)

    cdef uint32_t arm_wait(self, int64_t due_ms, uint64_t ledger_id,
                           uint64_t message) except? 4294967295:
        return self.arm_for(&self.waits, due_ms, ledger_id, message)

    cdef uint32_t arm_for(self, Deadlines* deadlines, int64_t due_ms, uint64_t ledger_id,
                          uint64_t message) except? 4294967295:
        cdef uint32_t timer = TIMER_NONE
        if timer_wheel_insert(&deadlines.wheel, <uint64_t>max(due_ms, 0), ledger_id, message,
                              &timer) != STATUS_OK:
            raise MemoryError("arm a timer for a message: out of memory")
        if <uint64_t>due_ms < deadlines.armed_ms:
            try:
                self.rearm()
            except BaseException:
                timer_wheel_cancel(&deadlines.wheel, timer)
                raise
        return timer

    cdef int rearm(self) except -1:
        self.unarmed = True              # until it is done
        self.delay_timer = self.armed(&self.delays, True, self.delay_timer)
        self.wait_timer = self.armed(&self.waits, False, self.wait_timer)
        self.unarmed = False
        return 0

    cdef Timer armed(self, Deadlines* deadlines, bint by_wall, Timer before):
        """The timer of the clock for the earliest of them, in the place of the one before."""
        cdef uint64_t due_ms = timer_wheel_next_due(&deadlines.wheel)
        cdef Timer timer
        if due_ms == deadlines.armed_ms:
            return before
        timer = self.timer_at(due_ms, by_wall, before, deadlines.armed_ms)
        if timer is not before:
            deadlines.armed_ms = due_ms if timer is not None else UINT64_MAX
            if before is not None:
                before.cancel()
        return timer

    cdef Timer timer_at(self, uint64_t due_ms, bint by_wall, Timer before, uint64_t before_ms):
        """A timer of the clock for the earliest deadline; None: there is none. Where memory runs
        out, the one before if that fires earlier: all are armed anew then."""
        cdef int64_t at_ms = <int64_t>min(due_ms, <uint64_t>INT64_MAX)
        if due_ms == UINT64_MAX or self.on_due is None:
            return None
        try:
            return (self.clock.arm(at_ms, self.on_due) if by_wall
                    else self.clock.arm_monotonic(at_ms, self.on_due))
        except MemoryError:
            if before is None or before_ms > due_ms:
                raise
            return before

    cdef int disarm(self) except -1:
        """Forget the clock's timers; one has fired, or there is nothing to wait for."""
        cdef Timer timer, other
        timer, self.delay_timer = self.delay_timer, None
        other, self.wait_timer = self.wait_timer, None
        self.delays.armed_ms = self.waits.armed_ms = UINT64_MAX
        if timer is not None:
            timer.cancel()
        if other is not None:
            other.cancel()
        return 0

    cdef PendingAck* add(self, uint64_t ledger_id, uint64_t message) except NULL:
        cdef PendingAck* ack = pending_acks_add(&self.pending, ledger_id, message)
        if ack == NULL:
            raise MemoryError("remember a delivered message: out of memory")
        return ack

    cdef int unread(self, uint64_t ledger_id, uint64_t message, PendingAck* ack) noexcept:
        self.cancel_timer(ack)
        ack.consumer = PENDING_NOBODY
        ack.flags = 0
        if ack.redelivery_count:
            pending_acks_set_state(&self.pending, ledger_id, message, ack, PENDING_COUNTED)
        else:
            pending_acks_remove(&self.pending, ledger_id, message)
        return 0

    cdef int cancel_timer(self, PendingAck* ack) noexcept:
        if (ack.state == PENDING_HELD or ack.state == PENDING_NACKED
                or ack.state == PENDING_DELAYED) and ack.tag != TIMER_NONE:
            timer_wheel_cancel(
                &self.delays.wheel if ack.state == PENDING_DELAYED else &self.waits.wheel, ack.tag)
            ack.tag = TIMER_NONE
        return 0

    cdef int count_redelivery(self, uint64_t ledger_id, uint64_t message,
                              PendingAck* ack) except -1:
        cdef int status
        if ack.redelivery_count < PENDING_COUNT_MAX:
            ack.redelivery_count += 1
        while self.tracker is not None:
            status = self.tracker.record_redelivery(ledger_id, message, ack.redelivery_count)
            if status != STATUS_FOLD:
                # Whatever else it is (the ledger is being trimmed, memory is out): the count alone
                # may be lost by it.
                return 0
            if not self.fold_now():
                return 0
        return 0

    cdef bint acknowledge_lost(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1:
        cdef LedgerAcks* acks = cursor_state_find(&self.tracker.c_state, ledger_id)
        cdef uint64_t count
        cdef uint64_t newly
        cdef int status
        # Only a lie is as large, and the bits of it would take the memory.
        if end > LEDGER_MESSAGES_END or (
                first > acks.bits.contiguous and end - acks.bits.contiguous > LOST_SPAN_MAX):
            return False
        while first < end:
            count = min(end - first, <uint64_t>CURSOR_RUN_MAX)
            status = self.tracker.acknowledge(ledger_id, first, count, &newly)
            if status == STATUS_FOLD and self.fold_now():
                continue
            if status != STATUS_OK and status != STATUS_DUPLICATE:
                return False
            first += count
        return True

    cdef bint was_told(self, uint64_t ledger_id) except -1:
        if self.tracker is None:
            return False
        if self.told_ledgers is None:
            self.told_ledgers = set()
        if ledger_id in self.told_ledgers:
            return True
        self.told_ledgers.add(ledger_id)
        return False

    cdef bint fold_now(self) except -1:
        cdef int64_t now_ms
        if self.fold_failed_ms:
            now_ms = self.now_ms()
            if 0 <= now_ms - self.fold_failed_ms < RETRY_MS:
                return False
        try:
            self.tracker.fold()
        except Exception:
            import logging

            self.fold_failed_ms = self.now_ms()
            logging.getLogger("pulsarx").exception(
                "the cursor could not be written: redeliveries and lost messages are not kept for "
                "a restart")
            return False
        self.fold_failed_ms = 0
        return True

    cdef uint32_t redelivery_count(self, uint64_t ledger_id, uint64_t message) noexcept:
        cdef PendingAck* ack = pending_acks_find(&self.pending, ledger_id, message)
        return ack.redelivery_count if ack != NULL else 0

    cdef int forget(self, bint delayed_too, bint counts_too) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        while True:
            ack = pending_acks_next(&self.pending, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.state != PENDING_DEAD and (delayed_too or ack.state != PENDING_DELAYED):
                if counts_too:
                    ack.redelivery_count = 0
                self.unread(ledger_id, message, ack)
            message += 1
        self.rearm()
        return 0

    def start(self) -> None:
        """Keep deadlines from now on."""
        cdef DeadlineCall call = DeadlineCall.__new__(DeadlineCall)
        call.core = weakref.ref(self)
        mutex_lock(&self.mutex)
        try:
            self.on_due = call
            self.rearm()
        finally:
            mutex_unlock(&self.mutex)

    def stop(self) -> None:
        """No deadline is kept any more; the subscription is closed or removed."""
        mutex_lock(&self.mutex)
        self.on_due = None
        self.losses = None
        self.dispatcher = None
        self.disarm()
        mutex_unlock(&self.mutex)
