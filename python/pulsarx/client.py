"""The client: opens a folder (or memory) and makes producers, consumers and readers. Start here."""

from __future__ import annotations

import os
import threading
import weakref

from pulsarx import errors
from pulsarx.broker import broker as brokers
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.topics.topic import Topic
from pulsarx.consumer import Consumer
from pulsarx.consuming.subscribing import subscribe
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
from pulsarx.listening.listener_pool import ListenerPool
from pulsarx.options.base import ClientOptions, ConsumerOptions, ProducerOptions, ReaderOptions
from pulsarx.options.not_yet import refuse_call
from pulsarx.producer import Producer
from pulsarx.reader import Reader
from pulsarx.schema import BytesSchema
from pulsarx.topic_name import TopicName, check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from pulsarx.producing.partitioned_producer import PartitionedProducer

    Member = TypeVar("Member", Producer | PartitionedProducer, Consumer, Reader)

    from pulsarx.admin import Admin
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.message_id import MessageId

_BYTES = BytesSchema()


class Client:
    """A connection to the topics of one folder. Any thread may use it; clients of one folder share
    one broker."""

    def __init__(
        self,
        service_url: str | os.PathLike[str],
        authentication: Any = None,
        operation_timeout_seconds: int = 30,
        io_threads: int = 1,
        message_listener_threads: int = 1,
        concurrent_lookup_requests: int = 50000,
        log_conf_file_path: str | None = None,
        stats_interval_in_seconds: int = 600,
        use_tls: bool = False,
        tls_trust_certs_file_path: str | None = None,
        tls_allow_insecure_connection: bool = False,
        tls_validate_hostname: bool = False,
        logger: Any = None,
        connection_timeout_ms: int = 10000,
        listener_name: str | None = None,
        tls_private_key_file_path: str | None = None,
        tls_certificate_file_path: str | None = None,
        *,
        clock: Any = None,
        randomness: Any = None,
        durability: str = "sync",
        flush_interval_ms: int = 100,
        broker_options: Any = None,
        read_only: bool = False,
    ) -> None:
        """Open a folder; it is made when it does not exist.

        service_url: a path, `file:...`, `memory:` (one broker a process, gone with its last client)
            or `memory:name`.
        durability: `sync` (a send completes when it is on the device), `interval` (flushed every
            flush_interval_ms;
            a power cut may lose that much), `os` (left to the operating system). None loses
            anything when the process
            is killed. read_only: beside an owner in another process: readers and statistics only.
        The options in between are the official client's; those about networks are checked and have
        no effect.
        Raises FolderOwnedError (another process has it; names its pid), FolderError,
        NewerFormatError,
        InvalidConfiguration (a client of this process has it open with other options), InvalidUrl.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        self._closed = True  # until it has its broker
        self._forgotten = False
        self._members: weakref.WeakSet[Producer | PartitionedProducer | Consumer | Reader] = (
            weakref.WeakSet()
        )
        self._members_lock = threading.Lock()
        self._open_producers: set[int] = set()
        self._consumer_count = 0
        self.read_only = read_only
        self._open(ClientOptions(**given))
        self._closed = False

    def _open(self, options: ClientOptions) -> None:
        """Find or open the broker."""
        self._pool = ListenerPool(options.message_listener_threads)
        self._url = options.service_url
        folder, name = self._url.folder, self._url.memory_name
        self._key = f"memory:{name}" if folder is None else os.path.realpath(folder)
        self._broker: Broker | ReadOnlyBroker
        if not options.read_only:
            settings = brokers.BrokerSettings(
                options.clock,
                options.randomness,
                options.durability,
                options.flush_interval_ms,
                options.broker_options,
            )
            self._broker = brokers.acquire(self._key, folder, settings)
            return
        existing = brokers.lend(self._key)
        if existing is not None:
            self._broker = existing
        elif folder is not None:
            from pulsarx.broker.read_only_broker import ReadOnlyBroker

            self._broker = ReadOnlyBroker(folder)
        else:
            raise errors.InvalidConfiguration(
                f"{self._url.text}: nobody in this process has it open"
            )

    def create_producer(
        self,
        topic: str,
        producer_name: str | None = None,
        schema: Any = _BYTES,
        initial_sequence_id: int | None = None,
        send_timeout_millis: int = 30000,
        compression_type: CompressionType = CompressionType.NONE,
        max_pending_messages: int = 1000,
        max_pending_messages_across_partitions: int = 50000,
        block_if_queue_full: bool = False,
        batching_enabled: bool = False,
        batching_max_messages: int = 1000,
        batching_max_allowed_size_in_bytes: int = 131072,
        batching_max_publish_delay_ms: int = 10,
        chunking_enabled: bool = False,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        lazy_start_partitioned_producers: bool = False,
        properties: dict[str, str] | None = None,
        batching_type: BatchingType = BatchingType.Default,
        encryption_key: str | None = None,
        crypto_key_reader: Any = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        message_router: Any = None,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
    ) -> Producer | PartitionedProducer:
        """Make a producer on a topic, which is created when it does not exist.

        Arguments and defaults are the official client's, and hashing_scheme: how a key chooses its
        partition. ProducerBusy: the name is taken on this topic.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        options = ProducerOptions(**given)
        broker = self._writable("create a producer")
        found = broker.lookup(TopicName.of(topic))
        producer: Producer | PartitionedProducer
        if isinstance(found, Topic):
            whole = found

            def make(name: str) -> Producer:
                return Producer(broker, whole, options, name)

            producer = whole.add_producer(options.producer_name, make)
        else:
            from pulsarx.producing.partitioned_producer import PartitionedProducer

            name = options.producer_name or broker.next_producer_name()
            producer = PartitionedProducer(broker, found, options, name)
        self._open_producers.add(id(producer))
        return self._adopt(producer)

    def subscribe(
        self,
        topic: Any,
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        schema: Any = _BYTES,
        message_listener: Any = None,
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        consumer_name: str | None = None,
        unacked_messages_timeout_ms: int | None = None,
        broker_consumer_stats_cache_time_ms: int = 30000,
        negative_ack_redelivery_delay_ms: int = 60000,
        is_read_compacted: bool = False,
        properties: dict[str, str] | None = None,
        pattern_auto_discovery_period: int = 60,
        initial_position: InitialPosition = InitialPosition.Latest,
        crypto_key_reader: Any = None,
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
        *,
        retry_enable: bool = False,
        nack_backoff: Any = None,
        ack_timeout_backoff: Any = None,
        ack_timeout_tick_ms: int = 1000,
        priority_level: int = 0,
        subscription_mode: SubscriptionMode = SubscriptionMode.Durable,
        consumer_event_listener: Any = None,
        expire_time_of_incomplete_chunked_message_ms: int = 60000,
    ) -> Consumer:
        """Attach to a subscription of a topic, a partitioned topic or a list of topics, made when
        it does not exist.

        Arguments and defaults are the official client's; those behind `*` it has not, see
        ConsumerOptions. initial_position: where a new subscription begins; an existing one goes on.
        message_listener: called with the consumer and each message in one of the client's
            message_listener_threads; when it raises, the message is negatively acknowledged.
        ConsumerBusy: it has its consumer already; of several topics none is attached then.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        options = ConsumerOptions(**given)
        check_subscription_name(options.subscription_name)
        broker = self._writable("subscribe")
        self._consumer_count += 1
        name = options.consumer_name or f"{self._consumer_count:x}-{broker.randomness.token(5)}"
        consumer = self._adopt(subscribe(self, broker, options, name, self._pool))
        consumer.start_listener()
        return consumer

    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId,
        schema: Any = _BYTES,
        reader_listener: Any = None,
        receiver_queue_size: int = 1000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        crypto_key_reader: Any = None,
        start_message_id_inclusive: bool = False,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> Reader:
        """Read a topic from behind a message id (at it with start_message_id_inclusive), or
        `MessageId.earliest`
        or `MessageId.latest`. Nothing is acknowledged and no ledger is held. Arguments as of the
        official client. reader_listener: called with the reader and each message, in one of the
        client's message_listener_threads; not with read_only, where nobody tells of new messages.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        options = ReaderOptions(**given)
        self._check_open()
        if options.reader_listener is not None and self._broker.read_only:
            raise errors.OperationNotSupported("a reader_listener in a client opened read_only")
        found = self._broker.topic(TopicName.of(topic), create=not self.read_only)
        cursor = found.reader_cursor(options.schema)
        position = found.ledger.position_of(
            options.start_message_id, options.start_message_id_inclusive
        )
        reader = self._adopt(Reader(cursor.attach(position), cursor, options, self._pool))
        reader.start_listener()
        return reader

    def create_table_view(
        self, topic: str, subscription_name: str | None = None, schema: Any = _BYTES
    ) -> None:
        """Not there in this version."""
        raise refuse_call("create_table_view", "a table view")

    def get_service_info(self) -> None:
        """Not there in this version."""
        raise refuse_call("get_service_info", "service discovery")

    def get_topic_partitions(self, topic: str) -> list[str]:
        """The names of a topic's partitions; the topic itself when it has none."""
        self._check_open()
        self._broker.refresh()
        name = TopicName.of(topic)
        count = partition_count_of(self._broker.catalogue.state, name)
        return partition_names(name, count) if count else [str(name)]

    @property
    def admin(self) -> Admin:
        """What pulsar-admin does: namespaces, topics."""
        from pulsarx.admin import Admin

        self._check_open()
        return Admin(self._broker, self.read_only)

    def _adopt(self, member: Member) -> Member:
        """Close it with the client, and keep the client as long as somebody uses it."""
        member._client = self
        with self._members_lock:
            self._members.add(member)
        if self._closed:  # by another thread, which may not have seen this member
            brokers.attempt(member.close)
            raise errors.AlreadyClosed("client")
        return member

    def _check_open(self) -> None:
        self._broker.check_open()
        if self._closed:
            raise errors.AlreadyClosed("client")

    def _writable(self, action: str) -> Broker:
        self._check_open()
        if self.read_only:
            raise errors.OperationNotSupported(f"{action}: the client was opened read_only")
        return self._broker  # type: ignore[return-value]

    def close(self) -> None:
        """Close what this client made, producers last sent messages included. A second call raises
        AlreadyClosed.

        The last client of a folder seals its ledgers and gives the folder back.
        """
        self._check_open()
        self._closed = True
        failure: Exception | None = None
        with self._members_lock:
            members = list(self._members)
        for member in members:
            if member.is_connected():
                error = brokers.attempt(member.close)
                # Others may close it too: a listener, or whoever closes what is forgotten.
                if not isinstance(error, errors.AlreadyClosed):
                    failure = error or failure
        failure = brokers.attempt(self._release) or failure
        self._pool.close()
        if failure is not None:
            raise failure

    def _release(self) -> None:
        if self._broker.read_only:
            self._broker.close()
        else:
            brokers.release(self._key, self._broker)  # type: ignore[arg-type]

    def shutdown(self) -> None:
        """As close, without a word when it is closed already."""
        if not self._closed:
            self.close()

    def _producer_closed(self, producer: Producer | PartitionedProducer) -> None:
        """The last producer of a forgotten client closes it."""
        self._open_producers.discard(id(producer))
        if self._forgotten:
            self.__del__()

    def __del__(self) -> None:
        # A client nobody closed: its producers send what they hold, the folder is given back.
        if getattr(self, "_closed", True) or self._broker.state != "OPEN":
            return
        # Forgotten together with its producers, in a cycle: they are finalized in any order, and
        # each must send first.
        self._forgotten = True
        if self._open_producers:
            return
        error = brokers.attempt(self.close)
        if error is not None:
            import logging

            logging.getLogger("pulsarx").error("closing a forgotten client failed: %s", error)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"Client({self._url.text!r}, closed={self._closed})"
