"""A consumer of asyncio: what `aio.Client.subscribe` returns."""

from __future__ import annotations

import asyncio

from pulsarx import errors
from pulsarx.aio.control_call import perform
from pulsarx.aio.receiving import Receiving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.message_id import MessageId

RECEIVING = ("receive", "batch_receive")


class Consumer(Receiving):
    """Receives the messages of one subscription. It may be used in several loops at once.

    `async for message in consumer` goes on until the consumer is closed.
    """

    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer)
        self._consumer = consumer

    async def receive(self) -> Message:
        """Return the next message; wait until there is one. Several calls are served in their
        order.

        Cancelling it loses nothing: no message was taken for it. Raises AlreadyClosed,
        CorruptDataError (a damaged entry; the next call goes on behind it).
        """
        message: Message = await self._next()
        return message

    async def batch_receive(self) -> list[Message]:
        """Return messages until a bound of the batch receive policy is reached: number, bytes or
        time (real), whichever comes first. Cancelled, it gives back the messages it took; on an
        Exclusive or Failover subscription all later messages that were delivered come again, too.
        Empty without a receiver queue."""
        if self._consumer._options.receiver_queue_size == 0:
            self._consumer.require_open()
            return []
        most, most_bytes, most_ms = self._consumer._batch_bounds
        found: list[Message] = []
        size = 0
        try:
            async with asyncio.timeout(None if most_ms is None else most_ms / 1000):
                while len(found) < most and size < most_bytes:
                    message = await self._next()
                    length = len(message.data())
                    if found and size + length > most_bytes:
                        self._give_back([message])
                        break
                    found.append(message)
                    size += length
        except TimeoutError:
            pass
        except errors.CorruptDataError:
            if not found:
                raise  # what was taken before must not be lost; the log tells of the damage
        except BaseException:
            if found and self._consumer.is_open:
                self._give_back(found)
            raise
        return found

    async def acknowledge(
        self, message: Message | MessageId | Iterable[Message | MessageId]
    ) -> None:
        """Mark one message, or each of a list, as processed. See pulsarx.Consumer.acknowledge."""
        if isinstance(message, (list, tuple)):
            self._consumer.acknowledge_many(message)
        else:
            self._consumer.acknowledge(message)

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Mark this message and every one before it on its topic as processed."""
        self._consumer.acknowledge_cumulative(message)

    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message delivered again after negative_ack_redelivery_delay_ms."""
        self._consumer.negative_acknowledge(message)

    async def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        """Publish a message to the retry letter topic, to come again after delay_ms, and
        acknowledge it. See pulsarx.Consumer.reconsume_later."""
        await perform(self._consumer.reconsume_later, message, delay_ms, properties)

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge."""
        self._consumer.redeliver_unacknowledged_messages()

    async def seek(self, messageid: MessageId | int) -> None:
        """Move the subscription to behind a message id, or to a publish time in ms. See
        pulsarx.Consumer.seek."""
        await perform(self._consumer.seek, messageid)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none."""
        found: MessageId = await perform(self._consumer.get_last_message_id)
        return found

    async def unsubscribe(self) -> None:
        """Delete the subscription and close the consumer."""
        await perform(self._consumer.unsubscribe)

    async def close(self) -> None:
        """Detach from the subscription, which keeps its position. Receives that wait get
        AlreadyClosed."""
        await perform(self._consumer.close)

    def pause_message_listener(self) -> None:
        """Stop calling the listener after the call that runs now, until resume_message_listener."""
        if self._listening is None:
            raise errors.InvalidConfiguration(detail="the consumer has no message_listener")
        self._listening.pause()

    def resume_message_listener(self) -> None:
        """Call the listener again after pause_message_listener; no message was lost meanwhile."""
        if self._listening is None:
            raise errors.InvalidConfiguration(detail="the consumer has no message_listener")
        self._listening.resume()

    def topic(self) -> str:
        """Return the full name of the topic; for several topics all names, separated by commas."""
        name: str = self._consumer.topic()
        return name

    def subscription_name(self) -> str:
        name: str = self._consumer.subscription_name()
        return name

    def consumer_name(self) -> str:
        """Return the given name, or the generated one."""
        name: str = self._consumer.consumer_name()
        return name

    def is_connected(self) -> bool:
        """Tell whether the consumer can still be used."""
        return bool(self._consumer.is_connected())

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Message:
        message: Message = await self._next_of_iteration()
        return message

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.is_connected():
            await self.close()

    def __repr__(self) -> str:
        return f"aio.{self._consumer!r}"
