"""A consumer: what `Client.subscribe` returns.

TopicConsumer receives from one topic, MultiTopicsConsumer from several; here is what they share.
"""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx._pycore.consume.batch_receive import receive_batch
from pulsarx._pycore.consume.message_iterator import MessageIterator
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.ground.closing import Closing
from pulsarx.ground.owner import client_is_closing, perform_for
from pulsarx.ground.replaced_calls import in_subclass, original_of, replaceable
from pulsarx.listening.listener_loop import ListenerLoop
from pulsarx.listening.listener_pool import SerialWork, log_exception
from pulsarx.options.consumer_policies import BatchReceivePolicy
from pulsarx.schema.schema import T, Typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from typing import Any, NoReturn, Protocol, Self

    from pulsarx._pycore.arrow.arrow_export import ArrowMessages
    from pulsarx._pycore.consume.pending_receives import ReceiveQueue
    from pulsarx._pycore.dispatch.entry_sink import ConsumerEvents
    from pulsarx._pycore.message.message import Message
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.letters.letter_rules import LetterRules
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.message_id import MessageId, MessageIndex
    from pulsarx.options.members import ConsumerOptions

    class ConsumerLetters(Protocol):
        """The dead and retry letters of a consumer."""

        rules: LetterRules

        def retry_options(self, options: ConsumerOptions) -> ConsumerOptions:
            """The options for the consumer of the retry letters."""

        def attach(self, consumer: Any) -> None:
            """Have what a consumer of one topic cannot process become letters."""

        def reconsume_later(
            self,
            receiver: Any,
            message: Message,
            delay_ms: int,
            properties: dict[str, str] | None,
        ) -> None:
            """See Consumer; in the control plane. receiver: the consumer of the message's topic."""

        def close(self) -> None: ...


# Messages without limit, 10 MiB, 100 ms: the official client's default.
DEFAULT_BATCH_RECEIVE = BatchReceivePolicy(-1, 10 << 20, 100)


