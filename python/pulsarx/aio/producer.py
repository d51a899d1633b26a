"""A producer of asyncio: what `aio.Client.create_producer` returns."""

from __future__ import annotations

from pulsarx._pycore.publish.loop_send import LoopSender
from pulsarx.aio.control_call import perform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    from pulsarx.message_id import MessageId


class Producer:
    """Publishes messages to one topic. It may be used in several loops at once."""

    def __init__(self, producer: Any, batching_enabled: bool) -> None:
        """producer: one whose sends are queued where others wait."""
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
    ) -> MessageId:
        """Publish one message and return its MessageId once it is as durable as the client was
        opened for. With batching, which is on by default, it goes out with its batch: when the loop
        has come to where nothing more is sent, at the latest after batching_max_publish_delay_ms.

        Messages are in the order in which their sends began. While the queue or the memory limit is
        full (with block_if_queue_full), or a quota or publish rate holds the producer, the
        coroutine waits and the loop goes on; cancelled then, it sends nothing. A send that is
        cancelled later may be stored all the same; with interceptors, also one that waits.
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
        )
        return message_id

    async def flush(self) -> None:
        """Send the open batch and return when everything sent is durable. Sends that wait for room
        are not part of it."""
        await perform(self._producer.flush)

    async def close(self) -> None:
        """Send the open batch, wait until it is durable and unregister. Sends that wait for room
        get
        AlreadyClosed, as does a second close."""
        await perform(self._producer.close)

    def topic(self) -> str:
        """Return the full name of the topic."""
        name: str = self._producer.topic()
        return name

    def producer_name(self) -> str:
        """Return the given name, or the generated one."""
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
