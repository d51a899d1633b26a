"""The options of a broker: Pulsar's broker.conf keys in snake_case, in one table.

Client(folder, broker_options=BrokerOptions(max_message_size=1_000_000)). Clients of one folder
in one process must agree, so options compare by value and never change.
"""

from __future__ import annotations

from pulsarx.errors import shown
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    Value = int | bool | str | tuple[str, ...] | None

ENTRY_SIZE_MAX = 2**30
CENTURY_MINUTES = 36_525 * 1440
# UNDEFINED: as the level above says.
SCHEMA_STRATEGIES = (
    "UNDEFINED",
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
# A topic's partitions are made in one commit; more make its file large and slow to read.
PARTITION_COUNT_MAX = 10_000
BACKLOG_QUOTA_POLICIES = (
    "producer_request_hold",
    "producer_exception",
    "consumer_backlog_eviction",
)
INACTIVE_TOPIC_MODES = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
ENTRY_METADATA_INTERCEPTORS = (
    "AppendBrokerTimestampMetadataInterceptor",
    "AppendIndexMetadataInterceptor",
)
SUBSCRIPTION_TYPES = ("Exclusive", "Failover", "Shared", "Key_Shared")


class BrokerOption:
    """A row of the table. lowest and highest: None where the type says it all; choices: of a
    text, or of the texts in a list. A default of None: an int, or None."""

    __slots__ = (
        "name",
        "choices",
        "default",
        "type",
        "lowest",
        "highest",
        "persisted",
        "changeable_live",
        "doc",
    )

    def __init__(
        self,
        name: str,
        default: Value,
        lowest: int | None,
        highest: int | None,
        persisted: bool,
        changeable_live: bool,
        doc: str,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name: str = name
        self.choices: tuple[str, ...] = choices
        self.default: Value = default
        self.type: type[int] | type[bool] | type[str] | type[tuple[str, ...]] = (
            int if default is None else type(default)
        )
        self.lowest: int | None = lowest
        self.highest: int | None = highest
        self.persisted: bool = persisted
        self.changeable_live: bool = changeable_live
        self.doc: str = doc

    def check(self, value: object) -> Value:
        if value is None and self.default is None:
            return None
        if self.type is str and not self.choices:
            return check_offload_url(self.name, value)
        if self.type is str:
            if not isinstance(value, str) or value not in self.choices:
                raise ValueError(
                    f"{self.name} must be {' or '.join(map(repr, self.choices))}, "
                    f"not {shown(value)}"
                )
            return value
        if self.type is tuple:
            if not self.default and value in ((), []):
                return ()
            return check_choices(self.name, value, self.choices)
        if self.name in _ALWAYS_ON and value is False:
            raise ValueError(f"{self.name} cannot be turned off: PulsarX always does it")
        if not isinstance(value, int) or isinstance(value, bool) != (self.type is bool):
            raise ValueError(
                f"{self.name} must be {self.type.__name__}, "
                f"not {type(value).__name__}: {shown(value)}"
            )
        if self.lowest is None or self.highest is None:
            return value
        if not self.lowest <= value <= self.highest:
            raise ValueError(
                f"{self.name} must be from {self.lowest} to {self.highest}, not {shown(value)}"
            )
        return value


def check_choices(name: str, value: object, choices: tuple[str, ...]) -> tuple[str, ...]:
    """A list of some of the choices, at least one, in their order. ValueError."""
    if not isinstance(value, (list, tuple, set, frozenset)) or not value:
        raise ValueError(f"{name} must be a list of {', '.join(choices)}, not {shown(value)}")
    for each in value:
        if each not in choices:
            raise ValueError(f"{name} must be of {', '.join(choices)}, not {shown(each)}")
    return tuple(each for each in choices if each in value)


def check_offload_url(name: str, value: object) -> str:
    """Empty, or a URL without credentials, which the environment has. ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be str, not {type(value).__name__}: {shown(value)}")
    scheme, mark, rest = value.partition("://")
    place = rest.partition("?")[0]
    if value and not (mark and scheme.isalnum() and place):
        raise ValueError(f"{name} must be a URL as s3://bucket/prefix, not {shown(value)}")
    if "@" in place.partition("/")[0] and scheme not in ("abfs", "abfss"):
        raise ValueError(
            f"{name} must not hold credentials: it is kept in the folder. Give them in the "
            "environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return value


_ALWAYS_ON = ("acknowledgment_at_batch_index_level_enabled",)

# persisted: kept in the catalogue, so that a later start without the option finds the same value
# (none yet).
# live: may be changed while the broker runs.
# fmt: off
_ROWS = (
    # name, default, lowest, highest, persisted, live, doc, choices of a text
    ("max_message_size", 5_242_880, 1, ENTRY_SIZE_MAX // 2, False, False,
     "Largest payload of a message in bytes; larger ones raise MessageTooBig."),
    ("allow_auto_topic_creation", True, None, None, False, True,
     "A producer or consumer creates the topic it names."),
    ("allow_auto_topic_creation_type", "non-partitioned", None, None, False, True,
     "What kind of topic it creates: non-partitioned or partitioned.",
     ("non-partitioned", "partitioned")),
    ("default_num_partitions", 1, 1, PARTITION_COUNT_MAX, False, True,
     "How many partitions a partitioned topic created in this way has."),
    ("allow_auto_subscription_creation", True, None, None, False, True,
     "A consumer creates the subscription it names."),
    ("max_num_partitions_per_partitioned_topic", 0, 0, PARTITION_COUNT_MAX, False, True,
     "How many partitions a topic may be given; 0: no limit but the largest number there can be."),
    ("max_topics_per_namespace", 0, 0, INT32_MAX, False, True,
     "How many topics a namespace may have, each partition one; 0: without limit."),
    ("max_producers_per_topic", 0, 0, INT32_MAX, False, True,
     "How many producers a topic or partition may have; 0: without limit."),
    ("max_consumers_per_topic", 0, 0, INT32_MAX, False, True,
     "How many consumers, readers aside, a topic or partition may have; 0: without limit."),
    ("max_consumers_per_subscription", 0, 0, INT32_MAX, False, True,
     "How many consumers a subscription of a topic or partition may have; 0: without limit."),
    ("max_subscriptions_per_topic", 0, 0, INT32_MAX, False, True,
     "How many subscriptions a topic or partition may have; 0: without limit."),
    ("subscription_types_enabled", SUBSCRIPTION_TYPES, None, None, False, True,
     "Types of subscriptions that consumers may ask for.", SUBSCRIPTION_TYPES),
    ("acknowledgment_at_batch_index_level_enabled", True, None, None, False, True,
     "Acknowledgements of single messages in batches are kept; they always are: False is refused."),
    ("system_topic_enabled", True, None, None, False, True,
     "The broker writes topics of its own: __change_events. Off: no policies of topics either."),
    ("topic_level_policies_enabled", True, None, None, False, True,
     "Policies may be set on topics; off: NotAllowedError, and what was set before stays."),
    ("enable_non_persistent_topics", True, None, None, False, True,
     "Topics of the domain non-persistent, whose messages are not kept, may be used."),
    ("default_retention_time_in_minutes", 0, -1, INT32_MAX, False, True,
     "How long acknowledged messages are kept; -1: for ever. 0 in time or size: not at all."),
    ("default_retention_size_in_mb", 0, -1, INT32_MAX, False, True,
     "How much of the acknowledged messages is kept; -1: without limit."),
    ("retention_check_interval_in_seconds", 120, 1, INT32_MAX, False, True,
     "How often ledgers are looked through for what may be trimmed."),
    ("ttl_duration_default_in_seconds", 0, 0, INT32_MAX, False, True,
     "Messages older than this are not delivered and count as acknowledged; 0: none are too old."),
    ("message_expiry_check_interval_in_minutes", 5, 1, CENTURY_MINUTES, False, True,
     "How often messages that are too old are acknowledged."),
    ("backlog_quota_check_enabled", True, None, None, False, True,
     "Look whether backlogs exceed their quotas."),
    ("backlog_quota_check_interval_in_seconds", 60, 1, INT32_MAX, False, True,
     "How often that is looked at."),
    ("backlog_quota_default_limit_bytes", -1, -1, INT64_MAX, False, True,
     "How many bytes the backlog of a topic may have; -1: without limit."),
    ("backlog_quota_default_limit_second", -1, -1, INT32_MAX, False, True,
     "How many seconds old its oldest message may be; -1: without limit."),
    ("backlog_quota_default_retention_policy", "producer_request_hold", None, None, False, True,
     "What is done above one of these limits.", BACKLOG_QUOTA_POLICIES),
    ("precise_time_based_backlog_quota_check", False, None, None, False, True,
     "Limit the age of messages one by one, not by the ledgers that are closed."),
    ("broker_delete_inactive_topics_enabled", False, None, None, False, True,
     "Delete topics that are not used. Pulsar: on."),
    ("broker_delete_inactive_topics_frequency_seconds", 60, 1, INT32_MAX, False, True,
     "How often such topics are looked for."),
    ("broker_delete_inactive_topics_mode", "delete_when_no_subscriptions", None, None, False, True,
     "Whether a topic with subscriptions is used: always, or while one has a backlog or consumer.",
     INACTIVE_TOPIC_MODES),
    ("broker_delete_inactive_topics_max_inactive_duration_seconds", None, 1, INT32_MAX, False, True,
     "How long a topic must be unused; None: as long as the time between two looks."),
    ("broker_delete_inactive_partitioned_topic_metadata_enabled", False, None, None, False, True,
     "Delete partitioned topics too, when none of their partitions is used."),
    ("subscription_expiration_time_minutes", 0, 0, CENTURY_MINUTES, False, True,
     "A durable subscription that is not used is deleted after this time; 0: never."),
    ("subscription_expiry_check_interval_in_minutes", 5, 1, CENTURY_MINUTES, False, True,
     "How often such subscriptions are looked for."),
    ("dispatch_throttling_rate_per_topic_in_msg", 0, 0, INT32_MAX, False, True,
     "How many messages a topic dispatches in a second; 0: without limit."),
    ("dispatch_throttling_rate_per_topic_in_byte", 0, 0, INT64_MAX, False, True,
     "How many bytes; 0: without limit."),
    ("dispatch_throttling_rate_per_subscription_in_msg", 0, 0, INT32_MAX, False, True,
     "How many messages a subscription or reader is given in a second; 0: without limit."),
    ("dispatch_throttling_rate_per_subscription_in_byte", 0, 0, INT64_MAX, False, True,
     "How many bytes; 0: without limit."),
    ("dispatch_throttling_on_non_backlog_consumer_enabled", True, None, None, False, True,
     "Dispatch rates hold for all; off: for those alone that are more than 1000 entries behind."),
    ("dispatch_throttling_on_batch_message_enabled", False, None, None, False, True,
     "Dispatch rates count entries, so that a batch is one; off: messages."),
    ("delayed_delivery_max_delay_in_millis", 0, 0, INT64_MAX, False, True,
     "How long a message may be delayed; longer ones raise NotAllowedError. 0: without limit."),
    ("managed_ledger_max_entries_per_ledger", 50_000, 1, INT32_MAX, False, True,
     "Entries after which the next ledger is begun."),
    ("managed_ledger_max_size_per_ledger_mbytes", 256, 1, 65_536, False, True,
     "MiB after which the next ledger is begun. Pulsar: 2048; less bounds the time of recovery."),
    ("managed_ledger_max_ledger_rollover_time_minutes", 240, 1, CENTURY_MINUTES, False, True,
     "Age after which the next ledger is begun with the next entry."),
    ("broker_entry_metadata_interceptors", (), None, None, False, False,
     "What the broker notes of each entry: with AppendBrokerTimestampMetadataInterceptor when it "
     "was stored. The index is always known.",
     ENTRY_METADATA_INTERCEPTORS),
    ("exposing_broker_entry_metadata_to_client_enabled", False, None, None, False, False,
     "Clients over a network that understand it are sent that of these two with each entry."),
    ("max_unacked_messages_per_consumer", 50_000, 0, INT32_MAX, False, False,
     "Shared, Key_Shared: a consumer with so many is given none until half are acknowledged."),
    ("max_unacked_messages_per_subscription", 200_000, 0, INT32_MAX, False, False,
     "As before, of all consumers of a subscription together; 0: without limit."),
    ("subscription_key_shared_use_consistent_hashing", False, None, None, False, False,
     "Key_Shared without sticky ranges: a hash ring instead of halved hash ranges."),
    ("key_shared_spread_keyless", False, None, None, False, False,
     "Key_Shared: spread messages without a key over the consumers by entry, as Pulsar 4 does; "
     "off: they have the key NON_KEY together."),
    ("key_shared_look_ahead_msg_in_replay_threshold_per_consumer", 2000, 0, INT32_MAX, False, False,
     "Key_Shared: reading stops at so many waiting messages for each consumer; 0: not counted."),
    ("key_shared_look_ahead_msg_in_replay_threshold_per_subscription", 20_000, 0, INT32_MAX, False,
     False, "As before, of all consumers together, if that is less; 0: not counted."),
    ("delayed_delivery_enabled", True, None, None, False, False,
     "Shared, Key_Shared: wait for deliver_at; off: deliver at once."),
    ("delayed_delivery_tick_time_millis", 1000, 1, INT32_MAX, False, False,
     "How much before its time a delayed message may come when that is not strict."),
    ("is_delayed_delivery_deliver_at_time_strict", True, None, None, False, False,
     "Never deliver a delayed message early. Pulsar: off."),
    ("schema_compatibility_strategy", "FULL", None, None, False, True,
     "Which schema may follow another on a topic, where topic and namespace do not say.",
     SCHEMA_STRATEGIES),
    ("is_schema_validation_enforced", False, None, None, False, True,
     "A producer without a schema is refused where the topic has one."),
    ("is_allow_auto_update_schema_enabled", True, None, None, False, True,
     "A producer registers a schema that its topic does not have; off: it is refused."),
    ("broker_deduplication_enabled", False, None, None, False, False,
     "Messages that are sent again, by their sequence id, are not stored again."),
    ("broker_deduplication_entries_interval", 1000, 1, INT32_MAX, False, False,
     "After so many entries of a topic its highest sequence ids are written down."),
    ("broker_deduplication_snapshot_interval_seconds", 120, 1, INT32_MAX, False, False,
     "After so many seconds they are, if there were entries."),
    ("broker_deduplication_max_number_of_producers", 10_000, 1, INT32_MAX, False, False,
     "Of so many names of producers a topic knows the highest sequence id."),
    ("broker_deduplication_producer_inactivity_timeout_minutes", 360, 1, CENTURY_MINUTES, False,
     False, "A name that was not used for so long is forgotten."),
    ("broker_service_compaction_threshold_in_bytes", 0, 0, 2**62, False, False,
     "Compact a topic when so much was published since the last time; 0: only when asked to."),
    ("topic_compaction_retain_null_key", False, None, None, False, False,
     "Compaction keeps messages without a key."),
    ("offload_url", "", None, None, False, False,
     "Object store to which sealed ledgers may be offloaded, as s3://bucket/prefix; empty: none."),
    ("managed_ledger_offload_auto_trigger_size_threshold_bytes", -1, -1, 2**62, False, False,
     "Offload the oldest ledgers of a topic that holds more; -1: only when asked to."),
    ("managed_ledger_offload_deletion_lag_ms", 14_400_000, 0, 2**53 - 1, False, False,
     "How long the file of an offloaded ledger stays."),
    ("transaction_coordinator_enabled", True, None, None, False, False,
     "Clients of a network may open transactions; clients of the folder always may. Pulsar: off."),
    ("max_active_transactions_per_coordinator", 0, 0, INT32_MAX, False, False,
     "How many transactions may be open at a time; 0: without limit."),
    ("max_transaction_timeout_in_seconds", 86_400, 1, INT32_MAX, False, False,
     "The longest timeout that a transaction may be opened with."),
)
# fmt: on

_DEFAULTS: Final[dict[str, Value]] = {row[0]: row[1] for row in _ROWS}
_table: dict[str, BrokerOption] = {}


def option_table() -> dict[str, BrokerOption]:
    """The options by name. Made when the first one is given: most clients give none."""
    if not _table:
        _table.update({row[0]: BrokerOption(*row) for row in _ROWS})
    return _table


class BrokerOptions:
    """Options of a broker, each by its name. Immutable; any thread may use them."""

    max_message_size: int
    allow_auto_topic_creation: bool
    allow_auto_topic_creation_type: str
    default_num_partitions: int
    allow_auto_subscription_creation: bool
    max_num_partitions_per_partitioned_topic: int
    max_topics_per_namespace: int
    max_producers_per_topic: int
    max_consumers_per_topic: int
    max_consumers_per_subscription: int
    max_subscriptions_per_topic: int
    subscription_types_enabled: tuple[str, ...]
    acknowledgment_at_batch_index_level_enabled: bool
    system_topic_enabled: bool
    topic_level_policies_enabled: bool
    enable_non_persistent_topics: bool
    default_retention_time_in_minutes: int
    default_retention_size_in_mb: int
    retention_check_interval_in_seconds: int
    ttl_duration_default_in_seconds: int
    message_expiry_check_interval_in_minutes: int
    backlog_quota_check_enabled: bool
    backlog_quota_check_interval_in_seconds: int
    backlog_quota_default_limit_bytes: int
    backlog_quota_default_limit_second: int
    backlog_quota_default_retention_policy: str
    precise_time_based_backlog_quota_check: bool
    broker_delete_inactive_topics_enabled: bool
    broker_delete_inactive_topics_frequency_seconds: int
    broker_delete_inactive_topics_mode: str
    broker_delete_inactive_topics_max_inactive_duration_seconds: int | None
    broker_delete_inactive_partitioned_topic_metadata_enabled: bool
    subscription_expiration_time_minutes: int
    subscription_expiry_check_interval_in_minutes: int
    dispatch_throttling_rate_per_topic_in_msg: int
    dispatch_throttling_rate_per_topic_in_byte: int
    dispatch_throttling_rate_per_subscription_in_msg: int
    dispatch_throttling_rate_per_subscription_in_byte: int
    dispatch_throttling_on_non_backlog_consumer_enabled: bool
    dispatch_throttling_on_batch_message_enabled: bool
    delayed_delivery_max_delay_in_millis: int
    managed_ledger_max_entries_per_ledger: int
    managed_ledger_max_size_per_ledger_mbytes: int
    managed_ledger_max_ledger_rollover_time_minutes: int
    broker_entry_metadata_interceptors: tuple[str, ...]
    exposing_broker_entry_metadata_to_client_enabled: bool
    max_unacked_messages_per_consumer: int
    max_unacked_messages_per_subscription: int
    subscription_key_shared_use_consistent_hashing: bool
    key_shared_spread_keyless: bool
    key_shared_look_ahead_msg_in_replay_threshold_per_consumer: int
    key_shared_look_ahead_msg_in_replay_threshold_per_subscription: int
    delayed_delivery_enabled: bool
    delayed_delivery_tick_time_millis: int
    is_delayed_delivery_deliver_at_time_strict: bool
    schema_compatibility_strategy: str
    is_schema_validation_enforced: bool
    is_allow_auto_update_schema_enabled: bool
    broker_deduplication_enabled: bool
    broker_deduplication_entries_interval: int
    broker_deduplication_snapshot_interval_seconds: int
    broker_deduplication_max_number_of_producers: int
    broker_deduplication_producer_inactivity_timeout_minutes: int
    broker_service_compaction_threshold_in_bytes: int
    topic_compaction_retain_null_key: bool
    offload_url: str
    managed_ledger_offload_auto_trigger_size_threshold_bytes: int
    managed_ledger_offload_deletion_lag_ms: int
    transaction_coordinator_enabled: bool
    max_active_transactions_per_coordinator: int
    max_transaction_timeout_in_seconds: int

    def __init__(self, **options: Any) -> None:
        """Take options by name; those that are not given have their defaults. docs/options.md lists
        all.

        Args:
            **options: Values by name.

        Raises:
            ValueError: There is no option of a name, or a value is of the wrong type or out of
                bounds.
        """
        values = _DEFAULTS.copy()
        for name, value in options.items():
            row = option_table().get(name)
            if row is None:
                raise ValueError(_unknown(name))
            values[name] = row.check(value)
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_unknown(name))

    @property
    def _values(self) -> dict[str, Value]:
        return self.__dict__

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"BrokerOptions cannot be changed; make others: options.replace({name}={value!r})"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError("BrokerOptions cannot be changed")

    def replace(self, **options: Any) -> BrokerOptions:
        """Return the same options but for the given ones.

        Args:
            **options: Values by name.

        Raises:
            ValueError: As BrokerOptions.
        """
        return BrokerOptions(**{**self._values, **options})

    def differences(self, other: BrokerOptions) -> dict[str, tuple[Value, Value]]:
        """Return (mine, the other's) by name, of options that differ.

        Args:
            other: Those to compare with.
        """
        return {
            name: (value, other._values[name])
            for name, value in self._values.items()
            if value != other._values[name]
        }

    def as_dict(self) -> dict[str, Value]:
        """Return all values by name, in a new dict."""
        return dict(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BrokerOptions):
            return NotImplemented
        return self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.as_dict(),)

    def __repr__(self) -> str:
        """Show only what differs from the defaults."""
        changed = (
            f"{name}={value!r}" for name, value in self._values.items() if value != _DEFAULTS[name]
        )
        return f"BrokerOptions({', '.join(changed)})"


def option_of_text(name: str, text: str) -> Value:
    """The value that a text on a command line means: true and false, numbers, words with commas
    between them. ValueError: there is no such option, or no such value of it."""
    row = option_table().get(name)
    if row is None:
        raise ValueError(_unknown(name))
    value: object = text
    if row.type is bool and text.lower() in ("true", "false"):
        value = text.lower() == "true"
    elif row.type is int:
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() else text
    elif row.type is tuple:
        value = tuple(each.strip() for each in text.split(",")) if text else ()
    return row.check(value)


def _restore(values: dict[str, Value]) -> BrokerOptions:
    return BrokerOptions(**values)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, option_table(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(option_table())}"
    return f"BrokerOptions has no option {name!r}; {hint}"
