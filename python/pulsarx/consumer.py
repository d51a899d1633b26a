"""A consumer: what `Client.subscribe` returns.

TopicConsumer receives from one topic, MultiTopicsConsumer from several; here is what they share.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.clock import Deadline
from pulsarx.listening.listener_loop import ListenerLoop
from pulsarx.listening.listener_pool import SerialWork, log_exception
from pulsarx.options.consumer_policies import BatchReceivePolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from typing import Any, NoReturn

    from pulsarx._pycore.arrow.arrow_export import ArrowMessages
    from pulsarx._pycore.message.message import Message
    from pulsarx.letters.letters import Letters
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.listening.pending_receives import PendingReceives
    from pulsarx.message_id import MessageId
    from pulsarx.options.base import ConsumerOptions

# Messages without limit, 10 MiB, 100 ms: the official client's default.
DEFAULT_BATCH_RECEIVE = BatchReceivePolicy(-1, 10 << 20, 100)


class Consumer:
    """Receives the messages of one subscription. Any thread may call.

    What is not acknowledged when the consumer closes goes to the next one of the subscription.
    Whoever waits in a call when it is closed gets AlreadyClosed, as every call after that.
    """

    _client: object = None  # kept alive by what it made
    _is_unsubscribed = False
    _loop: ListenerLoop | None = None
    _receives: PendingReceives | None = None
    _work: SerialWork | None = None
    _events: deque[tuple[bool, int]] | None = None
    _letters: Letters | None = None  # None: neither dead nor retry letters

    def _prepare(self, options: ConsumerOptions, name: str, pool: ListenerPool) -> None:
        """The part of __init__ that all consumers share."""
        self._options = options
        self._name = name
        self._pool = pool
        given = options.batch_receive_policy
        self._policy = DEFAULT_BATCH_RECEIVE if given is None else given.policy()
        if options.message_listener is not None:
            self._loop = ListenerLoop(
                pool, self, options.message_listener, self.negative_acknowledge
            )
            for call in RECEIVING:  # over the methods of the class, which pay nothing for it
                setattr(self, call, _refuse_beside_listener)
        if options.message_listener is not None or options.consumer_event_listener is not None:
            self._begin_work()

    def _begin_work(self) -> SerialWork:
        work = self._work
        if work is None:
            self._pool.grow()
            work = self._work = SerialWork(self._pool, self._step)
        return work

    def start_listener(self) -> None:
        """Everything is in place: the listener may be called."""
        if self._loop is not None:
            work = self._begin_work()
            self.watch(work.due)
            work.due()

    def _step(self) -> bool:
        """What a thread of the pool does when something is due; True: there is more."""
        while self._events:
            self._tell(*self._events.popleft())
        if self._receives is not None:
            self._receives.serve()
        if self._loop is None or self._work is None:
            return False
        try:
            return self._loop.turn(self)
        except errors.AlreadyClosed:
            self.unwatch(self._work.due)
            return False

    # Receiving ------------------------------------------------------------------------------------

    def receive(self, timeout_millis: int | None = None) -> Message:
        """The next message; waits for one.

        timeout_millis: how long at most, in real milliseconds; None: for ever; 0 or less: not at
            all.
        Raises Timeout, AlreadyClosed, CorruptDataError (a damaged entry; the next call goes on
        behind it), Interrupted (a signal arrived; InterruptedByKeyboard for Ctrl-C),
        InvalidConfiguration (beside a listener, or a timeout with a receiver queue of 0).
        """
        raise NotImplementedError

    def receive_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Message]:
        """Up to max_messages messages: waits for the first like receive, then takes what is there.

        Returns an empty list when none came in time.
        """
        raise NotImplementedError

    def receive_arrow(self, max_messages: int, timeout_millis: int | None = None) -> ArrowMessages:
        """Up to max_messages messages as columns; all of one topic. See ArrowMessages."""
        raise NotImplementedError

    def receive_async(self) -> Future[Message]:
        """A `concurrent.futures.Future` of the next message. Not in the official client.

        Several are served in the order they were asked for. Cancelling one loses nothing: its
        message goes to the next receive. Callbacks run in a listener thread of the client, never in
        the publisher's; one that waits for the next message of this consumer waits for itself. When
        the consumer closes, futures that wait get AlreadyClosed.
        """
        self.require_open()
        receives = self._receives
        if receives is None:
            from pulsarx.listening.pending_receives import PendingReceives

            receives = PendingReceives(self, self._begin_work().due)
            # Two first calls at a time agree on one of them.
            self.__dict__.setdefault("_receives", receives)
            receives = self.__dict__["_receives"]
        return receives.add()

    def batch_receive(self) -> list[Message]:
        """Messages until one bound of the batch receive policy is reached: number, bytes or time
        (real), whichever comes first. The message that reaches the bytes is the last."""
        policy = self._policy
        if self._options.receiver_queue_size == 0:
            raise errors.InvalidConfiguration("batch_receive needs a receiver queue")
        most = policy.getMaxNumMessages() if policy.getMaxNumMessages() > 0 else 1 << 31
        most_bytes = policy.getMaxNumBytes() if policy.getMaxNumBytes() > 0 else 1 << 62
        deadline = Deadline(policy.getTimeoutMs() if policy.getTimeoutMs() > 0 else None)
        found: list[Message] = []
        size = 0
        while len(found) < most and size < most_bytes:
            try:
                message = self.receive(deadline.remaining_ms())
            except errors.Timeout:
                break
            except errors.CorruptDataError:
                if not found:
                    raise
                break  # what was taken before must not be lost; the log tells of the damage
            found.append(message)
            size += message.size()
        return found

    def take_now(self) -> Message | None:
        """The next message, None when there is none: receive that never waits. Also beside a
        listener."""
        raise NotImplementedError

    def watch(self, notify: Callable[[], object]) -> None:
        """Call notify() whenever a message may have come, until unwatch: in any thread and with
        mutexes held, so it may only enqueue something or set an event."""
        raise NotImplementedError

    def unwatch(self, notify: Callable[[], object]) -> None:
        raise NotImplementedError

    def has_message(self) -> bool:
        """Whether receive would return at once."""
        raise NotImplementedError

    # Acknowledging --------------------------------------------------------------------------------

    def acknowledge(self, message: Message | MessageId) -> None:
        """Mark one message as processed: it is never delivered on this subscription again.

        message: a Message of this consumer or a MessageId; the id of a whole batch acknowledges all
            of it.
        A killed process keeps it; a power cut may lose what is younger than the flush interval.
        NotAllowedError: the topic never had such a message. What was trimmed changes nothing.
        """
        raise NotImplementedError

    def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Mark this message and every one before it on its topic as processed. See acknowledge."""
        raise NotImplementedError

    def acknowledge_many(
        self, messages: Iterable[Message | MessageId] | ArrowMessages | Any
    ) -> None:
        """Acknowledge a list of messages or ids, or what receive_arrow returned."""
        raise NotImplementedError

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message delivered again after negative_ack_redelivery_delay_ms, or nack_backoff.

        On Exclusive and Failover with everything after it that is not acknowledged, in order; on
        Shared and Key_Shared that message alone.
        """
        raise NotImplementedError

    def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        """Publish a message to the retry letter topic, to come again after delay_ms, and
        acknowledge it. Not in the official client; needs `subscribe(retry_enable=True)`.

        properties: added to those of the message. RECONSUMETIMES counts how often it was asked for;
        above max_redeliver_count of the dead letter policy (16 without one) the message goes to the
        dead letter topic instead. If publishing fails the message is delivered again at once, and
        the error is raised.
        """
        from pulsarx.letters import letters

        self.require_open()
        letters.check_reconsume_arguments(message, delay_ms, properties)
        if self._letters is None or not self._letters.rules.retry_enable:
            raise letters.refuse_reconsuming()
        receiver = self._receiver_of(message)
        if receiver is None:
            raise errors.NotAllowedError(f"reconsume_later of {message!r}: of another topic")
        self._letters.reconsume_later(receiver, message, delay_ms, properties)

    def _receiver_of(self, message: Message) -> Any:
        """The consumer of the topic that the message is of; None: it is of another."""
        raise NotImplementedError

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge."""
        raise NotImplementedError

    # The subscription -----------------------------------------------------------------------------

    def topic(self) -> str:
        """Full name of the topic; of several, all of them with commas between."""
        raise NotImplementedError

    def subscription_name(self) -> str:
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """The given name, or the generated one."""
        return self._name

    @property
    def is_open(self) -> bool:
        raise NotImplementedError

    def is_connected(self) -> bool:
        """Whether it can still be used."""
        return bool(self.is_open)

    def get_last_message_id(self) -> MessageId:
        """Id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        OperationNotSupported on several topics, as of the official client.
        """
        raise NotImplementedError

    def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription: to behind a message id, or to the first message published at a
        time.

        messageid: a MessageId (`MessageId.earliest`, `MessageId.latest`; the message itself is
            delivered again only with `start_message_id_inclusive=True`), or milliseconds since
            1970. Before the first message of the topic it is the first, beyond the last the end. Of
            several topics a time, earliest and latest move all, an id only its own.
        Everything before counts as acknowledged from now on. Durable on return.
        """
        raise NotImplementedError

    # The listener ---------------------------------------------------------------------------------

    def pause_message_listener(self) -> None:
        """Call the listener no more after the call that runs now, until it is resumed."""
        self._listening().paused = True

    def resume_message_listener(self) -> None:
        """Go on after pause_message_listener; nothing came to harm meanwhile."""
        self._listening().paused = False
        self._begin_work().due()

    def _listening(self) -> ListenerLoop:
        self.require_open()
        if self._loop is None:
            raise errors.InvalidConfiguration("the consumer has no message_listener")
        return self._loop

    def tell_active(self, active: bool, partition: int = -1) -> None:
        """The broker's word that this consumer became the active one of a topic, or no longer is.

        Told to the consumer event listener in a listener thread, in the order of the calls.
        """
        if self._options.consumer_event_listener is None:
            return
        if self._events is None:
            from collections import deque

            self.__dict__.setdefault("_events", deque())
        assert self._events is not None
        self._events.append((active, partition))
        self._begin_work().due()

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

        BrokerMetadataError: other consumers are attached to it; nothing changed.
        """
        self.require_open()
        self._require_last()
        try:
            self._close_letters()
        finally:
            self._remove_subscription()
        self._is_unsubscribed = True

    def close(self) -> None:
        """Leave the subscription; it keeps its position. A second call raises AlreadyClosed.

        After unsubscribe, which closed the consumer, it does nothing. It does not wait for a
        listener that runs, so it may be called there and with any lock held: that call of the
        listener is the last one, and gets AlreadyClosed when it acknowledges.
        """
        if self._is_unsubscribed:
            self._is_unsubscribed = False
            return
        self.require_open()
        try:
            self._close_letters()
        finally:
            self._leave()

    def _close_letters(self) -> None:
        if self._letters is not None:
            self._letters.close()

    def require_open(self) -> None:
        """AlreadyClosed (ForkedError in a forked child) unless it is open."""
        raise NotImplementedError

    def _require_last(self) -> None:
        raise NotImplementedError

    def _remove_subscription(self) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def __repr__(self) -> str:
        return (
            f"Consumer(topic={self.topic()!r}, subscription={self.subscription_name()!r}, "
            f"name={self._name!r}, open={self.is_connected()})"
        )


RECEIVING = ("receive", "receive_many", "receive_arrow", "receive_async", "batch_receive")


def _refuse_beside_listener(*_: object, **__: object) -> NoReturn:
    raise errors.InvalidConfiguration("a consumer with a message_listener does not receive besides")
