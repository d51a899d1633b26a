"""The arguments of the calls of a client that make its members, as base.py keeps those of `Client`.
A module of its own: opening a client does not need it.
"""

from __future__ import annotations

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
from pulsarx.errors import InvalidConfiguration, shown
from pulsarx.interceptors import ConsumerInterceptor, ProducerInterceptor
from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import (
    INT32_MAX,
    INT64_MAX,
    check_callable,
    check_interceptors,
    check_method,
    check_properties,
    native_type,
)
from pulsarx.options.authentication import CryptoKeyReader
from pulsarx.options.base import Options, Required
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
)
from pulsarx.schema.schema import BytesSchema, Schema, SchemaInfo, declared_info
from pulsarx.topic_name import check_member_name
from pulsarx.topic_name import check_subscription_name as check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.publish.memory_limit import MemoryLimit
    from pulsarx.producing.routed_message import RoutedMessage

    class RedeliveryBackoff(Protocol):
        def next(self, redelivery_count: int) -> int:
            """After how many milliseconds a message comes again."""


BYTES_SCHEMA = BytesSchema()  # holds no state, so all calls share it
ACK_TIMEOUT_TICK_MS_MIN = 100


def check_encryption_installed() -> None:
    """ImportError: the package cryptography is missing."""
    from pulsarx.encryption import check_encryption_installed

    check_encryption_installed()


def decryption_of(options: ConsumerOptions | ReaderOptions) -> Any:
    """What decrypts for one consumer or reader; None: nothing does, and nothing encrypted is
    delivered."""
    action = options.crypto_failure_action
    if options.crypto_key_reader is None and action == ConsumerCryptoFailureAction.FAIL:
        return None
    from pulsarx.encryption import PayloadDecryption

    return PayloadDecryption(options.crypto_key_reader, action)


