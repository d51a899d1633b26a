"""The policies about what clients may create by naming it, and which types of subscriptions they
may ask for: of the topic, else of its namespace, else the broker's options."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.broker.runtime import BrokerRuntime


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
