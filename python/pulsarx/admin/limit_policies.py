"""The policies about how many producers, consumers and subscriptions a topic may have, and how much
may be unacknowledged: what both groups of `client.admin` have."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin.channel import Channel


class LimitPolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over the option of the
    same name of BrokerOptions; 0: without limit, whatever is set above. Each partition of a topic
    has the whole limit. A change is durable on return and applies to producers, consumers and
    subscriptions that come later: those that are there stay. A get_ call returns what is set at
    this level; None: nothing. Topics whose own name begins with two underscores have none of these
    policies, and the options' limits."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def set_max_producers_per_topic(self, target: str, count: int) -> None:
        """How many producers a topic may have: one more raises ProducerBusy."""
        self._set_limit(target, "max_producers_per_topic", count)

    def get_max_producers_per_topic(self, target: str) -> int | None:
        return self._get_limit(target, "max_producers_per_topic")

    def remove_max_producers_per_topic(self, target: str) -> None:
        self._set_limit(target, "max_producers_per_topic", None)

    def set_max_consumers_per_topic(self, target: str, count: int) -> None:
        """How many consumers all subscriptions of a topic may have together: one more raises
        ConsumerBusy."""
        self._set_limit(target, "max_consumers_per_topic", count)

    def get_max_consumers_per_topic(self, target: str) -> int | None:
        return self._get_limit(target, "max_consumers_per_topic")

    def remove_max_consumers_per_topic(self, target: str) -> None:
        self._set_limit(target, "max_consumers_per_topic", None)

    def set_max_consumers_per_subscription(self, target: str, count: int) -> None:
        """How many consumers each subscription may have: one more raises ConsumerBusy."""
        self._set_limit(target, "max_consumers_per_subscription", count)

    def get_max_consumers_per_subscription(self, target: str) -> int | None:
        return self._get_limit(target, "max_consumers_per_subscription")

    def remove_max_consumers_per_subscription(self, target: str) -> None:
        self._set_limit(target, "max_consumers_per_subscription", None)

    def set_max_subscriptions_per_topic(self, target: str, count: int) -> None:
        """How many subscriptions a topic may have, those of readers and non-durable ones too: one
        more raises NotAllowedError."""
        self._set_limit(target, "max_subscriptions_per_topic", count)

    def get_max_subscriptions_per_topic(self, target: str) -> int | None:
        return self._get_limit(target, "max_subscriptions_per_topic")

    def remove_max_subscriptions_per_topic(self, target: str) -> None:
        self._set_limit(target, "max_subscriptions_per_topic", None)

    def set_max_unacked_messages_per_consumer(self, target: str, count: int) -> None:
        """How many messages a consumer of a Shared or Key_Shared subscription may hold
        unacknowledged: at that many it gets no more until it has acknowledged half of them. Applies
        to attached consumers at once."""
        self._set_limit(target, "max_unacked_messages_per_consumer", count)

    def get_max_unacked_messages_per_consumer(self, target: str) -> int | None:
        return self._get_limit(target, "max_unacked_messages_per_consumer")

    def remove_max_unacked_messages_per_consumer(self, target: str) -> None:
        self._set_limit(target, "max_unacked_messages_per_consumer", None)

    def set_max_unacked_messages_per_subscription(self, target: str, count: int) -> None:
        """Like set_max_unacked_messages_per_consumer, for all consumers of a subscription
        together."""
        self._set_limit(target, "max_unacked_messages_per_subscription", count)

    def get_max_unacked_messages_per_subscription(self, target: str) -> int | None:
        return self._get_limit(target, "max_unacked_messages_per_subscription")

    def remove_max_unacked_messages_per_subscription(self, target: str) -> None:
        self._set_limit(target, "max_unacked_messages_per_subscription", None)

    def _set_limit(self, target: str, name: str, count: int | None) -> None:
        arguments = {self._LEVEL: target, "policy": {name: count}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)

    def _get_limit(self, target: str, name: str) -> int | None:
        arguments = {self._LEVEL: target, "name": name}
        found: int | None = self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)
        return found
