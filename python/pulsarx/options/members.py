"""The arguments of `create_producer`, `subscribe` and `create_reader`, checked and kept together;
those of `Client` are in base.py. A module of its own: opening a client does not need it.
"""

from __future__ import annotations

from pulsarx._pycore.message.message_filter import SELECTOR_PROPERTY, MessageFilter
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
    is_whole_number,
    native_type,
)
from pulsarx.options.authentication import CryptoKeyReader
from pulsarx.options.base import (
    COUNT,
    COUNT_64,
    SIGNED,
    SIGNED_64,
    UNSIGNED,
    UNSIGNED_64,
    Options,
    ours,
    row,
)
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
)
from pulsarx.schema.schema import (
    BYTES_SCHEMA,
    BytesSchema,
    Schema,
    SchemaInfo,
    declared_info,
)
from pulsarx.topic_name import TopicName, check_member_name
from pulsarx.topic_name import check_subscription_name as check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.publish.memory_limit import MemoryLimit

    class RedeliveryBackoff(Protocol):
        def next(self, redelivery_count: int) -> int:
            """Return after how many milliseconds a message is delivered again."""


ACK_TIMEOUT_TICK_MS_MIN = 100


def check_encryption_installed() -> None:
    """ImportError: the package cryptography is missing."""
    from pulsarx.encryption import check_encryption_installed

    check_encryption_installed()


def decryption_of(options: ConsumerOptions | ReaderOptions) -> Any:
    """Make the object that decrypts for one consumer or reader; None: nothing does, and nothing
    encrypted is delivered."""
    action = options.crypto_failure_action
    if options.crypto_key_reader is None and action == ConsumerCryptoFailureAction.FAIL:
        return None
    from pulsarx.encryption import PayloadDecryption

    return PayloadDecryption(options.crypto_key_reader, action)


# fmt: off
class ProducerOptions(Options):
    """Arguments of `Client.create_producer`."""

    CALL = "create_producer"

    topic: str = row(str)
    producer_name: str | None = row(str, None)
    schema: Schema[Any] = row(Schema, BYTES_SCHEMA)
    initial_sequence_id: int | None = row(SIGNED_64, None)
    send_timeout_millis: int = row(SIGNED, 30000)
    compression_type: CompressionType = row(CompressionType, CompressionType.NONE)
    max_pending_messages: int = row(COUNT, 1000)
    max_pending_messages_across_partitions: int = row(COUNT, 50000)
    block_if_queue_full: bool = row(bool, False)
    batching_enabled: bool = row(bool, False)
    batching_max_messages: int = row(UNSIGNED, 1000)
    batching_max_allowed_size_in_bytes: int = row(UNSIGNED_64, 128 * 1024)
    batching_max_publish_delay_ms: int = row(UNSIGNED_64, 10)
    chunking_enabled: bool = row(bool, False)
    message_routing_mode: PartitionsRoutingMode = row(
        object, PartitionsRoutingMode.RoundRobinDistribution
    )
    lazy_start_partitioned_producers: bool = row(bool, False)
    properties: dict[str, str] | None = row(dict, None)
    batching_type: BatchingType = row(BatchingType, BatchingType.Default)
    encryption_key: str | None = row(str, None)
    crypto_key_reader: CryptoKeyReader | None = row(CryptoKeyReader, None)
    access_mode: ProducerAccessMode = row(ProducerAccessMode, ProducerAccessMode.Shared)
    message_router: Callable[[Any, int], int] | None = row(object, None)
    hashing_scheme: HashingScheme = ours(HashingScheme, HashingScheme.JavaStringHash)
    interceptors: list[ProducerInterceptor] | None = ours(list, None)
    schema_info: SchemaInfo | None  # what it declares to the topic
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
        if self.interceptors is not None:
            self.interceptors = check_interceptors(self.interceptors, ProducerInterceptor)
        first = self.initial_sequence_id
        if first is not None and not -1 <= first < INT64_MAX:
            raise ValueError("initial_sequence_id must be from -1 to 2^63-2, so that the next one "
                             f"is from 0 to 2^63-1, not {shown(first)}")
        if self.batching_max_messages <= 1:
            raise ValueError(
                f"batching_max_messages must be above 1, not {shown(self.batching_max_messages)}"
            )
        if self.message_routing_mode.__class__ is not PartitionsRoutingMode:
            native_type(PartitionsRoutingMode, self.message_routing_mode, "message_routing_mode")
        if self.access_mode not in ProducerAccessMode.__members__.values():
            raise ValueError(f"there is no access_mode {shown(self.access_mode)}")
        if self.properties is not None:
            check_properties(self.properties)
            self.properties = dict(self.properties) or None  # the caller's may change later
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
        if self.encryption_key:
            if self.crypto_key_reader is None:
                raise InvalidConfiguration(detail=f"encryption_key={self.encryption_key!r} without "
                                           "a crypto_key_reader: nothing would be encrypted")
            check_encryption_installed()
        if self.producer_name is not None:
            self.producer_name = checked_name("producer", self.producer_name)


