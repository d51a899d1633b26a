# cython: language_level=3
"""Body of consumer_core.pxd."""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.cursor_state cimport LedgerAcks
from pulsarx._core.pending_acks cimport PENDING_NOBODY
from pulsarx._core.status cimport (
    STATUS_DUPLICATE, STATUS_FOLD, STATUS_OK,
)
from pulsarx._core.wait_event cimport WaitEvent, wait_event_enter, wait_event_leave
from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.deadline cimport Deadline, deadline_of
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore, transaction_of
from pulsarx._pycore.message.message cimport Message, message_extent, message_ordinal
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.dispatch.redelivery cimport DeadLetterSink
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks
from pulsarx._pycore.dispatch.transaction_steps cimport (
    transaction_add, transaction_add_through, transaction_join,
)
from pulsarx._pycore.ground.signals cimport signals_check, signals_raised, signals_sleep_ns
from pulsarx._pycore.ground.watchers cimport watchers_call, watchers_remove
from pulsarx._pycore.wire.command_takers cimport AckTaker


cdef enum:
    # messages of a list that are acknowledged before others may have the mutex
    LISTED_AT_ONCE = 1024


cdef bint is_met_again(object error, uint64_t raised) except -1:
    return signals_raised() == raised and (
        isinstance(error, (errors.PulsarException, MemoryError, ImportError)))


cdef int failed_within(TransactionCore transaction, object error) except -1:
    """An acknowledgement in a transaction failed, but for being too late."""
    if not isinstance(error, errors.InvalidTxnStatusError):
        transaction.fail(error)
    return 0


