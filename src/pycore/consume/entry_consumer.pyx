# cython: language_level=3
"""Serves, in the broker, a consumer at the other end of a connection: takes entries to be sent to
it, and acknowledges and redelivers as it says."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.connection_sink cimport ConnectionSink
from pulsarx._pycore.dispatch.consumer_crowd cimport ConsumerCrowd
from pulsarx._pycore.dispatch.shared_dispatcher cimport SharedDispatcher
from pulsarx._pycore.dispatch.single_active_dispatcher cimport SingleActiveDispatcher
from pulsarx._pycore.ground.locks cimport Lock
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.watchers cimport watchers_remove
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.wire.command_output cimport CommandOutput
from pulsarx._pycore.wire.hot_commands cimport COMMAND_SIZE_MAX, message_put


cdef enum:
    SENT_LEAST = 16
    SENT_MAX = 1 << 14           # entries whose place is remembered; others are looked up
    AT_ONCE = 32                 # entries that are written while the mutex is held


cdef struct SentEntry:
    # An entry that was sent, to find its messages when it is acknowledged. messages 0: none is.
    uint64_t ledger_id
    uint64_t entry_id
    uint64_t first_message
    uint32_t messages


cdef class EntryConsumer(ConsumerCore):
    """A ConsumerCore that takes entries instead of messages. Any thread may call; what its session
    alone may, says so."""

    cdef ConnectionSink sink
    cdef ConsumerCrowd crowd             # that it is in; None: the tail tells it
    cdef public object connection        # the same of all of one connection, before `watch`
    # There may be something to send: it is marked for its session, or that has it in hand.
    cdef public bint is_due
    cdef public bint has_flowed          # its client wants messages
    cdef public object wake              # marks it
    cdef public uint64_t epoch           # of the last redelivery that its client asked for
    cdef readonly int partition
    cdef readonly bint keeps_messages    # the topic does; else what is acknowledged is gone anyway
    cdef public Lock acknowledging       # so that nothing is acknowledged behind a move
    cdef public bint is_behind           # what it was sent is of before a move
    # Of entries that were sent, by the low bits of their ids: an entry takes the place of another.
    cdef SentEntry* sent                 # owned
    cdef uint32_t sent_capacity          # a power of two, or 0
    # Of an ACK that is being taken: messages that are acknowledged together.
    cdef uint64_t run_ledger
    cdef uint64_t run_first
    cdef uint64_t run_count

    def __init__(self, ConnectionSink sink not None, ConsumerHost host not None, int partition,
                 bint keeps_messages) -> None:
        super().__init__(sink, host)
        self.sink = sink
        self.partition = partition
        self.keeps_messages = keeps_messages
        self.acknowledging = Lock()
        self.is_due = True

    def __dealloc__(self) -> None:
        PyMem_Free(self.sent)

    def flow(self, uint32_t permits) -> None:
        """The other end has room for so many messages more."""
        self.check_open()
        mutex_lock(&self.core.mutex)
        self.sink.permits += permits
        mutex_unlock(&self.core.mutex)

    def due(self) -> None:
        """There may be something to send. In any thread, and with mutexes held."""
        if self.is_due:
            return                       # its session has not looked since it was marked
        self.is_due = True
        try:
            self.wake()
        except BaseException:
            self.is_due = False          # who comes next marks it
            raise

    cdef int take_flow(self, uint32_t permits) except -1:
        if self.state != CONSUMER_OPEN:
            return 0                     # shut by the broker meanwhile: its session says so
        self.flow(permits)
        self.has_flowed = True
        self.due()
        return 0

    def watch(self, object notify not None) -> None:
        """Like ConsumerCore.watch; on Shared and Key_Shared subscriptions notify() is called when
        there may be a message for this consumer, or for others as well."""
        if not isinstance(self.dispatcher, SharedDispatcher):
            ConsumerCore.watch(self, notify)
            return
        cdef ConsumerCrowd crowd = (<SharedDispatcher>self.dispatcher).crowd
        if self.watchers is None:
            self.watchers = []
        self.watchers.append(notify)
        crowd.add(self.sink, notify, self.connection)
        self.crowd = crowd               # behind it: what fails leaves it in none
        self.dispatcher.tail.watch_for(crowd)

    def unwatch(self, object notify not None) -> None:
        if self.crowd is None:
            ConsumerCore.unwatch(self, notify)
            return
        watchers_remove(self.watchers, notify)
        if self.crowd.remove(self.sink):
            self.dispatcher.tail.unwatch_for(self.crowd)
            self.crowd.stalls(self.sink)     # last: one that is told may raise

    def take_entry(self):
        """See ConnectionSink.take_entry. CorruptDataError: a damaged entry was passed over."""
        cdef list found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        mutex_lock(&self.core.mutex)
        try:
            if self.crowd is not None:
                self.crowd.looks(self.sink)
            found = self.sink.take_entry()
            if found is None and self.crowd is not None:
                self.crowd.looked(self.sink)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()
        return found

    def send_entries(self, CommandOutput output not None, uint64_t consumer_id):
        """Write a MESSAGE for each entry that there is to send, as far as permits and the output
        have room. What is damaged is passed over, and in the log. Return None, or the next
        deliveries that are more than an entry, as take_entry has them. By its session."""
        cdef list others
        self.is_due = False
        while self.state == CONSUMER_OPEN:
            if not output.has_room():
                self.is_due = True
                self.stall()
                return None
            others = []
            try:
                if not self.write_some(output, consumer_id, others):
                    return others or None
            except errors.CorruptDataError:
                continue                 # the subscription has said in the log what is lost
            if others:
                return others
            output.push()
        return None

    cdef bint write_some(self, CommandOutput output, uint64_t consumer_id, list others) except -1:
        """Write some entries. False: nothing more is to be sent. others: what is more than an
        entry, behind which it stops."""
        cdef EntryView view
        cdef uint32_t count = 0
        mutex_lock(&self.core.mutex)
        try:
            while count < AT_ONCE and not others and (count == 0 or output.has_room()):
                if self.crowd is not None:
                    self.crowd.looks(self.sink)
                view = self.sink.claim_next(output)
                if view is None:
                    if self.crowd is not None:
                        self.crowd.looked(self.sink)
                    return False
                if self.sink.is_whole(view):
                    self.write_whole(output, consumer_id, view)
                else:
                    others += self.sink.deliveries(view)
                    self.sink.count_sent(view, len(others))
                    if view.chunked is None:
                        self.note_sent(view)
                count += 1
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()
        return True

    cdef int write_whole(self, CommandOutput output, uint64_t consumer_id,
                         EntryView view) except -1:
        cdef uint8_t* room = output.room(COMMAND_SIZE_MAX + view.entry_size)
        self.sink.count_sent(view, 1)
        self.note_sent(view)
        return output.filled(message_put(
            room, consumer_id, <int64_t>view.ledger_id, <int64_t>view.entry_id, self.partition,
            self.sink.claimed[0].redelivery_count, self.epoch, view.c_entry, view.entry_size))

    # Acknowledging what was sent ------------------------------------------------------------------

    cdef void note_sent(self, EntryView view) noexcept:
        cdef SentEntry* place = NULL
        while True:
            if self.sent_capacity:
                place = &self.sent[view.entry_id & (self.sent_capacity - 1)]
                if place.messages == 0 or self.sent_capacity == SENT_MAX or (
                        place.ledger_id == view.ledger_id and place.entry_id == view.entry_id):
                    break
            if not self.grow_sent():
                if self.sent_capacity == 0:
                    return               # it is looked up
                break
        place.ledger_id = view.ledger_id
        place.entry_id = view.entry_id
        place.first_message = view.first_message
        place.messages = view.message_count

    cdef bint grow_sent(self) noexcept:
        cdef uint32_t capacity = 2 * self.sent_capacity if self.sent_capacity else SENT_LEAST
        cdef uint32_t at
        cdef SentEntry* grown = <SentEntry*>PyMem_Calloc(capacity, sizeof(SentEntry))
        if grown == NULL:
            return False
        for at in range(self.sent_capacity):
            if self.sent[at].messages:
                grown[self.sent[at].entry_id & (capacity - 1)] = self.sent[at]
        PyMem_Free(self.sent)
        self.sent = grown
        self.sent_capacity = capacity
        return True

    cdef SentEntry* find_sent(self, uint64_t ledger_id, uint64_t entry_id) noexcept:
        """Return the place of an entry that is remembered; NULL: it is not."""
        cdef SentEntry* place
        if self.sent_capacity == 0:
            return NULL
        place = &self.sent[entry_id & (self.sent_capacity - 1)]
        if place.messages == 0 or place.ledger_id != ledger_id or place.entry_id != entry_id:
            return NULL
        return place

    def take_sent(self, uint64_t ledger_id, uint64_t entry_id):
        """(ledger id, first message, messages) of an entry that was sent, which is forgotten; None:
        it is to be looked up. By its session."""
        cdef SentEntry* place = self.find_sent(ledger_id, entry_id)
        if place == NULL:
            return None
        found = place.ledger_id, place.first_message, place.messages
        place.messages = 0
        return found

    cdef int take_ack(self, uint64_t ledger_id, uint64_t entry_id) except -1:
        cdef SentEntry* place
        if not self.keeps_messages:
            return 0
        place = self.find_sent(ledger_id, entry_id)
        if place == NULL:
            self.acks_taken()
            try:
                (<object>self).acknowledge_entries([(ledger_id, entry_id)])
            except Exception:
                pass                     # see take_ack
            return 0
        if not self.run_count or place.ledger_id != self.run_ledger or (
                place.first_message != self.run_first + self.run_count):
            self.acks_taken()
            self.run_ledger = ledger_id
            self.run_first = place.first_message
        self.run_count += place.messages
        place.messages = 0
        return 0

    cdef int acks_taken(self) except -1:
        cdef uint64_t count = self.run_count
        if not count:
            return 0
        self.run_count = 0
        self.acknowledging.take(-1)
        try:
            if not self.is_behind and self.state == CONSUMER_OPEN:
                self.record(self.run_ledger, self.run_first, count)
        except Exception:
            pass                         # see take_ack
        finally:
            self.acknowledging.give()
        return 0

    def awaits_more(self) -> bool:
        """Whether it would be sent what there is for it: it has permits and, of Exclusive and
        Failover, is the active one."""
        cdef bint found
        mutex_lock(&self.core.mutex)
        found = self.sink.permits > 0
        if isinstance(self.dispatcher, SingleActiveDispatcher):
            found = found and (<SingleActiveDispatcher>self.dispatcher).active is self.sink
        mutex_unlock(&self.core.mutex)
        return found

    def stall(self) -> None:
        """Its connection takes no more for now; then take_entry is called again."""
        if self.crowd is not None:
            self.crowd.stalls(self.sink)
