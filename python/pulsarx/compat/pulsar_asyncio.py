"""The surface of the official client's module `pulsar.asyncio`, over pulsarx.aio: the same names,
signatures and exception. What pulsarx.aio has besides is not here."""

from __future__ import annotations

from functools import wraps

from pulsarx import aio, errors
from pulsarx.enumerations import (
    BatchingType,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    PartitionsRoutingMode,
    ProducerAccessMode,
    RegexSubscriptionMode,
)
from pulsarx.results import Result, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any

    from pulsarx.message import Message
    from pulsarx.message_id import MessageId
    from pulsarx.options.authentication import CryptoKeyReader
    from pulsarx.options.consumer_policies import (
        ConsumerBatchReceivePolicy,
        ConsumerDeadLetterPolicy,
        ConsumerKeySharedPolicy,
    )
    from pulsarx.schema.schema import Schema


class PulsarException(Exception):
    """The exception of this module: a result, and a text that may say more."""

    def __init__(self, result: Result, msg: str | None = None) -> None:
        self._result = result
        self._msg = msg

    def error(self) -> Result:
        """The result that the call ended with."""
        return self._result

    def __str__(self) -> str:
        text = f"{self._result.value} {self._result.name}"
        return f"{text}: {self._msg}" if self._msg else text


def _translated(call: Any) -> Any:
    """The coroutine function with our exceptions as PulsarException; ours is the cause."""

    @wraps(call)
    async def translated(*arguments: Any, **named: Any) -> Any:
        try:
            return await call(*arguments, **named)
        except errors.PulsarException as error:
            told = PulsarException(result_of(error))
            if error.detail:
                told.add_note(error.detail)
            raise told from error

    return translated


class Producer:
    """Publishes messages to one topic."""

    def __init__(self, producer: aio.Producer, schema: Schema[Any] | None) -> None:
        """Not for users: see Client.create_producer."""
        self._producer = producer
        self._schema = schema

    @_translated
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
        return await self._producer.send(
            content,
            properties,
            partition_key,
            ordering_key,
            sequence_id,
            replication_clusters,
            disable_replication,
            event_timestamp,
            deliver_at,
            deliver_after,
        )

    @_translated
    async def flush(self) -> None:
        await self._producer.flush()

    @_translated
    async def close(self) -> None:
        await self._producer.close()

    def topic(self) -> str:
        return self._producer.topic()

    def producer_name(self) -> str:
        return self._producer.producer_name()

    def last_sequence_id(self) -> int:
        return self._producer.last_sequence_id()

    def is_connected(self) -> bool:
        return self._producer.is_connected()


class Consumer:
    """Receives the messages of one subscription."""

    def __init__(self, consumer: aio.Consumer, schema: Schema[Any] | None) -> None:
        """Not for users: see Client.subscribe."""
        self._consumer = consumer
        self._schema = schema

    @_translated
    async def receive(self) -> Message:
        return await self._consumer.receive()

    @_translated
    async def acknowledge(self, message: Message | MessageId) -> None:
        await self._consumer.acknowledge(message)

    @_translated
    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        await self._consumer.acknowledge_cumulative(message)

    @_translated
    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        await self._consumer.negative_acknowledge(message)

    @_translated
    async def unsubscribe(self) -> None:
        await self._consumer.unsubscribe()

    @_translated
    async def seek(self, messageid: MessageId | int) -> None:
        await self._consumer.seek(messageid)

    @_translated
    async def close(self) -> None:
        await self._consumer.close()

    @_translated
    async def get_last_message_id(self) -> MessageId:
        return await self._consumer.get_last_message_id()

    def topic(self) -> str:
        return self._consumer.topic()

    def subscription_name(self) -> str:
        return self._consumer.subscription_name()

    def consumer_name(self) -> str:
        return self._consumer.consumer_name()

    def redeliver_unacknowledged_messages(self) -> None:
        self._consumer.redeliver_unacknowledged_messages()


