"""Publishes letters, messages that a consumer gave up or wants again later, to one topic. Belongs
to a consumer; see letter_rules. Calls of the control plane.

state      holds                                              left by
UNMADE     no letter was sent yet                             send
MADE       a producer                                         close; its client closed
FAILED     making it failed; not tried before a while is over send, then
CLOSED     -                                                  -
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.publish.outgoing_message import BytesKey, BytesOrderingKey
from pulsarx.options.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsarx.schema.schema import BYTES_SCHEMA
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.clock import Clock
    from pulsarx.message_id import MessageId
    from pulsarx.producing.partitioned_producer import PartitionedProducer
    from pulsarx.producing.topic_producer import TopicProducer

    AnyProducer: TypeAlias = TopicProducer | PartitionedProducer

_VERSION_SIZE = 8
# As Pulsar's clients wait before they try to connect again.
CREATION_BACKOFF = MultiplierRedeliveryBackoff(100, 60_000, 2)


class LetterProducer:
    """Any thread may call. The producer is made with the first letter."""

    def __init__(
        self,
        topic: str,
        clock: Clock,
        make: Callable[[], AnyProducer],
        schema_version: Callable[[str, str, int], int | None],
    ) -> None:
        """schema_version: the version on a letter topic of what is another one on the topic that a
        letter comes from; see `letter_schema_version`."""
        self.topic = topic
        self._clock = clock
        self._schema_version = schema_version
        self._sending = Lock()  # a letter and its version go together
        self._make = make
        self._lock = Lock()
        self._producer: AnyProducer | None = None
        self._closed = False
        self._failure: Exception | None = None
        self._failure_count = 0
        self._try_again_ms = 0

    def send(self, message: Message, properties: dict[str, str], delay_ms: int = 0) -> MessageId:
        """Publish a copy of a message with these properties; as durable on return as any send.

        delay_ms: how long the copy waits before it is delivered.
        ProducerNotInitialized: making the producer failed a moment ago.
        """
        producer = self._open()
        with self._sending:
            producer.encode_by(BYTES_SCHEMA, True, self._version_of(message))
            sent: MessageId = producer.send(
                None if message.has_null_value() else message.data(),
                properties=properties,
                partition_key=_key_of(message),
                ordering_key=_ordering_key_of(message),
                event_timestamp=message.event_timestamp() or None,
                deliver_at=self._clock.now_ms() + delay_ms if delay_ms > 0 else None,
            )
        return sent

    def _version_of(self, message: Message) -> bytes | None:
        """The version that its schema has on the letter topic."""
        written = message.schema_version().encode("latin-1")
        if len(written) != _VERSION_SIZE:
            return None
        number = int.from_bytes(written, "big", signed=True)
        version = self._schema_version(message.topic_name(), self.topic, number)
        return None if version is None else version.to_bytes(_VERSION_SIZE, "big")

    def close(self) -> None:
        """Idempotent. Nothing is on its way: a send waits."""
        with self._lock:
            self._closed = True
            producer, self._producer = self._producer, None
        if producer is not None and producer.is_connected():
            producer.close()

    def _open(self) -> AnyProducer:
        with self._lock:
            if self._closed:
                raise errors.AlreadyClosed(detail="consumer")
            if self._producer is not None and self._producer.is_connected():
                return self._producer
            if self._failure is not None and self._clock.now_ms() < self._try_again_ms:
                raise errors.ProducerNotInitialized(
                    detail=f"{self.topic}: tried again from {self._try_again_ms} ms on; "
                    f"{errors.detail_of(self._failure)}"
                )
            try:
                self._producer = self._make()
            except Exception as error:
                self._failure = error
                delay_ms = CREATION_BACKOFF.next(self._failure_count)
                self._try_again_ms = self._clock.now_ms() + delay_ms
                self._failure_count += 1
                raise
            self._failure, self._failure_count = None, 0
            return self._producer


def letter_schema_version(
    runtime: BrokerRuntime, topic: str, letter_topic: str, version: int
) -> int | None:
    """The version on a letter topic of a schema that has this one on another topic, registered
    there whatever the letter topic has already, because a letter must not get stuck. None: the
    topic does not know it."""
    name = TopicName.of(topic)
    if name.partitioned_name not in runtime.catalogue.state.schemas:
        return None
    info = runtime.schemas.find(name, version)
    if info is None:
        return None
    return runtime.schemas.register(TopicName.of(letter_topic), info, "ALWAYS_COMPATIBLE")


def _key_of(message: Message) -> str | None:
    key = message.partition_key()
    if key and message.has_base64_encoded_key():
        return BytesKey(key)
    return key or None


def _ordering_key_of(message: Message) -> Any:
    """It may be any bytes, which text stands for."""
    key = message.ordering_key()
    return BytesOrderingKey(key.encode("utf-8", "surrogateescape")) if key else None
