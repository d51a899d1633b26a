# cython: language_level=3
"""Body of multi_consumer.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.wait_event cimport (
    WAIT_EVENTS_MAX, WAIT_EVENTS_POLL_NS, WaitEvent, wait_event_enter, wait_event_leave,
    wait_event_wake,
)
from pulsarx._core.status cimport STATUS_OK, STATUS_TIMEOUT
from pulsarx._pycore.arrow.arrow_block cimport (
    ArrowBlock, arrow_block_finish, arrow_block_new, arrow_block_release,
)
from pulsarx._pycore.arrow.arrow_export cimport ArrowMessages, arrow_messages_new
from pulsarx._pycore.consume.consumer_core cimport is_met_again
from pulsarx._pycore.consume.ready_list cimport ReadyFlag, ReadyList, ready_any, ready_next
from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.message.message_id cimport MessageId
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.deadline cimport Deadline, deadline_of
from pulsarx._pycore.ground.signals cimport signals_check, signals_raised, signals_sleep_ns
from pulsarx._pycore.ground.system_time cimport monotonic_ns
from pulsarx._pycore.ground.waits cimport sleep_on, sleep_on_any, waits_are_busy
from pulsarx._pycore.ground.watchers cimport watchers_call, watchers_remove
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore, transaction_of

cdef enum MultiConsumerState:
    MULTI_OPEN = 1
    MULTI_CLOSED = 2

cdef enum:
    KNOWN_LEDGERS_MAX = 4096     # ids remembered before all are forgotten
    MORE_TOPICS_NS = 1000000000  # after so long a waiting call asks for topics that have come


cdef class Source:
    def __init__(self, object consumer, ReadyFlag flag not None, object tail):
        self.consumer = consumer
        self.flag = flag
        self.tail = tail


cdef class MultiConsumerCore:
    """Receives and acknowledges for one consumer of several topics. Any thread may call."""

    def __init__(self):
        self.sources = []
        self.by_tail = {}
        self.by_ledger = {}
        self.ready = ReadyList()
        self.state = MULTI_OPEN

    def __del__(self) -> None:
        # Forgotten: its topics must not go on setting flags for it.
        if self.sources is not None:
            self.silence()

    def add(self, consumer, priority=None) -> None:
        """Receive from one topic more. One thread at a time.

        priority: it comes before topics of a higher one; None: behind all that have one.
        """
        cdef ReadyFlag flag = ReadyFlag(self.ready, priority)
        cdef Source source = Source(consumer, flag, consumer.dispatcher.tail)
        flag.at = len(self.sources)
        consumer.watch(flag)
        self.by_tail[source.tail] = source
        self.sources.append(source)
        flag.signal()

    def drop(self, consumer) -> None:
        """Receive from a topic no more, whose consumer is closed. One thread at a time."""
        cdef Source source
        cdef Source left
        cdef Py_ssize_t at
        for source in self.sources:
            if source.consumer is consumer:
                source.consumer.unwatch(source.flag)
                self.sources = [each for each in self.sources if each is not source]
                for at, left in enumerate(self.sources):
                    left.flag.at = at
                self.by_tail.pop(source.tail, None)
                self.by_ledger = {}
                self.last = None
                return

    def members(self) -> list:
        """The consumers of the single topics, in the order they were added."""
        return [(<Source>each).consumer for each in self.sources]

    def silence(self) -> None:
        """Let no topic set its flag any more."""
        cdef Source source
        for source in self.sources:
            source.consumer.unwatch(source.flag)
        self.ready.unchain()

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
        cdef Message message = self.take()
        if message is not None:
            return message
        cdef Deadline deadline = deadline_of(timeout_millis)
        while self.wait(deadline):
            message = self.take()
            if message is not None:
                return message
        raise errors.Timeout(detail=f"no message on {len(self.sources)} topics within "
                             f"{timeout_millis} ms")

    def take_now(self) -> Message | None:
        return self.take()

    def give_back(self, list messages not None) -> None:
        """Like ConsumerCore.give_back, each message to the consumer of its topic."""
        cdef Message each
        cdef Source source
        cdef dict by_topic = {}
        for each in messages:
            by_topic.setdefault(each.entry.context.topic, []).append(each)
        for topic, of_topic in by_topic.items():
            source = self.by_tail.get(topic)
            if source is None:
                continue                 # the topic was deleted, and dropped meanwhile
            source.consumer.give_back(of_topic)
            source.flag.signal()

    def wait_for_message(self, Deadline deadline not None) -> bool:
        """Like ConsumerCore.wait_for_message."""
        return self.wait(deadline)

    def watch(self, object notify not None) -> None:
        self.ready.watchers.append(notify)

    def unwatch(self, object notify not None) -> None:
        watchers_remove(self.ready.watchers, notify)

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
        cdef Message message
        cdef list found = []
        cdef Deadline deadline = None
        cdef uint64_t raised = signals_raised()
        if wanted < 1:
            raise ValueError(f"max_messages is {wanted}; it must be at least 1")
        while True:
            try:
                while wanted > 0:
                    message = self.take()
                    if message is None:
                        break
                    found.append(message)
                    wanted -= 1
            except BaseException as error:
                # What was taken before must not be lost; the log tells of damage, and everything
                # else is met by the next call again.
                if not found:
                    raise
                if not is_met_again(error, raised):
                    self.give_back(found)
                    raise
            if found:
                return found
            if deadline is None:
                deadline = deadline_of(timeout_millis)
            if not self.wait(deadline):
                return found

    def receive_arrow(self, max_messages: int, timeout_millis=None) -> ArrowMessages:
        cdef Source source
        cdef object found = None
        cdef Deadline deadline = deadline_of(timeout_millis)
        while True:
            self.check_open()
            if found is None or self.find_more is not None:
                self.mark_all()              # an empty table is of one of them
            while True:
                source = self.next_ready()
                if source is None:
                    break
                try:
                    found = source.consumer.receive_arrow(max_messages, 0)
                except errors.AlreadyClosed:
                    continue
                except BaseException:
                    source.flag.signal()
                    raise
                if len(found):
                    if self.ready.lanes is not None:
                        self.ready.took(source.flag.lane, len(found))
                    source.flag.signal()
                    return found
            if found is None:
                self.check_members()
            if not self.wait(deadline):
                return found if found is not None else self.no_columns()

    cdef ArrowMessages no_columns(self):
        """Make the empty table that receive_arrow returns while this consumer has no topic."""
        cdef ArrowBlock* block = arrow_block_new()
        if block == NULL or arrow_block_finish(block, -1) != STATUS_OK:
            if block != NULL:
                arrow_block_release(block)
            raise MemoryError("the columns of no messages")
        return arrow_messages_new(block, None, "")

    cdef Source next_ready(self):
        """The source to look at next, whose flag is cleared; None: no flag is set."""
        cdef ReadyList ready = self.ready
        cdef list sources = self.sources
        cdef Source source
        cdef ReadyFlag flag
        while True:
            flag = ready_next(ready)
            if flag is None:
                return None
            if flag.at < len(sources):
                source = <Source>sources[flag.at]
                if source.flag is flag:
                    return source
            for source in self.sources:      # it was moved meanwhile, or its topic dropped
                if source.flag is flag:
                    return source

    cdef int mark_all(self) except -1:
        """Have all topics looked at, and those that came meanwhile."""
        cdef Source source
        if self.find_more is not None:
            control_plane.perform(self.find_more)
        for source in self.sources:
            source.flag.mark()
        return 0

    cdef Message take(self):
        """The next message or None: one of each topic in turn, of equal priority."""
        cdef Message message = None
        cdef Source source
        cdef bint left = False
        cdef bint marked = self.find_more is None
        if self.state != MULTI_OPEN:
            self.check_open()
        while True:
            source = self.next_ready()
            if source is None:
                if marked:
                    break
                marked = True
                self.mark_all()
                continue
            try:
                message = source.consumer.take_now()
                if message is not None:
                    if self.ready.lanes is not None:
                        self.ready.took(source.flag.lane, 1)
                    # A thread that found the flag cleared meanwhile looks again.
                    source.flag.signal()
                    return message
            except errors.AlreadyClosed:
                left = True
                continue
            except BaseException:
                if message is not None:      # of a signal handler, in one that was told
                    source.consumer.give_back([message])
                source.flag.signal()
                raise
        if left:
            self.check_members()  # the last one may have sent it away
        return None

    cdef int check_members(self) except -1:
        """AlreadyClosed (a forked child: ForkedError) when no topic has this consumer any more."""
        cdef Source source
        self.check_open()
        for source in self.sources:
            if source.consumer.is_open:
                return 0
        if self.waits_for_topics is not None:
            self.waits_for_topics.require_open()
            return 0
        for source in self.sources:
            source.consumer.require_open()
        return 0

    cdef int wake_all(self) except -1:
        """Make all waiting calls look again."""
        wait_event_wake(&self.ready.event)
        return watchers_call(self.ready.watchers)

    cdef bint wait(self, Deadline deadline) except -1:
        """Sleep until something may have changed; False when the deadline has passed."""
        cdef int64_t left_ns = deadline.remaining_ns()
        self.check_members()
        if left_ns == 0:
            # All of them are of one process, which answers for all.
            return bool(self.sources) and (<Source>self.sources[0]).consumer.ask_there() and (
                ready_any(self.ready))
        left_ns = signals_sleep_ns(left_ns)
        if self.find_more is not None:
            self.sleep_beside(left_ns)
            signals_check()
            self.check_open()
            return True
        cdef WaitEvent* event = &self.ready.event
        cdef uint32_t seen = wait_event_enter(event)
        try:
            if ready_any(self.ready):
                return True
            if self.state == MULTI_OPEN:
                sleep_on(event, seen, left_ns)
        finally:
            wait_event_leave(event)
        signals_check()
        self.check_open()
        return True

    cdef int sleep_beside(self, int64_t left_ns) except -1:
        """Sleep until another process has published to a topic, or a new one may have come."""
        cdef Source source
        cdef LedgerTail tail
        cdef list tails = [(<Source>each).tail for each in self.sources]
        cdef list owners = [(<LedgerTail>each).event_owner for each in tails]
        cdef uint32_t count = len(tails) + 1
        cdef uint32_t entered = 0
        cdef uint32_t at
        cdef int64_t until_ns
        cdef WaitEvent** events = <WaitEvent**>PyMem_Malloc(count * sizeof(WaitEvent*))
        cdef uint32_t* seen = <uint32_t*>PyMem_Malloc(count * sizeof(uint32_t))
        if left_ns < 0 or left_ns > MORE_TOPICS_NS:
            left_ns = MORE_TOPICS_NS
        if count > WAIT_EVENTS_MAX:
            left_ns = min(left_ns, <int64_t>WAIT_EVENTS_POLL_NS)
        try:
            if events == NULL or seen == NULL:
                raise MemoryError(f"wait for {count - 1} topics: out of memory")
            events[0] = &self.ready.event
            for at in range(1, count):
                tail = tails[at - 1]
                events[at] = tail.c_event
                if 0 < tail.poll_ms < left_ns // 1000000:
                    left_ns = <int64_t>tail.poll_ms * 1000000
            while entered < count:
                seen[entered] = wait_event_enter(events[entered])
                entered += 1
            if ready_any(self.ready) or self.state != MULTI_OPEN or self.any_has_message():
                return 0
            for at in range(1, count):
                tail = tails[at - 1]
                if tail.c_event != events[at]:       # the look found that it grows elsewhere
                    return 0
            until_ns = monotonic_ns() + left_ns
            # Awake it returns early, and the caller asks another process for topics.
            while sleep_on_any(events, seen, count, left_ns) == STATUS_TIMEOUT and (
                    waits_are_busy() and monotonic_ns() < until_ns):
                signals_check()
        finally:
            for at in range(entered):
                wait_event_leave(events[at])
            PyMem_Free(events)
            PyMem_Free(seen)
            del owners
        return 0

    def has_message(self) -> bool:
        self.check_members()
        if self.any_has_message():
            return True
        if self.find_more is None:
            return False
        count = len(self.sources)
        control_plane.perform(self.find_more)
        return len(self.sources) > count and self.any_has_message()

    cdef bint any_has_message(self) except -1:
        cdef Source source
        for source in self.sources:
            if source.consumer.is_open and source.consumer.has_message():
                return True
        return False

    def acknowledge(self, message, transaction=None) -> None:
        if self.state != MULTI_OPEN:
            self.check_open()
        consumer = self.consumer_of(message)
        if transaction is not None:
            self.of_transaction(transaction, consumer, message).acknowledge(
                message, transaction)
        elif consumer is not None:
            consumer.acknowledge(message)

    def acknowledge_cumulative(self, message, transaction=None) -> None:
        self.check_open()
        consumer = self.consumer_of(message)
        if transaction is not None:
            self.of_transaction(transaction, consumer, message).acknowledge_cumulative(
                message, transaction)
        elif consumer is not None:
            consumer.acknowledge_cumulative(message)

    cdef object of_transaction(self, object transaction, object consumer, object message):
        """The consumer of a message that a transaction acknowledges, which must be there."""
        cdef TransactionCore within = transaction_of(transaction)
        if consumer is None:
            error = errors.TransactionConflict(
                detail=f"acknowledge {message} in a transaction: it is acknowledged already, and "
                "trimmed")
            within.fail(error)
            raise error
        return consumer

    def acknowledge_many(self, messages, transaction=None) -> None:
        cdef Source source
        self.check_open()
        if type(messages) is ArrowMessages:
            source = self.by_tail.get((<ArrowMessages>messages).topic)
            if source is None:
                raise errors.OperationNotSupported(
                    detail=f"acknowledge {messages!r}: of another topic")
            source.consumer.acknowledge_many(messages, transaction)
            return
        by_consumer = {}
        for message in messages:
            consumer = self.consumer_of(message)
            if transaction is not None:
                consumer = self.of_transaction(transaction, consumer, message)
            if consumer is not None:
                by_consumer.setdefault(id(consumer), (consumer, []))[1].append(message)
        for consumer, of_topic in by_consumer.values():
            consumer.acknowledge_many(of_topic, transaction)

    def negative_acknowledge(self, message) -> None:
        if self.state != MULTI_OPEN:
            return
        consumer = self.consumer_of(message, True)
        if consumer is not None:
            consumer.negative_acknowledge(message)

    cdef object consumer_of(self, message, bint any_id=False):
        """The consumer of the topic of a message or id; None: the id of a ledger that is gone.

        OperationNotSupported, as in the official client: it is of none of the topics, or an id that
        was made without its topic. any_id: such an id is taken, and none of the topics is
        NotAllowedError.
        """
        cdef Source source
        cdef Message received
        if type(message) is Message:
            received = <Message>message
            source = self.last
            if source is None or received.entry.context.topic is not source.tail:
                source = self.by_tail.get(received.entry.context.topic)
                if source is None:
                    raise (errors.NotAllowedError if any_id else errors.OperationNotSupported)(
                        detail=f"acknowledge {message!r}: it is of none of this consumer's topics")
                self.last = source
            return source.consumer
        if not isinstance(message, MessageId):
            raise TypeError("a Message or a MessageId is acknowledged, not a "
                            f"{type(message).__name__}")
        if not any_id and not (<MessageId>message).c_has_topic:
            raise errors.OperationNotSupported(
                detail=f"acknowledge {message}: a consumer of several topics or partitions needs "
                "the topic with an id; take that of a received message, or "
                "MessageId.deserialize(data, topic)")
        ledger_id = (<MessageId>message).c_ledger_id
        source = self.source_of_ledger(ledger_id)
        if source is not None:
            return source.consumer
        for source in self.sources:
            if source.consumer.may_have_had_ledger(ledger_id):
                return None
        raise (errors.NotAllowedError if any_id else errors.OperationNotSupported)(
            detail=f"acknowledge {message}: none of this consumer's topics has such a message")

    def member_with_ledger(self, ledger_id: int) -> object:
        """The consumer of the topic that has a ledger; None when no topic has it."""
        cdef Source source = self.source_of_ledger(ledger_id)
        return None if source is None else source.consumer

    cdef Source source_of_ledger(self, object ledger_id):
        cdef Source source = self.by_ledger.get(ledger_id)
        if source is not None:
            return source
        for source in self.sources:
            if source.consumer.has_ledger(ledger_id):
                if len(self.by_ledger) >= KNOWN_LEDGERS_MAX:
                    self.by_ledger.clear()
                self.by_ledger[ledger_id] = source
                return source
        return None

    def require_open(self) -> None:
        self.check_members()

    cdef int check_open(self) except -1:
        if self.state == MULTI_OPEN:
            return 0
        raise errors.AlreadyClosed(detail=f"consumer of {len(self.sources)} topics")

    def shut(self) -> bool:
        """Refuse further calls and wake waiting ones; False when it was shut already."""
        if self.state != MULTI_OPEN:
            return False
        self.state = MULTI_CLOSED
        self.wake_all()
        return True

    @property
    def is_forked(self) -> bool:
        cdef Source source
        for source in self.sources:
            if source.consumer.is_forked:
                return True
        return self.waits_for_topics is not None and self.waits_for_topics.is_forked

    @property
    def is_open(self) -> bool:
        """Tell whether some topic still has this consumer."""
        cdef Source source
        if self.state != MULTI_OPEN:
            return False
        for source in self.sources:
            if source.consumer.is_open:
                return True
        return self.waits_for_topics is not None and self.waits_for_topics.is_open