@replaceable
class Consumer(Typed[T]):
    """Receives the messages of one subscription. Any thread may call.

    It stays attached until it or its client is closed. Its unacknowledged messages then go to the
    next consumer of the subscription. A call that is waiting when it is closed raises
    AlreadyClosed, as does every later call. Ctrl-C interrupts each call that waits with
    InterruptedByKeyboard; what another signal's handler raises comes out as it is.
    """

    owner: MemberOwner | None = None
    events: ConsumerEvents | None = None  # None: there is no event listener
    letters: ConsumerLetters | None = None  # None: neither dead nor retry letters
    _loop: ListenerLoop | None = None
    _receives: ReceiveQueue | None = None
    _work: SerialWork | None = None
    _unsubscribing = False
    _unsubscribed = False
    is_let_go = False  # its client keeps it no more
    _unsubscribe_told = False  # a caller of unsubscribe knows it

    def _prepare(self, options: ConsumerOptions, name: str, pool: ListenerPool) -> None:
        """The part of __init__ that all consumers share."""
        self._options = options
        self._name = name
        self._pool = pool
        self._closing = Closing()
        given = options.batch_receive_policy
        policy = DEFAULT_BATCH_RECEIVE if given is None else given.policy()
        most, most_bytes, most_ms = (
            policy.getMaxNumMessages(),
            policy.getMaxNumBytes(),
            policy.getTimeoutMs(),
        )
        self._batch_bounds = (
            most if most > 0 else 1 << 31,
            most_bytes if most_bytes > 0 else 1 << 62,
            most_ms if most_ms > 0 else None,
        )
        if options.message_listener is not None:
            self._loop = ListenerLoop(
                pool, self, options.message_listener, self.negative_acknowledge
            )
            for call in RECEIVING:  # over the methods of the class, which pay nothing for it
                setattr(self, call, _refuse_beside_listener)
        if options.consumer_event_listener is not None:
            from pulsarx._pycore.dispatch.entry_sink import ConsumerEvents

            self.events = ConsumerEvents(self._begin_work())

    def _begin_work(self) -> SerialWork:
        work = self._work
        if work is None:
            self._pool.grow()
            # A listener keeps its consumer until it is closed; a waiting future does not.
            step = self._step if self._loop is not None else WeakStep(self)
            name = f"the listener of consumer {self._name} on {self.topic()}"
            work = self._work = SerialWork(self._pool, step, name)
        return work

    def start_listener(self) -> None:
        """Begin to call the listener. The client does when everything is in place."""
        if self._loop is not None:
            work = self._begin_work()
            self.watch(work.due)
            work.due()

    def _step(self) -> bool:
        """Do what is due, in a thread of the pool; True: there is more."""
        if self.events is not None:
            while (event := self.events.take()) is not None:
                self._tell(*event)
        if self._receives is not None:
            from pulsarx.listening.pending_receives import serve

            serve(self._receives)
        if self._loop is None or self._work is None:
            return False
        try:
            return self._loop.turn(self)
        except errors.AlreadyClosed:
            self.unwatch(self._work.due)
            return False

    # Receiving ------------------------------------------------------------------------------------

    @in_subclass
    def receive(self, timeout_millis: int | None = None) -> Message[T]:
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
        raise NotImplementedError

    @in_subclass
    def receive_many(
        self, max_messages: int, timeout_millis: int | None = None
    ) -> list[Message[T]]:
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
        raise NotImplementedError

    @in_subclass
    def receive_arrow(self, max_messages: int, timeout_millis: int | None = None) -> ArrowMessages:
        """Return up to max_messages messages as columns; all of one topic. See ArrowMessages. They
        hold at most 2 GiB of values, keys and properties each.

        Args:
            max_messages: Messages at most, from 1.
            timeout_millis: How many real milliseconds to wait for the first one; None: for ever; 0
                or less: not at all.

        Returns:
            The columns; of no rows when none came in time.

        Raises:
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: As receive_many.
            UnreadableEntryError: As receive.
            InterruptedByKeyboard: Ctrl-C was pressed.
            InvalidConfiguration: As receive.
            OperationNotSupported: The consumer has interceptors; or a message cannot be decrypted,
                with CONSUME.
            ValueError: max_messages is below 1.
        """
        raise NotImplementedError

    def receive_async(self) -> Future[Message[T]]:
        """Return a `concurrent.futures.Future` of the next message. Not in the official client.

        Several are served in the order they were asked for. Cancelling one loses nothing: its
        message goes to the next receive. Callbacks run in a listener thread of the client, never in
        the publisher's; one that waits for the next message of this consumer waits for ever. When
        the consumer closes, futures that wait get AlreadyClosed.

        Raises:
            AlreadyClosed: The consumer is closed.
            InvalidConfiguration: The consumer has a listener.
        """
        self.require_open()
        receives = self._receives
        if receives is None:
            receives = control_plane.perform(self._begin_receives)
        from pulsarx.listening.pending_receives import MessageFuture, serve

        future = MessageFuture(receives)
        receives.add(future)
        if not self.is_open:  # closed meanwhile, perhaps with the threads that would tell it
            serve(receives)
        return future

    def _begin_receives(self) -> ReceiveQueue:
        # The modules are loaded here: an interrupted import may leave a lock taken.
        import pulsarx.listening.pending_receives  # noqa: F401
        from pulsarx._pycore.consume.pending_receives import ReceiveQueue

        # Concurrent first calls agree on one of them.
        made = ReceiveQueue(self, self._begin_work())
        found: ReceiveQueue = self.__dict__.setdefault("_receives", made)
        return found

    def batch_receive(self) -> list[Message[T]]:
        """Return messages until a bound of the batch receive policy is reached: number, bytes or
        time (real), whichever comes first. The bytes are not exceeded, except by one message alone.

        An interrupt gives back the messages that were taken: they come again, as if not received.

        Returns:
            The messages, in order; empty when none came in time, without a receiver queue, and
            beside a listener.

        Raises:
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: As receive_many.
            InterruptedByKeyboard: Ctrl-C was pressed.

        Example:
            policy = pulsarx.ConsumerBatchReceivePolicy(100, 1 << 20, 50)
            consumer = client.subscribe("orders", "copying", batch_receive_policy=policy)
            for message in consumer.batch_receive():
                consumer.acknowledge(message)
        """
        if self._options.receiver_queue_size == 0 or self._loop is not None:
            self.require_open()
            return []
        return receive_batch(self, *self._batch_bounds)

    def __iter__(self) -> Iterator[Message[T]]:
        """The messages as receive gives them, for ever: it waits for the next one, and ends when
        the consumer is closed. Nothing is acknowledged. Not in the official client."""
        self.require_open()
        if self._loop is not None:
            _refuse_beside_listener()
        return MessageIterator(self.receive)

    def take_now(self) -> Message[T] | None:
        """Return the next message, None when there is none: receive that never waits. Also beside a
        listener.

        Raises:
            AlreadyClosed: The consumer is closed.
            CorruptDataError: An entry is damaged; the next call goes on behind it.
        """
        raise NotImplementedError

    def watch(self, notify: Callable[[], object]) -> None:
        """Call notify whenever a message may have come, until unwatch.

        Args:
            notify: Called in any thread and with mutexes held, so it may only enqueue something or
                set an event.
        """
        raise NotImplementedError

    def unwatch(self, notify: Callable[[], object]) -> None:
        """Call notify no more.

        Args:
            notify: As it was given to watch.
        """
        raise NotImplementedError

    @in_subclass
    def has_message(self) -> bool:
        """Tell whether receive would return at once.

        Raises:
            AlreadyClosed: The consumer is closed.
        """
        raise NotImplementedError

    # Acknowledging --------------------------------------------------------------------------------

    @in_subclass
    def acknowledge(self, message: Message | MessageId, transaction: Any = None) -> None:
        """Mark one message as processed: it is never delivered on this subscription again.

        Args:
            message: A Message of this consumer or a MessageId; the id of a whole batch acknowledges
                all of it. The id of a trimmed message changes nothing.
            transaction: Acknowledge in this transaction: nobody is delivered the message while it
                is open, a commit acknowledges it, and after an abort it comes again, counted as
                redelivered. Until then it is in the backlog, but no limit of unacknowledged
                messages counts it.

        Raises:
            OperationNotSupported: An id without its topic, on a consumer of several topics.
            NotAllowedError: The topic never had such a message; or a transaction, on a topic that
                is not persistent.
            TransactionConflict: The message is acknowledged already, or in a transaction that is
                open, this one included; or it lies before one that another transaction acknowledged
                cumulatively.
            InvalidTxnStatusError: The transaction is not open any more, or not this client's.
            TypeError: message is neither a Message nor a MessageId.
            StorageFullError: There is no room for it, and none in reserve.
            AlreadyClosed: The consumer is closed.

        Durability:
            It survives a kill of the process; a power cut may lose those of the last flush
            interval, and their messages are delivered again.

        Example:
            message = consumer.receive()
            consumer.acknowledge(message)
        """
        raise NotImplementedError

    @in_subclass
    def acknowledge_cumulative(self, message: Message | MessageId, transaction: Any = None) -> None:
        """Mark this message and every one before it on its topic as processed.

        Args:
            message: As acknowledge.
            transaction: As acknowledge, for all these messages. A later message moves it.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or Key_Shared.
            InvalidConfiguration: It is, and a transaction is given.
            OperationNotSupported: As acknowledge.
            NotAllowedError: As acknowledge.
            TransactionConflict: All of it is acknowledged already, or in this transaction; or
                another transaction has acknowledged some of it, or cumulatively.
            InvalidTxnStatusError: As acknowledge.
            AlreadyClosed: The consumer is closed.

        Durability:
            As acknowledge.

        Example:
            messages = consumer.receive_many(10)
            consumer.acknowledge_cumulative(messages[-1])
        """
        raise NotImplementedError

    @in_subclass
    def acknowledge_many(
        self,
        messages: Iterable[Message | MessageId] | ArrowMessages | Any,
        transaction: Any = None,
    ) -> None:
        """Acknowledge several messages.

        Args:
            messages: Messages or ids, or what receive_arrow returned.
            transaction: As acknowledge. All messages of a topic are acknowledged in it, or none.

        Raises:
            OperationNotSupported: As acknowledge.
            NotAllowedError: As acknowledge; or the columns are of another topic.
            TransactionConflict: As acknowledge, for any of them.
            InvalidTxnStatusError: As acknowledge.
            AlreadyClosed: The consumer is closed.

        Durability:
            As acknowledge.
        """
        raise NotImplementedError

    @in_subclass
    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message delivered again after negative_ack_redelivery_delay_ms, or nack_backoff.

        On Exclusive and Failover all later unacknowledged messages are delivered again too, in
        order, and that one alone counts as redelivered; on Shared and Key_Shared that message
        alone. Refusals within 256 milliseconds, or a quarter of the delay, come again together.

        Args:
            message: As acknowledge. One that is of no topic of this consumer changes nothing, nor
                does any when the consumer is closed.

        Raises:
            TypeError: message is neither a Message nor a MessageId.

        Durability:
            The message stays unacknowledged, whatever happens. Its redelivery count survives
            restarts and kills.

        Example:
            message = consumer.receive()
            consumer.negative_acknowledge(message)
        """
        raise NotImplementedError

    def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        """Publish a message to the retry letter topic, to come again later, and acknowledge it. Not
        in the official client; needs `subscribe(retry_enable=True)`.

        RECONSUMETIMES of its properties counts how often it was asked for; above
        max_redeliver_count of the dead letter policy (16 without one) the message goes to the dead
        letter topic instead. If publishing fails the message is delivered again at once, and the
        error is raised.

        Args:
            message: A message of this consumer.
            delay_ms: After how many milliseconds it comes again.
            properties: Added to those of the message.

        Raises:
            InvalidConfiguration: The consumer was made without retry_enable.
            NotAllowedError: The message is of a topic that this consumer does not have.
            StorageFullError: There is no room for the letter.
            TypeError: An argument is of the wrong type.
            ValueError: delay_ms is negative or too large.
            AlreadyClosed: The consumer is closed.

        Durability:
            The letter is as durable as after send before the message is acknowledged: after a kill
            it may be there twice, and is never lost.
        """
        self.require_open()
        control_plane.load("pulsarx.letters.reconsuming")
        from pulsarx.letters.reconsuming import check_reconsume_arguments, refuse_reconsuming

        check_reconsume_arguments(message, delay_ms, properties)
        if self.letters is None or not self.letters.rules.retry_enable:
            raise refuse_reconsuming()
        receiver = self._receiver_of(message)
        if receiver is None:
            raise errors.NotAllowedError(
                detail=f"reconsume_later: {message!r} belongs to a topic that this consumer does "
                "not have"
            )
        perform_for(
            self.owner, self.letters.reconsume_later, (receiver, message, delay_ms, properties)
        )

    def _receiver_of(self, message: Message) -> Any:
        """The consumer of the topic that the message is of; None: it is of another."""
        raise NotImplementedError

    @in_subclass
    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge. When it is
        closed that does nothing."""
        raise NotImplementedError

    # The subscription -----------------------------------------------------------------------------

    @in_subclass
    def topic(self) -> str:
        """Return the full name of the topic; for several topics all names, separated by commas."""
        raise NotImplementedError

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """Return the given name, or the generated one."""
        return self._name

    @property
    def is_open(self) -> bool:
        """Whether the consumer can still be used."""
        return bool(original_of(self).is_open)

    def is_connected(self) -> bool:
        """Tell whether the consumer can still be used."""
        return bool(self.is_open)

    @in_subclass
    def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        Raises:
            OperationNotSupported: On several topics, as in the official client, and on
                non-persistent ones.
            AlreadyClosed: The consumer is closed.
        """
        raise NotImplementedError

    @in_subclass
    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        """Move the subscription: to behind a message id, to a message by its index, or to the first
        one published at a time.

        Before the first message of the topic it is the first, beyond the last the end. With several
        topics, a time, earliest and latest move all of them, an id its own alone. Everything before
        counts as acknowledged from now on.

        Args:
            messageid: A MessageId (`MessageId.earliest`, `MessageId.latest`; the message itself is
                delivered again only with `start_message_id_inclusive=True`), a MessageIndex, whose
                message is delivered next, or a publish time in milliseconds since 1970.

        Raises:
            OperationNotSupported: A non-persistent topic; an id that is of no topic of this
                consumer; or an index with several topics or partitions, of which each has its own.
            ValueError: messageid is neither an id, an index nor an int.
            TypeError: The time is out of bounds.
            AlreadyClosed: The consumer is closed.

        Durability:
            The new position is on the device when this returns.

        Example:
            consumer.seek(pulsarx.MessageId.earliest)
            first = consumer.receive()
            consumer.seek(first.publish_timestamp())
        """
        raise NotImplementedError

    # The listener ---------------------------------------------------------------------------------

    def pause_message_listener(self) -> None:
        """Stop calling the listener after the call that runs now, until resume_message_listener.

        Raises:
            InvalidConfiguration: The consumer has no listener.
            AlreadyClosed: The consumer is closed.
        """
        self._listening().paused = True

    def resume_message_listener(self) -> None:
        """Call the listener again after pause_message_listener; no message was lost meanwhile.

        Raises:
            InvalidConfiguration: The consumer has no listener.
            AlreadyClosed: The consumer is closed.
        """
        self._listening().paused = False
        self._begin_work().due()

    def _listening(self) -> ListenerLoop:
        self.require_open()
        if self._loop is None:
            raise errors.InvalidConfiguration(detail="the consumer has no message_listener")
        return self._loop

    def _tell(self, active: bool, partition: int) -> None:
        listener: Any = self._options.consumer_event_listener
        try:
            if active:
                listener.became_active(self, partition)
            else:
                listener.became_inactive(self, partition)
        except BaseException:
            log_exception("%s: the consumer event listener raised", self.topic())

    # Leaving --------------------------------------------------------------------------------------

    def unsubscribe(self) -> None:
        """Delete the subscription and close the consumer: its messages are no longer held.

        Raises:
            BrokerMetadataError: Other consumers are attached to it; nothing changed.
            AlreadyClosed: The consumer is closed, or a second call, unless the first was
                interrupted.

        Durability:
            The deletion is on the device when this returns.
        """
        if not self._unsubscribing or self._unsubscribe_told:
            self.require_open()
        perform_for(self.owner, self._unsubscribe)
        self._unsubscribe_told = True

    def _unsubscribe(self) -> None:
        if self._unsubscribed:
            return  # for a caller that was interrupted and has not been told
        self._unsubscribing = True
        try:
            self.require_open()
            self._require_last()
            self._remove_subscription()  # which may be refused: then the letters stay open
            self._unsubscribed = True
            self.let_go()
            self._close_letters()
        finally:
            self._unsubscribing = self._unsubscribed

    def close(self) -> None:
        """Detach from the subscription, which keeps its position.

        After unsubscribe, which closed the consumer, it does nothing. It does not wait for a
        listener that runs, so it may be called there and with any lock held: that call of the
        listener is the last one, and gets AlreadyClosed when it acknowledges.

        Raises:
            AlreadyClosed: A second call, unless the first was interrupted or the client closed it.

        Durability:
            The position is kept. Messages that were received and not acknowledged are delivered
            again.

        Example:
            consumer.close()
            consumer = client.subscribe("orders", "billing")  # goes on where it was
        """
        if self.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self.require_open()
        self._closing.close(self._take_leave, self.owner)

    def close_with_client(self) -> None:
        """Close it like close, when the client closes. A call of the control plane."""
        self._closing.finish(self._take_leave, self.owner)

    def take_back(self) -> None:
        """Close it without a trace, because its caller left. A call of the control plane."""
        raise NotImplementedError

    def _take_leave(self) -> None:
        self.let_go()
        try:
            self._close_letters()
        finally:
            self._leave()

    def let_go(self) -> None:
        """Let the consumer be deallocated with the user's last reference: it was closed."""
        if self.owner is not None:
            self.owner.let_go(self)

    def _close_letters(self) -> None:
        if self.letters is not None:
            self.letters.close()

    def require_open(self) -> None:
        """Return if the consumer can be used.

        Raises:
            AlreadyClosed: It is closed.
            ForkedError: It is a child's copy of what its parent opened.
        """
        raise NotImplementedError

    @property
    def is_forked(self) -> bool:
        """Whether this is a child's copy of what its parent opened."""
        return bool(original_of(self).is_forked)

    def _require_last(self) -> None:
        raise NotImplementedError

    def _remove_subscription(self) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def _repr_html_(self) -> str:
        """Show the consumer in a notebook."""
        control_plane.load("pulsarx.tables.notebook")
        from pulsarx.tables.notebook import facts_html

        facts = {
            "topic": self.topic(),
            "subscription": self.subscription_name(),
            "type": self._options.consumer_type.name,
            "name": self._name,
            "open": self.is_connected(),
        }
        return facts_html("Consumer", facts)

    def __repr__(self) -> str:
        return (
            f"Consumer(topic={self.topic()!r}, subscription={self.subscription_name()!r}, "
            f"name={self._name!r}, open={self.is_connected()})"
        )


class WeakStep:
    """The step of a consumer that may be forgotten meanwhile."""

    __slots__ = ("_consumer",)

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = weakref.ref(consumer)

    def __call__(self) -> bool:
        consumer = self._consumer()
        return consumer is not None and consumer._step()


RECEIVING = ("receive", "receive_many", "receive_arrow", "receive_async")


def _refuse_beside_listener(*_: object, **__: object) -> NoReturn:
    raise errors.InvalidConfiguration(
        detail="a consumer with a message_listener does not receive besides"
    )
