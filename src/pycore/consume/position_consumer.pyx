# cython: language_level=3
"""The owner's side of a consumer in another process that reads the ledgers itself: takes positions
to be sent to it, and does what it says."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.position_sink cimport PositionSink
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock

cdef enum:
    FRAMES_MAX = 256                     # that are taken at a time


cdef class PositionConsumer(ConsumerCore):
    """A ConsumerCore that takes positions instead of messages. Any thread may call."""

    cdef PositionSink sink

    def __init__(self, PositionSink sink not None, ConsumerHost host not None):
        super().__init__(sink, host)
        self.sink = sink

    def begin(self, uint64_t consumer_id) -> None:
        """It is attached, and has the queue of a newcomer. consumer_id: as its process knows it."""
        mutex_lock(&self.core.mutex)
        self.sink.consumer_id = consumer_id
        self.sink.told_generation = self.dispatcher.generation
        mutex_unlock(&self.core.mutex)

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

    def take_positions(self) -> bytes:
        """Some of the frames that there are to send; empty: none."""
        cdef bytes found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        mutex_lock(&self.core.mutex)
        try:
            found = self.sink.take_positions(FRAMES_MAX)
        finally:
            mutex_unlock(&self.core.mutex)
        self.after()
        return found

    def acknowledge_run(self, uint64_t ledger_id, uint64_t first, uint64_t count) -> None:
        """Acknowledge messages first .. first + count - 1 of a ledger."""
        self.check_open()
        self.record(ledger_id, first, count)

    def acknowledge_before(self, uint64_t ledger_id, uint64_t end) -> None:
        """Acknowledge everything before a message."""
        self.check_open()
        self.record_through(ledger_id, end)

    def refuse_run(self, uint64_t ledger_id, uint64_t first, uint64_t count,
                   int64_t delay_ms) -> None:
        """Have messages delivered again after a delay."""
        cdef uint64_t message
        mutex_lock(&self.core.mutex)
        try:
            for message in range(first, first + count):
                self.dispatcher.nack(self.receiver, ledger_id, message, delay_ms)
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
