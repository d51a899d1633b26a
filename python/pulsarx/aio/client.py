"""The client of asyncio: opens a folder (or memory) and makes producers, consumers and readers."""

from __future__ import annotations

import asyncio
import re

from pulsarx import client as ours
from pulsarx import errors
from pulsarx.aio.consumer import RECEIVING, Consumer
from pulsarx.aio.control_call import perform, wait_until_told
from pulsarx.aio.producer import Producer
from pulsarx.aio.reader import READING, Reader
from pulsarx.aio.table_view import TableView
from pulsarx.aio.transaction import Transaction
from pulsarx.enumerations import (
    BatchingType,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    HashingScheme,
    InitialPosition,
    PartitionsRoutingMode,
    ProducerAccessMode,
    RegexSubscriptionMode,
    SubscriptionMode,
)
from pulsarx.ground.client_owner import give_back, take_back
from pulsarx.options.argument_check import check_callable
from pulsarx.options.service_url import refuse_cluster
from pulsarx.schema.schema import BYTES_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Unpack

    from pulsarx._pycore.message.message import Message
    from pulsarx.admin import Admin
    from pulsarx.interceptors import ConsumerInterceptor, ProducerInterceptor
    from pulsarx.message_id import MessageId
    from pulsarx.options.authentication import CryptoKeyReader
    from pulsarx.options.consumer_policies import (
        ConsumerBatchReceivePolicy,
        ConsumerDeadLetterPolicy,
        ConsumerKeySharedPolicy,
    )
    from pulsarx.options.members import RedeliveryBackoff
    from pulsarx.schema.schema import Schema
    from pulsarx.tables.read_options import ReadOptions, ScanOptions
    from pulsarx.tables.scan import TopicScan

    MessageListener = Callable[[Consumer, Message], Awaitable[object] | object]
    ReaderListener = Callable[[Reader, Message], Awaitable[object] | object]


