"""The client of asyncio: opens a folder (or memory) and makes producers, consumers and readers."""

from __future__ import annotations

import re

from pulsarx import client as ours
from pulsarx import errors
from pulsarx.aio.consumer import RECEIVING, Consumer
from pulsarx.aio.control_call import perform, wait_until_told
from pulsarx.aio.producer import Producer
from pulsarx.aio.reader import READING, Reader
from pulsarx.aio.table_view import TableView
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
    from collections.abc import Awaitable, Callable
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.admin import Admin
    from pulsarx.interceptors import ConsumerInterceptor, ProducerInterceptor
    from pulsarx.message_id import MessageId
    from pulsarx.options.authentication import CryptoKeyReader
    from pulsarx.schema.schema import Schema

    MessageListener = Callable[[Consumer, Message], Awaitable[object] | object]
    ReaderListener = Callable[[Reader, Message], Awaitable[object] | object]


class Client:
    """A connection to the topics of one folder. It may be used in several loops at once."""

    def __init__(self, service_url: str | os.PathLike[str], **kwargs: Any) -> None:
        """Open a folder in the calling thread, as the official client does; `open` does it beside
        the loop. Arguments: as of pulsarx.Client."""
        refuse_cluster(service_url, "pulsarx.aio.Client")
        self._client = ours.Client(service_url, **kwargs)

    @classmethod
    async def open(cls, service_url: str | os.PathLike[str], **kwargs: Any) -> Client:
        """Make a client like Client(...), without blocking the loop while the folder is opened."""
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
        """Make a producer on a topic, which is created when it does not exist. Arguments as of
        pulsarx.Client.create_producer; batching is on by default, as in the official client.

        block_if_queue_full: where max_pending_messages are on their way a send waits, without
        blocking the loop; else it raises ProducerQueueIsFull.
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
        batch_receive_policy: Any = None,
        key_shared_policy: Any = None,
        batch_index_ack_enabled: bool = False,
        regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly,
        dead_letter_policy: Any = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        is_pattern_topic: bool = False,
        *,
        message_listener: MessageListener | None = None,
        pattern_auto_discovery_period: int = 60,
        retry_enable: bool = False,
        nack_backoff: Any = None,
        ack_timeout_backoff: Any = None,
        ack_timeout_tick_ms: int = 1000,
        priority_level: int = 0,
        subscription_mode: SubscriptionMode = SubscriptionMode.Durable,
        expire_time_of_incomplete_chunked_message_ms: int = 60000,
        interceptors: list[ConsumerInterceptor] | None = None,
    ) -> Consumer:
        """Attach to a subscription, made when it does not exist. Arguments as of
        pulsarx.Client.subscribe.

        is_pattern_topic: topic is a regular expression. message_listener: a function or coroutine
        function of the consumer and a message, called in this loop, one message after another;
        when it raises, the message is negatively acknowledged.
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
    ) -> Reader:
        """Read a topic from a position that the caller chooses. Arguments as of
        pulsarx.Client.create_reader.

        reader_listener: as message_listener of `subscribe`, of the reader and a message.
        OperationNotSupported: the client was opened read_only, where new messages are not
        announced.
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
        """Make a view of the last value of each key of a topic. See
        pulsarx.Client.create_table_view."""
        arguments = {"topic": topic, "subscription_name": subscription_name, "schema": schema}
        return TableView(
            await perform(
                self._client.create_table_view,
                give_back=give_back,
                **_with_schema(arguments),
            )
        )

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the names of a topic's partitions; the topic itself when it has none."""
        names: list[str] = await perform(self._client.get_topic_partitions, topic)
        return names

    @property
    def admin(self) -> Admin:
        """The administration of topics and namespaces. Its calls block: give them to
        asyncio.to_thread."""
        return self._client.admin

    async def close(self) -> None:
        """Close what this client made, producers last sent messages included. Calls that wait get
        AlreadyClosed, as does a second close."""
        await perform(self._client.close)

    def shutdown(self) -> None:
        """Close like `close`, in the calling thread, and without an error when it is closed
        already."""
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
