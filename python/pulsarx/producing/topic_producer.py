"""The producer of one topic, and of one partition. The hot calls are inherited from the core."""

from __future__ import annotations

import pulsarx._pycore.publish.send_entry  # noqa: F401  # gives ProducerCore its send_async
from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.publish.producer_core import ProducerCore
from pulsarx.compression import compress
from pulsarx.ground.closing import Closing
from pulsarx.ground.owner import client_is_closing
from pulsarx.producer import Producer
from pulsarx.producing.inherited_producer import become_inherited, refuse_waiting
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.message_id import MessageId
    from pulsarx.options.members import ProducerOptions
    from pulsarx.schema.schema import Schema


# What producers had in the parent of a forked child, which must not be given back there.
parents_own: list[object] = []


class TopicProducer(ProducerCore, Producer[T]):
    """A Producer of one topic. Any thread may call.

    `send`, `send_async`, `flush`, `send_many`, `send_arrow` and `last_sequence_id` come from the
    core class.
    """

    def __init__(self, topic: AnyTopic, options: ProducerOptions, name: str) -> None:
        runtime = topic.runtime
        super().__init__(
            topic.publisher(options.send_timeout_millis, name),
            options,
            name,
            topic.name,
            runtime.clock,
            compress,
            runtime.options.max_message_size,
            runtime.background,
        )
        self._topic = topic
        self._options = options
        self._name = name
        if options.chunking_enabled:
            self.say_before_chunks(topic.hold_chunks)
        if options.encrypts:
            self._encrypt(options, runtime.clock)
        self._closing = Closing()
        if topic.deduplication is not None:
            self.deduplicate(topic.deduplication.of(name), resume=True)
        topic.instruct(self)

    def _encrypt(self, options: ProducerOptions, clock: Any) -> None:
        from pulsarx.encryption import PayloadEncryption

        assert options.crypto_key_reader is not None and options.encryption_key is not None
        self.encrypt_by(
            PayloadEncryption(
                options.crypto_key_reader, options.encryption_key, clock, self.topic_name
            )
        )

    def send_columns(
        self, value: Any, *, key: Any = None, properties: Any = None, event_timestamp: Any = None
    ) -> MessageId | None:
        control_plane.load("pulsarx.producing.numpy_columns")
        from pulsarx.producing.numpy_columns import table_of

        table, named = table_of(value, key, properties, event_timestamp)
        sent: MessageId | None = self.send_arrow(table, "value", **named)
        return sent

    def use_schema(self, schema: Schema[Any]) -> None:
        from pulsarx.producing.producer_schema import use_schema

        use_schema(self, self._topic.runtime, self._topic.topic_name, schema)

    def topic(self) -> str:
        return self.topic_name

    def producer_name(self) -> str:
        return self._name

    def is_connected(self) -> bool:
        return self.is_open

    def close(self) -> None:
        if self.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self.require_open()  # says why not
        self._closing.close(self._take_leave, self.owner)

    def close_with_client(self) -> None:
        self._closing.finish(self._take_leave, self.owner)

    def close_forgotten(self) -> None:
        """Like close, in the background."""
        self._closing.finish(self._take_leave, self.owner)

    def abandon(self) -> None:
        """In a forked child: the first call makes it one of the child's own."""
        super().abandon()
        become_inherited(self)

    def begin_again(self, broker: Any) -> None:
        """See InheritedProducer."""
        from pulsarx.broker.topics.waiting_producer import WaitingProducer
        from pulsarx.producing.producer_schema import give_schema

        options, kind = self._options, type(self)
        parents_own.append((self.publisher, self._topic))  # nothing of it is to be given back
        topic = broker.topic(self._topic.topic_name)

        def make(name: str) -> TopicProducer[T]:
            self.become_itself()  # type: ignore[attr-defined]  # it is an InheritedProducer
            type(self).__init__(self, topic, options, name)
            return self

        added = topic.producers.add(options.producer_name, make, int(options.access_mode))
        if isinstance(added, WaitingProducer):
            topic.producers.withdraw(added)
            raise refuse_waiting(self._name, self.topic_name)
        if options.schema_info is not None:
            try:
                give_schema(broker, topic.topic_name, self, options.schema, options.schema_info)
            except BaseException:
                self.close_with_client()
                self.__class__ = kind
                raise

    def fence(self, reason: str, kind: type[Exception] = errors.ProducerFenced) -> None:
        """Like fence of the core. It has its topic no longer."""
        super().fence(reason, kind)
        self.let_go()

    def _take_leave(self) -> None:
        self.let_go()
        try:
            self.shut()
        except errors.AlreadyClosed:
            pass  # by its broker
        finally:
            self._topic.producer_left(self._name, self)

    def __repr__(self) -> str:
        return (
            f"Producer(topic={self.topic_name!r}, name={self._name!r}, open={self.is_connected()})"
        )
