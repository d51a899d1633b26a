"""The policies that can be set for a namespace or a topic, each declared once.

All ends ask this table: the verbs, the routes of REST and who asks them, the commands, the methods
of `client.admin` and the tables of the documents, which `tools/write_policies.py` writes. What a
policy does is where it takes effect; `policy_store` says what is in force. A topic's policy wins
over its namespace's, that over the broker's options. Permissions of roles are no such policies.
"""

from __future__ import annotations

from pulsarx.broker.policies.policy_row import (
    COMPACTION,
    DEDUPLICATION,
    DURATION,
    MESSAGES,
    NAMESPACE,
    NUMBER,
    SIZE,
    TOPIC,
    Commands,
    Methods,
    Option,
    Policy,
    Rest,
    Switch,
)
from pulsarx.broker.policies.policy_value import Choice, Choices, Field, Flag, Record, Whole
from pulsarx.broker.policies.quota_types import QUOTA_LIMITS, quota_name
from pulsarx.broker_options import (
    BACKLOG_QUOTA_POLICIES,
    INACTIVE_TOPIC_MODES,
    PARTITION_COUNT_MAX,
    SCHEMA_STRATEGIES,
    SUBSCRIPTION_TYPES,
)
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_QUOTA_POLICIES = f"must be {', '.join(BACKLOG_QUOTA_POLICIES)}"
_KINDS_OF_TOPICS = ("non-partitioned", "partitioned")
_RATE = {
    "msgs": "Messages in a period; 0 and -1: without limit.",
    "bytes": "Bytes in a period; 0 and -1: without limit.",
    "period_seconds": "Seconds of a period.",
    "relative_to_publish_rate": "The publish rate of the topic, averaged over the last minute, is "
    "added.",
}


def _check_retention(value: dict[str, Any]) -> None:
    if (value["time_minutes"] == 0) != (value["size_mb"] == 0):
        raise ValueError(
            f"retention: time_minutes is {value['time_minutes']} and size_mb {value['size_mb']}: a "
            "single 0 would keep nothing; give -1 for no limit, or 0 for both to keep nothing"
        )


# fmt: off
# Rates ------------------------------------------------------------------------------------------


def _dispatch(name: str, path: str, field: str, option: str, said: str, methods: Methods) -> Policy:
    """said: what is counted."""
    rest = Rest(path, path, body="DispatchRate", field=field, by_cluster=True)
    in_msg, in_byte = f"{option}_in_msg", f"{option}_in_byte"
    return Policy(
        name,
        Record(
            Field("msgs", "dispatchThrottlingRateInMsg", Whole(-1), default=-1, option=in_msg),
            Field("bytes", "dispatchThrottlingRateInByte", Whole(-1, INT64_MAX), default=-1,
                option=in_byte),
            Field("period_seconds", "ratePeriodInSecond", Whole(1, 10**9), default=1),
            Field("relative_to_publish_rate", "relativeToPublishRate", Flag(), default=False),
        ),
        effect=MESSAGES, for_kept=True,
        rest=rest,
        methods=methods,
        commands=Commands(
            Option("-md --msg-dispatch-rate", "msgs", NUMBER, f"Messages {said}; -1: any number.",
                default=-1, shows=True),
            Option("-bd --byte-dispatch-rate", "bytes", SIZE, f"Bytes {said}: 10M; -1: any number.",
                default=-1, shows=True),
            Option("-dt --dispatch-rate-period", "period_seconds", NUMBER, "Seconds of a period.",
                default=1, shows=True),
            Option("-rp --relative-to-publish-rate", "relative_to_publish_rate", "",
                "The publish rate of the topic is added.", default=False),
            example="-md 1000 -bd 1M"),
    )


# Limits -----------------------------------------------------------------------------------------


