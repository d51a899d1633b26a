"""The policies about how many producers, consumers and subscriptions a topic may have, how much may
be unacknowledged, and how many topics a namespace. A topic's policy wins over its namespace's, that
over the broker's options, which have the same names. 0: without limit."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """The limits that hold on one topic. A value."""

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
