"""The client: opens a folder (or memory) and makes producers, consumers and readers. Start here."""

from __future__ import annotations

import os
import sys
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.collector_paused import call_paused
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.waits import BusyWait
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx._pycore.ground.work_pool import WorkPool
from pulsarx.clock import ManualClock
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
from pulsarx.ground import upward
from pulsarx.ground.attempt import attempt
from pulsarx.ground.client_owner import ClientOwner, Leave, give_back, take_back
from pulsarx.ground.closing import Closing
from pulsarx.ground.fork import at_fork
from pulsarx.options.base import ClientOptions
from pulsarx.options.service_url import leads_to_cluster, leads_to_store
from pulsarx.schema.schema import BYTES_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from logging import Logger
    from types import ModuleType
    from typing import Any, Unpack

    from typing_extensions import TypeVar

    from pulsarx._pycore.message.message import Message
    from pulsarx._pycore.publish.memory_limit import MemoryLimit
    from pulsarx.admin import Admin
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.broker.runtime import BrokerSettings
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.clock import ManualClock, SystemClock
    from pulsarx.consumer import Consumer
    from pulsarx.interceptors import ConsumerInterceptor, ProducerInterceptor
    from pulsarx.message_id import MessageId
    from pulsarx.options.authentication import Authentication, CryptoKeyReader
    from pulsarx.options.consumer_policies import (
        ConsumerBatchReceivePolicy,
        ConsumerDeadLetterPolicy,
        ConsumerKeySharedPolicy,
    )
    from pulsarx.options.loggers import ConsoleLogger, FileLogger
    from pulsarx.options.members import (
        ConsumerOptions,
        ProducerOptions,
        ReaderOptions,
        RedeliveryBackoff,
        TableViewOptions,
    )
    from pulsarx.options.service_info import (
        AutoClusterFailover,
        Discovery,
        ServiceInfo,
        ServiceInfoProvider,
    )
    from pulsarx.producer import Producer
    from pulsarx.producing.producer_creation import ProducerCreation
    from pulsarx.randomness import Randomness
    from pulsarx.reader import Reader
    from pulsarx.schema.schema import Schema
    from pulsarx.table_view import TableView
    from pulsarx.tables.read_options import ScanOptions
    from pulsarx.tables.reading import TableRead
    from pulsarx.tables.scan import TopicScan
    from pulsarx.topic_name import TopicName
    from pulsarx.transaction import Transaction

    Member = Producer | ProducerCreation | Consumer | Reader | TableView
    K = TypeVar("K", bound="Consumer | Reader")
    Kept = TypeVar("Kept", bound="Consumer | Producer | Reader")
    Chosen = tuple[Any, Any, "int | None", Any, str, "str | None"]  # the arguments of a Selection
    T = TypeVar("T", default=bytes)  # what values are when no schema is given

_HERE = os.path.dirname(__file__)
# In a forked child what clients had in its parent, which must not be given back there.
parents_own: list[object] = []
_coming_back = RLock()
_loaded: ModuleType | None = None


def _member_options() -> ModuleType:
    """pulsarx.options.members, which opening a client does not need. Imported in the control plane:
    what a signal handler raises in the middle of an import may be lost."""
    if _loaded is None:
        control_plane.perform(_load_member_options)
        assert _loaded is not None
    return _loaded


def _load_member_options() -> None:
    global _loaded
    from pulsarx.options import members

    _loaded = members