# fmt: off
class ProducerOptions(Options):
    """Arguments of `Client.create_producer`."""

    __slots__ = (
        "topic", "producer_name", "schema", "initial_sequence_id", "send_timeout_millis",
        "compression_type", "max_pending_messages", "max_pending_messages_across_partitions",
        "block_if_queue_full", "batching_enabled", "batching_max_messages",
        "batching_max_allowed_size_in_bytes", "batching_max_publish_delay_ms", "chunking_enabled",
        "message_routing_mode", "lazy_start_partitioned_producers", "properties", "batching_type",
        "encryption_key", "crypto_key_reader", "access_mode", "message_router",
        "hashing_scheme", "interceptors", "schema_info", "memory_limit", "for_letters",
        "queues_sends",
    )
    CALL = "create_producer"
    ROWS = (
        ("topic", str, Required, False),
        ("producer_name", str, None, True),
        ("schema", Schema, BYTES_SCHEMA, False),
        ("initial_sequence_id", int, None, True),
        ("send_timeout_millis", int, 30000, False),
        ("compression_type", CompressionType, CompressionType.NONE, False),
        ("max_pending_messages", int, 1000, False),
        ("max_pending_messages_across_partitions", int, 50000, False),
        ("block_if_queue_full", bool, False, False),
        ("batching_enabled", bool, False, False),
        ("batching_max_messages", int, 1000, False),
        ("batching_max_allowed_size_in_bytes", int, 128 * 1024, False),
        ("batching_max_publish_delay_ms", int, 10, False),
        ("chunking_enabled", bool, False, False),
        ("message_routing_mode", object, PartitionsRoutingMode.RoundRobinDistribution, False),
        ("lazy_start_partitioned_producers", bool, False, False),
        ("properties", dict, None, True),
        ("batching_type", BatchingType, BatchingType.Default, False),
        ("encryption_key", str, None, True),
        ("crypto_key_reader", CryptoKeyReader, None, True),
        ("access_mode", ProducerAccessMode, ProducerAccessMode.Shared, False),
        ("message_router", object, None, True),
        ("hashing_scheme", HashingScheme, HashingScheme.JavaStringHash, False),
        ("interceptors", list, None, True),
    )
    topic: str
    producer_name: str | None
    schema: Schema[Any]
    schema_info: SchemaInfo | None  # what it declares to the topic
    initial_sequence_id: int | None
    send_timeout_millis: int
    compression_type: CompressionType
    max_pending_messages: int
    max_pending_messages_across_partitions: int
    block_if_queue_full: bool
    batching_enabled: bool
    batching_max_messages: int
    batching_max_allowed_size_in_bytes: int
    batching_max_publish_delay_ms: int
    chunking_enabled: bool
    message_routing_mode: PartitionsRoutingMode
    batching_type: BatchingType
    lazy_start_partitioned_producers: bool
    message_router: Callable[[RoutedMessage, int], int] | None
    hashing_scheme: HashingScheme
    access_mode: ProducerAccessMode
    properties: dict[str, str] | None
    interceptors: list[ProducerInterceptor] | None
    encryption_key: str | None
    crypto_key_reader: CryptoKeyReader | None
    memory_limit: MemoryLimit | None  # that of the client; no argument
    for_letters: bool  # which wait for no publish rate; no argument
    queues_sends: bool  # a send that must wait is queued, its caller goes on; no argument

    @property
    def is_batching_by_key(self) -> bool:
        """Whether a batch holds messages of one key alone."""
        return bool(self.batching_type == BatchingType.KeyBased)

    @property
    def encrypts(self) -> bool:
        """Whether payloads are encrypted. A key reader alone does not say by which key."""
        return bool(self.encryption_key) and self.crypto_key_reader is not None

    @property
    def schema_is_bytes(self) -> bool:
        """Whether contents that are bytes go through as they are."""
        return type(self.schema) is BytesSchema

    def _check(self) -> None:
        self.memory_limit = None
        self.for_letters = False
        self.queues_sends = False
        self.interceptors = check_interceptors(self.interceptors, ProducerInterceptor)
        self._at_least_0("max_pending_messages", "max_pending_messages_across_partitions")
        self._native(0, INT32_MAX, "max_pending_messages", "max_pending_messages_across_partitions",
                     "batching_max_messages")
        self._native(0, INT64_MAX, "batching_max_allowed_size_in_bytes",
                     "batching_max_publish_delay_ms")
        self._native(-INT32_MAX - 1, INT32_MAX, "send_timeout_millis")
        if self.initial_sequence_id is not None:
            self._native(-INT64_MAX - 1, INT64_MAX, "initial_sequence_id")
            if not -1 <= self.initial_sequence_id < INT64_MAX:
                raise ValueError("initial_sequence_id must be from -1 to 2^63-2, so that the next "
                                 f"one is from 0 to 2^63-1, not {shown(self.initial_sequence_id)}")
        if self.batching_max_messages <= 1:
            raise ValueError(
                f"batching_max_messages must be above 1, not {shown(self.batching_max_messages)}"
            )
        native_type(PartitionsRoutingMode, self.message_routing_mode, "message_routing_mode")
        if self.access_mode not in ProducerAccessMode.__members__.values():
            raise ValueError(f"there is no access_mode {shown(self.access_mode)}")
        check_properties(self.properties)
        if self.message_router is not None:
            if not callable(self.message_router):
                raise ValueError("message_router must be a function of a message and the number "
                                 f"of partitions, not {type(self.message_router).__name__}")
            self.message_routing_mode = PartitionsRoutingMode.CustomPartition
        if self.batching_enabled and self.chunking_enabled:
            raise ValueError(
                "Batching and chunking of messages can't be enabled together."
            )
        self.schema_info = declared_info(self.schema)
        if getattr(self.schema, "reads_any", False):
            raise ValueError(f"{type(self.schema).__name__} reads; a producer needs a schema")
        if self.encryption_key and self.crypto_key_reader is None:
            raise InvalidConfiguration(detail=f"encryption_key={self.encryption_key!r} without a "
                                       "crypto_key_reader: nothing would be encrypted")
        if self.encrypts:
            check_encryption_installed()
        # An empty name is none, as in the official client; a dict of the caller may change later.
        self.producer_name = checked_name("producer", self.producer_name)
        self.properties = dict(self.properties) if self.properties else None


def checked_name(kind: str, name: str | None) -> str | None:
    """The name of a member; an empty one is none. InvalidConfiguration: see check_member_name."""
    return check_member_name(kind, name, InvalidConfiguration) if name else None