def _limit(
    name: str,
    rest: Rest,
    options: str,
    said: str,
    doc: str,
    *,
    topic_options: str = "",
    topic_command: str = "",
    target: str = "target",
    **more: Any,
) -> Policy:
    """One that has an option of its name. options, topic_options: of the command, on each level;
    topic_command: its name, where that of topics is another. said: of what it is the number."""

    def commands(options: str, name: str = "") -> Commands:
        names = options.split()
        count = Option(options, "count", "", f"How many {said}. 0: without limit.")
        return Commands(count, example=f"{names[0]} 10", name=name)

    return Policy(
        name,
        Whole(0, unit="how many", said=f"must be an int from 0 (without limit) to {INT32_MAX}"),
        option=name,
        rest=rest,
        methods=Methods(
            doc, argument="count", args={"count": f"How many {said}; 0: without limit."},
            get="the number", target=target, is_checked=False
        ),
        commands=commands(options),
        topic_commands=commands(topic_options or options, topic_command),
        **more,
    )


# Backlog quotas ---------------------------------------------------------------------------------


class _QuotaLimit(Whole):
    """A limit of a backlog quota: -1 for none, and never 0."""

    __slots__ = ()

    def check(self, name: str, value: object) -> Any:
        if value == 0:
            raise ValueError(f"{name} is 0; it must be more, or -1: no limit")
        return super().check(name, value)


