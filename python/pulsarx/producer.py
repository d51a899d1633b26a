"""A producer: what `Client.create_producer` returns. The hot calls are inherited from the core."""

from __future__ import annotations

import pulsarx._pycore.publish.send_entry  # noqa: F401  # gives ProducerCore its send_async
from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.publish.producer_core import ProducerCore
from pulsarx.closing import Closing
from pulsarx.compression import compress
from pulsarx.owner import client_is_closing
from pulsarx.producing.typed_producer import TypedProducer
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.message_id import MessageId
    from pulsarx.options.members import ProducerOptions
    from pulsarx.owner import MemberOwner
    from pulsarx.producing.message_builder import TypedMessageBuilder
    from pulsarx.schema.schema import Schema


class Producer(TypedProducer[T], ProducerCore):
    """Publishes messages to one topic. Any thread may call.

    `send`, `send_async`, `flush`, `send_many`, `send_arrow` and `last_sequence_id` come from the
    core class.
    A producer that is garbage-collected sends what it holds and unregisters, as `close()` does.
    """

    owner: MemberOwner | None = None

    def __init__(self, topic: AnyTopic, options: ProducerOptions, name: str) -> None:
        runtime = topic.runtime
        super().__init__(
            topic.publisher(options.send_timeout_millis),
            options,
            name,
            topic.name,
            runtime.clock,
            compress,
            runtime.options.max_message_size,
            runtime.background,
        )
        self._topic = topic
        self._name = name
        if options.chunking_enabled:
            self.say_before_chunks(topic.hold_chunks)
        if options.encrypts:
            topic.hold_encrypted()
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
        """Publish each element of NumPy arrays in order, as send_arrow; without PyArrow.

        value: bytes or str (dtypes S, U, StringDType or object, None in it for a message without a
        value), void, or rows of uint8. key: str or bytes; empty or None: no key. properties: dicts
        of str, or None, as `to_numpy` gives them. event_timestamp: datetime64, NaT for none, or
        integers: milliseconds since 1970. TypeError, ValueError: an unfit array, nothing was
        published.
        """
        control_plane.load("pulsarx.producing.numpy_columns")
        from pulsarx.producing.numpy_columns import table_of

        table, named = table_of(value, key, properties, event_timestamp)
        sent: MessageId | None = self.send_arrow(table, "value", **named)
        return sent

    def use_schema(self, schema: Schema[Any]) -> None:
        """Encode what is sent from now on by another schema, which the topic must accept after the
        one before. Open batches go out first, so that each has one schema. Messages of several
        schemas are told apart by `Message.schema_version()`.

        IncompatibleSchema: the topic refuses it; ValueError: it is malformed. Nothing changes.
        """
        from pulsarx.producing.producer_schema import use_schema

        use_schema(self, self._topic.runtime, self._topic.name, schema)

    def new_message(self) -> TypedMessageBuilder:
        """A message to be described step by step, and sent by its own `send`."""
        from pulsarx.producing.message_builder import TypedMessageBuilder

        return TypedMessageBuilder(self)

    def topic(self) -> str:
        """Full name of the topic."""
        return self.topic_name

    def producer_name(self) -> str:
        """The given name, or the generated one."""
        return self._name

    def is_connected(self) -> bool:
        """Tell whether it can still be used."""
        return self.is_open

    def close(self) -> None:
        """Send what is open, wait until it is durable and leave. A second call raises
        AlreadyClosed, unless the first was interrupted or the client closed it."""
        if self.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self.require_open()  # says why not
        self._closing.close(self._take_leave, self.owner)

    def close_with_client(self) -> None:
        """As close, when the client does. A call of the control plane."""
        self._closing.finish(self._take_leave, self.owner)

    def close_forgotten(self) -> None:
        """As close, in the background."""
        self._closing.finish(self._take_leave, self.owner)

    def _take_leave(self) -> None:
        try:
            self.shut()
        except errors.AlreadyClosed:
            pass  # by its broker
        finally:
            self._topic.producer_left(self._name, self)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def __repr__(self) -> str:
        return (
            f"Producer(topic={self.topic_name!r}, name={self._name!r}, open={self.is_connected()})"
        )
