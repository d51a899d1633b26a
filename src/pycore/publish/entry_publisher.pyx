# cython: language_level=3
"""Body of entry_publisher.pxd."""

from collections import deque

import weakref

cimport cython
from libc.errno cimport EDQUOT, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.atomic cimport atomic_load_u32, atomic_load_u64
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION, EntryFrame
from pulsarx._core.ledger_append cimport (
    ledger_append_entry, ledger_append_flush, ledger_append_group, ledger_append_is_brief,
    ledger_append_quietly, ledger_append_tell_others,
)
from pulsarx._core.ledger_state cimport (
    LEDGER_FENCED, LEDGER_OPEN, LEDGER_POISONED, LedgerAppend, ledger_error,
)
from pulsarx._core.status cimport (
    STATUS_CLOSED, STATUS_INTERRUPTED, STATUS_IO, STATUS_LEDGER_FULL, STATUS_NO_SPACE, STATUS_OK,
    STATUS_POISONED, STATUS_TORN,
)
from pulsarx._core.wait_event cimport WaitEvent, wait_event_wake
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.rate_limit cimport PublishMeter, RateLimit
from pulsarx._pycore.ground.signals cimport (
    SIGNAL_LOOK_NS, signals_check, signals_raised, signals_sleep_ns,
)
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail, ledger_tail_asks
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.ledger.open_transactions cimport OpenTransactions, TransactionCore
from pulsarx._pycore.publish.completion_queue cimport CompletionQueue, callback_count
from pulsarx._pycore.publish.entry_group cimport EntryGroup

cdef enum:
    # bytes: a smaller write is over before another thread could take the GIL
    GIL_KEPT_UP_TO = 4096


cdef inline int append_to(LedgerAppend* ledger, EntryFrame* frame, uint8_t* entry,
                          uint64_t* offset, bint quietly) noexcept nogil:
    if quietly:
        return ledger_append_quietly(ledger, frame, entry, offset)
    return ledger_append_entry(ledger, frame, entry, offset)


@cython.freelist(16)
cdef class Receipt:
    """See the pxd. Only a publisher fills it in."""

    cdef int place_in_stored(self, int place) except -2:
        return place if self.kept is None else <int>self.kept.get(place, -1)


cdef class EntryPublisher:
    """The base of the ways to publish."""

    def __cinit__(self, *_, **__) -> None:
        mutex_init(&self.mutex)
        self.partition = -1

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1:
        raise NotImplementedError

    cdef bint publish_group(self, EntryGroup group, list pending) except -1:
        return False

    cdef int join(self, TransactionCore transaction) except -1:
        if transaction is not None:
            raise errors.NotAllowedError(
                detail=f"publish in transaction {transaction}: the topic keeps no messages")
        self.transaction = None
        return 0

    cdef bint is_confirmed_with(self, TransactionCore transaction, int64_t pending_max) noexcept:
        return False

    cdef object confirm_within(self, TransactionCore transaction):
        return None

    cdef int look_again(self) except -1:
        return 0

    cdef int release(self, Receipt receipt) except -1:
        cdef int64_t size = receipt.reserved
        receipt.reserved = 0
        if size and self.memory is not None:
            self.memory.release(size)
        return 0

    cdef int made_room(self) except -1:
        wanted, self.room_wanted = self.room_wanted, None
        if wanted is not None:
            try:
                wanted()
            except MemoryError:
                wanted()                 # once more: it is told this once
        return 0

    cdef int check_fenced(self) except -1:
        if self.fenced is not None:
            raise self.fenced_as(detail=self.fenced)
        return 0

    cdef int check(self, const EntryFrame* frame) except -1:
        self.check_fenced()
        if self.limit is not None:
            self.limit.take(frame.message_count, frame.entry_size)
        if self.meter is not None:
            self.meter.add(frame.message_count, frame.entry_size)
        return 0

    def count(self, RateLimit limit, PublishMeter meter) -> None:
        """Tell these what is published from now on; None: there is none."""
        mutex_lock(&self.mutex)
        self.limit = limit
        self.meter = meter
        self.checks = limit is not None or meter is not None or self.fenced is not None
        mutex_unlock(&self.mutex)

    def fence(self, str reason not None, kind=errors.ProducerFenced) -> None:
        """Publish nothing from now on. What is stored by then is confirmed as ever. kind: the
        exception that is raised from now on."""
        mutex_lock(&self.mutex)
        self.checks = True
        if self.fenced is None:
            self.fenced_as = kind
        self.fenced = reason
        mutex_unlock(&self.mutex)

    cdef int flush_soon(self, bint here) except -1:
        return 0

    cdef int wait(self, Receipt receipt) except -1:
        raise NotImplementedError

    cdef bint is_confirmed(self, Receipt receipt) noexcept:
        return True

    cdef int nobody_waits(self) except -1:
        return 0

    cdef int confirm_duplicate(self, Receipt receipt, object callback) except -1:
        raise NotImplementedError

    cdef int require_sound(self) except -1:
        return 0

    cdef int place(self, list receipts) except -1:
        return 0

    cdef int wait_for_oldest(self) except -1:
        raise NotImplementedError

    cdef int settle(self) except -1:
        raise NotImplementedError

    cdef object flush(self):
        raise NotImplementedError

    cdef int drain(self, object failed) except -1:
        # The thread of the other callbacks may wait for the disk that made them time out.
        self.completions.drain(isinstance(failed, errors.Timeout))
        return 0

    def flush_expected(self) -> None:
        """Flush for no caller, as `CompletionQueue.expect` asked."""
        raise NotImplementedError

    cdef int compare_from_here(self) except -1:
        return 0

    def begin_leaving(self) -> None:
        """The producer closes: what waits for somebody else does not wait without end any more."""

    def cancel_timeout(self) -> None:
        """The producer is closed."""

    def abandon(self) -> None:
        """In a forked child: touch nothing."""


