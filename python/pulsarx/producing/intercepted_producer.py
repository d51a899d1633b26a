"""Producers whose messages go through interceptors. Those without know nothing of them."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.signals import signals_raised
from pulsarx.interceptors import OutgoingMessage
from pulsarx.listening.listener_pool import log_exception
from pulsarx.producing.partitioned_producer import PartitionedProducer
from pulsarx.producing.topic_producer import TopicProducer
from pulsarx.results import Result
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    from pulsarx.interceptors import ProducerInterceptor
    from pulsarx.message_id import MessageId

    class _Kind:
        """The class that it is put before."""

        def send(self, *_: Any, **__: Any) -> Any: ...
        def send_async(self, *_: Any, **__: Any) -> Any: ...
        def require_open(self, *_: Any, **__: Any) -> Any: ...
        def send_many(self, *_: Any, **__: Any) -> Any: ...
        def flush(self, *_: Any, **__: Any) -> Any: ...
        def _take_leave(self, *_: Any, **__: Any) -> Any: ...

else:
    _Kind = object

# What send_many takes besides contents; the rest goes message by message.
_COLUMNS = ("content", "partition_key", "properties", "event_timestamp")


class _Intercepting(_Kind):
    """Adds interceptors to the calls of a kind of producer. Any thread."""

    _interceptors: tuple[ProducerInterceptor, ...] = ()
    # Errors of messages without a callback, told by the next flush. No lock: steps are atomic.
    _untold: list[Exception] | tuple[()] = ()

    def intercept(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        """Set the interceptors, once, before the producer is used."""
        self._interceptors = tuple(interceptors)
        self._untold = []

    def send(self, content: Any, *described: Any, **named: Any) -> MessageId:
        message = self._before(OutgoingMessage(content, *described, **named))
        try:
            sent: MessageId = super().send(**message.arguments())
        except Exception as error:
            self._acknowledged(message, None, error)
            raise
        self._acknowledged(message, sent, None)
        return sent

    def send_async(
        self,
        content: Any,
        callback: Any,
        *described: Any,
        **named: Any,
    ) -> None:
        if callback is not None and not callable(callback):
            super().send_async(content, callback)  # says what it must be
        message = self._before(OutgoingMessage(content, *described, **named))
        arguments = message.arguments()
        told = partial(self._told, message, callback)
        try:
            if callback is None:
                super().require_open()  # of a closed one no flush would tell it
            super().send_async(arguments.pop("content"), told, **arguments)
        except Exception as error:
            self._acknowledged(message, None, error)
            raise

    def _told(
        self,
        message: OutgoingMessage,
        callback: Callable[[Any, MessageId | None], object] | None,
        result: Any,
        message_id: MessageId | None,
    ) -> None:
        """The callback of each message."""
        error = None if result == Result.Ok else _error_of(result)
        self._acknowledged(message, message_id if error is None else None, error)
        if callback is not None:
            callback(result, message_id)
        elif error is not None and isinstance(self._untold, list):
            self._untold.append(error)

    def send_many(
        self,
        payloads: Iterable[Any],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
        transaction: Any = None,
    ) -> list[MessageId]:
        contents = list(payloads)
        columns = {"keys": keys, "properties": properties, "event_timestamps": event_timestamps}
        for name, column in columns.items():
            if isinstance(column, str) or (column is not None and len(column) != len(contents)):
                refused: list[MessageId] = super().send_many(contents, **{name: column})
                return refused  # never: it says what is wrong
        messages = []
        for at, content in enumerate(contents):
            message = OutgoingMessage(content, transaction=transaction)
            message.partition_key = None if keys is None else keys[at]
            message.properties = None if properties is None else properties[at]
            message.event_timestamp = None if event_timestamps is None else event_timestamps[at]
            messages.append(self._before(message))
        try:
            sent = self._send_all(messages)
        except Exception as error:
            for message in messages:
                self._acknowledged(message, None, error)
            raise
        for message, message_id in zip(messages, sent, strict=True):
            self._acknowledged(message, message_id, None)
        return sent

    def _send_all(self, messages: list[OutgoingMessage]) -> list[MessageId]:
        if not messages:
            return []
        plain = OutgoingMessage(None, transaction=messages[0].transaction).arguments()
        rest = [name for name in plain if name not in _COLUMNS]
        if any(getattr(each, name) != plain[name] for each in messages for name in rest):
            return [super(_Intercepting, self).send(**each.arguments()) for each in messages]
        sent: list[MessageId] = super().send_many(
            [each.content for each in messages],
            keys=[each.partition_key for each in messages],
            properties=[each.properties for each in messages],
            event_timestamps=[each.event_timestamp for each in messages],
            transaction=plain["transaction"],
        )
        return sent

    def send_arrow(self, *_: Any, **__: Any) -> NoReturn:
        raise errors.OperationNotSupported(detail="send_arrow on a producer with interceptors")

    def send_columns(self, *_: Any, **__: Any) -> NoReturn:
        raise errors.OperationNotSupported(detail="send_columns on a producer with interceptors")

    def flush(self) -> None:
        super().flush()
        self._raise_untold()

    def _take_leave(self) -> None:
        super()._take_leave()
        self._raise_untold()

    def _raise_untold(self) -> None:
        untold = self._untold
        if untold:
            self._untold = []
            raise untold[0]

    # The interceptors -----------------------------------------------------------------------------

    def _before(self, message: OutgoingMessage) -> OutgoingMessage:
        producer: Any = self
        raised = signals_raised()
        for each in self._interceptors:
            try:
                changed = each.before_send(producer, message)
                if changed is not None and not isinstance(changed, OutgoingMessage):
                    raise TypeError(f"it returned {errors.shown(changed)}, which is no message")
            except Exception:
                if signals_raised() != raised:
                    raise
                log_exception("%s: before_send of %r raised", producer.topic(), each)
            else:
                message = message if changed is None else changed
        return message

    def _acknowledged(
        self, message: OutgoingMessage, message_id: MessageId | None, error: Exception | None
    ) -> None:
        producer: Any = self
        raised = signals_raised()
        for each in self._interceptors:
            try:
                each.on_send_acknowledgement(producer, message, message_id, error)
            except Exception:
                if signals_raised() != raised:
                    raise
                log_exception("%s: on_send_acknowledgement of %r raised", producer.topic(), each)


def _error_of(result: Any) -> Exception:
    """The exception of which a callback is told the result."""
    kind = getattr(errors, result.name, errors.UnknownError)
    made: Exception = kind(detail="the message was not confirmed; the callback was told so")
    return made


class InterceptedProducer(_Intercepting, TopicProducer[T]):
    """A Producer with interceptors."""


class InterceptedPartitionedProducer(_Intercepting, PartitionedProducer[T]):
    """A PartitionedProducer with interceptors, which see a message once, before its partition is
    chosen."""
