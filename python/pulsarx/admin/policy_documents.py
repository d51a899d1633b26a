"""How Pulsar's admin REST API writes each policy: its path, and its value in JSON. For both ends of
HTTP."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

_DIGITS = re.compile(r"-?[0-9]{1,19}")
QUOTA_TYPES = ("destination_storage", "message_age")


class PolicyDocument:
    """A value."""

    __slots__ = ("kind", "name", "paths", "query", "read", "setting", "shown")

    def __init__(
        self,
        name: str,
        kind: str,
        shown: Callable[[Any], Any],
        read: Callable[[Any], Any],
        *,
        namespace: str | None = None,
        topic: str | None = None,
        setting: tuple[str, str] = ("POST", "POST"),
        query: str | None = None,
    ) -> None:
        """name: of the verbs. kind: what the JSON is called. shown: a value in JSON; read: a value
        of JSON, or ValueError. namespace, topic: the last part of its path; None: that level does
        not have it. setting: the methods that set it, of namespaces and of topics. query: the
        parameter in which topics get it, besides the body."""
        self.name = name
        self.kind = kind
        self.shown = shown
        self.read = read
        self.paths = {"namespace": namespace, "topic": topic}
        self.setting = dict(zip(("namespace", "topic"), setting))
        self.query = query


def _same(value: Any) -> Any:
    return value


def _integer(found: Any) -> int:
    if isinstance(found, str) and _DIGITS.fullmatch(found):
        return int(found)  # as Pulsar, and its tests, take it
    if isinstance(found, bool) or not isinstance(found, int):
        raise ValueError("it must be a whole number")
    return found


def _flag(found: Any) -> bool:
    if not isinstance(found, bool):
        raise ValueError("it must be true or false")
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError("it must be a text")
    return found


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise ValueError("it must be a list")
    return found


def _object(
    pairs: dict[str, str], defaults: Json | None = None
) -> tuple[Callable[[Any], Json], Callable[[Any], Json]]:
    """What shows an object under Pulsar's names, and what reads one. pairs: our name, Pulsar's."""

    def shown(value: Any) -> Json:
        return {theirs: value[ours] for ours, theirs in pairs.items()}

    def read(found: Any) -> Json:
        if not isinstance(found, dict):
            raise ValueError("it must be a JSON object")
        whole = {**(defaults or {}), **found}
        missing = [theirs for theirs in pairs.values() if theirs not in whole]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        return {ours: whole[theirs] for ours, theirs in pairs.items()}

    return shown, read


def _shown_subscription_creation(value: Any) -> Json:
    return {"allowAutoSubscriptionCreation": value}


def _subscription_creation(found: Any) -> bool:
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    return _flag(found.get("allowAutoSubscriptionCreation"))


_DISPATCH = _object(
    {
        "msgs": "dispatchThrottlingRateInMsg",
        "bytes": "dispatchThrottlingRateInByte",
        "relative_to_publish_rate": "relativeToPublishRate",
        "period_seconds": "ratePeriodInSecond",
    },
    {
        "dispatchThrottlingRateInMsg": -1,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    },
)


def _limit(name: str, namespace: str, topic: str | None) -> PolicyDocument:
    return PolicyDocument(name, "integer", _same, _integer, namespace=namespace, topic=topic)


def _both(name: str, kind: str, shown: Any, read: Any, path: str, **more: Any) -> PolicyDocument:
    """Under one name on both levels."""
    return PolicyDocument(name, kind, shown, read, namespace=path, topic=path, **more)


DOCUMENTS = [
    _both(
        "retention",
        "RetentionPolicies",
        *_object({"time_minutes": "retentionTimeInMinutes", "size_mb": "retentionSizeInMB"}),
        "retention",
    ),
    _both("message_ttl", "integer", _same, _integer, "messageTTL", query="messageTTL"),
    _both(
        "subscription_expiration_time",
        "integer",
        _same,
        _integer,
        "subscriptionExpirationTime",
        query="subscriptionExpirationTime",
    ),
    PolicyDocument(
        "deduplication",
        "boolean",
        _same,
        _flag,
        namespace="deduplication",
        topic="deduplicationEnabled",
    ),
    PolicyDocument(
        "auto_topic_creation",
        "AutoTopicCreationOverride",
        *_object(
            {
                "allowed": "allowAutoTopicCreation",
                "type": "topicType",
                "partitions": "defaultNumPartitions",
            },
            {"topicType": "non-partitioned", "defaultNumPartitions": 1},
        ),
        namespace="autoTopicCreation",
    ),
    _both(
        "auto_subscription_creation",
        "AutoSubscriptionCreationOverride",
        _shown_subscription_creation,
        _subscription_creation,
        "autoSubscriptionCreation",
    ),
    _both("subscription_types_enabled", "array", _same, _list, "subscriptionTypesEnabled"),
    _both("dispatch_rate", "DispatchRate", *_DISPATCH, "dispatchRate"),
    _both("subscription_dispatch_rate", "DispatchRate", *_DISPATCH, "subscriptionDispatchRate"),
    _both(
        "publish_rate",
        "PublishRate",
        *_object(
            {"msgs": "publishThrottlingRateInMsg", "bytes": "publishThrottlingRateInByte"},
            {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1},
        ),
        "publishRate",
    ),
    _both(
        "subscribe_rate",
        "SubscribeRate",
        *_object(
            {
                "per_consumer": "subscribeThrottlingRatePerConsumer",
                "period_seconds": "ratePeriodInSecond",
            },
            {"subscribeThrottlingRatePerConsumer": -1, "ratePeriodInSecond": 30},
        ),
        "subscribeRate",
    ),
    _both(
        "delayed_delivery",
        "DelayedDeliveryPolicies",
        *_object(
            {
                "tick_time_millis": "tickTime",
                "active": "active",
                "max_delivery_delay_in_millis": "maxDeliveryDelayInMillis",
            },
            {"maxDeliveryDelayInMillis": 0},
        ),
        "delayedDelivery",
    ),
    _both(
        "inactive_topics",
        "InactiveTopicPolicies",
        *_object(
            {
                "mode": "inactiveTopicDeleteMode",
                "seconds": "maxInactiveDurationSeconds",
                "enabled": "deleteWhileInactive",
            }
        ),
        "inactiveTopicPolicies",
    ),
    _limit("max_producers_per_topic", "maxProducersPerTopic", "maxProducers"),
    _limit("max_consumers_per_topic", "maxConsumersPerTopic", "maxConsumers"),
    _limit(
        "max_consumers_per_subscription",
        "maxConsumersPerSubscription",
        "maxConsumersPerSubscription",
    ),
    _limit("max_subscriptions_per_topic", "maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic"),
    _limit("max_topics_per_namespace", "maxTopicsPerNamespace", None),
    _limit(
        "max_unacked_messages_per_consumer",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesOnConsumer",
    ),
    _limit(
        "max_unacked_messages_per_subscription",
        "maxUnackedMessagesPerSubscription",
        "maxUnackedMessagesOnSubscription",
    ),
    _both(
        "compaction_threshold",
        "integer",
        _same,
        _integer,
        "compactionThreshold",
        setting=("PUT", "POST"),
    ),
    PolicyDocument(
        "offload_threshold",
        "integer",
        _same,
        _integer,
        namespace="offloadThreshold",
        setting=("PUT", "PUT"),
    ),
    PolicyDocument(
        "offload_deletion_lag_ms",
        "integer",
        _same,
        _integer,
        namespace="offloadDeletionLagMs",
        setting=("PUT", "PUT"),
    ),
    _both(
        "schema_compatibility_strategy",
        "string",
        _same,
        _text,
        "schemaCompatibilityStrategy",
        setting=("PUT", "PUT"),
    ),
    _both(
        "schema_validation_enforced",
        "boolean",
        _same,
        _flag,
        "schemaValidationEnforced",
    ),
    PolicyDocument(
        "is_allow_auto_update_schema",
        "boolean",
        _same,
        _flag,
        namespace="isAllowAutoUpdateSchema",
    ),
]


def shown_quota(value: Json) -> Json:
    return {
        "limit": value["limit_size"],
        "limitSize": value["limit_size"],
        "limitTime": value["limit_time"],
        "policy": value["policy"],
    }


def read_quota(found: Any) -> Json:
    """ValueError: it is none."""
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    return {
        "limit_size": _integer(found.get("limitSize", found.get("limit", -1))),
        "limit_time": _integer(found.get("limitTime", -1)),
        "policy": found.get("policy"),
    }