def checked_name(kind: str, name: str | None) -> str | None:
    """The name of a member; an empty one is none, as in the official client.
    InvalidConfiguration: see check_member_name."""
    return check_member_name(kind, name, InvalidConfiguration) if name else None


def queue_missing(what: str) -> str:
    """Say why a receiver_queue_size of 0 is refused for a consumer of what."""
    return (f"receiver_queue_size=0: a consumer of {what} needs a receiver queue; give it 1 or "
            "more, or subscribe to each topic or partition by its own name")


def _checked_priorities(given: dict[str, int] | None) -> dict[str, int] | None:
    """The priorities by the full names of their topics; None for none.

    TypeError, ValueError: one is no integer from 0 to 2^31-1. InvalidTopicName: a name is none.
    InvalidConfiguration: a topic is written in two ways, with two priorities.
    """
    found: dict[str, int] = {}
    for name, priority in (given or {}).items():
        native_type(str, name, "a topic of topic_priorities")
        if not is_whole_number(priority):
            raise TypeError(f"topic_priorities[{shown(name)}] must be int, not "
                            f"{type(priority).__name__}: {shown(priority)}")
        if not 0 <= priority <= INT32_MAX:
            raise ValueError(f"topic_priorities[{shown(name)}] must be from 0, the most urgent, to "
                             f"{INT32_MAX}, not {shown(priority)}")
        full = TopicName.of(name).full
        if found.setdefault(full, priority) != priority:
            raise InvalidConfiguration(detail=f"topic_priorities has {found[full]} and {priority} "
                                       f"for {shown(full)}, written in two ways; name it once")
    return found or None


class ConsumerOptions(Options):
    """Arguments of `Client.subscribe`, which says what they mean."""

    CALL = "subscribe"

    topic: str | list[str] | re.Pattern[str] = row(object)
    subscription_name: str = row(str)
    consumer_type: ConsumerType = row(ConsumerType, ConsumerType.Exclusive)
    schema: Schema[Any] = row(Schema, BYTES_SCHEMA)
    message_listener: Callable[..., object] | None = row(object, None)
    receiver_queue_size: int = row(COUNT, 1000)
    max_total_receiver_queue_size_across_partitions: int = row(COUNT, 50000)
    consumer_name: str | None = row(str, None)
    unacked_messages_timeout_ms: int | None = row(UNSIGNED_64, None)
    broker_consumer_stats_cache_time_ms: int = row(SIGNED_64, 30000)
    negative_ack_redelivery_delay_ms: int = row(COUNT_64, 60000)
    is_read_compacted: bool = row(bool, False)
    properties: dict[str, str] | None = row(dict, None)
    pattern_auto_discovery_period: int = row(COUNT, 60)
    initial_position: InitialPosition = row(InitialPosition, InitialPosition.Latest)
    crypto_key_reader: CryptoKeyReader | None = row(CryptoKeyReader, None)
    replicate_subscription_state_enabled: object = row(object, False)
    max_pending_chunked_message: int = row(UNSIGNED_64, 10)
    auto_ack_oldest_chunked_message_on_queue_full: bool = row(bool, False)
    start_message_id_inclusive: bool = row(bool, False)
    batch_receive_policy: ConsumerBatchReceivePolicy | None = row(ConsumerBatchReceivePolicy, None)
    key_shared_policy: ConsumerKeySharedPolicy | None = row(ConsumerKeySharedPolicy, None)
    batch_index_ack_enabled: bool = row(bool, False)
    regex_subscription_mode: RegexSubscriptionMode = row(
        RegexSubscriptionMode, RegexSubscriptionMode.PersistentOnly
    )
    dead_letter_policy: ConsumerDeadLetterPolicy | None = row(ConsumerDeadLetterPolicy, None)
    crypto_failure_action: ConsumerCryptoFailureAction = row(
        ConsumerCryptoFailureAction, ConsumerCryptoFailureAction.FAIL
    )
    retry_enable: bool = ours(bool, False)
    nack_backoff: RedeliveryBackoff | None = ours(object, None)
    ack_timeout_backoff: RedeliveryBackoff | None = ours(object, None)
    ack_timeout_tick_ms: int = ours(SIGNED_64, 1000)
    priority_level: int = ours(COUNT, 0)
    topic_priorities: dict[str, int] | None = ours(dict, None)  # by full names, once checked
    subscription_mode: SubscriptionMode = ours(SubscriptionMode, SubscriptionMode.Durable)
    consumer_event_listener: object = ours(object, None)
    expire_time_of_incomplete_chunked_message_ms: int = ours(COUNT_64, 60000)
    interceptors: list[ConsumerInterceptor] | None = ours(list, None)
    subscription_properties: dict[str, str] | None = ours(dict, None)
    selector: str | None = ours(str, None)
    schema_info: SchemaInfo | None  # what it declares to the topic

    def part_of(self, topic_count: int) -> ConsumerOptions:
        """The options of one of so many topics: without listeners, and its share of the queue."""
        off = ("message_listener", "consumer_event_listener", "interceptors", "topic_priorities")
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
        self.topic_priorities = _checked_priorities(self.topic_priorities)
        if self.receiver_queue_size == 0 and not isinstance(self.topic, str):
            # The official client would take one message of each topic, and hand out none.
            raise InvalidConfiguration(detail=queue_missing("several topics"))
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
        check_properties(self.subscription_properties)
        self.subscription_properties = with_selector(self.subscription_properties, self.selector)

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
        if self.ack_timeout_tick_ms < ACK_TIMEOUT_TICK_MS_MIN:
            raise ValueError(f"ack_timeout_tick_ms must be {ACK_TIMEOUT_TICK_MS_MIN} or more, "
                             f"not {shown(self.ack_timeout_tick_ms)}")
        for name in ("nack_backoff", "ack_timeout_backoff"):
            check_method(getattr(self, name), "next", name)
        if 0 < (self.unacked_messages_timeout_ms or 0) < 1000:
            raise ValueError("unacked_messages_timeout_ms must be 0, or 1000 and more, "
                             f"not {shown(self.unacked_messages_timeout_ms)}")


