from collections.abc import Iterable
from typing import Any, Generic, final

from typing_extensions import TypeVar

from pulsarx._pycore.message.encryption_context import EncryptionContext
from pulsarx._pycore.message.message_id import MessageId

T = TypeVar("T", default=Any)

@final
class Message(Generic[T]):
    def data(self) -> bytes:
        """Return the payload, copied out of the ledger at each call; `b""` for a message without a
        value."""
    def _repr_html_(self) -> str:
        """Show the message in a notebook; of its value the first bytes."""
    @staticmethod
    def payloads(messages: Iterable[Message[Any]]) -> list[bytes]:
        """Return the payloads of messages that were received together, in one pass: a third of the
        time of a `data` each. Not in the official client.

        Args:
            messages: As receive_many, batch_receive or read_many return them.

        Returns:
            A payload a message, in their order, copied.

        Example:
            messages = consumer.receive_many(1000, timeout_millis=1000)
            lines = pulsarx.Message.payloads(messages)
        """
    @staticmethod
    def ids(messages: Iterable[Message[Any]]) -> list[MessageId]:
        """Return the places of messages that were received together, in one pass. Not in the
        official client.

        Args:
            messages: As of payloads.

        Returns:
            A message id a message, in their order.
        """
    @staticmethod
    def keys(messages: Iterable[Message[Any]]) -> list[str]:
        """Return the keys of messages that were received together, in one pass. Not in the official
        client.

        Args:
            messages: As of payloads.

        Returns:
            A key a message, `""` where it has none, in their order.
        """
    def size(self) -> int:
        """Return the bytes of the payload, without copying it."""
    def length(self) -> int:
        """Return the bytes of the payload, like size; the name that `_pulsar` has."""
    def value(self) -> T:
        """Return the payload decoded by the schema the consumer was made with, once. A message
        without a value has None, with BytesSchema b"", with StringSchema "". What the schema cannot
        decode raises at each call.

        Raises:
            ValueError: The schema cannot decode the payload; other schemas may raise others.
        """
    @property
    def _message(self) -> Message[T]:
        """The native message, as programs take it out of the official client's."""
    def has_null_value(self) -> bool:
        """Tell whether it was sent without a value (`send(None)`), which is not the same as an
        empty one."""
    def properties(self) -> dict[str, str]:
        """Return the properties, a new dict of str to str at each call."""
    def partition_key(self) -> str:
        """Return the key, `""` when it has none."""
    def has_key(self) -> bool:
        """Tell whether it was sent with a key."""
    def has_base64_encoded_key(self) -> bool:
        """Tell whether partition_key is the base64 text of a key that is bytes."""
    def key_bytes(self) -> bytes:
        """Return the key as bytes, `b""` when it has none."""
    def ordering_key(self) -> str:
        """Return the ordering key, `""` when it has none."""
    def event_timestamp(self) -> int:
        """Return the event time in milliseconds since 1970, 0 when none was given."""
    def publish_timestamp(self) -> int:
        """Return when its batch was begun by the producer, in milliseconds since 1970."""
    def deliver_at(self) -> int:
        """Return when it was to be delivered at the earliest, in milliseconds since 1970; 0 when
        no delay was given. Not in the official client."""
    def broker_publish_timestamp(self) -> int:
        """Return when the broker stored it, in milliseconds since 1970; 0 where it was stored while
        the option `broker_entry_metadata_interceptors` had no
        `AppendBrokerTimestampMetadataInterceptor`."""
    def index(self) -> int:
        """Return its number among all messages that its topic or partition ever had, from 0; -1 on
        a non-persistent topic.

        It stays the same when messages in front are trimmed, compacted or offloaded. A message in
        chunks counts as many as it has chunks, and its index is that of the last one.
        """
    def message_id(self) -> MessageId:
        """Return the place where it is stored: ledger, entry, batch index."""
    def topic_name(self) -> str:
        """Return the full name of the topic it came from."""
    def redelivery_count(self) -> int:
        """Return the number of times it was handed out before because a consumer asked for it
        again. It survives restarts and kills."""
    def schema_version(self) -> str:
        """Return the version of the schema it was written with: eight bytes, big-endian, as
        characters; `""` when it was written without one."""
    def int_schema_version(self) -> int:
        """Return the version of the schema as a number; -1 when it was written without one. The
        name of `_pulsar`."""
    def producer_name(self) -> str:
        """Return the name of the producer that sent it."""
    def sequence_id(self) -> int:
        """Return the producer's sequence id of this message."""
    def encryption_context(self) -> EncryptionContext | None:
        """Return how its producer encrypted it; None: not at all."""
