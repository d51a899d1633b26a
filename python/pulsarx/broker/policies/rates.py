"""The policies about how fast messages are published and dispatched, and how often consumers
subscribe. A topic's policy wins over its namespace's, that over the broker's options."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker_options import BrokerOptions

DISPATCH_RATE = "dispatch_rate"
SUBSCRIPTION_DISPATCH_RATE = "subscription_dispatch_rate"
PUBLISH_RATE = "publish_rate"
SUBSCRIBE_RATE = "subscribe_rate"


class Rate:
    """So many messages and bytes a period, 0: without limit. is_relative: what is published on the
    topic comes on top. A value."""

    __slots__ = ("is_relative", "messages", "period_ms", "size")

    def __init__(
        self, messages: int, size: int, period_ms: int = 1000, is_relative: bool = False
    ) -> None:
        self.messages: int = max(messages, 0)
        self.size: int = max(size, 0)
        self.period_ms: int = period_ms
        self.is_relative: bool = is_relative


class SubscribeRate:
    """How often a consumer may subscribe a period. A value."""

    __slots__ = ("per_consumer", "period_ms")

    def __init__(self, per_consumer: int, period_ms: int) -> None:
        self.per_consumer: int = per_consumer
        self.period_ms: int = period_ms


class TopicRates:
    """The rates that hold on one topic; None: without limit. A value."""

    __slots__ = ("dispatch", "publish", "subscribe", "subscription_dispatch")

    def __init__(
        self,
        dispatch: Rate | None,
        subscription_dispatch: Rate | None,
        publish: Rate | None,
        subscribe: SubscribeRate | None,
    ) -> None:
        self.dispatch: Rate | None = dispatch
        self.subscription_dispatch: Rate | None = subscription_dispatch
        self.publish: Rate | None = publish
        self.subscribe: SubscribeRate | None = subscribe

    @property
    def is_relative(self) -> bool:
        """Whether a limit needs to know what is published."""
        found = (self.dispatch, self.subscription_dispatch)
        return any(each is not None and each.is_relative for each in found)


def rates_in_force(policies: dict[str, Any], options: BrokerOptions) -> TopicRates | None:
    """policies: what is set, the topic's over the namespace's. None: there is no limit."""
    found = TopicRates(
        _rate(
            policies.get(DISPATCH_RATE),
            options.dispatch_throttling_rate_per_topic_in_msg,
            options.dispatch_throttling_rate_per_topic_in_byte,
        ),
        _rate(
            policies.get(SUBSCRIPTION_DISPATCH_RATE),
            options.dispatch_throttling_rate_per_subscription_in_msg,
            options.dispatch_throttling_rate_per_subscription_in_byte,
        ),
        _rate(policies.get(PUBLISH_RATE), 0, 0),
        _subscribe_rate(policies.get(SUBSCRIBE_RATE)),
    )
    names = TopicRates.__slots__
    return found if any(getattr(found, name) is not None for name in names) else None


def _rate(value: dict[str, Any] | None, messages: int, size: int) -> Rate | None:
    """The rate that is set, or else these limits; None: without limit."""
    if value is None:
        found = Rate(messages, size)
    else:
        period_ms = value.get("period_seconds", 1) * 1000
        relative = value.get("relative_to_publish_rate", False)
        found = Rate(value["msgs"], value["bytes"], period_ms, relative)
    return found if found.messages or found.size else None


def _subscribe_rate(value: dict[str, Any] | None) -> SubscribeRate | None:
    if value is None or value["per_consumer"] <= 0:
        return None
    return SubscribeRate(value["per_consumer"], value["period_seconds"] * 1000)