def with_selector(properties: dict[str, str] | None, selector: str | None) -> dict[str, str] | None:
    """The properties of a subscription with its selector among them. InvalidConfiguration: it is
    wrong, or there are two."""
    found = dict(properties or {})
    if selector is not None and selector.strip():
        if found.setdefault(SELECTOR_PROPERTY, selector) != selector:
            raise InvalidConfiguration(
                detail=f"selector={shown(selector)} and another {SELECTOR_PROPERTY} of the "
                "subscription_properties: give it once"
            )
    check_selector(found.get(SELECTOR_PROPERTY), SELECTOR_PROPERTY if selector is None
                   else "selector")
    return found or None


def check_selector(selector: str | None, name: str = "selector") -> str:
    """The selector, if it is one; empty for none. InvalidConfiguration: it is wrong, says where."""
    if selector is None or not selector.strip():
        return ""
    MessageFilter(selector, name)
    return selector


class ReaderOptions(Options):
    """Arguments of `Client.create_reader`."""

    CALL = "create_reader"

    topic: str = row(str)
    start_message_id: MessageId = row(MessageId)
    schema: Schema[Any] = row(Schema, BYTES_SCHEMA)
    reader_listener: Callable[..., object] | None = row(object, None)
    receiver_queue_size: int = row(COUNT, 1000)
    reader_name: str | None = row(str, None)
    subscription_role_prefix: str | None = row(str, None)
    is_read_compacted: bool = row(bool, False)
    crypto_key_reader: CryptoKeyReader | None = row(CryptoKeyReader, None)
    start_message_id_inclusive: bool = row(bool, False)
    crypto_failure_action: ConsumerCryptoFailureAction = row(
        ConsumerCryptoFailureAction, ConsumerCryptoFailureAction.FAIL
    )
    selector: str | None = ours(str, None)
    schema_info: SchemaInfo | None  # what it declares to the topic
    creates: bool  # a topic that is not there

    def _check(self) -> None:
        check_callable(self.reader_listener, "reader_listener")
        if self.crypto_key_reader is not None:
            check_encryption_installed()
        self.schema_info = declared_info(self.schema)
        self.creates = True
        self.selector = check_selector(self.selector)
        self.reader_name = checked_name("reader", self.reader_name)
        self.subscription_role_prefix = self.subscription_role_prefix or None


class TableViewOptions(Options):
    """Arguments of `Client.create_table_view`."""

    CALL = "create_table_view"

    topic: str = row(str)
    subscription_name: str | None = row(str, None)
    schema: Schema[Any] = row(Schema, BYTES_SCHEMA)
    schema_info: SchemaInfo | None  # what it declares to the topic

    def _check(self) -> None:
        self.schema_info = declared_info(self.schema)
# fmt: on
