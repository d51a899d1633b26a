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
        """Make an error of a result.

        Args:
            result: The one that a call ended with.
            msg: More about it.
        """
        self._result = result
        self._msg = msg

    def error(self) -> Result:
        """Return the result that the call ended with."""
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
        """Use `Client.create_producer`.

        Args:
            producer: The one behind it.
            schema: The one it was made with.
        """
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

        Returns:
            The id of the message; (-1,-1,-1,-1) of one that deduplication has not stored again.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            When it returns the message is on the device with durability `sync`, and written with
            `interval` and `os`: a kill does not lose it. In a transaction it is written, and on the
            device when that is committed at the latest.
        """
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
        """Send the open batch and return when everything sent is durable. Sends that wait for room
        are not part of it.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            Everything that was sent before is as durable as after send when it returns.
        """
        await self._producer.flush()

    @_translated
    async def close(self) -> None:
        """Send the open batch, wait until it is durable and unregister. Sends that wait for room
        get AlreadyClosed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            Everything that was sent is as durable as after send when it returns.
        """
        await self._producer.close()

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._producer.topic()

    def producer_name(self) -> str:
        """Return the given name, or the generated one: the same on every partition."""
        return self._producer.producer_name()

    def last_sequence_id(self) -> int:
        """Return the sequence id of the last message that was published, -1 before the first."""
        return self._producer.last_sequence_id()

    def is_connected(self) -> bool:
        """Tell whether the producer can still be used."""
        return self._producer.is_connected()


class Consumer:
    """Receives the messages of one subscription."""

    def __init__(self, consumer: aio.Consumer, schema: Schema[Any] | None) -> None:
        """Use `Client.subscribe`.

        Args:
            consumer: The one behind it.
            schema: The one it was made with.
        """
        self._consumer = consumer
        self._schema = schema

    @_translated
    async def receive(self) -> Message:
        """Return the next message; wait until there is one. Several calls are served in their
        order. Cancelling it loses nothing: no message was taken for it.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            With durability `sync` only messages that are on the device are received.
        """
        return await self._consumer.receive()

    @_translated
    async def acknowledge(self, message: Message | MessageId) -> None:
        """Mark one message, or each of a list, as processed: it is never delivered on this
        subscription again.

        Args:
            message: A Message of this consumer or a MessageId, or a list of them; the id of a whole
                batch acknowledges all of it. The id of a trimmed message changes nothing.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            It survives a kill of the process; a power cut may lose those of the last flush
            interval, and their messages are delivered again.
        """
        await self._consumer.acknowledge(message)

    @_translated
    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Mark this message and every one before it on its topic as processed.

        Args:
            message: As acknowledge.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            As acknowledge.
        """
        await self._consumer.acknowledge_cumulative(message)

    @_translated
    async def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Have a message delivered again after negative_ack_redelivery_delay_ms, or nack_backoff.

        On Exclusive and Failover all later unacknowledged messages are delivered again too, in
        order, and that one alone counts as redelivered; on Shared and Key_Shared that message
        alone. Refusals within 256 milliseconds, or a quarter of the delay, come again together.

        Args:
            message: As acknowledge. One that is of no topic of this consumer changes nothing, nor
                does any when the consumer is closed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            The message stays unacknowledged, whatever happens. Its redelivery count survives
            restarts and kills.
        """
        await self._consumer.negative_acknowledge(message)

    @_translated
    async def unsubscribe(self) -> None:
        """Delete the subscription and close the consumer: its messages are no longer held.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            The deletion is on the device when this returns.
        """
        await self._consumer.unsubscribe()

    @_translated
    async def seek(self, messageid: MessageId | int) -> None:
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
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            The new position is on the device when this returns.
        """
        await self._consumer.seek(messageid)

    @_translated
    async def close(self) -> None:
        """Detach from the subscription, which keeps its position. Receives that wait get
        AlreadyClosed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            The position is kept. Messages that were received and not acknowledged are delivered
            again.
        """
        await self._consumer.close()

    @_translated
    async def get_last_message_id(self) -> MessageId:
        """Return the id of the last message of the topic; (-1,-1,-1,-1) when it has none.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        return await self._consumer.get_last_message_id()

    def topic(self) -> str:
        """Return the full name of the topic; for several topics all names, separated by commas."""
        return self._consumer.topic()

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._consumer.subscription_name()

    def consumer_name(self) -> str:
        """Return the given name, or the generated one."""
        return self._consumer.consumer_name()

    def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again that this consumer was given and did not acknowledge. When it is
        closed that does nothing."""
        self._consumer.redeliver_unacknowledged_messages()


