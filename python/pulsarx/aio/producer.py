"""A producer of asyncio: what `aio.Client.create_producer` returns."""

from __future__ import annotations

from pulsarx._pycore.publish.loop_send import LoopSender
from pulsarx.aio.control_call import perform
from pulsarx.aio.transaction import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    from pulsarx.aio.transaction import Transaction
    from pulsarx.message_id import MessageId


class Producer:
    """Publishes messages to one topic. It may be used in several loops at once."""

    def __init__(self, producer: Any, batching_enabled: bool) -> None:
        """Use `Client.create_producer`.

        Args:
            producer: One whose sends are queued where others wait.
            batching_enabled: Batches go out when the loop has come to where nothing more is sent.
        """
        self._producer = producer
        sender = LoopSender(producer.send_async, producer.send_open if batching_enabled else None)
        self._send = sender.send

    async def send(
        self,
        content: Any,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool | None = None,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        transaction: Transaction | None = None,
    ) -> MessageId:
        """Publish one message and return its MessageId once it is as durable as the client was
        opened for.

        With batching, which is on by default, it goes out with its batch: when the loop has come to
        where nothing more is sent, at the latest after batching_max_publish_delay_ms. Messages are
        in the order in which their sends began. While the queue or the memory limit is full (with
        block_if_queue_full), or a quota or publish rate holds the producer, the coroutine waits and
        the loop goes on; cancelled then, it sends nothing. A send that is cancelled later may be
        stored all the same; with interceptors, also one that waits.

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

        Returns:
            The id of the message; (-1,-1,-1,-1) of one that deduplication has not stored again.

        Raises:
            MessageTooBig: It is larger than max_message_size; nothing was stored.
            StorageFullError: There is no room; nothing was stored.
            LedgerPoisonedError: A flush failed: it may be stored or not, and the topic takes no
                more until the folder is closed and opened again.
            Timeout: It was not durable within send_timeout_millis; it may be stored all the same.
            ProducerQueueIsFull: max_pending_messages are on their way, and block_if_queue_full is
                off.
            MemoryBufferIsFull: memory_limit_bytes of the client are on their way, and
                block_if_queue_full is off.
            ProducerFenced: Another producer has taken the topic to itself.
            TopicTerminated: The topic takes no more messages.
            ProducerBlockedQuotaExceededException: The backlog is above its quota, whose policy
                refuses messages.
            NotAllowedError: deliver_at or deliver_after are further ahead than the topic allows; or
                a transaction is given, and the topic keeps no messages or is in another folder.
            CryptoError: It cannot be encrypted.
            TypeError: The schema does not take the content.
            ValueError: An argument is of the wrong type, or the schema refuses the value.
            InvalidTxnStatusError: The transaction has ended.
            AlreadyClosed: The producer is closed, as by the deletion of its topic.

        Durability:
            When it returns the message is on the device with durability `sync`, and written with
            `interval` and `os`: a kill does not lose it. In a transaction it is written, and on the
            device when that is committed at the latest.

        Example:
            message_id = await producer.send(b"one", partition_key="ada")
            print(message_id.to_text())
        """
        message_id: MessageId = await self._send(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication or False,
            event_timestamp,
            deliver_at,
            deliver_after,
            plain(transaction),
        )
        return message_id

    async def flush(self) -> None:
        """Send the open batch and return when everything sent is durable. Sends that wait for room
        are not part of it.

        Raises:
            LedgerPoisonedError: A flush failed, so what is on disk is unknown.
            StorageFullError: A message that was sent before was not stored.
            Timeout: A message was not durable within send_timeout_millis.
            AlreadyClosed: The producer is closed.

        Durability:
            Everything that was sent before is as durable as after send when it returns.
        """
        await perform(self._producer.flush)

    async def cancel(self, message_id: MessageId) -> list[str]:
        """Cancel a delayed message before it is due, for each subscription that has not got it: it
        counts as acknowledged, and is not delivered after the call.

        Args:
            message_id: What send returned. The id of a batch means all its messages.

        Returns:
            The subscriptions for which it was cancelled. For the others it is too late; those that
            are created later are not meant.

        Raises:
            NotAllowedError: It is due, delivered or acknowledged already, for every subscription;
                it was published without a delay; or there is no such message.
            OperationNotSupported: The topic is non-persistent, or of a cluster.
            AlreadyClosed: The producer is closed.

        Durability:
            It is on the device when this returns.
        """
        found: list[str] = await perform(self._producer.cancel, message_id)
        return found

    async def close(self) -> None:
        """Send the open batch, wait until it is durable and unregister. Sends that wait for room
        get AlreadyClosed.

        Raises:
            AlreadyClosed: A second call, unless the first was interrupted or the client closed it.
            LedgerPoisonedError: A flush failed, so what is on disk is unknown.
            StorageFullError: What was open was not stored.

        Durability:
            Everything that was sent is as durable as after send when it returns.
        """
        await perform(self._producer.close)

    def topic(self) -> str:
        """Return the full name of the topic."""
        name: str = self._producer.topic()
        return name

    def producer_name(self) -> str:
        """Return the given name, or the generated one: the same on every partition."""
        name: str = self._producer.producer_name()
        return name

    def last_sequence_id(self) -> int:
        """Return the sequence id of the last message that was published, -1 before the first."""
        found: int = self._producer.last_sequence_id()
        return found

    def is_connected(self) -> bool:
        """Tell whether the producer can still be used."""
        return bool(self._producer.is_connected())

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.is_connected():
            await self.close()

    def __repr__(self) -> str:
        return f"aio.{self._producer!r}"
