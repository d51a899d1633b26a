"""Interceptors: objects of users that see each message of a producer or consumer. The official
Python client has none; names and order are those of Java's.

What a method raises is logged and changes nothing: no message is lost because of it. Methods run in
the thread of the call that they are about, so they must not wait for another call of the same
producer or consumer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    from pulsarx.message import Message
    from pulsarx.message_id import MessageId


class OutgoingMessage:
    """A message that is about to be sent: the arguments of `send`, which an interceptor may
    change."""

    __slots__ = (
        "content",
        "deliver_after",
        "deliver_at",
        "disable_replication",
        "event_timestamp",
        "ordering_key",
        "partition_key",
        "properties",
        "replication_clusters",
        "sequence_id",
    )

    def __init__(
        self,
        content: Any,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> None:
        self.content = content
        self.properties = properties
        self.partition_key = partition_key
        self.ordering_key = ordering_key
        self.sequence_id = sequence_id
        self.replication_clusters = replication_clusters
        self.disable_replication = disable_replication
        self.event_timestamp = event_timestamp
        self.deliver_at = deliver_at
        self.deliver_after = deliver_after

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `send` by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return f"OutgoingMessage({self.content!r}, partition_key={self.partition_key!r})"


class ProducerInterceptor:
    """Base of `create_producer(interceptors=[...])`. Override what you need."""

    def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage | None:
        """Called before the message is encoded and its partition is chosen. Returns the message to
        send instead, or None for this one. The next interceptor gets what this one returned."""
        return message

    def on_send_acknowledgement(
        self,
        producer: Any,
        message: OutgoingMessage,
        message_id: MessageId | None,
        exception: Exception | None,
    ) -> None:
        """Called when the message is stored, before its caller is told; exception: why it is
        not."""


class ConsumerInterceptor:
    """Base of `subscribe(interceptors=[...])`. Override what you need."""

    def before_consume(self, consumer: Any, message: Message) -> object:
        """Called before the caller of `receive`, or the listener, gets the message. What it returns
        does not matter: a message that was received never changes."""

    def on_acknowledge(
        self, consumer: Any, message_id: MessageId, exception: Exception | None
    ) -> None:
        """Called for each message when it was acknowledged, by `reconsume_later` too; exception:
        why it was not."""

    def on_acknowledge_cumulative(
        self, consumer: Any, message_id: MessageId, exception: Exception | None
    ) -> None:
        """Called when everything up to a message was acknowledged; exception: why it was not."""

    def on_negative_acks_send(self, consumer: Any, message_ids: set[MessageId]) -> None:
        """Called when messages were negatively acknowledged; they come again later."""
