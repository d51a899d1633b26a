"""A message in the making: what `Producer.new_message` returns."""

from __future__ import annotations

import base64

from pulsarx import errors
from pulsarx._pycore.publish.outgoing_message import BytesKey, BytesOrderingKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any, Self

    from pulsarx.message_id import MessageId


class TypedMessageBuilder:
    """Describes one message and sends it, once. One thread at a time. Each method but the last two
    returns the builder."""

    def __init__(self, producer: Any) -> None:
        """Use `Producer.new_message`.

        Args:
            producer: One of a topic, or of partitions.
        """
        self._producer = producer
        self._content: Any = None
        self._described: dict[str, Any] = {}
        self._sent = False

    def value(self, value: Any) -> Self:
        """Set the content and return the builder.

        Args:
            value: As the schema of the producer takes it; None, or none said: no value.
        """
        self._content = value
        return self

    def key(self, key: str) -> Self:
        """Set the key and return the builder. Messages of one key go to one partition, in order.

        Args:
            key: The key.

        Raises:
            ValueError: It is no str.
        """
        if not isinstance(key, str):
            raise ValueError(f"key must be str, not {type(key).__name__}; see key_bytes")
        return self._with("partition_key", key)

    def key_bytes(self, key: bytes) -> Self:
        """Set a key of bytes and return the builder. `Message.key_bytes()` gives them back,
        `Message.partition_key()` their base64 text, by which the partition is chosen.

        Args:
            key: The bytes of the key.

        Raises:
            ValueError: It is not bytes.
        """
        if not isinstance(key, bytes):
            raise ValueError(f"key_bytes takes bytes, not {type(key).__name__}")
        return self._with("partition_key", BytesKey(base64.b64encode(key).decode()))

    def ordering_key(self, key: str | bytes) -> Self:
        """Set the key by which Key_Shared keeps order, in place of the partition key, and return
        the builder.

        Args:
            key: The key.

        Raises:
            ValueError: It is neither str nor bytes.
        """
        if isinstance(key, bytes):
            return self._with("ordering_key", BytesOrderingKey(key))
        if not isinstance(key, str):
            raise ValueError(f"ordering_key must be str or bytes, not {type(key).__name__}")
        return self._with("ordering_key", key)

    def property(self, name: str, value: str) -> Self:
        """Add a property and return the builder.

        Args:
            name: The name of the property.
            value: The value of the property.

        Raises:
            TypeError: One of them is no str.
        """
        return self.properties({name: value})

    def properties(self, properties: dict[str, str]) -> Self:
        """Add properties and return the builder.

        Args:
            properties: Names and values.

        Raises:
            TypeError: One of them is no str.
        """
        for name, value in properties.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(
                    f"property {errors.shown(name)}: {errors.shown(value)}: both must be str"
                )
        return self._with("properties", {**self._described.get("properties", {}), **properties})

    def event_time(self, event_time_ms: int) -> Self:
        """Set when what the message tells of happened, and return the builder.

        Args:
            event_time_ms: Milliseconds since 1970; 0: not said.

        Raises:
            ValueError: It is no int, or negative.
        """
        if not isinstance(event_time_ms, int) or event_time_ms < 0:
            raise ValueError(
                f"event_time is {errors.shown(event_time_ms)}; it must be an int, 0 or more"
            )
        return self._with("event_timestamp", event_time_ms)

    def transaction(self, transaction: Any) -> Self:
        """Send it in a transaction and return the builder.

        Args:
            transaction: What it belongs to: it is seen when that is committed.
        """
        return self._with("transaction", transaction)

    def sequence_id(self, sequence_id: int) -> Self:
        """Set the sequence id, in place of the producer's own, and return the builder.

        Args:
            sequence_id: The number.
        """
        return self._with("sequence_id", sequence_id)

    def deliver_after(self, delay: timedelta) -> Self:
        """Deliver it no earlier than so much later, on Shared and Key_Shared; return the builder.

        Args:
            delay: From now on, which may be of seconds or days.
        """
        return self._with("deliver_after", delay)

    def deliver_at(self, deliver_at_ms: int) -> Self:
        """Deliver it no earlier than at a time, on Shared and Key_Shared; return the builder.

        Args:
            deliver_at_ms: Milliseconds since 1970.
        """
        return self._with("deliver_at", deliver_at_ms)

    def replication_clusters(self, clusters: list[str]) -> Self:
        """Keep names of clusters and return the builder. Without effect: there is one cluster.

        Args:
            clusters: Names.
        """
        return self._with("replication_clusters", clusters)

    def disable_replication(self) -> Self:
        """Keep that it is not replicated and return the builder. Without effect: there is one
        cluster."""
        return self._with("disable_replication", True)

    def send(self) -> MessageId:
        """Publish the message and return its id, as `Producer.send`, which says what it raises
        besides.

        Raises:
            NotAllowedError: The builder was sent before.

        Durability:
            As of `Producer.send`.
        """
        self._take()
        sent: MessageId = self._producer.send(self._content, **self._described)
        return sent

    def send_async(self, callback: Callable[..., object] | None) -> None:
        """Publish the message without waiting, as `Producer.send_async`, which says what it raises
        besides.

        Args:
            callback: As of `Producer.send_async`.

        Raises:
            NotAllowedError: The builder was sent before.

        Durability:
            As of `Producer.send_async`.
        """
        self._take()
        self._producer.send_async(self._content, callback, **self._described)

    def _with(self, name: str, value: Any) -> Self:
        self._described[name] = value
        return self

    def _take(self) -> None:
        if self._sent:
            raise errors.NotAllowedError(
                detail="send a message builder twice; make another message"
            )
        self._sent = True