class Reader:
    """Reads the messages of one topic in order."""

    def __init__(self, reader: aio.Reader, schema: Schema[Any] | None) -> None:
        """Use `Client.create_reader`.

        Args:
            reader: The one behind it.
            schema: The one it was made with.
        """
        self._reader = reader
        self._schema = schema

    @_translated
    async def read_next(self) -> Message:
        """Return the next message; wait until there is one. Cancelling it loses nothing.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        return await self._reader.read_next()

    @_translated
    async def has_message_available(self) -> bool:
        """Tell whether read_next returns at once, or waits for the dispatch rate alone.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        return await self._reader.has_message_available()

    @_translated
    async def seek(self, messageid: MessageId | int) -> None:
        """Continue behind a message id, at the message of an index, or at the first one published
        at a time.

        Args:
            messageid: A MessageId; with `start_message_id_inclusive=True` reading continues at it,
                and `MessageId.latest` means the last message. Or a MessageIndex, at which it
                continues, or a publish time in milliseconds since 1970.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        await self._reader.seek(messageid)

    @_translated
    async def close(self) -> None:
        """Stop reading. Reads that wait get AlreadyClosed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        await self._reader.close()

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._reader.topic()

    def is_connected(self) -> bool:
        """Tell whether the reader can still be used."""
        return self._reader.is_connected()


