"""The policies about how many producers, consumers and subscriptions a topic may have, how much may
be unacknowledged, and how many topics a namespace. A topic's policy wins over its namespace's, that
over the broker's options, which have the same names. 0: without limit."""

from __future__ import annotations

from pulsarx.broker_options import INT32_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker_options import BrokerOptions

# Of those who attach, whether or not a topic keeps its messages.
ATTACHED = (
    "max_producers_per_topic",
    "max_consumers_per_topic",
    "max_consumers_per_subscription",
    "max_subscriptions_per_topic",
)
UNACKNOWLEDGED = ("max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription")
MAX_TOPICS = "max_topics_per_namespace"


class TopicLimits:
    """What holds on one topic. A value."""

    __slots__ = ATTACHED + UNACKNOWLEDGED

    max_producers_per_topic: int
    max_consumers_per_topic: int
    max_consumers_per_subscription: int
    max_subscriptions_per_topic: int
    max_unacked_messages_per_consumer: int
    max_unacked_messages_per_subscription: int

    def __init__(self, policies: dict[str, Any], options: BrokerOptions) -> None:
        """policies: what is set, the topic's over the namespace's."""
        for name in self.__slots__:
            setattr(self, name, policies.get(name, getattr(options, name)))


def _check(name: str) -> Callable[[object], object]:
    def check(value: object) -> object:
        if value.__class__ is not int or not 0 <= value <= INT32_MAX:
            raise ValueError(
                f"{name} must be an int from 0 (without limit) to {INT32_MAX}, not {value!r:.100}"
            )
        return value

    return check


LIMIT_CHECKS = {name: _check(name) for name in TopicLimits.__slots__}
MAX_TOPICS_CHECK = {MAX_TOPICS: _check(MAX_TOPICS)}
