"""A consumer of topics of a cluster."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.cluster import official
from pulsarx.cluster.cluster_message import ClusterMessage, ValueReader
from pulsarx.cluster.handle import Handle, no_columns, no_transactions
from pulsarx.consumer import Consumer
from pulsarx.listening.listener_pool import log_exception
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.results import Result
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import ConsumerOptions

UNICODE = 32  # re.UNICODE, which every pattern of text has


class ClusterConsumer(Handle, Consumer[T]):
    """Receives the messages of a subscription of a cluster. Any thread may call.

    Ids: the official client acknowledges one message of a batch, or of one of several topics, by
    the id object that it gave, and by a copy the whole batch. So the ids that a program asks
    messages for are kept until they are acknowledged; others of a batch are refused.
    """

    _native: Any = None

    def __init__(
        self,
        client: Any,
        state: OpenState,
        options: ConsumerOptions,
        pool: ListenerPool,
    ) -> None:
        """client: the native one. A call of the control plane."""
        _refuse(options)
        self._state = state
        self._where = f"consumer of {options.subscription_name!r} on {options.topic!r}"
        self._prepare(options, options.consumer_name or "", pool)
        self._interceptors = tuple(options.interceptors or ())
        self._values = ValueReader(client, options.schema)
        self._native_ids: dict[MessageId, Any] = {}
        self._is_one_topic = isinstance(options.topic, str)
        self._ids_lock = Lock()
        conf = official.consumer_configuration(options)
        if options.message_listener is not None:
            conf.message_listener(partial(self._listen, options.message_listener))
        topic: Any = options.topic
        if isinstance(topic, str):
            subscribe = client.subscribe
        elif isinstance(topic, list):
            subscribe = client.subscribe_topics
        else:
            subscribe, topic = client.subscribe_pattern, _text_of(topic)
        options.schema.attach_client(client)
        self._native = self._call(subscribe, topic, options.subscription_name, conf)
        self._name = str(self._native.consumer_name())

    def start_listener(self) -> None:
        """The official client calls it."""

    def _listen(self, listener: Callable[..., object], native: Any, message: Any) -> None:
        """Call the listener, in a thread of the official client, perhaps before the native consumer
        is known."""
        if self._native is None:
            self._native = native
        received = self._received(message)
        try:
            listener(self, received)
        except Exception:
            log_exception("%s: the message listener raised", self._where)
            try:
                self.negative_acknowledge(received)
            except errors.AlreadyClosed:
                pass

    @property
    def is_open(self) -> bool:
        return not (self._closing.begun or self._unsubscribed or self._state.is_forked)

    def is_connected(self) -> bool:
        """Tell whether it is connected to its broker."""
        return self.is_open and bool(self._native.is_connected())

    # Receiving ------------------------------------------------------------------------------------

    def receive(self, timeout_millis: int | None = None) -> Any:
        """Like Consumer.receive. A signal during a call with a timeout is seen at its end, as in
        the official client."""
        if timeout_millis is None:
            return self._received(self._open_call(self._native.receive))
        if not isinstance(timeout_millis, int):
            raise ValueError(
                f"timeout_millis must be int or None, not {type(timeout_millis).__name__}"
            )
        return self._received(self._open_call(self._native.receive, timeout_millis))

    def receive_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Any]:
        """Like Consumer.receive_many."""
        if not isinstance(max_messages, int) or max_messages < 1:
            raise ValueError(f"max_messages must be 1 or more, not {errors.shown(max_messages)}")
        found: list[Any] = []
        try:
            found.append(self.receive(timeout_millis))
            while len(found) < max_messages and self._options.receiver_queue_size:
                found.append(self.receive(0))
        except errors.Timeout:
            pass
        return found

    def receive_async(self) -> Future[Any]:
        """Like Consumer.receive_async. The message of a future that was cancelled is negatively
        acknowledged: it comes again."""
        future: Future[Any] = Future()
        self._open_call(self._native.receive_async, partial(self._answer, future))
        return future

    def _answer(self, future: Future[Any], result: Any, message: Any) -> None:
        if official.result_of(result) != Result.Ok:
            if future.set_running_or_notify_cancel():
                future.set_exception(
                    official.error_of_result(result, f"receive_async of {self._where}")
                )
        elif future.set_running_or_notify_cancel():
            future.set_result(self._received(message))
        else:
            self._native.negative_acknowledge(message)

    def receive_arrow(self, *_: Any, **__: Any) -> NoReturn:
        """OperationNotSupported."""
        raise no_columns("receive_arrow")

    def batch_receive(self) -> list[Any]:
        """Like Consumer.batch_receive."""
        self.require_open()
        if self._options.receiver_queue_size == 0 or self._loop is not None:
            return []
        return [self._received(each) for each in self._call(self._native.batch_receive)]

    def take_now(self) -> Any:
        """The next message, None when none is here."""
        try:
            return self.receive(0)
        except errors.Timeout:
            return None

    def watch(self, notify: Callable[[], object]) -> NoReturn:
        """OperationNotSupported."""
        raise _untold("watch")

    def unwatch(self, notify: Callable[[], object]) -> NoReturn:
        """OperationNotSupported."""
        raise _untold("unwatch")

    def has_message(self) -> NoReturn:
        """OperationNotSupported."""
        raise _untold("has_message")

    def _received(self, native: Any) -> ClusterMessage:
        message = ClusterMessage(native, self._values, self._note_id)
        if self._interceptors:
            self._tell_interceptors("before_consume", message)
        return message

    # Acknowledging --------------------------------------------------------------------------------

    def acknowledge(self, message: Any, transaction: Any = None) -> None:
        """Like Consumer.acknowledge. OperationNotSupported: the id of a message in a batch that no
        message of this consumer was asked for; or a transaction."""
        no_transactions(transaction)
        self._acknowledge(self._native.acknowledge, "on_acknowledge", message)
        self._forget(message)

    def acknowledge_cumulative(self, message: Any, transaction: Any = None) -> None:
        """Like Consumer.acknowledge_cumulative; takes what acknowledge takes."""
        no_transactions(transaction)
        self._acknowledge(self._native.acknowledge_cumulative, "on_acknowledge_cumulative", message)
        last = message if isinstance(message, MessageId) else message.message_id()
        with self._ids_lock:
            for each in list(self._native_ids):
                if each.partition() == last.partition() and each <= last and self._is_one_topic:
                    del self._native_ids[each]
        self._forget(message)

    def _acknowledge(self, function: Any, name: str, message: Any) -> None:
        target = self._target(message)
        try:
            self._open_call(function, target)
        except Exception as error:
            if self._interceptors:
                self._tell_interceptors(name, official.id_of(_id_in(target)), error)
            raise
        if self._interceptors:
            self._tell_interceptors(name, official.id_of(_id_in(target)), None)

    def acknowledge_many(self, messages: Iterable[Any] | Any, transaction: Any = None) -> None:
        """Acknowledge a list of messages or ids; takes what acknowledge takes."""
        no_transactions(transaction)
        for each in messages:
            self.acknowledge(each)

    def negative_acknowledge(self, message: Any) -> None:
        """Like Consumer.negative_acknowledge."""
        target = self._target(message)
        self._open_call(self._native.negative_acknowledge, target)
        if self._interceptors:
            self._tell_interceptors("on_negative_acks_send", {official.id_of(_id_in(target))})

    def _target(self, message: Any) -> Any:
        """Return the object that the official client takes for a message or id."""
        if isinstance(message, ClusterMessage):
            return message.native
        if not isinstance(message, MessageId):
            raise TypeError(
                f"message must be a Message of this consumer or a MessageId, not "
                f"{type(message).__name__}"
            )
        with self._ids_lock:
            found = self._native_ids.get(message)
        if found is not None:
            return found
        if message.batch_index() >= 0:
            raise errors.OperationNotSupported(
                detail=f"the id {message} is of a message in a batch, and no message of this "
                "consumer was asked for it; the official client would take it for the whole batch: "
                "acknowledge the message that was received"
            )
        return official.native_id_of(message)

    def _note_id(self, message_id: MessageId, native_id: Any) -> None:
        """Keep an id that a copy cannot stand for."""
        if message_id.batch_index() >= 0 or message_id.partition() >= 0 or not self._is_one_topic:
            with self._ids_lock:
                self._native_ids[message_id] = native_id

    def _forget(self, message: Any) -> None:
        if self._native_ids:
            known = message if isinstance(message, MessageId) else message.message_id()
            with self._ids_lock:
                self._native_ids.pop(known, None)

    def _tell_interceptors(self, name: str, *arguments: Any) -> None:
        for each in self._interceptors:
            try:
                getattr(each, name)(self, *arguments)
            except Exception:
                log_exception("%s: %s of %r raised", self._where, name, each)

    def reconsume_later(self, *_: Any, **__: Any) -> NoReturn:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail="reconsume_later on a cluster: the official client has no retry letters"
        )

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge."""
        self._open_call(self._native.redeliver_unacknowledged_messages)

    # The subscription -----------------------------------------------------------------------------

    def topic(self) -> str:
        """Return the name of the topic, as the official client says it."""
        return str(self._native.topic())

    def get_last_message_id(self) -> MessageId:
        """Id of the last message of the topic."""
        return official.id_of(self._open_call(self._native.get_last_message_id))

    def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        """Move the subscription behind a message id, or to a publish time in milliseconds."""
        self._open_call(self._native.seek, seek_target(messageid))

    def pause_message_listener(self) -> None:
        """Call the listener no more until it is resumed."""
        self._listening()
        self._call(self._native.pause_message_listener)

    def resume_message_listener(self) -> None:
        """Go on after pause_message_listener."""
        self._listening()
        self._call(self._native.resume_message_listener)

    # Leaving --------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """Close it, because its caller left. A call of the control plane."""
        self.close_with_client()

    def _require_last(self) -> None:
        """The broker refuses it otherwise."""

    def _remove_subscription(self) -> None:
        self._call(self._native.unsubscribe)

    def _leave(self) -> None:
        self._native_ids.clear()
        if not self._unsubscribed and self._native is not None:
            self._call(self._native.close)