class _Quota(Record):
    """Pulsar writes its size twice, and reads either."""

    __slots__ = ()

    def shown(self, value: Any) -> dict[str, Any]:
        return {"limit": value["limit_size"], **super().shown(value)}

    def read(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ValueError("it must be a JSON object")
        size, time, _ = self.fields
        return {
            size.name: size.kind.read(found.get("limitSize", found.get("limit", -1))),
            time.name: time.kind.read(found.get("limitTime", -1)),
            "policy": found.get("policy"),
        }


def _quota(kind: str, limit: str) -> Policy:
    """limit: the field that a quota of this kind needs. Its ends are by hand: over HTTP and on the
    command line the quotas of both kinds are one policy, which is told the kind."""

    def check(value: dict[str, Any]) -> None:
        if value[limit] < 0:
            raise ValueError(f"backlog_quota of type {kind}: give {limit}, or remove it")

    return Policy(
        quota_name(kind),
        _Quota(
            Field("limit_size", "limitSize", _QuotaLimit(-1, INT64_MAX)),
            Field("limit_time", "limitTime", _QuotaLimit(-1)),
            Field("policy", "policy", Choice(BACKLOG_QUOTA_POLICIES, _QUOTA_POLICIES)),
            called="backlog_quota",
            also=check,
        ),
        effect=MESSAGES, for_kept=True,
    )


_TYPES = "With commas between: " + ", ".join(SUBSCRIPTION_TYPES) + "."
TABLE = [
    Policy(
        "retention",
        Record(
            Field("time_minutes", "retentionTimeInMinutes", Whole(-1),
                option="default_retention_time_in_minutes"),
            Field("size_mb", "retentionSizeInMB", Whole(-1), option="default_retention_size_in_mb"),
            also=_check_retention,
        ),
        effect=MESSAGES, for_kept=True,
        rest=Rest("retention", "retention", body="RetentionPolicies", field="retention_policies",
            invalid=400),
        methods=Methods("""
        Keep acknowledged messages for a time and up to a size, whichever is reached first. Whole
        ledgers are removed, never parts.""",
            args={"time_minutes": "Minutes; -1: without limit; 0, in both: not at all.",
                "size_mb": "MiB of each topic; -1: without limit; 0, in both: not at all."},
            raises={"ValueError": "0 in one of them alone, with which nothing would be kept; or "
                "one is out of bounds.",
                "NotAllowedError": "size_mb is not more than the backlog quota."},
            get="(time_minutes, size_mb)", is_tuple=True),
        commands=Commands(
            Option("-t --time", "time_minutes", DURATION,
                "How long: 90m, 3h, 2d, 5w; seconds without a unit. -1: for ever.", per=60,
                uneven="seconds: retention is in whole minutes"),
            Option("-s --size", "size_mb", SIZE,
                "How much of each topic: 10M, 16G, 3T. -1: everything.", per=1 << 20,
                uneven="bytes: retention is in whole MiB, as 10M"),
            example="-t 2d -s 10G"),
    ),
    Policy(
        "message_ttl",
        Whole(0, unit="seconds"),
        option="ttl_duration_default_in_seconds",
        effect=MESSAGES, for_kept=True,
        rest=Rest("messageTTL", "messageTTL", query="messageTTL", field="message_ttl_in_seconds"),
        methods=Methods("""
        Set how old messages may become: older ones are not delivered, and count as acknowledged
        on every subscription.""", argument="seconds",
            args={"seconds": "Seconds; 0: they do not expire, whatever the levels above say."},
            get="the seconds"),
        commands=Commands(
            Option("-ttl --messageTTL", "seconds", DURATION,
                "Seconds, or 100m, 3h, 2d, 5w. 0: messages do not expire."),
            example="-ttl 3h"),
    ),
    Policy(
        "subscription_expiration_time",
        Whole(0, unit="minutes"),
        option="subscription_expiration_time_minutes",
        effect=MESSAGES, for_kept=True,
        rest=Rest("subscriptionExpirationTime", "subscriptionExpirationTime",
            query="subscriptionExpirationTime", field="subscription_expiration_time_minutes"),
        methods=Methods("""
        Delete durable subscriptions that have no consumer and were not used for a while.""",
            argument="minutes",
            args={"minutes": "Minutes; 0: they stay, whatever the levels above say."},
            get="the minutes"),
        commands=Commands(
            Option("-t --time", "minutes", "",
                "After how many minutes without use a subscription goes. 0: it stays."),
            example="-t 1440"),
    ),
    Policy(
        "deduplication",
        Flag("is True or False"),
        option="broker_deduplication_enabled",
        effect=DEDUPLICATION, for_kept=True,
        rest=Rest("deduplication", "deduplicationEnabled", field="deduplicationEnabled"),
        methods=Methods("""
        Set whether the topics of a namespace recognise messages that are sent again by their
        sequence ids, and do not store them again. Applies to open producers at once.""",
            topic="""
        Set whether a topic, or all its partitions, recognises messages that are sent again by
        their sequence ids, and does not store them again. Applies to open producers at once.""",
            argument="enabled", args={"enabled": "Whether they are."}, target=""),
        commands=Commands(
            Switch("enabled", "Store nothing twice.", "Store what comes."),
            example="--enable"),
    ),
    Policy(
        "auto_topic_creation",
        Record(
            Field("allowed", "allowAutoTopicCreation", Flag(), option="allow_auto_topic_creation"),
            Field("type", "topicType", Choice(_KINDS_OF_TOPICS), default=_KINDS_OF_TOPICS[0],
                option="allow_auto_topic_creation_type"),
            Field("partitions", "defaultNumPartitions",
                Whole(1, PARTITION_COUNT_MAX, said=f"must be from 1 to {PARTITION_COUNT_MAX}"),
                default=1, option="default_num_partitions"),
        ),
        levels=(NAMESPACE,),
        rest=Rest("autoTopicCreation", None, body="AutoTopicCreationOverride",
            field="autoTopicCreationOverride"),
        methods=Methods("""
        Set whether a producer, consumer or reader creates the topic that it names, and of which
        kind. If not, it gets TopicNotFound.""",
            args={"allowed": "Whether it does.", "type": "`non-partitioned` or `partitioned`.",
                "partitions": "How many, of a partitioned one."},
            get='{"allowed", "type", "partitions"}', target="", is_checked=False),
        commands=Commands(
            Switch("allowed", "Clients make the topics they name.", "Only administration does."),
            Option("-t --type", "type", "", "The kind of topics that are created.",
                default=_KINDS_OF_TOPICS[0], shows=True),
            Option("-n --num-partitions", "partitions", "", "How many partitions they have.",
                default=1),
            example="--enable -t partitioned -n 4"),
    ),
    Policy(
        "auto_subscription_creation",
        Flag(),
        option="allow_auto_subscription_creation",
        rest=Rest("autoSubscriptionCreation", "autoSubscriptionCreation",
            body="AutoSubscriptionCreationOverride", wrapped="allowAutoSubscriptionCreation",
            field="autoSubscriptionCreationOverride"),
        methods=Methods("""
        Set whether a consumer creates the durable subscription that it names. If not, it gets
        SubscriptionNotFound.""", argument="allowed", args={"allowed": "Whether it does."},
            is_checked=False),
        commands=Commands(
            Switch("allowed", "Consumers make what they name.", "Only administration does."),
            example="--enable"),
    ),
    Policy(
        "subscription_types_enabled",
        Choices(SUBSCRIPTION_TYPES),
        option="subscription_types_enabled",
        rest=Rest("subscriptionTypesEnabled", "subscriptionTypesEnabled",
            unset={NAMESPACE: [], TOPIC: []}),
        methods=Methods("""
        Set the types of subscriptions that consumers may use; with another one `subscribe` raises
        NotAllowedError. Attached consumers stay.""", argument="types",
            args={"types": "Some of Exclusive, Failover, Shared and Key_Shared."}, get="the types"),
        commands=Commands(
            Option("-t --types", "types", "", _TYPES),
            example="-t Shared,Key_Shared"),
    ),
    _dispatch(
        "dispatch_rate",
        "dispatchRate",
        "topicDispatchRate",
        "dispatch_throttling_rate_per_topic",
        "a topic dispatches in a period",
        Methods("""
        Set how many messages and bytes each topic dispatches in a period, to all subscriptions
        and readers together, redeliveries included; consumers wait for the next one.""",
            args=_RATE, get='{"msgs", "bytes", "period_seconds", "relative_to_publish_rate"}'),
    ),
    _dispatch(
        "subscription_dispatch_rate",
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
        "dispatch_throttling_rate_per_subscription",
        "each subscription is dispatched in a period",
        Methods("""
        Set how many messages and bytes each subscription and each reader is dispatched in a
        period. The rate of the topic applies as well.""",
            args=_RATE, get='{"msgs", "bytes", "period_seconds", "relative_to_publish_rate"}'),
    ),
    Policy(
        "publish_rate",
        Record(
            Field("msgs", "publishThrottlingRateInMsg", Whole(-1), default=-1),
            Field("bytes", "publishThrottlingRateInByte", Whole(-1, INT64_MAX), default=-1),
        ),
        effect=MESSAGES,
        rest=Rest("publishRate", "publishRate", body="PublishRate", field="publishMaxMessageRate",
            by_cluster=True),
        methods=Methods("""
        Set how many messages and bytes all producers of a topic publish in a second. Above it
        sending waits, send_async too, until send_timeout_millis are over.

        Dead and retry letters, and what a callback of send_async sends, do not wait; they are
        counted, and others wait for them. It applies to non-persistent topics too.""",
            args={"msgs": "Messages a second; 0 and -1: without limit.",
                "bytes": "Bytes a second; 0 and -1: without limit."},
            get='{"msgs", "bytes"}'),
        commands=Commands(
            Option("-m --msg-publish-rate", "msgs", NUMBER,
                "Messages a topic a second; -1: any number.", default=-1, shows=True),
            Option("-b --byte-publish-rate", "bytes", SIZE,
                "Bytes a topic a second: 10M; -1: any number.", default=-1, shows=True),
            example="-m 1000"),
    ),
    Policy(
        "subscribe_rate",
        Record(
            Field("per_consumer", "subscribeThrottlingRatePerConsumer", Whole(-1), default=0,
                json_default=-1),
            Field("period_seconds", "ratePeriodInSecond", Whole(1, 10**9), default=30,
                argument="period"),
        ),
        effect=MESSAGES, for_kept=True,
        rest=Rest("subscribeRate", "subscribeRate", body="SubscribeRate",
            field="clusterSubscribeRate", by_cluster=True),
        methods=Methods("""
        Set how often consumers of one name may subscribe to a topic in a period: one time more
        raises NotAllowedError. Readers are not counted.""",
            args={"per_consumer": "How often; 0: without limit.",
                "period": "Seconds of a period."},
            get='{"per_consumer", "period_seconds"}'),
        commands=Commands(
            Option("-sr --subscribe-rate", "per_consumer", NUMBER,
                "How often a consumer may; 0: any number.", default=0, shows=True),
            Option("-st --subscribe-rate-period", "period", NUMBER, "Seconds of a period.",
                default=30, shows=True),
            example="-sr 10 -st 60"),
    ),
    Policy(
        "delayed_delivery",
        Record(
            Field("active", "active", Flag(), option="delayed_delivery_enabled"),
            Field("tick_time_millis", "tickTime", Whole(1),
                option="delayed_delivery_tick_time_millis"),
            Field("max_delivery_delay_in_millis", "maxDeliveryDelayInMillis", Whole(0, INT64_MAX),
                default=0, option="delayed_delivery_max_delay_in_millis"),
        ),
        effect=MESSAGES, for_kept=True,
        rest=Rest("delayedDelivery", "delayedDelivery", body="DelayedDeliveryPolicies",
            field="delayed_delivery_policies"),
        methods=Methods("""
        Set whether messages wait for their delivery time; else they are delivered at once.""",
            name="delayed_delivery_policies",
            args={"active": "Whether they wait.",
                "tick_time_millis": "How many milliseconds earlier they may come, where delivery "
                "is not strict.",
                "max_delivery_delay_in_millis": "Milliseconds that a message may be delayed at "
                "most: a longer delay raises NotAllowedError. 0: as BrokerOptions say."},
            get='{"active", "tick_time_millis", "max_delivery_delay_in_millis"}'),
        commands=Commands(
            Switch("active", "Messages wait for their time.", "Messages come at once."),
            Option("-t --time", "tick_time_millis", DURATION,
                "How much before their time messages may come, where that is not strict.",
                default="1s", shows=True, times=1000),
            Option("-md --maxDelay", "max_delivery_delay_in_millis", DURATION,
                "How long a message may be delayed: 90s, 3h, 2d. 0: the broker's option.",
                default="0", times=1000),
            example="--enable -t 1s -md 2d"),
    ),
    Policy(
        "inactive_topics",
        Record(
            Field("mode", "inactiveTopicDeleteMode", Choice(INACTIVE_TOPIC_MODES),
                option="broker_delete_inactive_topics_mode"),
            Field("seconds", "maxInactiveDurationSeconds", Whole(1),
                option="broker_delete_inactive_topics_max_inactive_duration_seconds "
                "broker_delete_inactive_topics_frequency_seconds"),
            Field("enabled", "deleteWhileInactive", Flag(),
                option="broker_delete_inactive_topics_enabled"),
        ),
        effect=MESSAGES,
        rest=Rest("inactiveTopicPolicies", "inactiveTopicPolicies", body="InactiveTopicPolicies",
            field="inactive_topic_policies"),
        methods=Methods("""
        Set whether a topic is deleted that was not used for a while.

        With messages it stays for the time that retention keeps them, for ever where that is -1.
        Partitioned topics go as a whole, where BrokerOptions(
        broker_delete_inactive_partitioned_topic_metadata_enabled=True) says so.""",
            name="inactive_topic_policies",
            args={"mode": "`delete_when_no_subscriptions`: it has no producer, reader or "
                "subscription; `delete_when_subscriptions_caught_up`: no producer, reader or "
                "consumer, and its subscriptions have acknowledged everything; they go with it.",
                "seconds": "Seconds without use.", "enabled": "Whether it is deleted."},
            get='{"mode", "seconds", "enabled"}'),
        commands=Commands(
            Switch("enabled", "Inactive topics are deleted.", "Inactive topics stay.",
                "-e --enable-delete-while-inactive", "-d --disable-delete-while-inactive"),
            Option("-t --max-inactive-duration", "seconds", DURATION,
                "After how long without use: 90s, 3h, 2d."),
            Option("-m --delete-mode", "mode", "", "What counts as inactive."),
            example="-e -t 1h -m delete_when_no_subscriptions", name="inactive-topic-policies"),
    ),
    _limit(
        "max_producers_per_topic",
        Rest("maxProducersPerTopic", "maxProducers"),
        "-p --max-producers-per-topic",
        "producers a topic has",
        "Set how many producers a topic may have: one more raises ProducerBusy.",
        topic_options="-p --max-producers",
        topic_command="max-producers",
        effect=MESSAGES,
    ),
    _limit(
        "max_consumers_per_topic",
        Rest("maxConsumersPerTopic", "maxConsumers"),
        "-c --max-consumers-per-topic",
        "consumers a topic has",
        """
        Set how many consumers all subscriptions of a topic may have together: one more raises
        ConsumerBusy.""",
        topic_options="-c --max-consumers",
        topic_command="max-consumers",
        effect=MESSAGES,
    ),
    _limit(
        "max_consumers_per_subscription",
        Rest("maxConsumersPerSubscription", "maxConsumersPerSubscription"),
        "-c --max-consumers-per-subscription",
        "consumers a subscription has",
        "Set how many consumers each subscription may have: one more raises ConsumerBusy.",
        effect=MESSAGES,
    ),
    _limit(
        "max_subscriptions_per_topic",
        Rest("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic"),
        "-m --max-subscriptions-per-topic",
        "subscriptions a topic has",
        """
        Set how many subscriptions a topic may have, those of readers and non-durable ones too: one
        more raises NotAllowedError.""",
        effect=MESSAGES,
    ),
    _limit(
        "max_topics_per_namespace",
        Rest("maxTopicsPerNamespace", None, unset={NAMESPACE: 0}),
        "-t --max-topics-per-namespace",
        "topics there are",
        """
        Set how many topics the namespace may have; each partition counts, system topics do not.
        Creating more raises NotAllowedError; existing ones stay.""",
        target="",
        levels=(NAMESPACE,),
    ),
    _limit(
        "max_unacked_messages_per_consumer",
        Rest("maxUnackedMessagesPerConsumer", "maxUnackedMessagesOnConsumer"),
        "-c --max-unacked-messages-per-topic",
        "messages a consumer holds unacknowledged",
        """
        Set how many messages a consumer of a Shared or Key_Shared subscription may hold
        unacknowledged: at that many it gets no more until it has acknowledged half of them.
        Applies to attached consumers at once.""",
        topic_options="-m --maxNum",
        effect=MESSAGES, for_kept=True,
    ),
    _limit(
        "max_unacked_messages_per_subscription",
        Rest("maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription"),
        "-c --max-unacked-messages-per-subscription",
        "messages the consumers of a subscription hold unacknowledged",
        """
        Set how many messages all consumers of a Shared or Key_Shared subscription may hold
        unacknowledged together, like set_max_unacked_messages_per_consumer.""",
        topic_options="-m --maxNum",
        effect=MESSAGES, for_kept=True,
    ),
    Policy(
        "compaction_threshold",
        Whole(0, INT64_MAX, unit="bytes", said="must be bytes, from 0 on"),
        option="broker_service_compaction_threshold_in_bytes",
        effect=COMPACTION, for_kept=True,
        rest=Rest("compactionThreshold", "compactionThreshold", methods=("PUT", "POST")),
        methods=Methods("""
        Compact a topic when enough was published since the last compaction; checked every 60
        seconds while the topic is open.""", argument="threshold",
            args={"threshold": "Bytes; 0: only when trigger_compaction is called."},
            get="the bytes"),
        commands=Commands(
            Option("-t --threshold", "threshold", SIZE,
                "Compact after so many bytes: 10M, 16G. 0: only when asked to."),
            example="-t 100M"),
    ),
    Policy(
        "offload_threshold",
        Whole(-1, INT64_MAX, unit="bytes", said="must be bytes, or -1: none"),
        option="managed_ledger_offload_auto_trigger_size_threshold_bytes",
        for_kept=True, needs_store=True,
        rest=Rest("offloadThreshold", None, methods=("PUT", "PUT"), unset={NAMESPACE: -1}),
        methods=Methods("""
        Offload the oldest sealed ledgers of a topic that holds more than a size; checked every 60
        seconds while the topic is open.""", argument="size",
            args={"size": "Bytes; 0: all ledgers; -1: only when topics.offload is called."},
            get="the bytes"),
        commands=Commands(
            Option("-s --size", "size", SIZE,
                "Offload what a topic holds beyond: 10M, 16G. 0: all; -1: when asked to."),
            example="-s 10G"),
    ),
    Policy(
        "offload_deletion_lag_ms",
        Whole(0, 2**53 - 1, unit="milliseconds", said="must be from 0 on"),
        option="managed_ledger_offload_deletion_lag_ms",
        for_kept=True, needs_store=True,
        rest=Rest("offloadDeletionLagMs", None, methods=("PUT", "PUT")),
        methods=Methods("Set how long the file of an offloaded ledger stays.",
            name="offload_deletion_lag", argument="lag_ms", args={"lag_ms": "Milliseconds."},
            get="the milliseconds"),
        commands=Commands(
            Option("-l --lag", "lag_ms", DURATION,
                "How long the file of an offloaded ledger stays: 90s, 4h, 2d.", times=1000),
            example="-l 4h", name="offload-deletion-lag"),
    ),
    Policy(
        "schema_compatibility_strategy",
        Choice(SCHEMA_STRATEGIES, f"is one of {', '.join(SCHEMA_STRATEGIES)}"),
        option="schema_compatibility_strategy",
        rest=Rest("schemaCompatibilityStrategy", "schemaCompatibilityStrategy",
            methods=("PUT", "PUT"), unset={NAMESPACE: "UNDEFINED"}),
        methods=Methods("""
        Set which schema may follow another.""", argument="strategy",
            args={"strategy": "ALWAYS_INCOMPATIBLE, ALWAYS_COMPATIBLE, BACKWARD (the new one reads "
                "what was written before), FORWARD (the old one reads what is written from now "
                "on), FULL (both), or one of these three with _TRANSITIVE: for all versions and "
                "not the last alone. UNDEFINED: the level above applies."},
            get="the strategy"),
        commands=Commands(
            Option("-c --compatibility -s --strategy", "strategy", "",
                "Which schema may follow another.", any_case=True),
            example="-c BACKWARD"),
    ),
    Policy(
        "schema_validation_enforced",
        Flag("is True or False"),
        option="is_schema_validation_enforced",
        rest=Rest("schemaValidationEnforced", "schemaValidationEnforced",
            unset={NAMESPACE: False, TOPIC: False}),
        methods=Methods(
            "Set whether a producer without a schema is refused where the topic has one.",
            argument="enforced", args={"enforced": "Whether it is."}, is_checked=False),
        commands=Commands(
            Switch("enforced", "Producers need the schema of the topic, where it has one.",
                "Those without a schema may."),
            example="--enable", name="schema-validation-enforce"),
    ),
    Policy(
        "is_allow_auto_update_schema",
        Flag("is True or False"),
        option="is_allow_auto_update_schema_enabled",
        rest=Rest("isAllowAutoUpdateSchema", None, unset={NAMESPACE: True}),
        methods=Methods("""
        Set whether producers and consumers register their schemas. If not, not even the first is
        registered but by `admin.schemas.create_schema`.""", argument="allowed",
            args={"allowed": "Whether they do."}, is_checked=False),
        commands=Commands(
            Switch("allowed", "Producers and consumers register their schemas.",
                "Only administration does."),
            example="--enable"),
    ),
    *(_quota(kind, limit) for kind, limit in QUOTA_LIMITS.items()),
]
# fmt: on
POLICIES = {each.name: each for each in TABLE}
