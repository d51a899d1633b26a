"""The policies about what clients may create by naming it, which types of subscriptions they may
ask for, and when topics are compacted and offloaded: of the topic, else of its namespace, else the
broker's options."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker_options import PARTITION_COUNT_MAX, SUBSCRIPTION_TYPES, check_choices
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.broker.runtime import BrokerRuntime

KINDS = ("non-partitioned", "partitioned")


class TopicCreation:
    """Whether and how a topic is created that a client names. A value."""

    __slots__ = ("allowed", "kind", "partitions")

    def __init__(self, allowed: bool, kind: str, partitions: int) -> None:
        self.allowed = allowed
        self.kind = kind
        self.partitions = partitions


def topic_creation(runtime: BrokerRuntime, name: TopicName) -> TopicCreation:
    """TopicNotFound: there is no such namespace."""
    found: Any = runtime.policies.namespace_policy(name.namespace_name, "auto_topic_creation")
    if found is not None:
        return TopicCreation(found["allowed"], found["type"], found["partitions"])
    options = runtime.options
    return TopicCreation(
        options.allow_auto_topic_creation,
        options.allow_auto_topic_creation_type,
        options.default_num_partitions,
    )


def check_subscription_creation(runtime: BrokerRuntime, topic: str, name: str) -> None:
    """SubscriptionNotFound: a consumer may not create the subscription it names. topic: a full
    name."""
    found = policy_in_force(runtime.policies, topic, "auto_subscription_creation")
    if not (runtime.options.allow_auto_subscription_creation if found is None else found):
        raise errors.SubscriptionNotFound(
            detail=f"subscription {name} of {topic}, and allow_auto_subscription_creation is off"
        )


def check_subscription_type(runtime: BrokerRuntime, topic: str, type_name: str) -> None:
    """NotAllowedError: consumers of the topic may not ask for it."""
    found = policy_in_force(runtime.policies, topic, "subscription_types_enabled")
    enabled = runtime.options.subscription_types_enabled if found is None else found
    if type_name not in enabled:
        raise errors.NotAllowedError(
            detail=f"subscribe to {topic}: subscription_types_enabled is {', '.join(enabled)}, "
            f"which {type_name} is not among"
        )


def policy_in_force(policies: PolicyStore, topic: str, policy: str) -> Any:
    """What a topic, or else its namespace, sets; None: neither does. A partition has the policies
    of its partitioned topic."""
    name = TopicName.of(topic)
    found = policies.own_policy(name.partitioned_name, policy)
    return policies.namespace_policy(name.namespace_name, policy) if found is None else found


# Checking what is set ---------------------------------------------------------------------------


def _topic_creation(value: object) -> object:
    if not isinstance(value, dict) or set(value) != {"allowed", "type", "partitions"}:
        raise ValueError(f"auto_topic_creation: {value!r:.200} is no such policy")
    if not isinstance(value["allowed"], bool):
        raise ValueError(
            f"auto_topic_creation: allowed must be bool, not {value['allowed']!r:.100}"
        )
    if value["type"] not in KINDS:
        raise ValueError(
            f"auto_topic_creation: type must be {' or '.join(KINDS)}, not {value['type']!r:.100}"
        )
    count = value["partitions"]
    if count.__class__ is not int or not 1 <= count <= PARTITION_COUNT_MAX:
        raise ValueError(
            f"auto_topic_creation: partitions must be from 1 to {PARTITION_COUNT_MAX}, not "
            f"{count!r:.100}"
        )
    return value


def _flag(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError(f"auto_subscription_creation must be bool, not {value!r:.100}")
    return value


def _types(value: object) -> object:
    return list(check_choices("subscription_types_enabled", value, SUBSCRIPTION_TYPES))


def _threshold(value: object) -> object:
    if value.__class__ is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"compaction_threshold must be bytes, from 0 on, not {value!r:.100}")
    return value


def _offload_threshold(value: object) -> object:
    if value.__class__ is not int or not -1 <= value < 1 << 63:
        raise ValueError(f"offload_threshold must be bytes, or -1: none, not {value!r:.100}")
    return value


def _offload_deletion_lag(value: object) -> object:
    if value.__class__ is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"offload_deletion_lag_ms must be from 0 on, not {value!r:.100}")
    return value


NAMESPACE_POLICIES: dict[str, Callable[[object], object]] = {
    "auto_topic_creation": _topic_creation,
    "auto_subscription_creation": _flag,
    "subscription_types_enabled": _types,
    "compaction_threshold": _threshold,
    "offload_threshold": _offload_threshold,
    "offload_deletion_lag_ms": _offload_deletion_lag,
}
TOPIC_POLICIES = {
    name: check for name, check in NAMESPACE_POLICIES.items() if name != "auto_topic_creation"
}
