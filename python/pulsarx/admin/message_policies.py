"""The policies about what becomes of stored messages: what `client.admin.namespaces` and
`client.admin.topics` share."""

from __future__ import annotations

from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel


class MessagePolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions; the
    partitions of a topic have its policies. A change takes effect at once, for open producers and
    consumers too, and is durable on return. A get_ call returns what is set at this level; None:
    nothing. Topics whose own name begins with two underscores have none of these policies."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    # Expiry ---------------------------------------------------------------------------------------

    def set_message_ttl(self, target: str, seconds: int) -> None:
        """Set how old messages may become: older ones are not delivered, and count as acknowledged
        on every subscription. 0: they do not expire, whatever the levels above say."""
        self._set_message_policy(target, "message_ttl", _integer("seconds", seconds))

    def get_message_ttl(self, target: str) -> int | None:
        """Seconds."""
        found: int | None = self._get_message_policy(target, "message_ttl")
        return found

    def remove_message_ttl(self, target: str) -> None:
        self._set_message_policy(target, "message_ttl", None)

    # Retention ------------------------------------------------------------------------------------

    def set_retention(self, target: str, time_minutes: int, size_mb: int) -> None:
        """Keep acknowledged messages: for time_minutes, up to size_mb MiB a topic, whichever is
        reached first.

        -1: without limit; 0 in both: not at all. Whole ledgers are removed, never parts.
        ValueError: 0 in one of them alone, with which nothing would be kept.
        NotAllowedError: size_mb is not more than the backlog quota.
        """
        value = {
            "time_minutes": _integer("time_minutes", time_minutes),
            "size_mb": _integer("size_mb", size_mb),
        }
        self._set_message_policy(target, "retention", value)

    def get_retention(self, target: str) -> tuple[int, int] | None:
        """(time_minutes, size_mb)."""
        found: Any = self._get_message_policy(target, "retention")
        return None if found is None else (found["time_minutes"], found["size_mb"])

    def remove_retention(self, target: str) -> None:
        self._set_message_policy(target, "retention", None)

    # Backlog quotas -------------------------------------------------------------------------------

    def set_backlog_quota(
        self,
        target: str,
        limit_size: int = -1,
        limit_time: int = -1,
        policy: str = "producer_request_hold",
        type: str = "destination_storage",
    ) -> None:
        """Limit the backlog of each topic: that of its slowest durable subscription.

        type: `destination_storage` (limit_size, bytes) or `message_age` (limit_time, seconds); a
        topic may have one of each.
        policy: `producer_request_hold`: sending waits until there is room, or send_timeout_millis
        are over; `producer_exception`: producers are shut; with these no producer can be created.
        `consumer_backlog_eviction`: the oldest messages are acknowledged.
        NotAllowedError: limit_size is not less than what retention keeps.
        """
        value = {
            "limit_size": _integer("limit_size", limit_size),
            "limit_time": _integer("limit_time", limit_time),
            "policy": policy,
        }
        self._set_message_policy(target, _quota(type), value)

    def get_backlog_quotas(self, target: str) -> dict[str, dict[str, Any]]:
        """{"limit_size", "limit_time", "policy"} by type, as far as they are set."""
        names = {each: _quota(each) for each in QUOTA_TYPES}
        found = {each: self._get_message_policy(target, name) for each, name in names.items()}
        return {each: value for each, value in found.items() if value is not None}

    def get_backlog_quota(
        self, target: str, type: str = "destination_storage"
    ) -> dict[str, Any] | None:
        """The quota of one type."""
        found: dict[str, Any] | None = self._get_message_policy(target, _quota(type))
        return found

    def remove_backlog_quota(self, target: str, type: str = "destination_storage") -> None:
        self._set_message_policy(target, _quota(type), None)

    # Delayed delivery -----------------------------------------------------------------------------

    def set_delayed_delivery_policies(
        self,
        target: str,
        active: bool,
        tick_time_millis: int,
        max_delivery_delay_in_millis: int = 0,
    ) -> None:
        """Set whether messages wait for their delivery time (else they are delivered at once), how
        much earlier they may come where delivery is not strict, and how long a message may be
        delayed at most: a longer delay raises NotAllowedError. 0: as BrokerOptions say."""
        if not isinstance(active, bool):
            raise ValueError(f"active must be a bool, not {active.__class__.__name__}")
        value = {
            "active": active,
            "tick_time_millis": _integer("tick_time_millis", tick_time_millis),
            "max_delivery_delay_in_millis": _integer(
                "max_delivery_delay_in_millis", max_delivery_delay_in_millis
            ),
        }
        self._set_message_policy(target, "delayed_delivery", value)

    def get_delayed_delivery_policies(self, target: str) -> dict[str, Any] | None:
        """{"active", "tick_time_millis", "max_delivery_delay_in_millis"}."""
        found: dict[str, Any] | None = self._get_message_policy(target, "delayed_delivery")
        return found

    def remove_delayed_delivery_policies(self, target: str) -> None:
        self._set_message_policy(target, "delayed_delivery", None)

    # What nobody uses -----------------------------------------------------------------------------

    def set_inactive_topic_policies(
        self, target: str, mode: str, seconds: int, enabled: bool
    ) -> None:
        """Set whether a topic is deleted that was not used for that many seconds.

        mode: `delete_when_no_subscriptions`: it has no producer, reader or subscription;
        `delete_when_subscriptions_caught_up`: no producer, reader or consumer, and its
        subscriptions have acknowledged everything; they go with it. With messages it stays for the
        time that retention keeps them, for ever where that is -1. Partitioned topics go as a whole,
        where BrokerOptions(broker_delete_inactive_partitioned_topic_metadata_enabled=True) says so.
        """
        if not isinstance(enabled, bool):
            raise ValueError(f"enabled must be a bool, not {type(enabled).__name__}")
        value = {"mode": mode, "seconds": _integer("seconds", seconds), "enabled": enabled}
        self._set_message_policy(target, "inactive_topics", value)

    def get_inactive_topic_policies(self, target: str) -> dict[str, Any] | None:
        """{"mode", "seconds", "enabled"}."""
        found: dict[str, Any] | None = self._get_message_policy(target, "inactive_topics")
        return found

    def remove_inactive_topic_policies(self, target: str) -> None:
        self._set_message_policy(target, "inactive_topics", None)

    def set_subscription_expiration_time(self, target: str, minutes: int) -> None:
        """Delete durable subscriptions that have no consumer and were not used for that many
        minutes. 0: they stay, whatever the levels above say."""
        minutes = _integer("minutes", minutes)
        self._set_message_policy(target, "subscription_expiration_time", minutes)

    def get_subscription_expiration_time(self, target: str) -> int | None:
        """Minutes."""
        found: int | None = self._get_message_policy(target, "subscription_expiration_time")
        return found

    def remove_subscription_expiration_time(self, target: str) -> None:
        self._set_message_policy(target, "subscription_expiration_time", None)

    def _set_message_policy(self, target: str, name: str, value: object) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)

    def _get_message_policy(self, target: str, name: str) -> Any:
        arguments = {self._LEVEL: target, "name": name}
        return self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)


QUOTA_TYPES = ("destination_storage", "message_age")


def _quota(type: str) -> str:
    if type not in QUOTA_TYPES:
        raise ValueError(f"type must be {' or '.join(QUOTA_TYPES)}, not {shown(type)}")
    return f"backlog_quota_{type}"


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an int, not {type(value).__name__}")
    return value
