"""A consumer of asyncio: what `aio.Client.subscribe` returns."""

from __future__ import annotations

import asyncio

from pulsarx import errors
from pulsarx.aio.control_call import perform
from pulsarx.aio.receiving import Receiving
from pulsarx.aio.transaction import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.aio.transaction import Transaction
    from pulsarx.message_id import MessageId, MessageIndex

RECEIVING = ("receive", "batch_receive")


class Consumer(Receiving):
    """Receives the messages of one subscription. It may be used in several loops at once.

    `async for message in consumer` goes on until the consumer is closed.
    """

    def __init__(self, consumer: Any) -> None:
        """Use `Client.subscribe`.

        Args:
            consumer: The one behind it.
        """
        super().__init__(consumer)
        self._consumer = consumer

    async def receive(self) -> Message:
        """Return the next message; wait until there is one. Several calls are served in their
        order. Cancelling it loses nothing: no message was taken for it.

        Raises:
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: An entry is damaged; the next call goes on behind it.
            UnreadableEntryError: An entry cannot be decompressed here, or is too large; its
                messages stay unacknowledged.
            InvalidConfiguration: The consumer has a listener.

        Durability:
            With durability `sync` only messages that are on the device are received.

        Example:
            message = await consumer.receive()
            await consumer.acknowledge(message)
        """
        message: Message = await self._next()
        return message

    async def batch_receive(self) -> list[Message]:
        """Return messages until a bound of the batch receive policy is reached: number, bytes or
        time (real), whichever comes first.

        Cancelled, it gives back the messages it took; on an Exclusive or Failover subscription all
        later messages that were delivered come again, too.

        Returns:
            The messages, in order; empty when none came in time, and without a receiver queue.

        Raises:
            AlreadyClosed: The consumer is closed, also while it waits.
            CorruptDataError: As receive_many.
            InvalidConfiguration: The consumer has a listener.

        Example:
            for message in await consumer.batch_receive():
                await consumer.acknowledge(message)
        """
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
        self,
        message: Message | MessageId | Iterable[Message | MessageId],
        transaction: Transaction | None = None,
    ) -> None:
        """Mark one message, or each of a list, as processed: it is never delivered on this
        subscription again.

        Args:
            message: A Message of this consumer or a MessageId, or a list of them; the id of a whole
                batch acknowledges all of it. The id of a trimmed message changes nothing.
            transaction: Acknowledge in this transaction: nobody is delivered the message while it
                is open, a commit acknowledges it, and after an abort it comes again, counted as
                redelivered. Until then it is in the backlog, but no limit of unacknowledged
                messages counts it.

        Raises:
            OperationNotSupported: An id without its topic, on a consumer of several topics.
            NotAllowedError: The topic never had such a message; or a transaction, on a topic that
                is not persistent.
            TransactionConflict: The message is acknowledged already, or in a transaction that is
                open, this one included; or it lies before one that another transaction acknowledged
                cumulatively.
            InvalidTxnStatusError: The transaction is not open any more, or not this client's.
            TypeError: message is neither a Message nor a MessageId.
            StorageFullError: There is no room for it, and none in reserve.
            AlreadyClosed: The consumer is closed.

        Durability:
            It survives a kill of the process; a power cut may lose those of the last flush
            interval, and their messages are delivered again.

        Example:
            message = await consumer.receive()
            await consumer.acknowledge(message)
        """
        if transaction is not None:
            many = isinstance(message, (list, tuple))
            call = self._consumer.acknowledge_many if many else self._consumer.acknowledge
            await perform(call, message, plain(transaction))
        elif isinstance(message, (list, tuple)):
            self._consumer.acknowledge_many(message)
        else:
            self._consumer.acknowledge(message)

    async def acknowledge_cumulative(
        self, message: Message | MessageId, transaction: Transaction | None = None
    ) -> None:
        """Mark this message and every one before it on its topic as processed.

        Args:
            message: As acknowledge.
            transaction: As acknowledge, for all these messages. A later message moves it.

        Raises:
            CumulativeAcknowledgementNotAllowedError: The subscription is Shared or Key_Shared.
            InvalidConfiguration: It is, and a transaction is given.
            OperationNotSupported: As acknowledge.
            NotAllowedError: As acknowledge.
            TransactionConflict: All of it is acknowledged already, or in this transaction; or
                another transaction has acknowledged some of it, or cumulatively.
            InvalidTxnStatusError: As acknowledge.
            AlreadyClosed: The consumer is closed.

        Durability:
            As acknowledge.
        """
        if transaction is not None:
            await perform(self._consumer.acknowledge_cumulative, message, plain(transaction))
        else:
            self._consumer.acknowledge_cumulative(message)

    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message delivered again after negative_ack_redelivery_delay_ms, or nack_backoff.

        On Exclusive and Failover all later unacknowledged messages are delivered again too, in
        order, and that one alone counts as redelivered; on Shared and Key_Shared that message
        alone. Refusals within 256 milliseconds, or a quarter of the delay, come again together.

        Args:
            message: As acknowledge. One that is of no topic of this consumer changes nothing, nor
                does any when the consumer is closed.

        Raises:
            TypeError: message is neither a Message nor a MessageId.

        Durability:
            The message stays unacknowledged, whatever happens. Its redelivery count survives
            restarts and kills.
        """
        self._consumer.negative_acknowledge(message)

    async def reconsume_later(
        self, message: Message, delay_ms: int, properties: dict[str, str] | None = None
    ) -> None:
        """Publish a message to the retry letter topic, to come again later, and acknowledge it. Not
        in the official client; needs `subscribe(retry_enable=True)`.

        RECONSUMETIMES of its properties counts how often it was asked for; above
        max_redeliver_count of the dead letter policy (16 without one) the message goes to the dead
        letter topic instead. If publishing fails the message is delivered again at once, and the
        error is raised.

        Args:
            message: A message of this consumer.
            delay_ms: After how many milliseconds it comes again.
            properties: Added to those of the message.

        Raises:
            InvalidConfiguration: The consumer was made without retry_enable.
            NotAllowedError: The message is of a topic that this consumer does not have.
            StorageFullError: There is no room for the letter.
            TypeError: An argument is of the wrong type.
            ValueError: delay_ms is negative or too large.
            AlreadyClosed: The consumer is closed.

        Durability:
            The letter is as durable as after send before the message is acknowledged: after a kill
            it may be there twice, and is never lost.
        """
        await perform(self._consumer.reconsume_later, message, delay_ms, properties)

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge. When it is
        closed that does nothing."""
        self._consumer.redeliver_unacknowledged_messages()

    async def seek(self, messageid: MessageId | MessageIndex | int) -> None:
        """Move the subscription: to behind a message id, to a message by its index, or to the first
        one published at a time.

        Before the first message of the topic it is the first, beyond the last the end. With several
        topics, a time, earliest and latest move all of them, an id its own alone. Everything before
        counts as acknowledged from now on.

        Args:
            messageid: A MessageId (`MessageId.earliest`, `MessageId.latest`; the message itself is
                delivered again only with `start_message_id_inclusive=True`), a MessageIndex, whose
                message is delivered next, or a publish time in milliseconds since 1970.

        Raises:
            OperationNotSupported: A non-persistent topic; an id that is of no topic of this
                consumer; or an index with several topics or partitions, of which each has its own.
            ValueError: messageid is neither an id, an index nor an int.
            TypeError: The time is out of bounds.
            AlreadyClosed: The consumer is closed.

        Durability:
            The new position is on the device when this returns.

        Example:
            await consumer.seek(pulsarx.MessageId.earliest)
        """
        await perform(self._consumer.seek, messageid)

    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        Raises:
            OperationNotSupported: On several topics, as in the official client, and on
                non-persistent ones.
            AlreadyClosed: The consumer is closed.
        """
        found: MessageId = await perform(self._consumer.get_last_message_id)
        return found

    async def unsubscribe(self) -> None:
        """Delete the subscription and close the consumer: its messages are no longer held.

        Raises:
            BrokerMetadataError: Other consumers are attached to it; nothing changed.
            AlreadyClosed: The consumer is closed, or a second call, unless the first was
                interrupted.

        Durability:
            The deletion is on the device when this returns.
        """
        await perform(self._consumer.unsubscribe)

    async def close(self) -> None:
        """Detach from the subscription, which keeps its position. Receives that wait get
        AlreadyClosed.

        Raises:
            AlreadyClosed: A second call, unless the first was interrupted or the client closed it.

        Durability:
            The position is kept. Messages that were received and not acknowledged are delivered
            again.
        """
        await perform(self._consumer.close)

    def pause_message_listener(self) -> None:
        """Stop calling the listener after the call that runs now, until resume_message_listener.

        Raises:
            InvalidConfiguration: The consumer has no listener.
            AlreadyClosed: The consumer is closed.
        """
        if self._listening is None:
            raise errors.InvalidConfiguration(detail="the consumer has no message_listener")
        self._listening.pause()

    def resume_message_listener(self) -> None:
        """Call the listener again after pause_message_listener; no message was lost meanwhile.

        Raises:
            InvalidConfiguration: The consumer has no listener.
            AlreadyClosed: The consumer is closed.
        """
        if self._listening is None:
            raise errors.InvalidConfiguration(detail="the consumer has no message_listener")
        self._listening.resume()

    def topic(self) -> str:
        """Return the full name of the topic; for several topics all names, separated by commas."""
        name: str = self._consumer.topic()
        return name

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
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