cdef class TimeoutDue:
    """See the pxd."""

    def __call__(self) -> None:
        cdef object found = referent(self.publisher)
        if found is not None:
            (<LedgerPublisher>found).timeout_due()


cdef class LedgerPublisher(EntryPublisher):
    """Appends to the ledgers of a topic of this process. Any thread may call; the mutex orders
    them."""

    def __init__(self, str topic_name not None, LedgerTail tail not None,
                 CompletionQueue completions not None, uint32_t durability,
                 ClockCore clock=None, int64_t send_timeout_ms=0,
                 ClockCore stamp_clock=None) -> None:
        """durability: 1 sync, 2 interval, 3 os. send_timeout_ms: how long on the clock an entry may
        be pending; 0 and less: for ever. stamp_clock: entries are stored with its time."""
        self.stamp_clock = stamp_clock
        self.topic_name = topic_name
        self.tail = tail
        self.partition = tail.partition
        self.completions = completions
        self.durability = durability
        self.confirms_later = durability == DURABILITY_SYNC
        self.pending = deque()
        self.clock = clock
        self.send_timeout_ms = send_timeout_ms if clock is not None and send_timeout_ms > 0 else 0
        self.timeout_due_call = TimeoutDue.__new__(TimeoutDue)
        self.timeout_due_call.publisher = weakref.ref(self)

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1:
        if self.checks:
            self.check(frame)
        if self.transaction is None:
            self.append(frame, entry, receipt)
        else:
            self.append_joined(frame, entry, receipt)
        if receipt.reserved and self.durability != DURABILITY_SYNC:
            self.release(receipt)
        if self.durability == DURABILITY_SYNC:
            receipt.awaited = awaited
            receipt.transaction = self.transaction
            if self.send_timeout_ms:
                receipt.expires_ms = self.clock.monotonic() + self.send_timeout_ms
            self.pending.append((receipt, callbacks))
            self.pending_count += frame.message_count
            if not awaited and not self.expects_later:
                self.completions.expect(self)
            if self.timer is None and (callbacks or not awaited):
                self.arm_timeout()
            return 0
        if self.durability == DURABILITY_INTERVAL:
            self.tail.flush.arm()
        if self.tail.watchers:           # first: somebody may be waiting for the message
            if awaited:
                self.tail.notify_at_once()
            else:
                self.tail.notify()
        if callbacks:
            self.completions.post(callbacks, receipt.ledger_id, receipt.entry_id,
                                  frame.message_count, None, self.partition)
        return 0

    cdef bint publish_group(self, EntryGroup group, list pending) except -1:
        cdef LedgerWriter writer
        cdef Receipt receipt
        cdef uint32_t number
        if self.checks or self.transaction is not None or self.came_over is not None:
            return False
        writer = self.append_group(group)
        if writer is None:
            return False
        if self.durability == DURABILITY_SYNC:
            for number in range(group.count):
                receipt = pending[number][0]
                receipt.writer = writer
                receipt.ledger_id = writer.ledger_id
                receipt.entry_id = group.frames[number].entry_id
                receipt.message_count = group.frames[number].message_count
                self.pending.append(pending[number])
                self.pending_count += receipt.message_count
                group.answered += 1
            if not self.expects_later:
                self.completions.expect(self)
            return True
        if self.durability == DURABILITY_INTERVAL:
            self.tail.flush.arm()
        if self.tail.watchers:
            self.tail.notify()
        return True

    cdef int confirm_duplicate(self, Receipt receipt, object callback) except -1:
        cdef list callbacks = None if callback is None else [-1, callback]
        cdef Receipt newest
        self.require_sound()
        receipt.is_duplicate = True
        self.settle()
        newest = self.timed_out          # of which the first one may be
        if self.pending:
            newest = self.pending[len(self.pending) - 1][0]
        if newest is not None and (
                atomic_load_u64(&newest.writer.c_ledger.durable_count) <= newest.entry_id):
            receipt.writer = newest.writer
            receipt.entry_id = newest.entry_id
            if self.send_timeout_ms:
                receipt.expires_ms = self.clock.monotonic() + self.send_timeout_ms
            self.pending.append((receipt, callbacks))
            if callbacks:
                self.completions.expect(self)
                self.arm_timeout()
        elif callbacks:
            self.settle()                    # of what became durable since: in the order of sends
            self.completions.post(callbacks, 0, 0, 0, None, self.partition)
        return 0

    cdef int require_sound(self) except -1:
        cdef LedgerWriter writer = self.tail.writer
        if writer is None or atomic_load_u32(&writer.c_ledger.state) != LEDGER_POISONED:
            return 0
        return raise_status(STATUS_POISONED, ledger_error(&writer.c_ledger),
                            f"confirm what was sent to {self.topic_name} before")

    cdef int append(self, EntryFrame* frame, uint8_t* entry, Receipt receipt) except -1:
        cdef LedgerWriter writer
        cdef uint64_t offset
        cdef uint32_t state
        cdef int status
        cdef bint quietly = self.came_over is not None
        cdef int64_t at_ms = frame.publish_time_ms
        frame.broker_time = 0
        if self.stamp_clock is not None:
            at_ms = self.stamp(frame)
        while True:
            writer = self.tail.writer
            if writer is None:
                self.tail.open_next()
                continue
            state = atomic_load_u32(&writer.c_ledger.state)
            if state == LEDGER_FENCED or (state == LEDGER_OPEN
                                          and at_ms >= self.tail.roll_over_at_ms):
                self.tail.roll_over(writer, at_ms)
                continue
            if state == LEDGER_OPEN and self.stamp_clock is not None and not self.can_stamp(writer):
                self.tail.roll_over(writer, at_ms)
                continue
            if frame.entry_size > GIL_KEPT_UP_TO or not (
                    ledger_append_is_brief(&writer.c_ledger, frame.entry_size)):
                with nogil:
                    status = append_to(&writer.c_ledger, frame, entry, &offset, quietly)
            else:
                status = append_to(&writer.c_ledger, frame, entry, &offset, quietly)
            if status == STATUS_OK:
                if self.transaction is not None:     # first: it holds readers back from now on
                    (<OpenTransactions>self.tail.transactions).note(
                        self.transaction, writer, offset, frame)
                break
            # Refused without an error: another producer has just begun to roll the ledger over.
            if status == STATUS_LEDGER_FULL or status == STATUS_CLOSED or (
                    status == STATUS_IO and ledger_error(&writer.c_ledger) == 0):
                self.tail.roll_over(writer, at_ms)
                continue
            self.refuse(status, writer, frame)
        receipt.writer = writer
        receipt.ledger_id = writer.ledger_id
        receipt.entry_id = frame.entry_id
        receipt.message_count = frame.message_count
        if quietly:
            self.wake(writer)
        if ledger_tail_asks(self.tail, frame.entry_id, offset, at_ms):
            self.tail.ask()
        return 0

    cdef LedgerWriter append_group(self, EntryGroup group):
        cdef LedgerWriter writer = self.tail.writer
        cdef int64_t at_ms = 0
        cdef uint64_t offset = 0
        cdef uint32_t number
        cdef int status
        if writer is None or self.send_timeout_ms:
            return None
        for number in range(group.count):
            group.frames[number].broker_time = 0
            at_ms = max(at_ms, group.frames[number].publish_time_ms if self.stamp_clock is None
                        else self.stamp(&group.frames[number]))
        if at_ms >= self.tail.roll_over_at_ms or (
                self.stamp_clock is not None and not self.can_stamp(writer)):
            return None
        if group.size > GIL_KEPT_UP_TO:
            with nogil:
                status = ledger_append_group(&writer.c_ledger, group.frames, group.count,
                                             group.room, group.size, &offset)
        else:
            status = ledger_append_group(&writer.c_ledger, group.frames, group.count, group.room,
                                         group.size, &offset)
        if status == STATUS_TORN:
            # Stored once more, they could be found twice.
            group.is_stored = True
            if self.tail.lane is not None and ledger_error(&writer.c_ledger) in (ENOSPC, EDQUOT):
                self.tail.lane.put(self.tail.managed_ledger.want_room)
            raise_status(STATUS_IO, ledger_error(&writer.c_ledger),
                         f"store {group.count} entries of {self.topic_name}")
        if status != STATUS_OK:
            return None                  # one by one it is done, or said why it cannot be
        group.is_stored = True
        group.ledger_id = writer.ledger_id
        if ledger_tail_asks(self.tail, group.frames[group.count - 1].entry_id, offset, at_ms):
            self.tail.ask()
        return writer

    cdef int join(self, TransactionCore transaction) except -1:
        if transaction is not None:
            transaction.require_taking()
            transaction.require_of(self.tail.managed_ledger.runtime)
            if self.tail.transactions is None:
                self.tail.transactions = OpenTransactions(self.tail)
        self.transaction = transaction
        return 0

    cdef int append_joined(self, EntryFrame* frame, uint8_t* entry, Receipt receipt) except -1:
        cdef OpenTransactions open = self.tail.transactions
        frame.flags |= ENTRY_TRANSACTION
        open.enter(self.transaction)
        try:
            self.append(frame, entry, receipt)
        except MemoryError as error:
            self.transaction.fail(error)     # the entry may be stored, and its send is told this
            raise
        finally:
            open.leave(self.transaction)
        return 0

    cdef bint can_stamp(self, LedgerWriter writer) except -1:
        """Whether 32 bits of the time are enough in this ledger. It may have been prepared, and not
        used, for long."""
        return writer.file is None or writer.file.says_time(self.stamp_clock.now())

    cdef int64_t stamp(self, EntryFrame* frame) except? -1:
        cdef int64_t now_ms = self.stamp_clock.now()
        frame.broker_time = max(<uint32_t><uint64_t>now_ms, <uint32_t>1)
        return max(now_ms, frame.publish_time_ms)

    cdef int wake(self, LedgerWriter writer) except -1:
        cdef WaitEvent* event = self.tail.c_event
        ledger_append_tell_others(&writer.c_ledger)
        # Who is woken while this thread has the GIL sleeps once more until it is given up.
        if not writer.c_ledger.publish_on_flush and atomic_load_u32(&event.waiters) and (
                not self.came_over.wake_soon(event)):
            wait_event_wake(event)
        return 0

    cdef int refuse(self, int status, LedgerWriter writer, EntryFrame* frame) except -1:
        if status == STATUS_NO_SPACE and self.tail.lane is not None:
            self.tail.lane.put(self.tail.managed_ledger.want_room)
        return raise_status(status, ledger_error(&writer.c_ledger),
                            f"append {frame.entry_size} bytes to ledger {writer.ledger_id} of "
                            f"{self.topic_name}")

    cdef int settle(self) except -1:
        cdef Receipt receipt
        while self.pending:
            receipt, callbacks = self.pending[0]
            if atomic_load_u64(&receipt.writer.c_ledger.durable_count) <= receipt.entry_id:
                return 0
            if callbacks:                # first: where there is no memory for it, it is tried again
                self.completions.post(callbacks, receipt.ledger_id, receipt.entry_id,
                                      receipt.message_count, None, self.partition)
            self.pending.popleft()
            self.pending_count -= receipt.message_count
            if receipt.reserved:
                self.release(receipt)
            if self.room_wanted is not None:
                self.made_room()
        return 0

    cdef int wait(self, Receipt receipt) except -1:
        cdef bint durable
        if self.durability != DURABILITY_SYNC or receipt.writer is None:
            return 0
        try:
            durable = self.make_durable(receipt.writer, receipt.entry_id + 1, receipt.expires_ms)
        except BaseException:
            self.nobody_waits()
            raise
        mutex_lock(&self.mutex)
        try:
            if durable:
                self.settle_soon()
            else:
                self.expire()
        finally:
            mutex_unlock(&self.mutex)
        if not durable:
            raise self.timeout()
        return 0

    cdef int settle_soon(self) except -1:
        """settle, or have it done for want of memory: what the caller sent is stored."""
        try:
            self.settle()
        except MemoryError:
            self.nobody_waits()
        return 0

    cdef bint is_confirmed(self, Receipt receipt) noexcept:
        return self.durability != DURABILITY_SYNC or receipt.writer is None or (
            atomic_load_u64(&receipt.writer.c_ledger.durable_count) > receipt.entry_id)

    cdef int nobody_waits(self) except -1:
        if self.pending_count:
            self.completions.expect(self)
            self.arm_timeout()
        return 0

    cdef int flush_soon(self, bint here) except -1:
        if not self.pending:
            return 0
        if here and len(self.pending) == 1:
            self.flush_expected()
        else:
            self.completions.expect(self)
        return 0

    cdef int wait_for_oldest(self) except -1:
        cdef Receipt oldest
        cdef bint durable
        self.settle()
        if not self.pending:
            return 0
        oldest = self.pending[0][0]
        mutex_unlock(&self.mutex)
        try:
            durable = self.make_durable(oldest.writer, oldest.entry_id + 1, oldest.expires_ms)
        finally:
            mutex_lock(&self.mutex)
        if durable:
            self.settle()
        else:
            self.expire()
        return 0

    cdef bint make_durable(self, LedgerWriter writer, uint64_t entry_count,
                           int64_t expires_ms) except -1:
        """Return when so many entries are flushed; the first to come flushes for all that wait.
        Mutex not held. False: the time came first, while another thread flushed."""
        # An injected clock wakes nobody here; it is looked at as often as signals are.
        cdef int64_t sleep_ns = signals_sleep_ns(SIGNAL_LOOK_NS if expires_ms else -1)
        cdef int status
        while True:
            with nogil:
                status = ledger_append_flush(&writer.c_ledger, entry_count, sleep_ns)
            if status != STATUS_INTERRUPTED:
                break
            signals_check()
            if expires_ms and self.clock.monotonic() >= expires_ms:
                return False
        if status == STATUS_OK:
            # Whoever asked for the flush: it made messages of all producers visible.
            if self.tail.watchers:
                self.tail.notify()
            return True
        try:
            raise_status(status, ledger_error(&writer.c_ledger),
                         f"flush ledger {writer.ledger_id} of {self.topic_name}")
        except Exception as error:
            mutex_lock(&self.mutex)
            try:
                self.fail(error)
            finally:
                mutex_unlock(&self.mutex)
            raise
        return True

    # Timeouts -------------------------------------------------------------------------------------

    cdef int arm_timeout(self) except -1:
        cdef Receipt oldest
        if self.timer is None and self.send_timeout_ms and self.pending:
            oldest = self.pending[0][0]
            self.timer = self.clock.arm_monotonic(oldest.expires_ms, self.timeout_due_call)
        return 0

    def timeout_due(self) -> None:
        """The time armed by arm_timeout has come. Not with the mutex, which may be held for long.
        """
        cdef Receipt oldest
        self.timer = None
        if self.forked or not self.pending:
            return
        oldest = self.pending[0][0]
        if self.clock.monotonic() < oldest.expires_ms:
            self.arm_timeout()
        else:
            # The thread of the callbacks may be the one that waits for the disk.
            self.completions.timeouts.put(self.expire_pending)

    def expire_pending(self) -> None:
        """Give up what has timed out; a job."""
        mutex_lock(&self.mutex)
        try:
            self.expire()
            self.arm_timeout()
        finally:
            mutex_unlock(&self.mutex)

    cdef int expire(self) except -1:
        cdef Receipt receipt
        cdef uint32_t told
        cdef int64_t now_ms = self.clock.monotonic()
        self.settle()
        while self.pending:
            receipt, callbacks = self.pending[0]
            if receipt.expires_ms > now_ms:
                return 0
            # First what there may be no memory for: it is tried again.
            told = callback_count(callbacks) + (1 if receipt.awaited else 0)
            if receipt.message_count > told:
                self.failure = self.timeout()
            if receipt.transaction is not None:
                receipt.transaction.fail(self.timeout())
            self.timed_out = receipt     # in front of the flush that looks for it
            self.completions.expect(self)
            if callbacks:
                self.completions.post_timeout(callbacks, self.timeout(), self.partition)
            self.pending.popleft()
            self.pending_count -= receipt.message_count
            self.release(receipt)
            self.made_room()
        return 0

    cdef object timeout(self):
        return errors.Timeout(
            detail=f"send to {self.topic_name}: not durable after send_timeout_millis "
            f"{self.send_timeout_ms}; the message may be stored all the same, so sending it again "
            f"may store it twice where the topic has no deduplication")

    def cancel_timeout(self) -> None:
        """The producer is closed."""
        timer, self.timer = self.timer, None
        if timer is not None:
            (<Timer>timer).cancel()

    cdef int fail(self, object error) except -1:
        """The flush failed: callbacks are told, nothing stays pending, and the next flush fails
        where there were messages without a callback. Mutex held."""
        cdef Receipt receipt
        cdef bint durable
        while self.pending:
            receipt, callbacks = self.pending[0]
            # By a flush before, of another producer for one, that nobody told this one of.
            durable = (atomic_load_u64(&receipt.writer.c_ledger.durable_count)
                       > receipt.entry_id)
            if not durable and receipt.message_count > callback_count(callbacks):
                self.failure = error
            if not durable and receipt.transaction is not None:
                receipt.transaction.fail(error)
            if callbacks:
                self.completions.post(callbacks, receipt.ledger_id, receipt.entry_id,
                                      receipt.message_count, None if durable else error,
                                      self.partition)
            self.pending.popleft()
            self.pending_count -= receipt.message_count
            self.release(receipt)
        self.made_room()
        return 0

    cdef object flush(self):
        failed = self.flush_pending()
        # Taken last: a flush that no caller waits for has nothing in hand that this one must tell.
        failure, self.failure = self.failure, None
        return failure if failed is None else failed

    cdef bint is_confirmed_with(self, TransactionCore transaction, int64_t pending_max) noexcept:
        # Where room is short, the next send would have to wait for it.
        return transaction is not None and self.memory is None and (
            self.pending_count < pending_max // 2)

    cdef object confirm_within(self, TransactionCore transaction):
        cdef Receipt receipt
        cdef int64_t expires_ms
        if self.send_timeout_ms:         # that of a send nobody waited for begins now
            expires_ms = self.clock.monotonic() + self.send_timeout_ms
            mutex_lock(&self.mutex)
            try:
                for receipt, _ in self.pending:
                    if receipt.transaction is transaction and receipt.awaited:
                        receipt.expires_ms = expires_ms
            finally:
                mutex_unlock(&self.mutex)
        failed = self.flush_pending()
        # What has timed out may be of others; a transaction is told of its own.
        return None if isinstance(failed, errors.Timeout) else failed

    cdef object flush_pending(self):
        cdef Receipt newest = None
        cdef uint64_t raised = signals_raised()
        mutex_lock(&self.mutex)
        try:
            self.settle()
            if self.pending:
                newest = self.pending[len(self.pending) - 1][0]
        finally:
            mutex_unlock(&self.mutex)
        if newest is None or self.forked:
            return None
        try:
            self.wait(newest)
        except BaseException as error:
            if signals_raised() != raised or not isinstance(error, Exception):
                raise
            return error
        return None

    def flush_expected(self) -> None:
        """Flush for no caller, as `CompletionQueue.expect` asked. What failed is told by the next
        flush too: it must not look like a success, even where callbacks were told."""
        cdef Receipt given_up = self.timed_out
        failed = self.flush_pending()
        if given_up is not None:
            # Nobody asks for it any more, but it must not stay half stored either.
            try:
                self.make_durable(given_up.writer, given_up.entry_id + 1, 0)
            except errors.PulsarException as error:
                failed = failed or error
        if failed is not None:
            self.failure = failed

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.forked = True