class Reader:
    """Reads the messages of one topic in order."""

    def __init__(self, reader: aio.Reader, schema: Schema[Any] | None) -> None:
        """Not for users: see Client.create_reader."""
        self._reader = reader
        self._schema = schema

    @_translated
    async def read_next(self) -> Message:
        return await self._reader.read_next()

    @_translated
    async def has_message_available(self) -> bool:
        return await self._reader.has_message_available()

    @_translated
    async def seek(self, messageid: MessageId | int) -> None:
        await self._reader.seek(messageid)

    @_translated
    async def close(self) -> None:
        await self._reader.close()

    def topic(self) -> str:
        return self._reader.topic()

    def is_connected(self) -> bool:
        return self._reader.is_connected()


class Client:
    """A connection to the topics of one cluster's folder."""

    def __init__(self, service_url: str, **kwargs: Any) -> None:
        self._client = aio.Client(service_url, **kwargs)

    @_translated
    async def create_producer(
        self,
        topic: str,
        producer_name: str | None = None,
        schema: Schema[Any] | None = None,
        initial_sequence_id: int | None = None,
        send_timeout_millis: int = 30000,
        compression_type: CompressionType = CompressionType.NONE,
        max_pending_messages: int = 1000,
        max_pending_messages_across_partitions: int = 50000,
        block_if_queue_full: bool = False,
        batching_enabled: bool = True,
        batching_max_messages: int = 1000,
        batching_max_allowed_size_in_bytes: int = 128 * 1024,
        batching_max_publish_delay_ms: int = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        lazy_start_partitioned_producers: bool = False,
        properties: dict[str, str] | None = None,
        batching_type: BatchingType = BatchingType.Default,
        encryption_key: str | None = None,
        crypto_key_reader: CryptoKeyReader | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        message_router: Callable[[Message, int], int] | None = None,
    ) -> Producer:
        arguments = dict(locals())
        client = arguments.pop("self")._client
        return Producer(await client.create_producer(**arguments), schema)

    @_translated
    async def subscribe(
        self,
        topic: str | list[str],
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        schema: Schema[Any] | None = None,
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        consumer_name: str | None = None,
        unacked_messages_timeout_ms: int | None = None,
        broker_consumer_stats_cache_time_ms: int = 30000,
        negative_ack_redelivery_delay_ms: int = 60000,
        is_read_compacted: bool = False,
        properties: dict[str, str] | None = None,
        initial_position: InitialPosition = InitialPosition.Latest,
        crypto_key_reader: CryptoKeyReader | None = None,
        replicate_subscription_state_enabled: bool = False,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        start_message_id_inclusive: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy | None = None,
        key_shared_policy: ConsumerKeySharedPolicy | None = None,
        batch_index_ack_enabled: bool = False,
        regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly,
        dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        is_pattern_topic: bool = False,
    ) -> Consumer:
        arguments = dict(locals())
        client = arguments.pop("self")._client
        return Consumer(await client.subscribe(**arguments), schema)

    @_translated
    async def create_reader(
        self,
        topic: str,
        start_message_id: MessageId,
        schema: Schema[Any] | None = None,
        receiver_queue_size: int = 1000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        crypto_key_reader: CryptoKeyReader | None = None,
        start_message_id_inclusive: bool = False,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> Reader:
        arguments = dict(locals())
        client = arguments.pop("self")._client
        return Reader(await client.create_reader(**arguments), schema)

    def shutdown(self) -> None:
        self._client.shutdown()

    @_translated
    async def get_topic_partitions(self, topic: str) -> list[str]:
        return await self._client.get_topic_partitions(topic)

    @_translated
    async def close(self) -> None:
        await self._client.close()


def _set_future(future: asyncio.Future[Any], result: Result, value: Any) -> None:
    """Complete a future from any thread, unless it is done."""

    def complete() -> None:
        if future.done():
            return
        if result == Result.Ok:
            future.set_result(value)
        else:
            future.set_exception(PulsarException(result))

    future.get_loop().call_soon_threadsafe(complete)


def _set_future_v2(future: asyncio.Future[Any], value: Any) -> None:
    """Like _set_future, with a value or an error: an object with `error` and `message`."""
    result, text = getattr(value, "error", None), getattr(value, "message", None)

    def complete() -> None:
        if future.done():
            return
        if isinstance(result, Result):
            future.set_exception(PulsarException(result, text))
        else:
            future.set_result(value)

    future.get_loop().call_soon_threadsafe(complete)