cdef class ConsumerCore(AckTaker):
    """Receives and acknowledges for one consumer or reader. Any thread may call."""

    def __cinit__(self, *args, **named):
        # What copies an object does so; all of its methods would read what __init__ sets.
        if not args and not named:
            raise TypeError(f"{type(self).__name__} is made by a client, not by __new__ alone")

    def __init__(self, EntrySink receiver not None, ConsumerHost host not None):
        self.receiver = receiver
        self.dispatcher = receiver.dispatcher
        self.core = receiver.dispatcher.core
        self.zero_queue = receiver.queue_size == 0
        self.host = host
        self.flush = host.flush
        self.state = CONSUMER_OPEN

    def receive(self, timeout_millis=None) -> Message:
        """Return the next message; wait until there is one.

        Args:
            timeout_millis: How many real milliseconds to wait at most; None: for ever; 0 or less:
                not at all.

        Raises:
            Timeout: No message came in time.
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: An entry is damaged; the next call goes on behind it.
            UnreadableEntryError: An entry cannot be decompressed here, or is too large; its
                messages stay unacknowledged.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: The consumer has a listener; or a timeout is given with a receiver
                queue of 0.

        Durability:
            With durability `sync` only messages that are on the device are received.

        Example:
            message = consumer.receive(timeout_millis=5000)
            print(message.data())
            consumer.acknowledge(message)
        """
        cdef Message message
        if self.state != CONSUMER_OPEN:
            self.check_open()
        if timeout_millis is not None and self.zero_queue:
            raise errors.InvalidConfiguration(
                detail="receive with a timeout needs a receiver queue")
        message = take_settled(self)
        if message is not None:
            return message
        return self.receive_later(timeout_millis)

    def receive_later(self, object timeout_millis):
        """The slow half of receive: nothing is there yet."""
        cdef Deadline deadline = deadline_of(timeout_millis)
        try:
            while self.wait(deadline):
                message = take_settled(self)
                if message is not None:
                    return message
        finally:
            self.stop_asking()
        raise errors.Timeout(detail=f"no message on {self.dispatcher.topic_name} within "
                             f"{timeout_millis} ms")

    def take_now(self) -> Message | None:
        if self.state != CONSUMER_OPEN:
            self.check_open()
        return take_settled(self)

    def give_back(self, list messages not None) -> None:
        """Take back messages in the order they were taken, unseen by users: they come again, as if
        they had not been taken. Those of a Shared subscription may go to another consumer."""
        if not messages or self.state != CONSUMER_OPEN:
            return               # closing gives them back
        mutex_lock(&self.core.mutex)
        try:
            if self.receiver.index != PENDING_NOBODY:
                self.dispatcher.unreceive(self.receiver, messages)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    def wait_for_message(self, Deadline deadline not None) -> bool:
        """Sleep until something may have come; False when the deadline has passed."""
        return self.wait(deadline)

    def ask_there(self) -> bool:
        """Ask the owner, if the subscription is in another process, and return when what it has for
        this consumer has come; False: the subscription is in this process."""
        return self.dispatcher.ask_there()

    def watch(self, object notify not None) -> None:
        if self.watchers is None:
            self.watchers = []
        self.watchers.append(notify)
        self.dispatcher.tail.watch(notify)

    def unwatch(self, object notify not None) -> None:
        if self.watchers is not None:
            watchers_remove(self.watchers, notify)
        self.dispatcher.tail.unwatch(notify)

    def receive_many(self, max_messages: int, timeout_millis=None) -> list:
        """Return up to max_messages messages: wait for the first like receive, then take the
        available ones.

        Args:
            max_messages: Messages at most, from 1.
            timeout_millis: How many real milliseconds to wait for the first one; None: for ever; 0
                or less: not at all.

        Returns:
            The messages, in order; an empty list when none came in time.

        Raises:
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: An entry is damaged and no message came before it; the next call goes
                on behind it.
            UnreadableEntryError: As receive.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: As receive.
            ValueError: max_messages is below 1.

        Example:
            messages = consumer.receive_many(100, timeout_millis=1000)
            consumer.acknowledge_many(messages)
        """
        cdef Py_ssize_t wanted = max_messages
        cdef Message message = None
        cdef list found = []
        if wanted < 1:
            raise ValueError(f"max_messages is {wanted}; it must be at least 1")
        if self.state != CONSUMER_OPEN:
            self.check_open()
        cdef Deadline deadline = None
        cdef object damage = None
        cdef uint64_t raised = signals_raised()
        try:
            while True:
                mutex_lock(&self.core.mutex)
                try:
                    while wanted > 0:
                        message = self.receiver.take()
                        if message is None:
                            break
                        found.append(message)
                        wanted -= 1
                except BaseException as error:
                    if message is not None and (not found
                                                or found[len(found) - 1] is not message):
                        self.dispatcher.unreceive(self.receiver, [message])     # no room in found
                    if isinstance(error, errors.CorruptDataError) and signals_raised() == raised:
                        # What was taken before the damage must not be lost.
                        damage = error
                    elif not found or not is_met_again(error, raised):
                        raise
                finally:
                    mutex_unlock(&self.core.mutex)
                    self.after()
                if damage is not None:
                    self.tell(damage, bool(found))
                elif self.receiver.key_wanted is not None:
                    try:
                        self.fetch_key()
                    except errors.StorageError:
                        if found and signals_raised() == raised:
                            break        # of a ledger, which the next call meets again
                        raise
                    continue
                if found:
                    break
                if deadline is None:
                    deadline = deadline_of(timeout_millis)
                if not self.wait(deadline):
                    break
        except BaseException:
            self.give_back(found)        # of a signal handler, or a key that cannot be read
            raise
        finally:                         # interrupted, too: else a message would be kept for it
            self.stop_asking()
        return found

    def receive_arrow(self, max_messages: int, timeout_millis: int | None = None):
        # Loaded with the first call for columns.
        control_plane.load("pulsarx._pycore.consume.consumer_arrow")
        from pulsarx._pycore.consume.consumer_arrow import receive_arrow_of

        return receive_arrow_of(self, max_messages, timeout_millis)

    def receive_arrow_block(self, max_messages: int, timeout_millis: int, max_bytes: int,
                            of_one_schema: bool):
        """Like receive_arrow, up to so many bytes of values, which no more than an entry goes
        beyond. of_one_schema: up to a message that was written with another version of the schema
        than those before; schema_version of the result is b"" for messages written without one."""
        control_plane.load("pulsarx._pycore.consume.consumer_arrow")
        from pulsarx._pycore.consume.consumer_arrow import receive_arrow_of

        return receive_arrow_of(self, max_messages, timeout_millis, of_one_schema, max_bytes)

    def has_message(self) -> bool:
        cdef bint found = self.look(True)
        cdef bint again = not found
        while again and self.dispatcher.ask_there():
            found = self.look(True)
            again = not found and self.dispatcher.asks_more()
        if not found:
            self.stop_asking()
        return found

    cdef int fetch_key(self) except -1:
        wanted, self.receiver.key_wanted = self.receiver.key_wanted, None
        if wanted is not None:
            wanted()
        return 0

    cdef bint look(self, bint later=False) except -1:
        """Whether there is a message; a receiver without a queue asks for one by this. later: see
        Dispatcher.has_next."""
        cdef bint found
        if self.state != CONSUMER_OPEN:
            self.check_open()
        while True:
            mutex_lock(&self.core.mutex)
            try:
                found = (self.dispatcher.has_next(self.receiver) if later
                         else self.dispatcher.is_ready(self.receiver))
            finally:
                mutex_unlock(&self.core.mutex)
                self.after()
            if found or self.receiver.key_wanted is None:
                return found
            self.fetch_key()

    cdef int tell(self, object damage, bint passed) except -1:
        """Raise what was found damaged, or say it in the log when there are messages to return."""
        if not passed:
            raise damage
        if not getattr(damage, "logged", False):
            import logging

            logging.getLogger("pulsarx").error("%s: %s", self.dispatcher.topic_name, damage)
        return 0

    cdef int stop_asking(self) except -1:
        if self.zero_queue:
            mutex_lock(&self.core.mutex)
            try:
                self.receiver.stop_asking()
                self.dispatcher.stopped_asking()
            finally:
                mutex_unlock(&self.core.mutex)
        return 0

    cdef bint wait(self, Deadline deadline) except -1:
        """Sleep until something may have changed; False when the deadline has passed. No mutex
        held."""
        cdef int64_t left_ns = deadline.remaining_ns()
        if left_ns == 0:
            # What has come may be trimmed by now: then there is room for what is behind it.
            return self.dispatcher.ask_there() and (self.look() or self.dispatcher.asks_more())
        # A look for messages may find that the topic now grows elsewhere, and switch the event.
        cdef LedgerTail tail = self.dispatcher.tail
        cdef object owner = tail.event_owner
        cdef WaitEvent* event = tail.c_event
        cdef uint32_t seen = wait_event_enter(event)
        try:
            if self.look() or tail.c_event != event:
                return True
            if tail.poll_ms > 0 and (left_ns < 0 or left_ns > <int64_t>tail.poll_ms * 1000000):
                left_ns = <int64_t>tail.poll_ms * 1000000
            self.dispatcher.sleep(event, seen, signals_sleep_ns(left_ns))
        finally:
            wait_event_leave(event)
            del owner
        signals_check()
        self.check_open()
        return True

    def acknowledge(self, message, transaction=None) -> None:
        cdef Message received
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        if transaction is not None:
            self.acknowledge_within(transaction, [message])
            return
        if self.state != CONSUMER_OPEN:
            self.check_open()
        if type(message) is Message:
            # As find, without a call: nearly all that is acknowledged.
            received = <Message>message
            if received.entry.context.topic is not self.dispatcher.tail:
                self.refuse_foreign(received)
            self.record(received.entry.ledger_id, message_ordinal(received),
                        message_extent(received))
            return
        self.find(message, &ledger_id, &first, &count)
        if count:
            self.record(ledger_id, first, count)

    def acknowledge_cumulative(self, message, transaction=None) -> None:
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        if transaction is not None:
            self.acknowledge_through_within(transaction, message)
            return
        if self.state != CONSUMER_OPEN:
            self.check_open()
        if self.dispatcher.has_several:
            raise errors.CumulativeAcknowledgementNotAllowedError(
                detail=f"acknowledge cumulatively on {self.dispatcher.topic_name}: several "
                "consumers share the subscription; acknowledge messages one by one, or a list of "
                "them")
        self.find(message, &ledger_id, &first, &count)
        if count:
            self.record_through(ledger_id, first + count)

    # In transactions ------------------------------------------------------------------------------

    cdef int check_transacts(self) except -1:
        """Raise where acknowledgements are in no transaction, or it is closed."""
        if self.state != CONSUMER_OPEN:
            self.check_open()
        if self.dispatcher.keeps_nothing:
            raise errors.NotAllowedError(
                detail=f"acknowledge in a transaction on {self.dispatcher.topic_name}: the topic "
                "is not persistent, and keeps no acknowledgements")
        return 0

    cdef int find_in(self, object message, uint64_t* ledger_id, uint64_t* first,
                     uint64_t* count) except -1:
        """Like find; what is nowhere any more collides."""
        self.find(message, ledger_id, first, count)
        if count[0] == 0:
            raise errors.TransactionConflict(
                detail=f"acknowledge {message} of {self.dispatcher.topic_name} in a transaction: "
                "it is acknowledged already, and trimmed; nothing of this call was acknowledged")
        return 0

    cdef int acknowledge_within(self, object transaction, list messages) except -1:
        """Acknowledge messages in a transaction, all of them or none. What fails makes it fail."""
        cdef TransactionCore within = transaction_of(transaction)
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef list runs = []
        try:
            self.check_transacts()
            for message in messages:
                self.find_in(message, &ledger_id, &first, &count)
                runs.append((ledger_id, first, count))
            self.add_within(within, runs)
        except (errors.PulsarException, MemoryError) as error:
            failed_within(within, error)
            raise
        return 0

    cdef int acknowledge_runs_within(self, object transaction, list runs) except -1:
        cdef TransactionCore within = transaction_of(transaction)
        try:
            self.check_transacts()
            self.add_within(within, runs)
        except (errors.PulsarException, MemoryError) as error:
            failed_within(within, error)
            raise
        return 0

    cdef int add_within(self, TransactionCore transaction, list runs) except -1:
        cdef TransactionAcks acks
        if not runs:
            return 0
        if self.core.tracker is None:    # another process has it
            (<object>self.dispatcher).acknowledge_in(transaction, runs)
            return 0
        acks = transaction_join(self.core, transaction)
        try:
            transaction_add(self.core, self.dispatcher, acks, runs)
        finally:
            self.after()
        return 0

    cdef int acknowledge_through_within(self, object transaction, object message) except -1:
        cdef TransactionCore within = transaction_of(transaction)
        try:
            self.add_through_within(within, message)
        except (errors.PulsarException, MemoryError) as error:
            failed_within(within, error)
            raise
        return 0

    cdef int add_through_within(self, TransactionCore transaction, object message) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef TransactionAcks acks
        self.check_transacts()
        if self.dispatcher.has_several:
            raise errors.InvalidConfiguration(
                detail=f"acknowledge cumulatively in a transaction on {self.dispatcher.topic_name}:"
                " several consumers share the subscription; acknowledge messages one by one, or a "
                "list of them")
        self.find_in(message, &ledger_id, &first, &count)
        if self.core.tracker is None:
            (<object>self.dispatcher).acknowledge_through_in(transaction, ledger_id, first + count)
            return 0
        acks = transaction_join(self.core, transaction)
        try:
            transaction_add_through(self.core, self.dispatcher, acks, ledger_id, first + count)
        finally:
            self.after()
        return 0

    cdef int record_through(self, uint64_t ledger_id, uint64_t end) except -1:
        """Acknowledge everything before a message, in memory and in the cursor's tail."""
        # how far whole ledgers are acknowledged, then by how much that grew
        cdef uint64_t below
        cdef int status
        if self.core.tracker is None:
            return self.dispatcher.acknowledge_through_there(ledger_id, end)
        while True:
            mutex_lock(&self.core.mutex)
            try:
                below = self.core.tracker.c_state.acknowledged_below
                self.dispatcher.look_for_chunks(ledger_id, end)
                if self.core.chunks is not None and self.keep_chunks(ledger_id, end):
                    status = STATUS_OK
                else:
                    status = self.core.tracker.acknowledge_through(ledger_id, end)
                    if (status == STATUS_OK or status == STATUS_DUPLICATE) and (
                            self.core.chunks is not None):
                        self.core.chunks.acknowledged_through(ledger_id, end)
                    if status == STATUS_OK:
                        self.dispatcher.acknowledged_through(ledger_id, end)
                below = self.core.tracker.c_state.acknowledged_below - below
            finally:
                mutex_unlock(&self.core.mutex)
                self.after()
            if not self.settle(status, ledger_id, end):
                if below:
                    self.host.ledger_acknowledged()
                return 0

    cdef bint keep_chunks(self, uint64_t ledger_id, uint64_t end) except -1:
        """Acknowledge everything before a message, but not the chunks of one that ends behind it.
        False: there are none. Mutex held."""
        cdef list spared = self.core.chunks.spared(ledger_id, end)
        if not spared:
            return False
        self.dispatcher.acknowledge_sparing(ledger_id, end, spared)
        return True

    cdef int find(self, object message, uint64_t* ledger_id, uint64_t* first,
                  uint64_t* count) except -1:
        """Find the messages that a Message of this topic or a MessageId names; count 0: nowhere any
        more."""
        cdef Message received
        if type(message) is Message:
            received = <Message>message
            if received.entry.context.topic is not self.dispatcher.tail:
                self.refuse_foreign(received)
            ledger_id[0] = received.entry.ledger_id
            first[0] = message_ordinal(received)
            count[0] = message_extent(received)
            return 0
        return self.host.locate(message, ledger_id, first, count)

    def negative_acknowledge(self, message) -> None:
        self.refuse(message, -1)

    def owns(self, Message message not None) -> bool:
        """Tell whether the message is of this consumer's topic."""
        return message.entry.context.topic is self.dispatcher.tail

    def redeliver_at_once(self, message) -> None:
        """negative_acknowledge without a delay."""
        self.refuse(message, 0)

    def redeliver_many_at_once(self, messages) -> None:
        """redeliver_at_once of several, which come again together."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef uint64_t at
        cdef list found = []
        if self.state != CONSUMER_OPEN:
            self.check_open_or_closed()
            return
        for message in messages:
            self.find(message, &ledger_id, &first, &count)
            found.append((ledger_id, first, count))
        mutex_lock(&self.core.mutex)
        try:
            try:
                for ledger_id, first, count in found:
                    for at in range(first, first + count):
                        self.dispatcher.nack(self.receiver, ledger_id, at, 0)
            finally:
                self.dispatcher.all_due()    # those that were noted, come what may
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    cdef int refuse(self, object message, int64_t delay_ms) except -1:
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef uint64_t at
        if self.state != CONSUMER_OPEN:
            return self.check_open_or_closed()       # closing gave everything back
        self.find(message, &ledger_id, &first, &count)
        if delay_ms < 0:
            return self.refuse_later(ledger_id, first, count)
        mutex_lock(&self.core.mutex)
        try:
            try:
                for at in range(first, first + count):
                    self.dispatcher.nack(self.receiver, ledger_id, at, delay_ms)
            finally:
                self.dispatcher.all_due()    # those that were noted, come what may
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()
        return 0

    cdef int refuse_later(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        """Have messages delivered again as the receiver was made with."""
        cdef uint32_t redeliveries = 0
        cdef int64_t delay_ms
        cdef uint64_t at
        try:
            for at in range(first, first + count):
                if self.receiver.redelivery.nack_backoff is not None:
                    mutex_lock(&self.core.mutex)
                    redeliveries = self.core.redelivery_count(ledger_id, at)
                    mutex_unlock(&self.core.mutex)
                # With no mutex held: a backoff is the user's code.
                delay_ms = self.receiver.redelivery.nack_delay(redeliveries)
                mutex_lock(&self.core.mutex)
                try:
                    self.dispatcher.nack(self.receiver, ledger_id, at, delay_ms)
                    if at == first + count - 1:
                        self.dispatcher.all_due()
                finally:
                    mutex_unlock(&self.core.mutex)
        finally:
            self.after()
        return 0

    def redeliver_unacknowledged(self) -> None:
        """Have everything delivered again that this consumer was given and did not acknowledge;
        after close nothing is left to."""
        if self.state != CONSUMER_OPEN:
            self.check_open_or_closed()
            return
        mutex_lock(&self.core.mutex)
        try:
            self.dispatcher.redeliver(self.receiver)
        finally:
            mutex_unlock(&self.core.mutex)
            self.after()

    def set_dead_letters(self, uint32_t max_redeliver_count, DeadLetterSink sink not None) -> None:
        """Hand a message to the sink instead of delivering it more than 1 + max_redeliver_count
        times.

        sink: a DeadLetterSink; the thread that empties it calls acknowledge for each message, or
        receiver.revive.
        """
        mutex_lock(&self.core.mutex)
        self.receiver.set_dead_letters(max_redeliver_count, sink)
        mutex_unlock(&self.core.mutex)

    cdef int after(self) except -1:
        """No mutex held: do what a call left to be done, also one that raised: what it changed
        before may be what others wait for."""
        if self.dispatcher.wakes or self.dispatcher.dead is not None or self.dispatcher.given_count:
            self.dispatcher.settle()
        return 0

    def acknowledge_many(self, messages, transaction=None) -> None:
        cdef Py_ssize_t at = 0
        cdef object other
        if self.state != CONSUMER_OPEN and transaction is None:
            self.check_open()
        if type(messages) is not list:
            runs = getattr(messages, "runs", None)
            if runs is not None and transaction is not None:
                self.acknowledge_runs_within(transaction, list(runs(self.dispatcher.tail)))
                return
            if runs is not None:
                for ledger_id, run_first, run_count in runs(self.dispatcher.tail):
                    self.record(ledger_id, run_first, run_count)
                return
            messages = list(messages)
        if transaction is not None:
            self.acknowledge_within(transaction, messages)
            return
        while at < PyList_GET_SIZE(messages):
            other = <object>PyList_GET_ITEM(messages, at)
            if type(other) is Message:
                at = self.record_listed(messages, at)
            else:
                self.acknowledge(other)
                at += 1

    cdef Py_ssize_t record_listed(self, list messages, Py_ssize_t at) except -1:
        """Acknowledge the messages of a list from one on, that are a Message each, with the mutex
        taken once for many; returns where to go on."""
        cdef Py_ssize_t end = at + LISTED_AT_ONCE
        cdef Dispatcher dispatcher = self.dispatcher
        cdef AckTracker tracker = self.core.tracker
        cdef Message received
        cdef Message foreign = None
        cdef EntryView entry = None
        cdef uint64_t ledger_id = 0
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef uint64_t newly
        cdef int status = STATUS_OK
        if tracker is None:
            return self.record_there(messages, at)
        mutex_lock(&self.core.mutex)
        try:
            while at < end and is_message_at(messages, at):
                received = <Message>PyList_GET_ITEM(messages, at)
                if entry is not received.entry:
                    entry = received.entry
                    if entry.context.topic is not dispatcher.tail:
                        foreign = received
                        break
                    ledger_id = entry.ledger_id
                first = message_ordinal(received)
                count = message_extent(received)
                at += 1
                while at < end and is_message_at(messages, at):
                    received = <Message>PyList_GET_ITEM(messages, at)
                    if message_ordinal(received) != first + count or (
                            received.entry is not entry
                            and received.entry.ledger_id != ledger_id):
                        break
                    count += message_extent(received)
                    at += 1
                status = tracker.acknowledge(ledger_id, first, count, &newly)
                if (status == STATUS_OK or status == STATUS_DUPLICATE) and (
                        self.core.pending.count or not dispatcher.shares):
                    dispatcher.acknowledged(ledger_id, first, count)
                if self.core.chunks is not None:
                    dispatcher.chunks_acknowledged(ledger_id, first, count)
                if status != STATUS_OK or has_crossed(tracker):
                    break
        finally:
            mutex_unlock(&self.core.mutex)
            try:
                # First: those in front of one that fails are recorded, and to be flushed.
                if not self.flush.armed and tracker.c_dirty:
                    self.flush.arm()
            finally:
                self.after()
        if (status != STATUS_OK or not self.flush.armed or has_crossed(tracker)) and (
                self.settle(status, ledger_id, first)):
            self.record(ledger_id, first, count)
        if foreign is not None:
            self.refuse_foreign(foreign)
        return at

    cdef Py_ssize_t record_there(self, list messages, Py_ssize_t at) except -1:
        """record_listed where the cursor is in another process, which is told each run."""
        cdef Message received
        cdef EntryView entry = None
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef uint64_t message
        while is_message_at(messages, at):
            received = <Message>PyList_GET_ITEM(messages, at)
            at += 1
            message = message_ordinal(received)
            if entry is not None and message == first + count and (
                    received.entry is entry or received.entry.ledger_id == entry.ledger_id):
                count += message_extent(received)
                continue
            if count:
                self.record(entry.ledger_id, first, count)
                count = 0
            entry = received.entry
            if entry.context.topic is not self.dispatcher.tail:
                self.refuse_foreign(received)
            first = message
            count = message_extent(received)
        if count:
            self.record(entry.ledger_id, first, count)
        return at

    cdef int record(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        """Acknowledge a run of messages in memory and in the cursor's tail."""
        cdef SubscriptionCore core = self.core
        cdef Dispatcher dispatcher = self.dispatcher
        cdef AckTracker tracker = core.tracker
        cdef uint64_t newly
        cdef int status
        if tracker is None:
            return dispatcher.acknowledge_there(ledger_id, first, count)
        while True:
            mutex_lock(&core.mutex)
            try:
                status = tracker.acknowledge(ledger_id, first, count, &newly)
                # A duplicate too: a seek acknowledges what is on its way to the dead letters.
                if (status == STATUS_OK or status == STATUS_DUPLICATE) and (
                        core.pending.count or not dispatcher.shares):
                    dispatcher.acknowledged(ledger_id, first, count)
                if core.chunks is not None:
                    dispatcher.chunks_acknowledged(ledger_id, first, count)
            finally:
                mutex_unlock(&core.mutex)
                if dispatcher.wakes or dispatcher.dead is not None or dispatcher.given_count:
                    dispatcher.settle()
            if status == STATUS_OK and self.flush.armed and not has_crossed(tracker):
                return 0
            if not self.settle(status, ledger_id, first):
                return 0

    cdef bint settle(self, int status, uint64_t ledger_id, uint64_t message) except -1:
        """Do what an acknowledgement leaves to do with the GIL in hand; True: try it again."""
        if status == STATUS_FOLD:
            mutex_lock(&self.core.mutex)
            try:
                self.core.tracker.fold()
            finally:
                mutex_unlock(&self.core.mutex)
            return True
        if status != STATUS_OK and status != STATUS_DUPLICATE:
            raise_status(status, 0, f"acknowledge message {message} of ledger {ledger_id} "
                                    f"of {self.dispatcher.topic_name}")
        if has_crossed(self.core.tracker):
            self.host.ledger_acknowledged()
        if not self.flush.armed and self.core.tracker.c_dirty:
            self.flush.arm()
        return False

    cdef int refuse_foreign(self, Message message) except -1:
        raise errors.NotAllowedError(detail=f"acknowledge {message!r}: it is not of topic "
                                     f"{self.dispatcher.topic_name}")

    cdef int check_open(self) except -1:
        if self.state == CONSUMER_OPEN:
            return 0
        if self.state == CONSUMER_FORKED:
            raise errors.forked_error(self.owner_pid)
        raise errors.AlreadyClosed(detail=f"consumer or reader on {self.dispatcher.topic_name}")

    def require_open(self) -> None:
        self.check_open()

    def shut(self) -> bool:
        """Refuse further calls and wake waiting ones; False when it was shut already."""
        if self.state != CONSUMER_OPEN:
            self.check_open_or_closed()
            return False
        self.state = CONSUMER_CLOSED
        # Whoever watches other consumers of the topic has nothing to look for: of a thousand that
        # are closed each would wake all others.
        self.dispatcher.wake_sleepers()
        if self.watchers is not None:
            watchers_call(self.watchers)
        return True

    cdef int check_open_or_closed(self) except -1:
        if self.state == CONSUMER_FORKED:
            self.check_open()
        return 0

    def abandon(self) -> None:
        """In a forked child: refuse further calls; touch nothing."""
        if self.state != CONSUMER_FORKED:    # else by the child of a child
            self.owner_pid = errors.parent_pid()
        self.state = CONSUMER_FORKED

    @property
    def is_forked(self) -> bool:
        return self.state == CONSUMER_FORKED

    @property
    def is_open(self) -> bool:
        return self.state == CONSUMER_OPEN