def queue_missing(what: str) -> str:
    """Why a receiver_queue_size of 0 is refused for a consumer of what."""
    return (f"receiver_queue_size=0: a consumer of {what} needs a receiver queue; give it 1 or "
            "more, or subscribe to each topic or partition by its own name")


class ConsumerOptions(Options):
    """Arguments of `Client.subscribe`, which says what they mean."""

    __slots__ = (
        "topic", "subscription_name", "consumer_type", "schema", "message_listener",
        "receiver_queue_size", "max_total_receiver_queue_size_across_partitions", "consumer_name",
        "unacked_messages_timeout_ms", "broker_consumer_stats_cache_time_ms",
        "negative_ack_redelivery_delay_ms", "is_read_compacted", "properties",
        "pattern_auto_discovery_period", "initial_position", "crypto_key_reader",
        "replicate_subscription_state_enabled", "max_pending_chunked_message",
        "auto_ack_oldest_chunked_message_on_queue_full", "start_message_id_inclusive",
        "batch_receive_policy", "key_shared_policy", "batch_index_ack_enabled",
        "regex_subscription_mode", "dead_letter_policy", "crypto_failure_action", "retry_enable",
        "nack_backoff", "ack_timeout_backoff", "ack_timeout_tick_ms", "priority_level",
        "subscription_mode", "consumer_event_listener",
        "expire_time_of_incomplete_chunked_message_ms", "interceptors", "schema_info",
    )
    CALL = "subscribe"
    ROWS = (
        ("topic", object, Required, False),
        ("subscription_name", str, Required, False),
        ("consumer_type", ConsumerType, ConsumerType.Exclusive, False),
        ("schema", Schema, BYTES_SCHEMA, False),
        ("message_listener", object, None, True),
        ("receiver_queue_size", int, 1000, False),
        ("max_total_receiver_queue_size_across_partitions", int, 50000, False),
        ("consumer_name", str, None, True),
        ("unacked_messages_timeout_ms", int, None, True),
        ("broker_consumer_stats_cache_time_ms", int, 30000, False),
        ("negative_ack_redelivery_delay_ms", int, 60000, False),
        ("is_read_compacted", bool, False, False),
        ("properties", dict, None, True),
        ("pattern_auto_discovery_period", int, 60, False),
        ("initial_position", InitialPosition, InitialPosition.Latest, False),
        ("crypto_key_reader", CryptoKeyReader, None, True),
        ("replicate_subscription_state_enabled", object, False, True),
        ("max_pending_chunked_message", int, 10, False),
        ("auto_ack_oldest_chunked_message_on_queue_full", bool, False, False),
        ("start_message_id_inclusive", bool, False, False),
        ("batch_receive_policy", ConsumerBatchReceivePolicy, None, True),
        ("key_shared_policy", ConsumerKeySharedPolicy, None, True),
        ("batch_index_ack_enabled", bool, False, False),
        ("regex_subscription_mode", RegexSubscriptionMode, RegexSubscriptionMode.PersistentOnly,
         False),
        ("dead_letter_policy", ConsumerDeadLetterPolicy, None, True),
        ("crypto_failure_action", ConsumerCryptoFailureAction, ConsumerCryptoFailureAction.FAIL,
         False),
        ("retry_enable", bool, False, False),
        ("nack_backoff", object, None, True),
        ("ack_timeout_backoff", object, None, True),
        ("ack_timeout_tick_ms", int, 1000, False),
        ("priority_level", int, 0, False),
        ("subscription_mode", SubscriptionMode, SubscriptionMode.Durable, False),
        ("consumer_event_listener", object, None, True),
        ("expire_time_of_incomplete_chunked_message_ms", int, 60000, False),
        ("interceptors", list, None, True),
    )
    topic: str | list[str] | re.Pattern[str]
    subscription_name: str
    is_read_compacted: bool
    crypto_key_reader: CryptoKeyReader | None
    crypto_failure_action: ConsumerCryptoFailureAction
    regex_subscription_mode: RegexSubscriptionMode
    pattern_auto_discovery_period: int
    consumer_type: ConsumerType
    schema: Schema[Any]
    schema_info: SchemaInfo | None  # what it declares to the topic
    message_listener: Callable[..., object] | None
    receiver_queue_size: int
    max_total_receiver_queue_size_across_partitions: int
    consumer_name: str | None
    unacked_messages_timeout_ms: int | None
    negative_ack_redelivery_delay_ms: int
    properties: dict[str, str] | None
    initial_position: InitialPosition
    max_pending_chunked_message: int
    auto_ack_oldest_chunked_message_on_queue_full: bool
    start_message_id_inclusive: bool
    batch_receive_policy: ConsumerBatchReceivePolicy | None
    dead_letter_policy: ConsumerDeadLetterPolicy | None
    key_shared_policy: ConsumerKeySharedPolicy | None
    retry_enable: bool
    nack_backoff: RedeliveryBackoff | None
    ack_timeout_backoff: RedeliveryBackoff | None
    ack_timeout_tick_ms: int
    priority_level: int
    subscription_mode: SubscriptionMode
    consumer_event_listener: object
    expire_time_of_incomplete_chunked_message_ms: int
    interceptors: list[ConsumerInterceptor] | None

    def part_of(self, topic_count: int) -> ConsumerOptions:
        """The options of one of so many topics: without listeners, and its share of the queue."""
        off = ("message_listener", "consumer_event_listener", "interceptors")
        values = self.as_dict() | dict.fromkeys(off)
        share = self.max_total_receiver_queue_size_across_partitions // max(topic_count, 1)
        values["receiver_queue_size"] = max(1, min(self.receiver_queue_size, share))
        return ConsumerOptions(**values)

    def from_the_start(self) -> ConsumerOptions:
        """The same for a subscription that is to miss nothing."""
        return ConsumerOptions(
            **(self.as_dict() | {"initial_position": InitialPosition.Earliest})
        )

    def _check(self) -> None:
        self._check_topic()
        if self.is_read_compacted:
            self._check_compacted()
        self._check_redelivery()
        if self.receiver_queue_size == 0 and not isinstance(self.topic, str):
            # The official client would take one message of each topic, and hand out none.
            raise InvalidConfiguration(detail=queue_missing("several topics"))
        self._at_least_0("receiver_queue_size", "max_total_receiver_queue_size_across_partitions",
                         "pattern_auto_discovery_period", "priority_level",
                         "expire_time_of_incomplete_chunked_message_ms")
        self._native(0, INT32_MAX, "receiver_queue_size", "pattern_auto_discovery_period",
                     "max_total_receiver_queue_size_across_partitions")
        self._native(0, INT32_MAX, "priority_level")
        self._native(0, INT64_MAX, "max_pending_chunked_message",
                     "expire_time_of_incomplete_chunked_message_ms")
        self._native(-INT64_MAX - 1, INT64_MAX, "broker_consumer_stats_cache_time_ms")
        check_callable(self.message_listener, "message_listener")
        self.interceptors = check_interceptors(self.interceptors, ConsumerInterceptor)
        for method in ("became_active", "became_inactive"):
            check_method(self.consumer_event_listener, method, "consumer_event_listener")
        check_properties(self.properties)
        if self.crypto_key_reader is not None:
            check_encryption_installed()
        self.schema_info = declared_info(self.schema)
        self.consumer_name = checked_name("consumer", self.consumer_name)
        self.properties = dict(self.properties) if self.properties else None

    def _check_topic(self) -> None:
        if type(self.topic).__name__ == "Pattern":  # nobody else pays for loading `re`
            if not isinstance(getattr(self.topic, "pattern", None), str):
                raise TypeError(f"topic={shown(self.topic)}: a pattern of text (str), not of bytes")
            return
        if not isinstance(self.topic, list):
            if not isinstance(self.topic, str):
                raise ValueError("Argument 'topic' is expected to be of a type between "
                                 "(str, list, re.pattern)")
            return
        if not self.topic:
            raise ValueError("topic is an empty list; name at least one topic")
        for each in self.topic:
            native_type(str, each, "a topic of the list")
        self.topic = list(self.topic)

    def _check_compacted(self) -> None:
        if self.consumer_type not in (ConsumerType.Exclusive, ConsumerType.Failover):
            raise InvalidConfiguration(detail="is_read_compacted is for Exclusive and Failover "
                                       f"subscriptions, not {self.consumer_type.name}")
        topics = [self.topic] if isinstance(self.topic, str) else self.topic
        for each in topics if isinstance(topics, list) else ():
            if each.startswith("non-persistent://"):
                raise InvalidConfiguration(detail="is_read_compacted is for persistent topics, not "
                                           f"{each}")

    def _check_redelivery(self) -> None:
        self._at_least_0("negative_ack_redelivery_delay_ms")
        self._native(0, INT64_MAX, "negative_ack_redelivery_delay_ms")
        if self.ack_timeout_tick_ms < ACK_TIMEOUT_TICK_MS_MIN:
            raise ValueError(f"ack_timeout_tick_ms must be {ACK_TIMEOUT_TICK_MS_MIN} or more, "
                             f"not {shown(self.ack_timeout_tick_ms)}")
        self._native(0, INT64_MAX, "ack_timeout_tick_ms")
        for name in ("nack_backoff", "ack_timeout_backoff"):
            check_method(getattr(self, name), "next", name)
        if self.unacked_messages_timeout_ms is not None:
            self._native(0, INT64_MAX, "unacked_messages_timeout_ms")
            if 0 < self.unacked_messages_timeout_ms < 1000:
                raise ValueError("unacked_messages_timeout_ms must be 0, or 1000 and more, "
                                 f"not {shown(self.unacked_messages_timeout_ms)}")


