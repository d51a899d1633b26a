"""The policies about what clients may create by naming it, and which types of subscriptions they
may ask for: of the topic, else of its namespace, else the broker's options."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.topic_name import TopicName


class TopicCreation:
    """Whether and how a topic is created that a client names. A value."""

    __slots__ = ("allowed", "kind", "partitions")

    def __init__(self, allowed: bool, kind: str, partitions: int) -> None:
        self.allowed: bool = allowed
        self.kind: str = kind
        self.partitions: int = partitions


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


def check_subscription_creation(runtime: BrokerRuntime, topic: TopicName, name: str) -> None:
    """SubscriptionNotFound: a consumer may not create the subscription it names."""
    found = runtime.policies.in_force(topic, "auto_subscription_creation")
    if not (runtime.options.allow_auto_subscription_creation if found is None else found):
        raise errors.SubscriptionNotFound(
            detail=f"subscription {name} of {topic}, and allow_auto_subscription_creation is off"
        )


def check_subscription_type(runtime: BrokerRuntime, topic: TopicName, type_name: str) -> None:
    """NotAllowedError: consumers of the topic may not ask for it."""
    found = runtime.policies.in_force(topic, "subscription_types_enabled")
    enabled = runtime.options.subscription_types_enabled if found is None else found
    if type_name not in enabled:
        raise errors.NotAllowedError(
            detail=f"subscribe to {topic}: subscription_types_enabled is {', '.join(enabled)}, "
            f"which {type_name} is not among"
        )