class Client:
    """A connection to the topics of one folder. It may be used in several loops at once."""

    def __init__(self, service_url: str | os.PathLike[str], **kwargs: Any) -> None:
        """Open a folder in the calling thread, as the official client does; `open` does it beside
        the loop.

        Args:
            service_url: As of pulsarx.Client.
            **kwargs: The other arguments of pulsarx.Client.

        Raises:
            OperationNotSupported: The URL is one of a cluster. All else as pulsarx.Client.
        """
        refuse_cluster(service_url, "pulsarx.aio.Client")
        self._client = ours.Client(service_url, **kwargs)

    @classmethod
    async def open(cls, service_url: str | os.PathLike[str], **kwargs: Any) -> Client:
        """Make a client like Client(...), without blocking the loop while the folder is opened.

        Args:
            service_url: As of pulsarx.Client.
            **kwargs: The other arguments of pulsarx.Client.

        Returns:
            The client.

        Raises:
            OperationNotSupported: The URL is one of a cluster. All else as pulsarx.Client.

        Example:
            from pulsarx import aio

            async with await aio.Client.open("events") as client:
                producer = await client.create_producer("orders")
                await producer.send(b"one")
        """
        refuse_cluster(service_url, "pulsarx.aio.Client")
        made = cls.__new__(cls)
        made._client = await perform(
            ours.Client, service_url, give_back=ours.Client.shutdown, **kwargs
        )
        return made

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
        batching_max_allowed_size_in_bytes: int = 131072,
        batching_max_publish_delay_ms: int = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        lazy_start_partitioned_producers: bool = False,
        properties: dict[str, str] | None = None,
        batching_type: BatchingType = BatchingType.Default,
        encryption_key: str | None = None,
        crypto_key_reader: CryptoKeyReader | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        message_router: Callable[[Any, int], int] | None = None,
        *,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
        interceptors: list[ProducerInterceptor] | None = None,
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
            hashing_scheme: How a key selects its partition.
            interceptors: ProducerInterceptor objects, which see each message before it is sent and
                when it is stored.

        Returns:
            The producer. It closes with the client.

        Raises:
            ProducerBusy: The name is taken on this topic, another producer has the topic to itself,
                or it has max_producers_per_topic.
            ProducerFenced: Exclusive access was asked for, and another producer has the topic.
            TopicNotFound: There is no such topic, namespace or tenant, and it may not be created.
            TopicTerminated: The topic takes no more messages.
            InvalidTopicName: topic is no name of one.
            IncompatibleSchema: The topic refuses the schema, or asks for one.
            ProducerBlockedQuotaExceededError: The backlog of the topic is above its quota, whose
                policy holds producers back.
            ProducerBlockedQuotaExceededException: The backlog is above its quota, whose policy
                refuses messages.
            NotAllowedError: chunking_enabled on a non-persistent topic.
            InvalidConfiguration: encryption_key without a crypto_key_reader.
            ImportError: A package is missing that encryption or the schema needs.
            TypeError: An argument is of the wrong type.
            ValueError: An argument is out of bounds or, where the official client says so, of the
                wrong type, or batching and chunking are both enabled.
            OperationNotSupported: The client was opened read_only.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed, also while WaitForExclusive waits.

        Durability:
            A topic that is created survives a kill; a power cut may undo it until it has a message
            or a durable subscription.

        Example:
            producer = await client.create_producer("orders", batching_max_publish_delay_ms=5)
            await producer.send(b"one", partition_key="ada")
        """
        arguments = dict(locals())
        del arguments["self"]
        client = self._client
        made = await perform(self._begin_producer, arguments, give_back=give_back)
        while isinstance(made, tuple):
            (creation,) = made
            await wait_until_told(creation.tell, lambda: give_back(creation))  # noqa: B023
            made = await perform(client._owner.advance, creation, give_back=give_back)
        if access_mode != ProducerAccessMode.Shared:
            client._keep(made)
        return Producer(made, batching_enabled)

    def _begin_producer(self, arguments: dict[str, Any]) -> Any:
        """Like pulsarx.Client._create_producer."""
        from pulsarx.options.members import ProducerOptions

        options = ProducerOptions(**_with_schema(arguments))
        options.queues_sends = True
        self._client._require_writable("create a producer")
        return self._client._create_producer(options)

    async def subscribe(
        self,
        topic: str | list[str] | re.Pattern[str],
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
        *,
        message_listener: MessageListener | None = None,
        pattern_auto_discovery_period: int = 60,
        retry_enable: bool = False,
        nack_backoff: RedeliveryBackoff | None = None,
        ack_timeout_backoff: RedeliveryBackoff | None = None,
        ack_timeout_tick_ms: int = 1000,
        priority_level: int = 0,
        topic_priorities: dict[str, int] | None = None,
        subscription_mode: SubscriptionMode = SubscriptionMode.Durable,
        expire_time_of_incomplete_chunked_message_ms: int = 60000,
        interceptors: list[ConsumerInterceptor] | None = None,
        subscription_properties: dict[str, str] | None = None,
        selector: str | None = None,
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
            message_listener: A function or coroutine function of the consumer and a message, called
                in this loop, one message after another; when it raises, the message is negatively
                acknowledged.
            pattern_auto_discovery_period: Seconds; new topics that match a pattern are attached at
                once in a folder.
            retry_enable: Receive also what reconsume_later sent to the retry letter topic.
            nack_backoff: An object with next(redelivery_count) -> milliseconds, such as
                MultiplierRedeliveryBackoff, in place of negative_ack_redelivery_delay_ms.
            ack_timeout_backoff: One as nack_backoff, whose milliseconds come on top of
                unacked_messages_timeout_ms.
            ack_timeout_tick_ms: How many milliseconds unacked_messages_timeout_ms may be late, from
                100.
            priority_level: Consumers with a lower one come first.
            topic_priorities: Topics and integers from 0: what waits in a topic with a lower one is
                received first. Topics that it does not name come last; partitions have that of
                their topic. While a level has messages again and again, every hundredth message is
                of a level below that has some. None: topics come in turn.
            subscription_mode: A NonDurable subscription is gone with its last consumer.
            expire_time_of_incomplete_chunked_message_ms: Milliseconds after which chunks that stay
                incomplete are acknowledged.
            interceptors: ConsumerInterceptor objects, which see each message before it is received
                and when it is acknowledged.
            subscription_properties: Texts by name, kept with a subscription that has none yet.
            selector: A condition on the properties, key and times of messages in the syntax of JMS,
                such as "price > 10 AND region IN ('EU', 'US')"; what it does not match counts as
                acknowledged. It is kept as the property jms.selector of the subscription.

        Returns:
            The consumer. It lives as long as the client, until it is closed.

        Raises:
            ConsumerBusy: The subscription has its only consumer, consumers of another type, or
                max_consumers_per_subscription; of several topics none is attached then.
            ConsumerAssignError: The sticky ranges overlap those of another consumer.
            TopicNotFound: There is no such topic, namespace or tenant, and it may not be created.
            SubscriptionNotFound: There is no such subscription, and it may not be created.
            InvalidTopicName: topic is no name, or no pattern, of topics.
            IncompatibleSchema: The topic refuses the schema.
            NotAllowedError: A policy of the topic refuses the type or the rate; letters of a
                non-persistent topic; or the subscription has another selector.
            InvalidConfiguration: Options that exclude each other, such as is_read_compacted on
                Shared or of a non-persistent topic, or a receiver_queue_size of 0 with several
                topics; topic_priorities of a topic that is not subscribed to; a subscription_name
                that is empty or reserved; or a wrong selector.
            ImportError: A package is missing that decryption or the schema needs.
            TypeError: An argument is of the wrong type.
            ValueError: An argument is out of bounds or, where the official client says so, of the
                wrong type.
            OperationNotSupported: The client was opened read_only.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.

        Durability:
            A durable subscription is on the device when this returns.

        Example:
            earliest = pulsarx.InitialPosition.Earliest
            consumer = await client.subscribe("orders", "copying", initial_position=earliest)
            await consumer.acknowledge(await consumer.receive())
        """
        arguments = dict(locals())
        for name in ("self", "message_listener", "is_pattern_topic"):
            del arguments[name]
        if message_listener is not None:
            check_callable(message_listener, "message_listener")
        if is_pattern_topic and isinstance(topic, str):
            arguments["topic"] = re.compile(topic)
        consumer = Consumer(
            await perform(self._client.subscribe, give_back=take_back, **_with_schema(arguments))
        )
        if message_listener is not None:
            consumer._listen(message_listener, consumer.negative_acknowledge, RECEIVING)
        return consumer

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
        *,
        reader_listener: ReaderListener | None = None,
        selector: str | None = None,
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
            reader_listener: As message_listener of subscribe, of the reader and a message.
            selector: Read the messages alone that it matches; as of subscribe.

        Returns:
            The reader. It lives as long as the client, until it is closed.

        Raises:
            TopicNotFound: There is no such topic, namespace or tenant, and it may not be created.
            InvalidTopicName: topic is no name of one.
            InvalidConfiguration: The selector is wrong.
            IncompatibleSchema: The topic refuses the schema.
            ImportError: A package is missing that decryption or the schema needs.
            TypeError: An argument is of the wrong type.
            ValueError: An argument is out of bounds or, where the official client says so, of the
                wrong type.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.
            OperationNotSupported: The client was opened read_only, where new messages are not
                announced.

        Example:
            reader = await client.create_reader("orders", pulsarx.MessageId.earliest)
            while await reader.has_message_available():
                print((await reader.read_next()).data())
        """
        arguments = dict(locals())
        for name in ("self", "reader_listener"):
            del arguments[name]
        if reader_listener is not None:
            check_callable(reader_listener, "reader_listener")
        if self._client.read_only:
            raise errors.OperationNotSupported(
                detail="an asyncio reader in a client opened read_only"
            )
        reader = Reader(
            await perform(
                self._client.create_reader,
                give_back=give_back,
                **_with_schema(arguments),
            )
        )
        if reader_listener is not None:
            reader._listen(reader_listener, None, READING)
        return reader

    async def create_table_view(
        self, topic: str, subscription_name: str | None = None, schema: Schema[Any] | None = None
    ) -> TableView:
        """Make a view of the last value of each key of a topic, or of all partitions of one.

        Returns when what the topic holds has been read; then follows it in the client's
        message_listener_threads.

        Args:
            topic: A name; the topic is created when it does not exist.
            subscription_name: Shown in its repr only.
            schema: Decodes values; the topic registers it, or checks it.

        Returns:
            The view. It closes with the client.

        Raises:
            TopicNotFound: There is no such topic, namespace or tenant, and it may not be created.
            InvalidTopicName: topic is no name of one.
            IncompatibleSchema: The topic refuses the schema.
            OperationNotSupported: The client was opened read_only, where new messages are not
                announced.
            StorageError: The topic cannot be read.
            TypeError: An argument is of the wrong type.
            ValueError: As TypeError, where the official client says so.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.
        """
        arguments = {"topic": topic, "subscription_name": subscription_name, "schema": schema}
        return TableView(
            await perform(
                self._client.create_table_view,
                give_back=give_back,
                **_with_schema(arguments),
            )
        )

    async def read_table(
        self, topic: Any, columns: Iterable[str] | None = None, **options: Unpack[ReadOptions]
    ) -> Any:
        """Return the messages that topics hold now, as a `pyarrow.Table` with a column for each
        field of their values; of all partitions, one after the other. Not in the official client.

        The types come from the topic's schemas, all versions of them: JSON and Avro records,
        strings, bytes and numbers (one column, value). Messages of a topic without a schema are
        JSON objects, whose fields and types are found in them. Nothing is rounded, cut or left out.

        Args:
            topic: A name, a list of names, or a pattern, `re.compile("orders-.*")`.
            columns: Names of fields; None: all.
            **options: The other arguments, by their names.

        Returns:
            A `pyarrow.Table`.

        Raises:
            InvalidConfiguration: The selector is wrong.
            ValueError: A message is not of the schema, a column cannot hold its number, or an
                argument is wrong.
            OperationNotSupported: A schema has no columns.
            NotAllowedError: No message that is left has an index that is given.
            TopicNotFound: There is no such topic.
            DataLossError: Messages were removed while they were read.
            CorruptDataError: A message is damaged; of an object store, a ledger is missing.
            ImportError: pyarrow is missing.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.
        """
        return await asyncio.to_thread(self._client.read_table, topic, columns, **options)

    async def scan(
        self, topic: Any, columns: Iterable[str] | None = None, **options: Unpack[ScanOptions]
    ) -> TopicScan:
        """Return the messages that topics hold now as a table that is read when it is used: a
        LazyFrame of Polars, a relation of DuckDB, a `pyarrow.RecordBatchReader`. No more than a few
        batches are in memory at once. Not in the official client.

        Types of values without a schema are found by reading them once, here.

        Args:
            topic: As of read_table, like all arguments but the last.
            columns: Names of fields; None: all.
            **options: The other arguments, by their names.

        Returns:
            A TopicScan.

        Raises:
            ValueError: As of read_table; values raise it when they are read.
            OperationNotSupported: A schema has no columns.
            TopicNotFound: There is no such topic.
            ImportError: pyarrow is missing.
            AlreadyClosed: The client is closed.
        """
        return await asyncio.to_thread(self._client.scan, topic, columns, **options)

    async def send_rows(
        self,
        topic: str,
        rows: Any,
        *,
        columns: Iterable[str] | None = None,
        schema: Any = None,
        key: str | None = None,
        event_time: str | None = None,
        properties: str | None = None,
        progress: Any = False,
    ) -> MessageId | None:
        """Publish a message for each row, in order. Not in the official client.

        Nothing is rounded, cut or left out. 10,000 rows are encoded, then published; a note of an
        error says how many were before.

        Args:
            topic: A name; the topic is created when it does not exist.
            rows: Dicts, or records of one class, in anything that is iterable; a data frame of
                Pandas or Polars, or whatever else has an Arrow table.
            columns: Those that become the value; None: all.
            schema: A JsonSchema, an AvroSchema or a Record class; "infer": Avro, by the types of
                the columns (of rows that are dicts, all are looked at first); None: that of the
                topic, or of the records; without one a table whose types JSON does not all have
                (times, dates, decimals, bytes) is Avro as by "infer", if the topic is new or empty,
                and other rows are JSON objects.
            key: The column of the keys, of str. It stays in the value unless columns leaves it out,
                as do the next two.
            event_time: The column of the event times: datetime with a zone, or milliseconds since
                1970.
            properties: The column of the properties: dicts of str.
            progress: True for a bar on the standard error output, or a callable (done, all).

        Returns:
            The id of the last message; None when there is no row.

        Raises:
            TypeError: A row, or a column that JSON has nothing for, is not of the schema; the text
                names it.
            ValueError: As TypeError, of a value; or an argument is wrong.
            OperationNotSupported: The schema is no record; or the client was opened read_only.
            MessageTooBig: A row is too large.
            StorageFullError: There is no room.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.

        Durability:
            All rows are as durable as after send when it returns.
        """
        return await asyncio.to_thread(
            self._client.send_rows,
            topic,
            rows,
            columns=columns,
            schema=schema,
            key=key,
            event_time=event_time,
            properties=properties,
            progress=progress,
        )

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the names of a topic's partitions; the topic itself when it has none, or does not
        exist.

        Args:
            topic: A name.

        Raises:
            InvalidTopicName: topic is no name of one.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.
        """
        names: list[str] = await perform(self._client.get_topic_partitions, topic)
        return names

    @property
    def admin(self) -> Admin:
        """The administration of topics and namespaces. Its calls block: give them to
        asyncio.to_thread.

        Raises:
            AlreadyClosed: The client is closed.
        """
        return self._client.admin

    async def new_transaction(self, timeout_millis: int = 60_000) -> Transaction:
        """Open a transaction: what is sent and acknowledged in it counts together, or not at all.

        Args:
            timeout_millis: Milliseconds, on the client's clock, after which it is aborted unless it
                has ended; 1 and more.

        Returns:
            The transaction, to be given to send and acknowledge. It is aborted when the client
            closes, when its process ends and, of a folder that another process owns, when that one
            leaves it.

        Raises:
            ValueError: timeout_millis is not 1 and more, or above the broker's highest timeout.
            NotAllowedError: As many are open as `max_active_transactions_per_coordinator` allows.
            OperationNotSupported: The client was opened read_only.
            AlreadyClosed: The client is closed.

        Example:
            async with await client.new_transaction() as txn:
                message = await consumer.receive()
                await producer.send(message.data().upper(), transaction=txn)
                await consumer.acknowledge(message, transaction=txn)
        """
        made = await perform(self._client.new_transaction, timeout_millis, give_back=give_back)
        return Transaction(made)

    async def close(self) -> None:
        """Close what this client made, producers last sent messages included. Calls that wait get
        AlreadyClosed.

        Raises:
            AlreadyClosed: It is closed already. A call whose first try was interrupted finishes the
                work.
            LedgerPoisonedError: A flush has failed before: what was not confirmed may be there or
                not.
            StorageError: What a producer still held cannot be stored.

        Durability:
            What producers still held is as durable as after send.
        """
        await perform(self._client.close)

    def shutdown(self) -> None:
        """Close like `close`, in the calling thread, and without an error when it is closed
        already.

        Raises:
            LedgerPoisonedError: As `close`.
            StorageError: As `close`.
        """
        self._client.shutdown()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await perform(self._client.shutdown)

    def __repr__(self) -> str:
        return f"aio.{self._client!r}"


def _with_schema(arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments["schema"] is None:
        arguments["schema"] = BYTES_SCHEMA
    return arguments