class ReaderOptions(Options):
    """Arguments of `Client.create_reader`."""

    __slots__ = (
        "topic", "start_message_id", "schema", "reader_listener", "receiver_queue_size",
        "reader_name", "subscription_role_prefix", "is_read_compacted", "crypto_key_reader",
        "start_message_id_inclusive", "crypto_failure_action", "schema_info",
    )
    CALL = "create_reader"
    ROWS = (
        ("topic", str, Required, False),
        ("start_message_id", MessageId, Required, False),
        ("schema", Schema, BYTES_SCHEMA, False),
        ("reader_listener", object, None, True),
        ("receiver_queue_size", int, 1000, False),
        ("reader_name", str, None, True),
        ("subscription_role_prefix", str, None, True),
        ("is_read_compacted", bool, False, False),
        ("crypto_key_reader", CryptoKeyReader, None, True),
        ("start_message_id_inclusive", bool, False, False),
        ("crypto_failure_action", ConsumerCryptoFailureAction, ConsumerCryptoFailureAction.FAIL,
         False),
    )
    topic: str
    is_read_compacted: bool
    start_message_id: MessageId
    schema: Schema[Any]
    schema_info: SchemaInfo | None  # what it declares to the topic
    receiver_queue_size: int
    reader_name: str | None
    subscription_role_prefix: str | None
    start_message_id_inclusive: bool
    crypto_key_reader: CryptoKeyReader | None
    crypto_failure_action: ConsumerCryptoFailureAction
    reader_listener: Callable[..., object] | None

    def _check(self) -> None:
        check_callable(self.reader_listener, "reader_listener")
        self._at_least_0("receiver_queue_size")
        self._native(0, INT32_MAX, "receiver_queue_size")
        if self.crypto_key_reader is not None:
            check_encryption_installed()
        self.schema_info = declared_info(self.schema)
        self.reader_name = checked_name("reader", self.reader_name)
        self.subscription_role_prefix = self.subscription_role_prefix or None


class TableViewOptions(Options):
    """Arguments of `Client.create_table_view`."""

    __slots__ = ("topic", "subscription_name", "schema", "schema_info")
    CALL = "create_table_view"
    ROWS = (
        ("topic", str, Required, False),
        ("subscription_name", str, None, True),
        ("schema", Schema, BYTES_SCHEMA, False),
    )
    topic: str
    subscription_name: str | None
    schema: Schema[Any]
    schema_info: SchemaInfo | None  # what it declares to the topic

    def _check(self) -> None:
        self.schema_info = declared_info(self.schema)
# fmt: on
