"""Consumers whose messages go through interceptors. Those without know nothing of them."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.consume.batch_receive import receive_batch
from pulsarx._pycore.ground.signals import signals_raised
from pulsarx._pycore.message.message import Message
from pulsarx.consuming.multi_topics_consumer import MultiTopicsConsumer
from pulsarx.consuming.topic_consumer import TopicConsumer
from pulsarx.listening.listener_pool import log_exception
from pulsarx.message_id import MessageId
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    from pulsarx.interceptors import ConsumerInterceptor

    class _Kind:
        """The class that it is put before."""

        def receive(self, *_: Any, **__: Any) -> Any: ...
        def receive_many(self, *_: Any, **__: Any) -> Any: ...
        def batch_receive(self, *_: Any, **__: Any) -> Any: ...
        def take_now(self, *_: Any, **__: Any) -> Any: ...
        def acknowledge(self, *_: Any, **__: Any) -> Any: ...
        def acknowledge_cumulative(self, *_: Any, **__: Any) -> Any: ...
        def acknowledge_many(self, *_: Any, **__: Any) -> Any: ...
        def reconsume_later(self, *_: Any, **__: Any) -> Any: ...
        def negative_acknowledge(self, *_: Any, **__: Any) -> Any: ...

else:
    _Kind = object


class _Intercepting(_Kind):
    """Adds interceptors to the calls of a kind of consumer. Any thread."""

    _interceptors: tuple[ConsumerInterceptor, ...] = ()

    def intercept(self, interceptors: Sequence[ConsumerInterceptor]) -> None:
        """Set the interceptors, once, before the consumer is used."""
        self._interceptors = tuple(interceptors)

    # Receiving ------------------------------------------------------------------------------------

    def receive(self, timeout_millis: int | None = None) -> Message:
        return self._before(super().receive(timeout_millis))

    def receive_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Message]:
        found = super().receive_many(max_messages, timeout_millis)
        return self._before_all(found)

    def batch_receive(self) -> list[Message]:
        consumer: Any = self
        if consumer._options.receiver_queue_size == 0 or consumer._loop is not None:
            none: list[Message] = super().batch_receive()
            return none
        unseen = _Unseen(super().take_now, consumer)
        return self._before_all(receive_batch(unseen, *consumer._batch_bounds))

    def take_now(self) -> Message | None:
        """For listeners and futures."""
        message = super().take_now()
        return None if message is None else self._before(message)

    def receive_arrow(self, *_: Any, **__: Any) -> NoReturn:
        raise errors.OperationNotSupported(detail="receive_arrow on a consumer with interceptors")

    def _before(self, message: Message) -> Message:
        return self._before_all([message])[0]

    def _before_all(self, messages: list[Message]) -> list[Message]:
        try:
            for message in messages:
                self._tell_interceptors("before_consume", message)
        except BaseException:  # Ctrl-C: nobody has them, so they come again
            consumer: Any = self
            consumer.give_back(messages)
            raise
        return messages

    # Acknowledging --------------------------------------------------------------------------------

    def acknowledge(self, message: Message | MessageId, transaction: Any = None) -> None:
        step = partial(super().acknowledge, transaction=transaction)
        self._told("on_acknowledge", step, message)

    def acknowledge_cumulative(self, message: Message | MessageId, transaction: Any = None) -> None:
        step = partial(super().acknowledge_cumulative, transaction=transaction)
        self._told("on_acknowledge_cumulative", step, message)

    def acknowledge_many(
        self, messages: Iterable[Message | MessageId] | Any, transaction: Any = None
    ) -> None:
        if transaction is None:
            for each in messages:
                self.acknowledge(each)
            return
        found = list(messages)  # all of them or none
        error: Exception | None = None
        try:
            super().acknowledge_many(found, transaction)
        except Exception as raised:
            error = raised
            raise
        finally:
            for each in found:
                if isinstance(each, (Message, MessageId)):
                    self._tell_interceptors("on_acknowledge", _id_of(each), error)

    def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        super().reconsume_later(message, delay_ms, properties)
        self._tell_interceptors("on_acknowledge", message.message_id(), None)

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        super().negative_acknowledge(message)
        self._tell_interceptors("on_negative_acks_send", {_id_of(message)})

    def _told(self, name: str, step: Callable[[Any], object], message: Message | MessageId) -> None:
        """Take the step, and tell the interceptors how it ended."""
        try:
            step(message)
        except Exception as error:
            if isinstance(message, (Message, MessageId)):
                self._tell_interceptors(name, _id_of(message), error)
            raise
        self._tell_interceptors(name, _id_of(message), None)

    def _tell_interceptors(self, name: str, *arguments: Any) -> None:
        consumer: Any = self
        raised = signals_raised()
        for each in self._interceptors:
            try:
                getattr(each, name)(consumer, *arguments)
            except Exception:
                if signals_raised() != raised:
                    raise
                log_exception("%s: %s of %r raised", consumer.topic(), name, each)


class _Unseen:
    """Gives receive_batch its messages: what it gives back was not seen by interceptors."""

    def __init__(self, take_now: Callable[[], Message | None], consumer: Any) -> None:
        self.take_now = take_now
        self.give_back = consumer.give_back
        self.wait_for_message = consumer.wait_for_message


def _id_of(message: Message | MessageId) -> MessageId:
    return message if isinstance(message, MessageId) else message.message_id()


class InterceptedTopicConsumer(_Intercepting, TopicConsumer[T]):
    """A TopicConsumer with interceptors."""


class InterceptedMultiTopicsConsumer(_Intercepting, MultiTopicsConsumer[T]):
    """A MultiTopicsConsumer with interceptors; its members have none."""