class Client:
    """A connection to the topics of one cluster's folder."""

    def __init__(self, service_url: str, **kwargs: Any) -> None:
        """Open what a URL leads to, in the calling thread.

        Args:
            service_url: As of pulsarx.Client.
            **kwargs: The other arguments of pulsarx.Client.

        Raises:
            OperationNotSupported: The URL is one of a cluster that no route leads from. All else as
                pulsarx.Client.
        """
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
        """Make a producer on a topic, which is created when it does not exist. Batching is on by
        default, as in the official client.

        Args:
            topic: A name, as `orders` or `persistent://tenant/namespace/orders`.
            producer_name: One that no other producer on the topic has; None: one is generated.
            schema: Encodes what is sent; the topic registers it, or checks it.
            initial_sequence_id: The first message gets the next number; None: numbers go on above
                the highest one that the topic knows under the name with deduplication, else from 0.
            send_timeout_millis: Milliseconds, on the client's clock, that a message may wait to be
                durable before its callback is told Timeout, or the send or flush that waits for it
                raises that; 0 and less: for ever. The message may be stored all the same.
            compression_type: How the payloads of entries are compressed: NONE, LZ4, ZLib, ZSTD or
                SNAPPY.
            max_pending_messages: Messages that may be on their way, of one topic or partition; 0:
                without limit.
            max_pending_messages_across_partitions: Messages that may be on their way on all
                partitions together.
            block_if_queue_full: Where max_pending_messages are on their way a send waits, without
                blocking the loop; else it raises ProducerQueueIsFull.
            batching_enabled: Messages that are sent while others wait are stored as one entry with
                them.
            batching_max_messages: Messages at which a batch goes out, above 1.
            batching_max_allowed_size_in_bytes: Bytes at which a batch goes out.
            batching_max_publish_delay_ms: Milliseconds, on the client's clock, after which a batch
                goes out.
            chunking_enabled: Messages larger than max_message_size go in several entries. Not with
                batching.
            message_routing_mode: How a message without a key gets its partition.
            lazy_start_partitioned_producers: The producer of a partition is made with its first
                message.
            properties: Checked, and without effect.
            batching_type: KeyBased: a batch holds messages of one key.
            encryption_key: The name of the key that encrypts; None: nothing does.
            crypto_key_reader: A CryptoKeyReader, which encryption_key needs.
            access_mode: Whether others may publish meanwhile. WaitForExclusive returns when the
                producer has the topic to itself, however long that takes.
            message_router: A function of the message and the number of partitions that returns the
                index of one.

        Returns:
            The producer. It closes with the client.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            A topic that is created survives a kill; a power cut may undo it until it has a message
            or a durable subscription.
        """
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
        """Attach to a subscription of a topic, a partitioned topic or a list of topics, made when
        it does not exist.

        Args:
            topic: A name, a list of names, or a pattern, `re.compile("orders-.*")`.
            subscription_name: Consumers of one name share one position.
            consumer_type: How its consumers share the messages. The first consumer decides; when
                all have left, the next one may choose another.
            schema: Decodes values; the topic registers it, or checks it.
            receiver_queue_size: Messages that are pushed to a consumer before it asks for them, on
                Shared and Key_Shared; 0: none, and then no receive has a timeout.
            max_total_receiver_queue_size_across_partitions: Messages of all its topics and
                partitions together.
            consumer_name: Shown in statistics; decides among Failover consumers. None: one is
                generated.
            unacked_messages_timeout_ms: Milliseconds after which a message comes again that was not
                acknowledged, from 1000; None and 0: never.
            broker_consumer_stats_cache_time_ms: Milliseconds; checked, and without effect.
            negative_ack_redelivery_delay_ms: Milliseconds after which a message comes again that
                was negatively acknowledged.
            is_read_compacted: Read the compacted ledger, with the last message of each key.
                Exclusive and Failover alone.
            properties: Shown in statistics.
            initial_position: Where a new subscription begins; an existing one goes on.
            crypto_key_reader: A CryptoKeyReader, which decrypts.
            replicate_subscription_state_enabled: Checked, and without effect.
            max_pending_chunked_message: Incomplete messages in chunks that wait for the rest.
            auto_ack_oldest_chunked_message_on_queue_full: One incomplete message more: the oldest
                one is acknowledged; else all wait.
            start_message_id_inclusive: `seek` to an id delivers that message again.
            batch_receive_policy: A ConsumerBatchReceivePolicy, the bounds of batch_receive; None:
                10 MiB or 100 milliseconds.
            key_shared_policy: A ConsumerKeySharedPolicy; None: the broker splits the keys.
            batch_index_ack_enabled: Checked, and without effect: single messages of a batch are
                always acknowledged.
            regex_subscription_mode: The kinds of topics that a pattern matches.
            dead_letter_policy: A ConsumerDeadLetterPolicy, after how many redeliveries a message
                goes to a dead letter topic; None: it comes again and again.
            crypto_failure_action: What becomes of a message that cannot be decrypted.
            is_pattern_topic: topic is a regular expression.

        Returns:
            The consumer. It lives as long as the client, until it is closed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            A durable subscription is on the device when this returns.
        """
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
        """Read a topic from a position that the caller chooses. Nothing is acknowledged and no
        ledger is held.

        Args:
            topic: A name; the topic is created when it does not exist.
            start_message_id: Reading begins behind this message, or at `MessageId.earliest` or
                `MessageId.latest`.
            schema: Decodes values; the topic registers it, or checks it.
            receiver_queue_size: Messages; checked, and without effect.
            reader_name: Checked, and without effect.
            subscription_role_prefix: Checked, and without effect.
            is_read_compacted: Read the compacted ledger, with the last message of each key.
            crypto_key_reader: A CryptoKeyReader, which decrypts.
            start_message_id_inclusive: Begin at that message; with `MessageId.latest` at the last
                one.
            crypto_failure_action: What becomes of a message that cannot be decrypted.

        Returns:
            The reader. It lives as long as the client, until it is closed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        arguments = dict(locals())
        client = arguments.pop("self")._client
        return Reader(await client.create_reader(**arguments), schema)

    def shutdown(self) -> None:
        """Close like `close`, in the calling thread, and without an error when it is closed
        already."""
        self._client.shutdown()

    @_translated
    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the names of a topic's partitions; the topic itself when it has none, or does not
        exist.

        Args:
            topic: A name.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.
        """
        return await self._client.get_topic_partitions(topic)

    @_translated
    async def close(self) -> None:
        """Close what this client made, producers last sent messages included. Calls that wait get
        AlreadyClosed.

        Raises:
            PulsarException: The one of this module, whatever fails. `error()` is the Result, and
                the exception behind it is the one of pulsarx.

        Durability:
            What producers still held is as durable as after send.
        """
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
