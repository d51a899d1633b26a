"""The policies about what becomes of stored messages, and of topics nobody uses: expiry, retention,
backlog quotas, delayed delivery, inactive topics and subscriptions; with those of `rates` and
`limits`. A topic's policy wins over its namespace's, that over the broker's options."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.policies.limits import TopicLimits
from pulsarx.broker.policies.quota_types import (
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    QUOTA_LIMITS,
    quota_name,
)
from pulsarx.broker.policies.rates import rates_in_force
from pulsarx.broker_options import BACKLOG_QUOTA_POLICIES, INACTIVE_TOPIC_MODES
from pulsarx.topic_name import TopicName, is_system_subscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.policies.rates import TopicRates
    from pulsarx.broker_options import BrokerOptions

RETENTION = "retention"
MESSAGE_TTL = "message_ttl"
DELAYED_DELIVERY = "delayed_delivery"
INACTIVE_TOPICS = "inactive_topics"
SUBSCRIPTION_EXPIRATION = "subscription_expiration_time"
HOLD, EXCEPTION, EVICTION = BACKLOG_QUOTA_POLICIES
NO_SUBSCRIPTIONS, CAUGHT_UP = INACTIVE_TOPIC_MODES


def is_exempt(name: TopicName) -> bool:
    """Whether no policy of this module holds on a topic, because it is not one of users: the
    system's, and those whose own name begins with two underscores."""
    return name.local_name.startswith("__") or name.is_system


def is_exempt_subscription(name: str) -> bool:
    """Whether a subscription neither expires nor counts as one, because users do not have it."""
    return is_system_subscription(name)


class BacklogQuota:
    """A limit, of bytes or of seconds, and what is done above it. A value."""

    __slots__ = ("limit", "policy")

    def __init__(self, limit: int, policy: str) -> None:
        """limit: -1 for none."""
        self.limit: int = limit
        self.policy: str = policy


class InactiveTopics:
    """When a topic that nobody uses is deleted. A value."""

    __slots__ = ("enabled", "mode", "seconds")

    def __init__(self, mode: str, seconds: int, enabled: bool) -> None:
        self.mode: str = mode
        self.seconds: int = seconds
        self.enabled: bool = enabled


class DelayedDelivery:
    """Whether messages wait for their time, how much before it they may come, and how long they
    may be told to wait (0: without limit). A value."""

    __slots__ = ("active", "delay_max_ms", "early_ms")

    def __init__(self, active: bool, early_ms: int, delay_max_ms: int) -> None:
        self.active: bool = active
        self.early_ms: int = early_ms
        self.delay_max_ms: int = delay_max_ms


class MessagePolicies:
    """The policies that hold on one topic. A value. ttl_seconds, subscription_expiration_minutes: 0
    for off."""

    __slots__ = (
        "delayed_delivery", "inactive_topics", "limits", "quotas", "rates",
        "subscription_expiration_minutes", "ttl_seconds",
    )  # fmt: skip

    def __init__(self, policies: dict[str, Any], options: BrokerOptions, exempt: bool) -> None:
        """policies: what is set, the topic's over the namespace's. exempt: see is_exempt."""
        self.ttl_seconds: int = policies.get(MESSAGE_TTL, options.ttl_duration_default_in_seconds)
        self.subscription_expiration_minutes: int = policies.get(
            SUBSCRIPTION_EXPIRATION, options.subscription_expiration_time_minutes
        )
        self.quotas: dict[str, BacklogQuota] = _quotas(policies, options)
        self.inactive_topics: InactiveTopics = _inactive_topics(policies, options)
        self.delayed_delivery: DelayedDelivery = _delayed_delivery(policies, options)
        self.rates: TopicRates | None = None if exempt else rates_in_force(policies, options)
        self.limits: TopicLimits = TopicLimits({} if exempt else policies, options)
        if exempt:
            self.ttl_seconds = self.subscription_expiration_minutes = 0
            self.quotas = {}
            self.inactive_topics.enabled = False


def _quotas(policies: dict[str, Any], options: BrokerOptions) -> dict[str, BacklogQuota]:
    """By type; none where there is no limit, or nobody looks."""
    if not options.backlog_quota_check_enabled:
        return {}
    defaults = {
        DESTINATION_STORAGE: options.backlog_quota_default_limit_bytes,
        MESSAGE_AGE: options.backlog_quota_default_limit_second,
    }
    found = {}
    for kind, default in defaults.items():
        value = policies.get(quota_name(kind))
        limit = default if value is None else value[QUOTA_LIMITS[kind]]
        if limit > 0:
            policy = options.backlog_quota_default_retention_policy
            found[kind] = BacklogQuota(limit, policy if value is None else value["policy"])
    return found


def _inactive_topics(policies: dict[str, Any], options: BrokerOptions) -> InactiveTopics:
    found = policies.get(INACTIVE_TOPICS)
    if found is not None:
        return InactiveTopics(found["mode"], found["seconds"], found["enabled"])
    seconds = options.broker_delete_inactive_topics_max_inactive_duration_seconds
    return InactiveTopics(
        options.broker_delete_inactive_topics_mode,
        seconds or options.broker_delete_inactive_topics_frequency_seconds,
        options.broker_delete_inactive_topics_enabled,
    )


def _delayed_delivery(policies: dict[str, Any], options: BrokerOptions) -> DelayedDelivery:
    found = policies.get(DELAYED_DELIVERY)
    active, tick_ms = options.delayed_delivery_enabled, options.delayed_delivery_tick_time_millis
    delay_max_ms = options.delayed_delivery_max_delay_in_millis
    if found is not None:
        active, tick_ms = found["active"], found["tick_time_millis"]
        delay_max_ms = found["max_delivery_delay_in_millis"] or delay_max_ms
    strict = options.is_delayed_delivery_deliver_at_time_strict
    return DelayedDelivery(active, 0 if strict else tick_ms, delay_max_ms)


# Those that must not say what contradicts the other.
RELATED = (RETENTION, quota_name(DESTINATION_STORAGE))


def check_no_conflict(what: str, options: BrokerOptions, policies: dict[str, Any]) -> None:
    """NotAllowedError: the backlog quota would allow as many bytes as retention keeps, or more.
    policies: in force, by name."""
    time_minutes = options.default_retention_time_in_minutes
    size_mb = options.default_retention_size_in_mb
    if (retention := policies.get(RETENTION)) is not None:
        time_minutes, size_mb = retention["time_minutes"], retention["size_mb"]
    limit = options.backlog_quota_default_limit_bytes
    if (quota := policies.get(quota_name(DESTINATION_STORAGE))) is not None:
        limit = quota["limit_size"]
    if size_mb <= 0 or time_minutes == 0:
        return  # nothing is kept, or everything
    if limit >= size_mb << 20:
        raise errors.NotAllowedError(
            detail=f"{what}: retention keeps {size_mb} MiB, which must be more than the limit of "
            f"the backlog quota, {limit} bytes"
        )
