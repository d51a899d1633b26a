"""Messages of a cluster: what the official client received, with the calls of our Message."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.message.encryption_context import EncryptionKey
from pulsarx._pycore.message.message import Message
from pulsarx.cluster import official
from pulsarx.enumerations import CompressionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx.message_id import MessageId
    from pulsarx.schema.schema import Schema


class ValueReader:
    """Decodes the values of messages by one schema. Any thread may call."""

    def __init__(self, client: Any, schema: Schema[Any]) -> None:
        """client: the native one, asked for the schemas of writers."""
        self._client = client
        self._schema = schema
        self._decoders: dict[tuple[str, int], Callable[[bytes], Any]] = {}

    def value(self, message: ClusterMessage) -> Any:
        schema = self._schema
        if message.has_null_value():
            return schema.value_of_none
        if schema.decoding == "bytes":
            return message.data()
        if schema.decoding == "message":
            return schema.decode_message(message)
        if schema.decoding == "version":
            return self._decoder(message)(message.data())
        return schema.decode(message.data())

    def _decoder(self, message: ClusterMessage) -> Callable[[bytes], Any]:
        version, topic = message.int_schema_version(), message.topic_name()
        found = self._decoders.get((topic, version))
        if found is None:
            writer = None
            if version >= 0:
                asked = self._client.get_schema_info
                writer = official.schema_of(official.call(topic, asked, topic, version), version)
            found = self._decoders[(topic, version)] = self._schema.decoder(writer)
        return found


class ClusterMessage:
    """A message that was received from a cluster. Any thread may call; it never changes."""

    __slots__ = ("_note_id", "_reader", "native")

    @staticmethod
    def payloads(messages: Iterable[Any]) -> list[bytes]:
        """The payloads of messages that were received together."""
        return Message.payloads(messages)

    @staticmethod
    def ids(messages: Iterable[Any]) -> list[MessageId]:
        """Their ids."""
        return Message.ids(messages)

    @staticmethod
    def keys(messages: Iterable[Any]) -> list[str]:
        """Their keys."""
        return Message.keys(messages)

    def __init__(
        self,
        native: Any,
        reader: ValueReader | None,
        note_id: Callable[[MessageId, Any], object] | None = None,
    ) -> None:
        """native: what the official client gave. note_id: told an id that was asked for, and the
        native one."""
        self.native: Any = native
        self._reader = reader
        self._note_id = note_id

    def data(self) -> bytes:
        """The payload."""
        found: bytes = self.native.data()
        return found

    def size(self) -> int:
        """The length of the payload in bytes."""
        return int(self.native.length())

    def length(self) -> int:
        """Like size."""
        return self.size()

    def value(self) -> Any:
        """The payload, decoded by the schema that the consumer was made with; None for a message
        without a value."""
        return self.data() if self._reader is None else self._reader.value(self)

    def has_null_value(self) -> bool:
        """Tell whether it was sent without a value."""
        return bool(self.native.has_null_value())

    def properties(self) -> dict[str, str]:
        """The properties, a new dict."""
        return dict(self.native.properties())

    def partition_key(self) -> str:
        """The key, "" when it has none. For a key that is bytes, its base64 text."""
        return str(self.native.partition_key())

    def has_key(self) -> bool:
        """Tell whether it has a key. An empty one counts as none: the official client does not
        tell them apart."""
        return bool(self.native.partition_key())

    def has_base64_encoded_key(self) -> bool:
        """OperationNotSupported: the official client does not tell."""
        raise _untold("has_base64_encoded_key")

    def key_bytes(self) -> bytes:
        """OperationNotSupported: the official client does not tell text from bytes."""
        raise _untold("key_bytes")

    def sequence_id(self) -> int:
        """OperationNotSupported: the official client does not tell."""
        raise _untold("sequence_id")

    def ordering_key(self) -> str:
        return str(self.native.ordering_key())

    def event_timestamp(self) -> int:
        """Milliseconds since 1970; 0 when the producer said none."""
        return int(self.native.event_timestamp())

    def publish_timestamp(self) -> int:
        """Milliseconds since 1970."""
        return int(self.native.publish_timestamp())

    def deliver_at(self) -> int:
        """OperationNotSupported: the official client does not tell."""
        raise _untold("deliver_at")

    def broker_publish_timestamp(self) -> int:
        """0: the official client does not say it."""
        return 0

    def index(self) -> int:
        """-1: the official client does not say it."""
        return -1

    def message_id(self) -> MessageId:
        native_id = self.native.message_id()
        found = official.id_of(native_id)
        if self._note_id is not None:
            self._note_id(found, native_id)
        return found

    def topic_name(self) -> str:
        """Full name of the topic, or of the partition."""
        return str(self.native.topic_name())

    def redelivery_count(self) -> int:
        return int(self.native.redelivery_count())

    def schema_version(self) -> str:
        """Return the version of the schema, as the official client says it."""
        return str(self.native.schema_version())

    def int_schema_version(self) -> int:
        """The version of its schema on the topic; -1: it was written without one."""
        return int(self.native.int_schema_version())

    def producer_name(self) -> str:
        return str(self.native.producer_name())

    def encryption_context(self) -> ClusterEncryptionContext | None:
        """Return how the message was encrypted; None: it was not."""
        context = self.native.encryption_context()
        return None if context is None else ClusterEncryptionContext(self.native, context)

    def __repr__(self) -> str:
        return (
            f"Message(id={official.id_of(self.native.message_id())}, topic={self.topic_name()!r}, "
            f"key={self.partition_key()!r}, size={self.size()})"
        )


class ClusterEncryptionContext:
    """Says how a message of a cluster was encrypted."""

    __slots__ = ("_context", "_message")

    def __init__(self, message: Any, context: Any) -> None:
        """message: the native one, which must outlive its context."""
        self._message = message
        self._context = context

    def keys(self) -> list[EncryptionKey]:
        return [
            EncryptionKey(each.key, each.value(), dict(each.metadata))
            for each in list(self._context.keys())
        ]

    def param(self) -> bytes:
        found: bytes = self._context.param()
        return found

    def algorithm(self) -> str:
        return str(self._context.algorithm())

    def compression_type(self) -> CompressionType:
        return CompressionType(int(self._context.compression_type()))

    def uncompressed_message_size(self) -> int:
        return int(self._context.uncompressed_message_size())

    def batch_size(self) -> int:
        return int(self._context.batch_size())

    def is_decryption_failed(self) -> bool:
        return bool(self._context.is_decryption_failed())


def _untold(name: str) -> errors.OperationNotSupported:
    return errors.OperationNotSupported(
        detail=f"{name} of a message of a cluster: the official client does not tell it"
    )
