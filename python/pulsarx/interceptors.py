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
        "transaction",
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
        *,
        transaction: Any = None,
    ) -> None:
        """Take the arguments of `send`.

        Args:
            content: The value, as the schema takes it: bytes without one. None is a message without
                a value.
            properties: Names and values of the application.
            partition_key: Selects the partition and, on Key_Shared, the consumer; compaction keeps
                the last message of each.
            ordering_key: Selects the consumer on Key_Shared in place of the key.
            sequence_id: Its number, with which deduplication knows it again; None: the next one.
            replication_clusters: Kept with the message, and without effect.
            disable_replication: Kept with the message, and without effect.
            event_timestamp: Its time for the application, in milliseconds since 1970.
            deliver_at: The time before which Shared and Key_Shared subscriptions do not get it, in
                milliseconds since 1970.
            deliver_after: How much later than now they get it.
            transaction: What it belongs to: it is seen when that is committed. None: it counts by
                itself.
        """
        self.content: Any = content
        self.properties: dict[str, str] | None = properties
        self.partition_key: str | None = partition_key
        self.ordering_key: str | None = ordering_key
        self.sequence_id: int | None = sequence_id
        self.replication_clusters: list[str] | None = replication_clusters
        self.disable_replication: bool = disable_replication
        self.event_timestamp: int | None = event_timestamp
        self.deliver_at: int | None = deliver_at
        self.deliver_after: timedelta | None = deliver_after
        self.transaction: Any = transaction

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `send` by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return f"OutgoingMessage({self.content!r}, partition_key={self.partition_key!r})"


class ProducerInterceptor:
    """Base of `create_producer(interceptors=[...])`. Override what you need."""

    def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage | None:
        """Change or replace a message before it is encoded and its partition is chosen. What it
        raises is logged.

        Args:
            producer: The one that sends.
            message: The arguments of `send`, or what the interceptor before this one returned.

        Returns:
            The message to send; None for this one.
        """
        return message

    def on_send_acknowledgement(
        self,
        producer: Any,
        message: OutgoingMessage,
        message_id: MessageId | None,
        exception: Exception | None,
    ) -> None:
        """Take note that a message is stored, before its caller is told. What it raises is logged.

        Args:
            producer: The one that sends.
            message: What was sent.
            message_id: Its id; None: it is not stored.
            exception: Why it is not stored; None: it is.
        """


class ConsumerInterceptor:
    """Base of `subscribe(interceptors=[...])`. Override what you need."""

    def before_consume(self, consumer: Any, message: Message) -> object:
        """Take note of a message before the caller of `receive`, or the listener, gets it. What it
        raises is logged.

        Args:
            consumer: The one that receives.
            message: As it was received. It never changes.

        Returns:
            Anything; it does not matter.
        """

    def on_acknowledge(
        self, consumer: Any, message_id: MessageId, exception: Exception | None
    ) -> None:
        """Take note that a message was acknowledged, by `reconsume_later` too. What it raises is
        logged.

        Args:
            consumer: The one that acknowledges.
            message_id: The id of the message.
            exception: Why it was not acknowledged; None: it was.
        """

    def on_acknowledge_cumulative(
        self, consumer: Any, message_id: MessageId, exception: Exception | None
    ) -> None:
        """Take note that everything up to a message was acknowledged. What it raises is logged.

        Args:
            consumer: The one that acknowledges.
            message_id: The id of the last message.
            exception: Why they were not acknowledged; None: they were.
        """

    def on_negative_acks_send(self, consumer: Any, message_ids: set[MessageId]) -> None:
        """Take note that messages were negatively acknowledged; they come again later. What it
        raises is logged.

        Args:
            consumer: The one that refuses them.
            message_ids: The ids of the messages.
        """