class Client:
    """A connection to the topics of one folder. Any thread may use it; clients of one folder share
    one broker.

    It closes at the end of a `with`, by `close`, and when the interpreter ends.

    Example:
        import pulsarx

        with pulsarx.Client("events") as client:
            producer = client.create_producer("orders")
            consumer = client.subscribe("orders", "billing")
            producer.send(b"one")
            consumer.acknowledge(consumer.receive())
    """

    _may_own = True  # at once, where its folder has lost its owner

    def __new__(cls, service_url: Any = None, *_: Any, **__: Any) -> Client:
        """A ClusterClient for the URL of a cluster that no route leads from, a StoredClient for
        that of an object store."""
        if cls is Client and isinstance(service_url, str):
            # They are Clients, and so come after this module.
            if leads_to_cluster(service_url):
                cls = upward.load("pulsarx.cluster.cluster_client").ClusterClient
            elif leads_to_store(service_url):
                cls = upward.load("pulsarx.stored_client").StoredClient
        return object.__new__(cls)

    def __init__(
        self,
        service_url: str | os.PathLike[str] | AutoClusterFailover | ServiceInfoProvider,
        authentication: Authentication | None = None,
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
        logger: Logger | ConsoleLogger | FileLogger | None = None,
        connection_timeout_ms: int = 10000,
        listener_name: str | None = None,
        tls_private_key_file_path: str | None = None,
        tls_certificate_file_path: str | None = None,
        *,
        clock: ManualClock | SystemClock | None = None,
        randomness: Randomness | None = None,
        durability: str | None = None,
        flush_interval_ms: int | None = None,
        broker_options: BrokerOptions | None = None,
        read_only: bool = False,
        memory_limit_bytes: int = 0,
        exclusive: bool = False,
        enable_busy_wait: bool = False,
    ) -> None:
        """Open a folder; it is made when it does not exist. The first process that has it open owns
        it, and others use it through that one; when it leaves, or is killed, another one owns it.

        Clients that have a folder or memory open share clock, randomness, broker_options and
        durability; one that gives none takes over what the others have. A folder with a
        ManualClock, or a Randomness of one's own, is for one process.

        Args:
            service_url: A path, `file:...`, `memory:` (one broker a process, gone with its last
                client) or `memory:name`; or what names one of them. The URL of a cluster
                (`pulsar://...`, `pulsar+ssl://...`, `http(s)://...`) leads to the folder that a
                route names, see install_as_pulsar; without a route the client is one of that
                cluster, through the package pulsar-client. The URL of an object store
                (`s3://bucket/prefix`, the owner's offload_url) leads to the history of topics that
                is there, for clients that are read_only.
            authentication: Credentials for a cluster. In a folder they are checked and have no
                effect.
            operation_timeout_seconds: How many seconds the process that owns the folder, where that
                is another one, may take to answer; 0 and less: 30.
            io_threads: Threads for the connections to a cluster; no effect in a folder.
            message_listener_threads: How many threads call listeners, and callbacks of futures.
            concurrent_lookup_requests: How many topics are looked up at once in a cluster; no
                effect in a folder.
            log_conf_file_path: The file that configures the log of a cluster's client; no effect in
                a folder.
            stats_interval_in_seconds: Seconds between lines of statistics of the cluster's client;
                no effect in a folder.
            use_tls: Connect to a cluster by TLS; no effect in a folder.
            tls_trust_certs_file_path: The authorities of a cluster's certificate (PEM); no effect
                in a folder.
            tls_allow_insecure_connection: Take any certificate of a cluster; no effect in a folder.
            tls_validate_hostname: The certificate of a cluster must be of its host; no effect in a
                folder.
            logger: A `logging.Logger`, ConsoleLogger or FileLogger for a cluster's client; a folder
                logs through `logging`, as `pulsarx`.
            connection_timeout_ms: Milliseconds to connect to a cluster; no effect in a folder.
            listener_name: The advertised listener of a cluster's brokers; no effect in a folder.
            tls_private_key_file_path: The key of this client's certificate (PEM) for a cluster; no
                effect in a folder.
            tls_certificate_file_path: This client's certificate (PEM) for a cluster; no effect in a
                folder.
            clock: A ManualClock, for tests; None: the time of day.
            randomness: Where generated names and ids come from, for tests; None: the system.
            durability: `sync`: a send completes when it is on the device; `interval`: when it is
                written, and flushed every flush_interval_ms; `os`: when it is written. No effect in
                memory. None: what the folder is open with, else `sync`.
            flush_interval_ms: Milliseconds between flushes of `interval`; None: 100.
            broker_options: A BrokerOptions; None: those of the folder.
            read_only: Beside an owner in another process: readers and statistics only, it never
                owns the folder. durability and flush_interval_ms have no effect then, as it writes
                nothing.
            memory_limit_bytes: Bytes of messages that the producers of this client may have sent
                and that are not durable yet; 0: no limit. Beyond it a send waits with
                block_if_queue_full, and else raises MemoryBufferIsFull; one message may go over it.
                send_arrow and send_columns do not count.
            exclusive: Share the folder with no other process, but for read_only clients.
            enable_busy_wait: While the client is open, calls of this process that wait, as receive,
                keep a core busy in place of sleeping: what they wait for reaches them sooner. Where
                other processes of the folder wait so too, both need a core of their own. No effect
                under gevent, nor on listeners.

        Raises:
            FolderOwnedError: Another process has the folder, and one of the two shares it with
                nobody, or it cannot be reached. The error has its `pid`.
            FolderError: The path is no data directory and cannot become one.
            NewerFormatError: A newer PulsarX has written the folder.
            CorruptDataError: The catalogue of the folder is damaged.
            StorageError: The disk refuses.
            Timeout: The process that owns the folder does not answer.
            InvalidConfiguration: The folder is open with other options; `conflicts` names them.
            InvalidUrl: service_url names no folder, memory or cluster.
            OperationNotSupported: An argument is given that a client of a cluster does not have; or
                `import pulsar` finds PulsarX in this process, and no route leads from the URL.
            ImportError: The URL is one of a cluster, and the package pulsar-client is missing.
            NotAllowedError: eventlet has replaced the threads of this process.
            TypeError: An argument is of the wrong type.
            ValueError: An argument is out of bounds or, where the official client says so, of the
                wrong type.

        Durability:
            With `sync` a power cut loses nothing confirmed; with `interval` what was confirmed in
            the last flush_interval_ms; with `os` what the operating system had not written. A
            killed process loses nothing confirmed at any level.
        """
        arguments = dict(locals())
        del arguments["self"]
        self._discovery: Discovery | None = None
        if not isinstance(service_url, (str, os.PathLike)):
            from pulsarx.options.service_info import discovery_of

            beside = {
                "authentication": authentication,
                "tls_trust_certs_file_path": tls_trust_certs_file_path,
            }
            self._discovery = discovery_of(service_url, beside)
        discovery = self._discovery
        if discovery is not None:
            arguments["service_url"] = discovery.current.service_url
        options = ClientOptions(**arguments)
        self._url = options.service_url
        self.read_only: bool = options.read_only
        self._broker: Broker | ReadOnlyBroker | None = None
        self._pool = WorkPool(options.message_listener_threads)
        self._memory_limit_bytes = options.memory_limit_bytes
        self._memory: MemoryLimit | None = None  # made with the first producer
        self._kept: dict[
            int, Consumer | Reader | Producer
        ] = {}  # id: it lives as long as the client
        self._consumer_count = 0
        self._closing = Closing()
        authenticated = options.authentication
        if discovery is not None:
            authenticated = discovery.current.authentication
        self._refusal = None if authenticated is None else authenticated.problem
        self._owner = ClientOwner(self, self._closing)
        _refuse_eventlet()
        # The first one loads modules, and nothing of them is garbage.
        control_plane.perform(call_paused, (self._open, options), self._give_back)
        try:
            if self._url.namespaces and not self.read_only:
                self._make_namespaces(self._url.namespaces)
            if discovery is not None:
                discovery.start()
        except BaseException:
            self._discovery = None  # it was not started
            self.shutdown()
            raise

    def _open(self, options: ClientOptions) -> None:
        """Find or open the broker."""
        from pulsarx.broker import registry
        from pulsarx.broker.runtime import BrokerSettings

        folder, name = self._url.folder, self._url.memory_name
        clock = options.clock
        self._key = f"memory:{name}" if folder is None else os.path.realpath(folder)
        settings = BrokerSettings(
            options.clock,
            options.randomness,
            options.durability,
            options.flush_interval_ms,
            options.broker_options,
        )
        self._options = options
        self._is_exclusive = options.exclusive
        if not options.read_only:
            self._broker = self._acquire(folder, settings, options)
            clock = self._owned().runtime.clock
        else:
            existing = registry.lend(self._key, settings)
            if existing is not None:
                self._broker = existing
                clock = existing.runtime.clock
            elif folder is not None:
                for given in ("clock", "randomness", "broker_options"):
                    if getattr(options, given) is not None:
                        raise errors.InvalidConfiguration(
                            detail=f"open {folder} read_only with {given}: it is the owner's, "
                            "which is no client of this process; leave it out"
                        )
                self._broker = _read_only_view(folder)
            else:
                raise errors.InvalidConfiguration(
                    detail=f"{self._url.text}: no client of this process has it open"
                )
        if folder is None and self._url.is_lasting:
            registry.keep(self._owned())
        self._state = self._broker.state
        self._leave = Leave(
            self._broker,
            self._release(self._broker),
            self._pool,
            self._is_exclusive,
            BusyWait() if options.enable_busy_wait else None,
        )
        # A broker of this process waits for nobody.
        seconds = _timeout_seconds(options) if self._broker.is_guest else None
        self._owner.opened(self._broker, WhenForgotten(self._broker.post, self._leave), seconds)
        if isinstance(clock, ManualClock):
            clock.settles(self._pool)

    def _release(self, broker: Broker | ReadOnlyBroker) -> Callable[[], object]:
        """A function that gives the broker back. Found now: a finalizer may call it, when nothing
        can be imported any more."""
        if broker.read_only:
            return broker.close
        if broker.is_guest:
            return partial(upward.load("pulsarx.processes.guest.folders").release, broker)
        from pulsarx.broker import registry

        return partial(registry.release, self._key, self._owned())

    def _acquire(self, folder: str | None, settings: BrokerSettings, options: ClientOptions) -> Any:
        """The broker of this process, or the one by which it uses another's."""
        from pulsarx.broker import registry

        try:
            found = registry.acquire(self._key, folder, settings)
        except errors.FolderOwnedError:
            if options.exclusive or folder is None:
                raise
            guests = upward.load("pulsarx.processes.guest.folders")
            found = guests.join(
                self._key, folder, settings, _timeout_seconds(options), self._may_own
            )
        if options.exclusive and folder is not None:
            try:
                found.exclude_others()
            except BaseException:
                registry.release(self._key, found)
                raise
        return found

    def _make_namespaces(self, names: tuple[str, ...]) -> None:
        """Make those that are not there yet, and their tenants."""
        admin = self.admin
        for name in names:
            tenant = name.partition("/")[0]
            try:
                if tenant not in admin.tenants.get_tenants():
                    admin.tenants.create_tenant(tenant)
            except errors.NotAllowedError:
                pass  # another client was first
            try:
                if name not in admin.namespaces.get_namespaces(tenant):
                    admin.namespaces.create_namespace(name)
            except errors.NotAllowedError:
                pass

    def _give_back(self, _: None) -> None:
        """Close the client, whose caller was interrupted and does not have it."""
        self._closing.finish(self._take_leave, self._owner)

    def create_producer(
        self,
        topic: str,
        producer_name: str | None = None,
        schema: Schema[T] = BYTES_SCHEMA,  # type: ignore[assignment]  # T is bytes then
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
        crypto_key_reader: CryptoKeyReader | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        message_router: Callable[[Any, int], int] | None = None,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
        interceptors: list[ProducerInterceptor] | None = None,
    ) -> Producer[T]:
        """Make a producer on a topic, which is created when it does not exist.

        Defaults are the official client's, which does not have hashing_scheme and interceptors.

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
            block_if_queue_full: Where max_pending_messages are on their way a send waits; else it
                raises ProducerQueueIsFull.
            batching_enabled: Messages of send_async wait for others and are stored as one entry.
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
            producer = client.create_producer(
                "orders", batching_enabled=True, compression_type=pulsarx.CompressionType.LZ4
            )
            producer.send_async(b"one", None, partition_key="ada")
            producer.flush()
        """
        arguments = dict(locals())
        del arguments["self"]
        options = _member_options().ProducerOptions(**arguments)
        self._require_writable("create a producer")
        made: Any = control_plane.perform(self._create_producer, (options,), give_back)
        while isinstance(made, tuple):
            made = self._wait_for_turn(*made)
        producer: Producer[T] = made
        if options.access_mode is ProducerAccessMode.Shared:
            return producer
        return self._keep(producer)  # it has its topic to itself until it is closed

    def _create_producer(self, options: ProducerOptions) -> Any:
        """The producer, or (its creation,) where it waits for its turn."""
        from pulsarx.producing.producer_creation import ProducerCreation
        from pulsarx.producing.producer_steps import producer_steps

        self._limit_memory(options)
        broker = self._owned()
        return self._owner.advance(ProducerCreation(producer_steps(broker, options), broker.post))

    def _limit_memory(self, options: ProducerOptions) -> None:
        if self._memory_limit_bytes:
            from pulsarx._pycore.publish.memory_limit import MemoryLimit

            with self._owner.lock:
                self._memory = self._memory or MemoryLimit(self._memory_limit_bytes)
            options.memory_limit = self._memory

    def _wait_for_turn(self, creation: ProducerCreation) -> Any:
        """Like _create_producer, when there is a next step to take."""
        creation.wait()
        return control_plane.perform(self._owner.advance, (creation,), give_back)

    def subscribe(
        self,
        topic: str | Iterable[str] | re.Pattern[str],
        subscription_name: str,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        schema: Schema[T] = BYTES_SCHEMA,  # type: ignore[assignment]  # T is bytes then
        message_listener: Callable[[Consumer[T], Message[T]], object] | None = None,
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
        *,
        retry_enable: bool = False,
        nack_backoff: RedeliveryBackoff | None = None,
        ack_timeout_backoff: RedeliveryBackoff | None = None,
        ack_timeout_tick_ms: int = 1000,
        priority_level: int = 0,
        topic_priorities: dict[str, int] | None = None,
        subscription_mode: SubscriptionMode = SubscriptionMode.Durable,
        consumer_event_listener: object = None,
        expire_time_of_incomplete_chunked_message_ms: int = 60000,
        interceptors: list[ConsumerInterceptor] | None = None,
        subscription_properties: dict[str, str] | None = None,
        selector: str | None = None,
    ) -> Consumer[T]:
        """Attach to a subscription of a topic, a partitioned topic or a list of topics, made when
        it does not exist.

        Defaults are the official client's; the arguments behind `*` are not in it.

        Args:
            topic: A name, a list of names, or a pattern, `re.compile("orders-.*")`.
            subscription_name: Consumers of one name share one position.
            consumer_type: How its consumers share the messages. The first consumer decides; when
                all have left, the next one may choose another.
            schema: Decodes values; the topic registers it, or checks it.
            message_listener: Called with the consumer and each message in one of the client's
                message_listener_threads; when it raises, the message is negatively acknowledged.
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
            pattern_auto_discovery_period: Seconds; new topics that match a pattern are attached at
                once in a folder.
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
            consumer_event_listener: An object with became_active(consumer, partition) and
                became_inactive(consumer, partition); partition -1: of a topic without partitions.
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
                topics; topic_priorities of a topic that is not subscribed to; a
                subscription_name that is empty or reserved; or a wrong selector.
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
            consumer = client.subscribe(
                "orders",
                "packing",
                pulsarx.ConsumerType.Shared,
                initial_position=pulsarx.InitialPosition.Earliest,
            )
            consumer.acknowledge(consumer.receive())
        """
        arguments = dict(locals())
        del arguments["self"]
        options = _member_options().ConsumerOptions(**arguments)
        _member_options().check_subscription_name(options.subscription_name)
        self._require_writable("subscribe")
        return self._keep(
            control_plane.perform(self._owner.within, (self._subscribe, options), take_back)
        )

    def _subscribe(self, options: ConsumerOptions) -> Consumer:
        from pulsarx.consuming.subscribing import subscribe

        broker = self._owned()
        self._consumer_count += 1
        name = options.consumer_name or (
            f"{self._consumer_count:x}-{broker.runtime.randomness.token(5)}"
        )
        consumer = subscribe(self._owner, broker, options, name, self._pool)
        return self._take_over(consumer, take_back)

    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId,
        schema: Schema[T] = BYTES_SCHEMA,  # type: ignore[assignment]  # T is bytes then
        reader_listener: Callable[[Reader[T], Message[T]], object] | None = None,
        receiver_queue_size: int = 1000,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
        is_read_compacted: bool = False,
        crypto_key_reader: CryptoKeyReader | None = None,
        start_message_id_inclusive: bool = False,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        *,
        selector: str | None = None,
    ) -> Reader[T]:
        """Read a topic from a position that the caller chooses. Nothing is acknowledged and no
        ledger is held.

        On a partitioned topic each partition starts there; a partition that the message does not
        belong to starts with its first newer ledger.

        Args:
            topic: A name; the topic is created when it does not exist.
            start_message_id: Reading begins behind this message, or at `MessageId.earliest` or
                `MessageId.latest`.
            schema: Decodes values; the topic registers it, or checks it.
            reader_listener: Called with the reader and each message, in one of the client's
                message_listener_threads.
            receiver_queue_size: Messages; checked, and without effect.
            reader_name: Checked, and without effect.
            subscription_role_prefix: Checked, and without effect.
            is_read_compacted: Read the compacted ledger, with the last message of each key.
            crypto_key_reader: A CryptoKeyReader, which decrypts.
            start_message_id_inclusive: Begin at that message; with `MessageId.latest` at the last
                one.
            crypto_failure_action: What becomes of a message that cannot be decrypted.
            selector: Read the messages alone that it matches; as of subscribe.

        Returns:
            The reader. It lives as long as the client, until it is closed.

        Raises:
            TopicNotFound: There is no such topic, namespace or tenant, and it may not be created.
            InvalidTopicName: topic is no name of one.
            InvalidConfiguration: The selector is wrong.
            IncompatibleSchema: The topic refuses the schema.
            OperationNotSupported: A reader_listener, or a non-persistent topic, in a client opened
                read_only, where new messages are not announced.
            ImportError: A package is missing that decryption or the schema needs.
            TypeError: An argument is of the wrong type.
            ValueError: An argument is out of bounds or, where the official client says so, of the
                wrong type.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.

        Example:
            reader = client.create_reader("orders", pulsarx.MessageId.earliest)
            while reader.has_message_available():
                print(reader.read_next().data())
        """
        arguments = dict(locals())
        del arguments["self"]
        return self._reader_by(_member_options().ReaderOptions(**arguments))

    def _existing_topic_reader(self, **arguments: Any) -> Reader:
        """Like create_reader; TopicNotFound: there is no such topic, and it is not created."""
        options = _member_options().ReaderOptions(**arguments)
        options.creates = False
        return self._reader_by(options)

    def _reader_by(self, options: ReaderOptions) -> Reader:
        self._require_authentication()
        if options.reader_listener is not None and self.read_only:
            raise errors.OperationNotSupported(
                detail="a reader_listener in a client opened read_only"
            )
        return self._keep(
            control_plane.perform(self._owner.within, (self._create_reader, options), give_back)
        )

    def _create_reader(self, options: ReaderOptions) -> Reader:
        from pulsarx.consuming.reading import make_reader

        assert self._broker is not None
        reader = make_reader(self._broker, options, self._pool, self.read_only)
        return self._take_over(reader, give_back)

    def create_table_view(
        self, topic: str, subscription_name: str | None = None, schema: Schema[Any] = BYTES_SCHEMA
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

        Example:
            client.create_producer("stock").send(b"7", partition_key="apples")
            view = client.create_table_view("stock")
            assert view["apples"] == b"7"
        """
        arguments = dict(locals())
        del arguments["self"]
        options = _member_options().TableViewOptions(**arguments)
        self._require_writable("create a table view")
        making = (self._create_table_view, options)
        view: TableView = control_plane.perform(self._owner.within, making, give_back)
        try:
            view.fill()
        except BaseException:
            control_plane.post(lambda: give_back(view))
            raise
        return view

    def _create_table_view(self, options: TableViewOptions) -> TableView:
        from pulsarx.consuming.reading import make_table_view

        view = make_table_view(self._owned(), options, self._pool)
        self._owner.adopt(view)
        return view

    def get_service_info(self) -> ServiceInfo:
        """Return the URL and options that the client was opened with, as service discovery gives
        them.

        Raises:
            AlreadyClosed: The client is closed.
        """
        self._require_open()
        if self._discovery is not None:
            return self._discovery.current
        from pulsarx.options.service_info import ServiceInfo

        return ServiceInfo.of_url(self._url.text)

    def read_table(
        self,
        topic: Any,
        columns: Iterable[str] | None = None,
        *,
        schema: Any = None,
        start: Any = None,
        end: Any = None,
        last: int | None = None,
        keys: str | Iterable[str] | None = None,
        selector: str | None = None,
        metadata: Iterable[str] = (),
        tombstones: str = "raise",
        crypto_key_reader: CryptoKeyReader | None = None,
        progress: Any = False,
    ) -> Any:
        """Return the messages that topics hold now, as a `pyarrow.Table` with a column for each
        field of their values; of all partitions, one after the other. Not in the official client.

        The types come from the topic's schemas, all versions of them: JSON and Avro records,
        strings, bytes and numbers (one column, value). Messages of a topic without a schema are
        JSON objects, whose fields and types are found in them. Nothing is rounded, cut or left out.

        Args:
            topic: A name, a list of names, or a pattern, `re.compile("orders-.*")`.
            columns: Names of fields; None: all.
            schema: In place of the topic's: a schema, a Record class, or a pyarrow.Schema of JSON.
            start: The first message: a MessageId, a MessageIndex, or the publish time from which
                on: a datetime with a zone, text such as "2026-01-01T00:00Z", a timedelta before now
                by the client's clock, or milliseconds since 1970.
            end: The one before which messages are read, as start.
            last: Only that many messages, the newest.
            keys: A key, or several: only messages of these.
            selector: Only messages that it matches; as of subscribe.
            metadata: Columns besides: message_id, key, publish_time, event_time, properties, topic,
                which are called `__message_id__` and so on, as in Pulsar SQL.
            tombstones: What a message without a value is: `raise` a ValueError, a row of nulls
                (`null`), or left out (`skip`).
            crypto_key_reader: A CryptoKeyReader, which decrypts.
            progress: True for a bar on the standard error output, or a callable (done, all).

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

        Example:
            client.send_rows("sales", [{"customer": "ada", "amount": 7}])
            table = client.read_table("sales", metadata=["publish_time"])
            assert table["amount"].to_pylist() == [7]
        """
        chosen = start, end, last, keys, tombstones, selector
        return self._table_read(
            "read_table", topic, columns, schema, chosen, metadata, crypto_key_reader, progress,
        ).table()  # fmt: skip

    def scan(
        self,
        topic: Any,
        columns: Iterable[str] | None = None,
        *,
        schema: Any = None,
        start: Any = None,
        end: Any = None,
        last: int | None = None,
        keys: str | Iterable[str] | None = None,
        selector: str | None = None,
        metadata: Iterable[str] = ("key", "publish_time", "event_time"),
        tombstones: str = "raise",
        crypto_key_reader: CryptoKeyReader | None = None,
        progress: Any = False,
        batch_size: int | None = None,
    ) -> TopicScan:
        """Return the messages that topics hold now as a table that is read when it is used: a
        LazyFrame of Polars, a relation of DuckDB, a `pyarrow.RecordBatchReader`. No more than a few
        batches are in memory at once. Not in the official client.

        Types of values without a schema are found by reading them once, here.

        Args:
            topic: As of read_table, like all arguments but the last.
            columns: Names of fields; None: all.
            schema: In place of the topic's.
            start: The first message, by its id or its publish time.
            end: The one before which messages are read.
            last: Only that many messages, the newest.
            keys: Only messages of these keys.
            selector: Only messages that it matches; as of subscribe.
            metadata: Columns besides those of the value.
            tombstones: What a message without a value is.
            crypto_key_reader: A CryptoKeyReader, which decrypts.
            progress: True for a bar on the standard error output, or a callable (done, all).
            batch_size: How many messages are decoded at once; None: as many as have about 64 MiB,
                and 65,536 at most.

        Returns:
            A TopicScan.

        Raises:
            ValueError: As of read_table; values raise it when they are read.
            OperationNotSupported: A schema has no columns.
            TopicNotFound: There is no such topic.
            ImportError: pyarrow is missing.
            AlreadyClosed: The client is closed.
        """
        chosen = start, end, last, keys, tombstones, selector
        read = self._table_read(
            "scan", topic, columns, schema, chosen, metadata, crypto_key_reader, progress,
            batch_size,
        )  # fmt: skip
        read.find_columns()
        control_plane.load("pulsarx.tables.scan")
        from pulsarx.tables.scan import TopicScan

        return TopicScan(read)

    def sql(self, query: str, *, params: Any = None, **options: Unpack[ScanOptions]) -> Any:
        """Return the result of a query in DuckDB's SQL, a `duckdb.DuckDBPyRelation`, in which
        topics are tables by their names. Not in the official client.

        Names that are no topic are what they are in DuckDB: files, and data frames in variables of
        the caller. The topics hold what they held when this was called; they are read when the
        result is, with the columns and conditions of the query.

        Args:
            query: A SELECT.
            params: Values for `?` and `$name` in the query.
            **options: Those of `scan`, for each topic.

        Returns:
            A `duckdb.DuckDBPyRelation`.

        Raises:
            ImportError: duckdb or pyarrow is missing.
            AlreadyClosed: The client is closed.
        """
        self._require_open()
        control_plane.load("pulsarx.ground.extras")
        from pulsarx.ground.extras import optional_module

        optional_module("duckdb", "sql", "sql")
        optional_module("pyarrow", "arrow", "sql")
        control_plane.load("pulsarx.tables.sql")
        from pulsarx.tables import sql

        return sql.query(self, query, params, options)

    def _table_read(
        self, caller: str, topic: Any, columns: Any, schema: Any, chosen: Chosen, *rest: Any
    ) -> TableRead:
        """chosen: what a Selection is made of; rest: the further arguments of a TableRead."""
        self._require_open()
        control_plane.load("pulsarx.ground.extras")
        from pulsarx.ground.extras import optional_module

        optional_module("pyarrow", "arrow", caller)
        control_plane.load("pulsarx.tables.reading")
        from pulsarx.tables.reading import TableRead
        from pulsarx.tables.selection import Selection

        selection = Selection(*chosen, now_ms=self._now_ms())
        return TableRead(self, topic, columns, schema, selection, *rest)

    def _now_ms(self) -> int | None:
        """Return the time of the broker's clock; None: it is that of the system."""
        clock = getattr(getattr(self._broker, "runtime", None), "clock", None)
        return None if clock is None else clock.now_ms()

    def send_rows(
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
        self._require_writable("send rows")
        control_plane.load("pulsarx.tables.sending")
        from pulsarx.tables import sending

        return sending.send_rows(
            self, topic, rows, columns, schema, key, event_time, properties, progress
        )

    def get_topic_partitions(self, topic: str) -> list[str]:
        """Return the names of a topic's partitions; the topic itself when it has none, or does not
        exist.

        Args:
            topic: A name.

        Raises:
            InvalidTopicName: topic is no name of one.
            AuthenticationError: No broker would take the client's credentials.
            AlreadyClosed: The client is closed.
        """
        self._require_authentication()
        control_plane.load("pulsarx.topic_name")
        from pulsarx.topic_name import TopicName

        return control_plane.perform(self._topic_partitions, (TopicName.of(topic),))

    def _topic_partitions(self, name: TopicName) -> list[str]:
        from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names

        assert self._broker is not None
        self._broker.refresh()
        count = partition_count_of(self._broker.catalogue.state, name)
        return partition_names(name, count) if count else [str(name)]

    @property
    def admin(self) -> Admin:
        """The administration of topics and namespaces, as in pulsar-admin. It keeps the client open
        as long as it is used.

        Raises:
            AlreadyClosed: The client is closed.

        Example:
            client.admin.topics.create_partitioned_topic("parts", 3)
            assert len(client.get_topic_partitions("parts")) == 3
        """
        self._require_open()
        return control_plane.perform(self._make_admin)

    def _make_admin(self) -> Admin:
        # An interrupted import may leave the lock of its module taken, for other threads.
        control_plane.load("pulsarx.admin.channel")
        from pulsarx.admin import Admin
        from pulsarx.admin.channel import ClientChannel

        assert self._broker is not None
        require_open, perform = self._require_open, self._owner.perform
        return Admin(ClientChannel(require_open, self._broker, self.read_only, perform))

    def _take_over(self, member: K, undo: Callable[[K], None]) -> K:
        """The last steps of making a consumer or reader but for `_keep`. undo: as of an interrupt,
        where no thread can be started for its listener."""
        self._owner.adopt(member)
        try:
            member.start_listener()
        except BaseException:
            undo(member)
            raise
        return member

    def _keep(self, member: Kept) -> Kept:
        """Have what it made live as long as the client. In the caller's thread: one that a
        signal handler took from its caller before this is collected, and gone. Behind the store
        CPython calls no handler until the caller has it."""
        self._kept[id(member)] = member
        if member.is_let_go:  # another thread has closed it
            self._kept.pop(id(member), None)
        return member

    def _require_open(self) -> None:
        """AlreadyClosed unless it is open. In a forked child it is opened there by the first call;
        ForkedError: it cannot be, as its folder is for one process."""
        if self._state.is_forked and not self._closing.begun:
            control_plane.perform(self._come_back)
        self._state.require_open()
        if self._closing.begun:
            raise errors.AlreadyClosed(detail="client")

    def _require_authentication(self) -> None:
        self._require_open()
        if self._refusal is not None:
            raise errors.AuthenticationError(detail=self._refusal)

    def _require_writable(self, action: str) -> None:
        self._require_authentication()
        if self.read_only:
            raise errors.OperationNotSupported(detail=f"{action}: the client was opened read_only")

    def _owned(self) -> Broker:
        return self._broker  # type: ignore[return-value]

    def _come_back(self) -> None:
        """Use the folder, in a forked child, as another process does. A call of the control
        plane."""
        from pulsarx.producing.inherited_producer import InheritedProducer

        with _coming_back:
            options = self._options
            if not self._state.is_forked:
                return  # another thread did it
            own = options.clock is not None or options.randomness is not None
            if self._url.folder is None or options.exclusive or own:
                self._state.require_open()  # says that it is the parent's
            parents_own.append((self._broker, self._pool, self._memory))
            self._pool = WorkPool(options.message_listener_threads)
            self._memory = None
            self._closing = Closing()
            self._owner.begin_again(self._closing, InheritedProducer)
            self._open(options)
            for member in self._owner.members():
                producer: Any = member
                self._limit_memory(producer._options)

    # Closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close what this client made, producers last sent messages included.

        The last client of a folder seals its ledgers and gives the folder back.

        Raises:
            AlreadyClosed: It is closed already. A call whose first try was interrupted finishes the
                work.
            LedgerPoisonedError: A flush has failed before: what was not confirmed may be there or
                not.
            StorageError: What a producer still held cannot be stored.

        Durability:
            What producers still held is as durable as after send.

        Example:
            client.create_producer("orders").send_async(b"one", None)
            client.close()
        """
        if self._state.is_forked:
            self._leave_to_parent()
            return
        if self._closing.told:
            self._require_open()  # says why not
        self._closing.close(self._take_leave, self._owner)
        self._end_discovery()

    def new_transaction(self, timeout_millis: int = 60_000) -> Transaction:
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
            with client.new_transaction() as txn:
                message = consumer.receive()
                producer.send(message.data().upper(), transaction=txn)
                consumer.acknowledge(message, transaction=txn)
        """
        if timeout_millis.__class__ is not int or timeout_millis < 1:
            raise ValueError(
                f"timeout_millis is a number, 1 and more, not {errors.shown(timeout_millis)}"
            )
        self._require_writable("open a transaction")
        opened: Transaction = control_plane.perform(
            self._open_transaction, (timeout_millis,), give_back
        )
        return opened

    def _open_transaction(self, timeout_millis: int) -> Transaction:
        from pulsarx.transaction import Transaction

        broker: Any = self._broker
        opened: Transaction = broker.runtime.transactions.open(Transaction, timeout_millis)
        self._owner.adopt(opened)
        return opened

    def shutdown(self) -> None:
        """Close like `close`, without an error when the client is closed already; a later `close`
        raises nothing either.

        Raises:
            LedgerPoisonedError: As `close`.
            StorageError: As `close`.
        """
        if self._state.is_forked:
            self._leave_to_parent()
            return
        if not self._closing.told:
            self._closing.close(self._take_leave, self._owner)
            self._closing.told = False
            self._end_discovery()

    def _leave_to_parent(self) -> None:
        """In a forked child that has not used it, so that there is nothing to do."""
        if self._closing.told:
            raise errors.AlreadyClosed(detail="client")
        self._closing = Closing()
        self._closing.begun = self._closing.told = True

    def _end_discovery(self) -> None:
        if self._discovery is not None:
            self._discovery.close()

    def _take_leave(self) -> None:
        """The steps of closing. A call of the control plane."""
        failure = self._close_members()
        if self._broker is not None:
            self._owner.forgotten.cancel()
            failure = attempt(self._leave) or failure
        if failure is not None:
            raise failure

    def _close_members(self) -> Exception | None:
        failure: Exception | None = None
        for member in self._owner.members():
            failure = attempt(member.close_with_client) or failure
        self._kept.clear()
        return failure

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _repr_html_(self) -> str:
        """Show the topics and subscriptions in a notebook."""
        control_plane.load("pulsarx.tables.notebook")
        from pulsarx.tables.notebook import facts_html

        closed = self._closing.begun or self._state.is_forked
        own = facts_html("Client", {"folder": self._url.text, "open": not closed})
        return own if closed else own + self.admin.topics._repr_html_()

    def __repr__(self) -> str:
        return f"Client({self._url.text!r}, closed={self._closing.begun})"


def _read_only_view(folder: str) -> ReadOnlyBroker:
    """The folder; or the history in an object store, which it may be."""
    from pulsarx.broker.offload.store_url import store_of
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    store = store_of(folder)
    if not store:
        return ReadOnlyBroker(folder)
    from pulsarx.broker.offload.stored_broker import StoredBroker

    return StoredBroker(store)


def _timeout_seconds(options: ClientOptions) -> int:
    """Return how long calls of a client wait for the owner of its folder."""
    seconds = options.operation_timeout_seconds
    return seconds if seconds > 0 else 30


def _reset_in_child() -> None:
    """Another thread of the parent may have had the lock."""
    global _coming_back
    _coming_back = RLock()


# What a child can need that uses a client it inherited: these, and all modules of the packages.
_NEEDED_BY_CHILDREN = (
    "concurrent.futures", "datetime", "difflib", "json", "logging", "random", "select", "tempfile",
    "traceback", "pulsarx._pycore.ledger.key_compaction",
    "pulsarx._pycore.message.encryption_context", "pulsarx.consumer", "pulsarx.encryption",
    "pulsarx.interceptors", "pulsarx.message", "pulsarx.producer", "pulsarx.reader",
    "pulsarx.table_view", "pulsarx.transaction",
)  # fmt: skip
_PACKAGES_OF_CHILDREN = (
    "admin", "broker", "consuming", "letters", "listening", "options", "processes",
    "producing", "schema", "sessions", "wire",
)  # fmt: skip
_NOT_OF_CHILDREN = {"pulsarx.producing.numpy_columns"}  # is there where numpy is
_needed: list[str] = []  # all of them, once they were looked for


def _refuse_eventlet() -> None:
    """Refuse eventlet: its hub knows no thread but its own, so the first call that waits would stop
    all others."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched("thread"):
        raise errors.NotAllowedError(
            detail="eventlet has replaced the threads of this process, and cannot be woken by "
            "others: use gevent, or leave threads alone with eventlet.monkey_patch(thread=False)"
        )


def _load_for_child() -> None:
    """Load the modules that a forked child needs, where a folder is open: the child could not load
    what another thread is just loading here, as that would never end there."""
    registry = sys.modules.get("pulsarx.broker.registry")
    is_owner = registry is not None and registry.has_folders()
    if is_owner or "pulsarx.processes.guest.folders" in sys.modules:
        if not _needed:
            found = [*_NEEDED_BY_CHILDREN]
            for package in _PACKAGES_OF_CHILDREN:
                found += _modules_of(f"pulsarx.{package}", f"{_HERE}/{package}")
            _needed.extend(name for name in found if name not in _NOT_OF_CHILDREN)
        # In front of a fork logging takes a lock, which it gives back behind it. Where its hook has
        # come before this one, modules that ask it for a logger would wait for that; where logging
        # comes with them, its hook has come too late to take it.
        lock: Any = getattr(sys.modules.get("logging"), "_lock", None)
        taken = 0 if lock is None else _given_up(lock)
        try:
            for name in _needed:
                control_plane.load(name)
        finally:
            if lock is None and "logging" in sys.modules:
                lock, taken = sys.modules["logging"]._lock, 1
            for _ in range(taken):
                lock.acquire()


def _given_up(lock: Any) -> int:
    """Give up a re-entrant lock if this thread has it: how many times it was taken."""
    taken = 0
    while lock._is_owned():
        lock.release()
        taken += 1
    return taken


def _modules_of(package: str, folder: str) -> list[str]:
    """A package and all modules in it, and in its packages."""
    found = [package]
    for name in os.listdir(folder):
        stem, _, kind = name.partition(".")
        if kind in ("py", "pyc") and stem != "__init__":
            found.append(f"{package}.{stem}")
        elif not kind and stem != "__pycache__" and os.path.isdir(f"{folder}/{name}"):
            found += _modules_of(f"{package}.{name}", f"{folder}/{name}")
    return found


at_fork(__name__, _reset_in_child, before=_load_for_child)
