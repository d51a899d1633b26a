# cython: language_level=3
"""Serves, in the process that owns the folder, a consumer of another process that reads the ledgers
itself: sends it positions, and does what it says."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.position_sink cimport PositionSink
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks
from pulsarx._pycore.dispatch.transaction_steps cimport transaction_add_through, transaction_join
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_try_lock, mutex_unlock
from pulsarx._pycore.ground.owner_link import frame as link_frame
from pulsarx._pycore.ground.owner_link cimport (
    LINK_ACKNOWLEDGE, LINK_ACKNOWLEDGE_THROUGH, LINK_FRAME_SIZE, LINK_RECORDED, LinkSender,
    OwnerLink,
)

cdef enum:
    FRAMES_MAX = 256                     # that are taken at a time


cdef class PositionsDue(LinkSender):
    """There may be something to send for a consumer."""

    cdef PositionConsumer consumer       # as long as something is sent
    cdef OwnerLink link                  # None: its session sends
    cdef object wake                     # has that look at this consumer soon
    cdef object write                    # sends bytes
    cdef bint is_due
    cdef bint by_link                    # the thread that reads the connection sends, without it
    cdef object failure                  # with which what was taken was not sent

    def due(self) -> None:
        """In any thread, and with mutexes held."""
        if self.by_link and self.consumer is not None and (
                self.consumer.dispatcher.tail.is_at_once()) and self.send_here():
            return
        self.is_due = True
        if self.by_link:
            self.link.put_due(self)
        elif self.wake is not None:
            self.wake()

    cdef bint send_here(self) except -1:
        """Send what a sender has just published, in its thread, so that the one that reads the
        connection need not be woken. False: that is to do what is left, or all of it. Whoever takes
        positions sends them with the mutex, so they go in order."""
        cdef PositionConsumer consumer = self.consumer
        cdef bint is_done = False
        # Nothing that waits, and no Python: this is in the middle of the call of a user.
        if self.is_due or self.queued or consumer.state != CONSUMER_OPEN or (
                self.failure is not None or not mutex_try_lock(&consumer.core.mutex)):
            return False
        try:
            if consumer.dispatcher.plain_ahead() < 0 or not self.link.has_room():
                return False
            # With the mutex held nothing is recorded that is not counted, except in that case: a
            # consumer is told what is recorded before messages come again because of a seek.
            if consumer.is_recording:
                return False
            found = consumer.sink.take_positions(FRAMES_MAX)
            is_done = len(found) < FRAMES_MAX * LINK_FRAME_SIZE
            self.write_taken(found)
        except Exception:                # which the reading thread meets again
            return False
        finally:
            mutex_unlock(&consumer.core.mutex)
        return is_done and not consumer.dispatcher.wakes and consumer.dispatcher.dead is None

    cdef int write_taken(self, bytes found) except -1:
        """Send positions that were taken, the mutex held. What is raised stays: the consumer is
        closed with it, and they come again."""
        try:
            if found:
                self.write(found)
        except Exception as error:
            self.failure = error
            raise
        return 0

    cdef bint send_due(self, OwnerLink link) except -1:
        cdef PositionConsumer consumer = self.consumer
        if consumer is None or consumer.state != CONSUMER_OPEN:
            return self.leave()          # its session says that it was closed
        self.is_due = False
        try:
            consumer.tell_recorded(link)
            while True:
                if not link.has_room():
                    self.is_due = True   # its session sends it when there is
                    return self.leave()
                if not consumer.send_positions():
                    return True
        except Exception:                # which its session meets again, and tells
            self.is_due = True
            return self.leave()

    cdef bint leave(self) except -1:
        """Leave it to its session; as send_due."""
        try:
            self.wake()
        except MemoryError:
            self.link.put_due_here(self)     # the next `wait` tries it again
        return False


cdef class PositionConsumer(ConsumerCore):
    """A ConsumerCore that takes positions instead of messages. Any thread may call."""

    cdef PositionSink sink
    cdef PositionsDue flag
    cdef public bint has_unrecorded      # acknowledgements that come now are behind them
    cdef public bint is_recording        # one; it is not counted yet

    def __init__(self, PositionSink sink not None, ConsumerHost host not None):
        super().__init__(sink, host)
        self.sink = sink
        self.flag = PositionsDue()
        self.flag.is_due = True

    def begin(self, uint64_t consumer_id, wake, write, OwnerLink link=None) -> None:
        """It is attached, and has the queue of a newcomer. consumer_id: as its process knows it.
        wake: called whenever there may be something to send, in any thread and with mutexes held.
        write: sends bytes, as that. link: of its session, see send_by_link."""
        self.flag.consumer = self
        self.flag.wake = wake
        self.flag.write = write
        self.flag.link = link
        mutex_lock(&self.core.mutex)
        self.sink.consumer_id = consumer_id
        self.sink.told_generation = self.dispatcher.generation
        mutex_unlock(&self.core.mutex)
        self.watch((<object>self.flag).due)
        wake()

    def end(self) -> None:
        """Send nothing any more."""
        self.flag.consumer = None
        self.unwatch((<object>self.flag).due)

    def send_by_link(self) -> None:
        """From now on what there is to send is sent by the thread that reads the connection, and
        its session is woken only where it has to say something else."""
        self.flag.by_link = self.flag.link is not None

    @property
    def is_due(self) -> bool:
        """Whether there may be something to send."""
        return self.flag.is_due

    @is_due.setter
    def is_due(self, bint is_due) -> None:
        self.flag.is_due = is_due

    def due(self) -> None:
        """There may be something to send, or for its session to do. In any thread, and with mutexes
        held."""
        self.flag.is_due = True
        if self.flag.wake is not None:
            self.flag.wake()

    def take_link(self, int kind, uint64_t first, uint64_t second, uint64_t third,
                  uint64_t fourth) -> None:
        """A frame has come for it; by the thread that reads the connection. See FrameCutter."""
        if self.state != CONSUMER_OPEN:
            return
        if self.has_unrecorded or (
                kind != LINK_ACKNOWLEDGE and kind != LINK_ACKNOWLEDGE_THROUGH):
            self.told(kind, (first, second, third, fourth))
            return
        self.is_recording = True
        try:
            if kind == LINK_ACKNOWLEDGE:
                self.acknowledge_run(first, second, third)
            else:
                self.acknowledge_before(first, second)
            self.sink.recorded += 1
        except Exception:                # which is met again there, and told
            self.told(kind, (first, second, third, fourth))
            return
        finally:
            self.is_recording = False
        if self.flag.by_link:
            self.flag.link.put_due_here(self.flag)
        elif self.flag.wake is not None:
            self.flag.wake()

    @property
    def recorded(self) -> int:
        """Acknowledgements, since it came."""
        return self.sink.recorded

    @recorded.setter
    def recorded(self, uint64_t recorded) -> None:
        self.sink.recorded = recorded

    def told(self, int kind, tuple numbers) -> None:
        """A frame has come for it that is no everyday one."""
        raise NotImplementedError

    cdef int tell_recorded(self, OwnerLink link) except -1:
        cdef uint64_t recorded = self.sink.recorded
        if recorded != self.sink.told_recorded:
            link.tell(LINK_RECORDED, self.sink.consumer_id, recorded, 0, 0, 0)
            self.sink.told_recorded = recorded
        return 0

    def receipt(self) -> bytes:
        """The frame that tells how many acknowledgements are recorded; empty: it was told."""
        if self.sink.recorded == self.sink.told_recorded:
            return b""
        self.sink.told_recorded = self.sink.recorded
        return link_frame(LINK_RECORDED, self.sink.consumer_id, self.sink.recorded)

    def flow(self, uint64_t permits) -> None:
        """The other end has room for so many messages more."""
        self.check_open()
        mutex_lock(&self.core.mutex)
        self.sink.permits += <int64_t>permits
        self.sink.flown += permits
        mutex_unlock(&self.core.mutex)

    def let_go(self, uint64_t resets_done) -> None:
        """The other end hands nothing out any more of what it got before so many resets."""
        mutex_lock(&self.core.mutex)
        self.sink.resets_done = resets_done
        self.dispatcher.wakes = True         # another consumer may wait for that
        mutex_unlock(&self.core.mutex)
        self.after()

    def send_positions(self) -> bool:
        """Send some of the frames that there are to send; False: there is none."""
        cdef bytes found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        if self.flag.failure is not None:
            raise self.flag.failure      # its session closes the consumer: its messages come again
        mutex_lock(&self.core.mutex)
        try:
            found = self.sink.take_positions(FRAMES_MAX)
            # With the mutex: another thread may send what comes next.
            self.flag.write_taken(found)
        finally:
            mutex_unlock(&self.core.mutex)
        self.after()
        return len(found) != 0

    def acknowledge_run(self, uint64_t ledger_id, uint64_t first, uint64_t count) -> None:
        """Acknowledge messages first .. first + count - 1 of a ledger."""
        self.check_open()
        self.record(ledger_id, first, count)

    def expire_run(self, uint64_t ledger_id, uint64_t first, uint64_t count) -> None:
        """Acknowledge messages of a ledger that were too old to be handed out."""
        self.check_open()
        mutex_lock(&self.core.mutex)
        try:
            self.dispatcher.expire(ledger_id, first, first + count)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    def acknowledge_before(self, uint64_t ledger_id, uint64_t end) -> None:
        """Acknowledge everything before a message."""
        self.check_open()
        self.record_through(ledger_id, end)

    def acknowledge_in(self, transaction, list runs not None) -> None:
        """Acknowledge messages in a transaction, (ledger id, first, count) each, all or none."""
        self.check_open()
        self.acknowledge_runs_within(transaction, runs)

    def acknowledge_through_in(self, transaction, uint64_t ledger_id, uint64_t end) -> None:
        """Acknowledge everything before a message in a transaction."""
        cdef TransactionAcks acks
        self.check_open()
        acks = transaction_join(self.core, transaction)
        try:
            transaction_add_through(self.core, self.dispatcher, acks, ledger_id, end)
        finally:
            self.after()

    def refuse_run(self, uint64_t ledger_id, uint64_t first, uint64_t count,
                   int64_t delay_ms) -> None:
        """Have messages delivered again after a delay."""
        cdef uint64_t message
        mutex_lock(&self.core.mutex)
        try:
            try:
                for message in range(first, first + count):
                    self.dispatcher.nack(self.receiver, ledger_id, message, delay_ms)
            finally:
                self.dispatcher.all_due()    # those that were noted, come what may
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    def take_back(self, uint64_t ledger_id, uint64_t first, uint64_t count) -> None:
        """See Dispatcher.take_back."""
        mutex_lock(&self.core.mutex)
        try:
            self.dispatcher.take_back(self.receiver, ledger_id, first, count)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    def rewind(self, uint64_t ledger_id, uint64_t message, uint64_t unseen_ledger,
               uint64_t unseen) -> None:
        """See Dispatcher.rewind."""
        mutex_lock(&self.core.mutex)
        try:
            self.sink.take_rewind(ledger_id, message, unseen_ledger, unseen)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()