cdef inline bint is_message_at(list messages, Py_ssize_t at) noexcept:
    return at < PyList_GET_SIZE(messages) and (
        type(<object>PyList_GET_ITEM(messages, at)) is Message)


cdef inline Message take_settled(ConsumerCore self):
    """The next message, None when there is none; what that left to be done without the mutex is
    done. A receiver without a queue asks again when it waits."""
    cdef Message message = None
    while True:
        mutex_lock(&self.core.mutex)
        try:
            message = self.receiver.take()
        finally:
            if message is None:          # or it raised: nothing is to be kept for this consumer
                self.receiver.stop_asking()
            mutex_unlock(&self.core.mutex)
            if self.dispatcher.wakes or self.dispatcher.dead is not None or (
                    self.dispatcher.given_count):
                settle_with(self, message)
        if message is not None or self.receiver.key_wanted is None:
            return message
        self.fetch_key()


cdef int settle_with(ConsumerCore self, Message message) except -1:
    """Settle with a message in hand: what a signal handler raises there keeps no message back."""
    try:
        self.dispatcher.settle()
    except BaseException:
        if message is not None:
            self.give_back([message])
        raise
    return 0


cdef inline bint has_crossed(AckTracker tracker) noexcept:
    """Whether the ledger acknowledged last is a sealed one with nothing left: it may be time to
    trim."""
    cdef LedgerAcks* ledger = tracker.c_state.last
    return ledger != NULL and ledger.sealed and ledger.bits.contiguous == ledger.message_count
