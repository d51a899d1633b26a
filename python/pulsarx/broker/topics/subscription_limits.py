"""The limits of how many subscriptions and consumers a topic may have, by its policies."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.policies.limits import TopicLimits


def check_consumer_limit(limits: TopicLimits, topic: str, count: Callable[[], int]) -> None:
    """ConsumerBusy: a topic with so many consumers may have no more. count: how many it has; asked
    where there is a limit."""
    limit = limits.max_consumers_per_topic
    if limit and count() >= limit:
        raise errors.ConsumerBusy(
            detail=f"subscribe to {topic}: it has {limit} consumers, which is "
            "max_consumers_per_topic"
        )


def check_subscription_limit(limits: TopicLimits, topic: str, name: str, count: int) -> None:
    """NotAllowedError: a topic with so many subscriptions may have no more."""
    limit = limits.max_subscriptions_per_topic
    if limit and count >= limit:
        raise errors.NotAllowedError(
            detail=f"create subscription {name} of {topic}: it has {limit}, which is "
            "max_subscriptions_per_topic"
        )