def seek_target(messageid: MessageId | MessageIndex | int) -> Any:
    if isinstance(messageid, MessageIndex):
        raise errors.OperationNotSupported(
            detail=f"seek to {messageid}: the official client seeks to ids and times; "
            "`Admin.topics.get_message_id_by_index` has the id"
        )
    if isinstance(messageid, MessageId):
        return official.native_id_of(messageid)
    if isinstance(messageid, int):
        return messageid
    raise ValueError(f"messageid must be a MessageId or int, not {type(messageid).__name__}")


def _refuse(options: ConsumerOptions) -> None:
    policy = options.dead_letter_policy
    official.refuse(
        "subscribe",
        {
            "retry_enable": options.retry_enable,
            "retry_letter_topic": policy is not None and bool(policy.retry_letter_topic),
            "nack_backoff": options.nack_backoff is not None,
            "ack_timeout_backoff": options.ack_timeout_backoff is not None,
            "ack_timeout_tick_ms": options.ack_timeout_tick_ms != 1000,
            "priority_level": options.priority_level != 0,
            "topic_priorities": options.topic_priorities is not None,
            "subscription_mode": int(options.subscription_mode) != 0,
            "consumer_event_listener": options.consumer_event_listener is not None,
            "subscription_properties": options.subscription_properties is not None,
            "expire_time_of_incomplete_chunked_message_ms": (
                options.expire_time_of_incomplete_chunked_message_ms != 60_000
            ),
        },
        "the official client has no such option",
    )


def _text_of(pattern: re.Pattern[str]) -> str:
    if pattern.flags & ~UNICODE:
        raise errors.OperationNotSupported(
            detail=f"the pattern {pattern.pattern!r} with flags on a cluster: the text alone "
            "travels; write the flags into it"
        )
    return pattern.pattern


def _id_in(target: Any) -> Any:
    return target.message_id() if hasattr(target, "message_id") else target


def _untold(name: str) -> errors.OperationNotSupported:
    return errors.OperationNotSupported(
        detail=f"{name} of a consumer of a cluster: the official client does not tell it"
    )
