"""The methods of `client.admin` that set, get and remove policies. Written by
tools/write_policies.py from the table in `broker/policies/table.py`: change it there."""

from __future__ import annotations

from pulsarx.admin.policy_group import PolicyGroup, flag, whole, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class PolicyMethods(PolicyGroup):
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions; the
    partitions of a topic have its policies, each the whole limit or rate. A get_ call returns what
    is set at this level; None: nothing. A change is durable on return and takes effect at once, for
    open producers and consumers too; but limits of how many there may be, the creation of topics
    and subscriptions, types of subscriptions and schemas are asked for with what comes later: who
    is there stays. Topics whose own name begins with two underscores have none of the policies
    about messages and rates, and the options' limits. A limit of 0 is none, whatever is set above.

    As long as a period of a rate has permits left, an entry (a message, or a batch) passes as a
    whole; what it takes in excess is subtracted from the periods that follow. Permits that a period
    does not use are lost.

    OperationNotSupported, of what is offloaded: the owner of the folder has no `offload_url`."""

    def set_retention(self, target: str, time_minutes: int, size_mb: int) -> None:
        """Keep acknowledged messages: for time_minutes, up to size_mb MiB a topic, whichever is
        reached first.

        -1: without limit; 0 in both: not at all. Whole ledgers are removed, never parts.
        ValueError: 0 in one of them alone, with which nothing would be kept.
        NotAllowedError: size_mb is not more than the backlog quota.
        """
        value = {
            "time_minutes": whole("time_minutes", time_minutes),
            "size_mb": whole("size_mb", size_mb),
        }
        self._set_policy(target, "retention", value)

    def get_retention(self, target: str) -> tuple[int, int] | None:
        """(time_minutes, size_mb)."""
        found: Any = self._get_policy(target, "retention")
        return None if found is None else (found["time_minutes"], found["size_mb"])

    def remove_retention(self, target: str) -> None:
        self._remove_policy(target, "retention")

    def set_message_ttl(self, target: str, seconds: int) -> None:
        """Set how old messages may become: older ones are not delivered, and count as acknowledged
        on every subscription. 0: they do not expire, whatever the levels above say."""
        self._set_policy(target, "message_ttl", whole("seconds", seconds))

    def get_message_ttl(self, target: str) -> int | None:
        """Seconds."""
        found: int | None = self._get_policy(target, "message_ttl")
        return found

    def remove_message_ttl(self, target: str) -> None:
        self._remove_policy(target, "message_ttl")

    def set_subscription_expiration_time(self, target: str, minutes: int) -> None:
        """Delete durable subscriptions that have no consumer and were not used for that many
        minutes. 0: they stay, whatever the levels above say."""
        self._set_policy(target, "subscription_expiration_time", whole("minutes", minutes))

    def get_subscription_expiration_time(self, target: str) -> int | None:
        """Minutes."""
        found: int | None = self._get_policy(target, "subscription_expiration_time")
        return found

    def remove_subscription_expiration_time(self, target: str) -> None:
        self._remove_policy(target, "subscription_expiration_time")

    def set_auto_subscription_creation(self, target: str, allowed: bool) -> None:
        """Whether a consumer creates the durable subscription that it names; else it gets
        SubscriptionNotFound."""
        self._set_policy(target, "auto_subscription_creation", allowed)

    def get_auto_subscription_creation(self, target: str) -> bool | None:
        """The value set at this level; None: none is."""
        found: bool | None = self._get_policy(target, "auto_subscription_creation")
        return found

    def remove_auto_subscription_creation(self, target: str) -> None:
        self._remove_policy(target, "auto_subscription_creation")

    def set_subscription_types_enabled(self, target: str, types: Iterable[str]) -> None:
        """Set which of Exclusive, Failover, Shared and Key_Shared consumers may use; with another
        type `subscribe` raises NotAllowedError. Attached consumers stay."""
        self._set_policy(target, "subscription_types_enabled", words("types", types))

    def get_subscription_types_enabled(self, target: str) -> list[str] | None:
        """The value set at this level; None: none is."""
        found: list[str] | None = self._get_policy(target, "subscription_types_enabled")
        return found

    def remove_subscription_types_enabled(self, target: str) -> None:
        self._remove_policy(target, "subscription_types_enabled")

    def set_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """How many messages and bytes each topic dispatches in a period, to all subscriptions and
        readers together, redeliveries included; consumers wait for the next one. 0, -1: without
        limit.

        relative_to_publish_rate: the publish rate of the topic, averaged over the last minute, is
        added.
        """
        value = {
            "msgs": whole("msgs", msgs),
            "bytes": whole("bytes", bytes),
            "period_seconds": whole("period_seconds", period_seconds),
            "relative_to_publish_rate": flag("relative_to_publish_rate", relative_to_publish_rate),
        }
        self._set_policy(target, "dispatch_rate", value)

    def get_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """{"msgs", "bytes", "period_seconds", "relative_to_publish_rate"}."""
        found: dict[str, Any] | None = self._get_policy(target, "dispatch_rate")
        return found

    def remove_dispatch_rate(self, target: str) -> None:
        self._remove_policy(target, "dispatch_rate")

    def set_subscription_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """Like set_dispatch_rate, for each subscription and each reader. The rate of the topic
        applies as well."""
        value = {
            "msgs": whole("msgs", msgs),
            "bytes": whole("bytes", bytes),
            "period_seconds": whole("period_seconds", period_seconds),
            "relative_to_publish_rate": flag("relative_to_publish_rate", relative_to_publish_rate),
        }
        self._set_policy(target, "subscription_dispatch_rate", value)

    def get_subscription_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """Return the rate in the form of get_dispatch_rate."""
        found: dict[str, Any] | None = self._get_policy(target, "subscription_dispatch_rate")
        return found

    def remove_subscription_dispatch_rate(self, target: str) -> None:
        self._remove_policy(target, "subscription_dispatch_rate")

    def set_publish_rate(self, target: str, msgs: int = -1, bytes: int = -1) -> None:
        """How many messages and bytes all producers of a topic publish in a second. Above it
        sending waits, send_async too, until send_timeout_millis are over. 0, -1: without limit.

        Dead and retry letters, and what a callback of send_async sends, do not wait; they are
        counted, and others wait for them. It applies to non-persistent topics too.
        """
        value = {"msgs": whole("msgs", msgs), "bytes": whole("bytes", bytes)}
        self._set_policy(target, "publish_rate", value)

    def get_publish_rate(self, target: str) -> dict[str, Any] | None:
        """{"msgs", "bytes"}."""
        found: dict[str, Any] | None = self._get_policy(target, "publish_rate")
        return found

    def remove_publish_rate(self, target: str) -> None:
        self._remove_policy(target, "publish_rate")

    def set_subscribe_rate(self, target: str, per_consumer: int = 0, period: int = 30) -> None:
        """Set how often consumers of one name may subscribe to a topic in that many seconds: one
        time more raises NotAllowedError. 0: without limit. Readers are not counted."""
        value = {
            "per_consumer": whole("per_consumer", per_consumer),
            "period_seconds": whole("period", period),
        }
        self._set_policy(target, "subscribe_rate", value)

    def get_subscribe_rate(self, target: str) -> dict[str, Any] | None:
        """{"per_consumer", "period_seconds"}."""
        found: dict[str, Any] | None = self._get_policy(target, "subscribe_rate")
        return found

    def remove_subscribe_rate(self, target: str) -> None:
        self._remove_policy(target, "subscribe_rate")

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
        value = {
            "active": flag("active", active),
            "tick_time_millis": whole("tick_time_millis", tick_time_millis),
            "max_delivery_delay_in_millis": whole(
                "max_delivery_delay_in_millis", max_delivery_delay_in_millis
            ),
        }
        self._set_policy(target, "delayed_delivery", value)

    def get_delayed_delivery_policies(self, target: str) -> dict[str, Any] | None:
        """{"active", "tick_time_millis", "max_delivery_delay_in_millis"}."""
        found: dict[str, Any] | None = self._get_policy(target, "delayed_delivery")
        return found

    def remove_delayed_delivery_policies(self, target: str) -> None:
        self._remove_policy(target, "delayed_delivery")

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
        value = {
            "mode": mode,
            "seconds": whole("seconds", seconds),
            "enabled": flag("enabled", enabled),
        }
        self._set_policy(target, "inactive_topics", value)

    def get_inactive_topic_policies(self, target: str) -> dict[str, Any] | None:
        """{"mode", "seconds", "enabled"}."""
        found: dict[str, Any] | None = self._get_policy(target, "inactive_topics")
        return found

    def remove_inactive_topic_policies(self, target: str) -> None:
        self._remove_policy(target, "inactive_topics")

    def set_max_producers_per_topic(self, target: str, count: int) -> None:
        """How many producers a topic may have: one more raises ProducerBusy."""
        self._set_policy(target, "max_producers_per_topic", count)

    def get_max_producers_per_topic(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_producers_per_topic")
        return found

    def remove_max_producers_per_topic(self, target: str) -> None:
        self._remove_policy(target, "max_producers_per_topic")

    def set_max_consumers_per_topic(self, target: str, count: int) -> None:
        """How many consumers all subscriptions of a topic may have together: one more raises
        ConsumerBusy."""
        self._set_policy(target, "max_consumers_per_topic", count)

    def get_max_consumers_per_topic(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_consumers_per_topic")
        return found

    def remove_max_consumers_per_topic(self, target: str) -> None:
        self._remove_policy(target, "max_consumers_per_topic")

    def set_max_consumers_per_subscription(self, target: str, count: int) -> None:
        """How many consumers each subscription may have: one more raises ConsumerBusy."""
        self._set_policy(target, "max_consumers_per_subscription", count)

    def get_max_consumers_per_subscription(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_consumers_per_subscription")
        return found

    def remove_max_consumers_per_subscription(self, target: str) -> None:
        self._remove_policy(target, "max_consumers_per_subscription")

    def set_max_subscriptions_per_topic(self, target: str, count: int) -> None:
        """How many subscriptions a topic may have, those of readers and non-durable ones too: one
        more raises NotAllowedError."""
        self._set_policy(target, "max_subscriptions_per_topic", count)

    def get_max_subscriptions_per_topic(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_subscriptions_per_topic")
        return found

    def remove_max_subscriptions_per_topic(self, target: str) -> None:
        self._remove_policy(target, "max_subscriptions_per_topic")

    def set_max_unacked_messages_per_consumer(self, target: str, count: int) -> None:
        """How many messages a consumer of a Shared or Key_Shared subscription may hold
        unacknowledged: at that many it gets no more until it has acknowledged half of them. Applies
        to attached consumers at once."""
        self._set_policy(target, "max_unacked_messages_per_consumer", count)

    def get_max_unacked_messages_per_consumer(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_unacked_messages_per_consumer")
        return found

    def remove_max_unacked_messages_per_consumer(self, target: str) -> None:
        self._remove_policy(target, "max_unacked_messages_per_consumer")

    def set_max_unacked_messages_per_subscription(self, target: str, count: int) -> None:
        """Like set_max_unacked_messages_per_consumer, for all consumers of a subscription
        together."""
        self._set_policy(target, "max_unacked_messages_per_subscription", count)

    def get_max_unacked_messages_per_subscription(self, target: str) -> int | None:
        found: int | None = self._get_policy(target, "max_unacked_messages_per_subscription")
        return found

    def remove_max_unacked_messages_per_subscription(self, target: str) -> None:
        self._remove_policy(target, "max_unacked_messages_per_subscription")

    def set_compaction_threshold(self, target: str, threshold: int) -> None:
        """Compact a topic when that many bytes were published since the last compaction; checked
        every 60 seconds while the topic is open. 0: only when trigger_compaction is called."""
        self._set_policy(target, "compaction_threshold", whole("threshold", threshold))

    def get_compaction_threshold(self, target: str) -> int | None:
        """The value set at this level; None: none is."""
        found: int | None = self._get_policy(target, "compaction_threshold")
        return found

    def remove_compaction_threshold(self, target: str) -> None:
        """The level above holds again."""
        self._remove_policy(target, "compaction_threshold")

    def set_offload_threshold(self, target: str, size: int) -> None:
        """Offload the oldest sealed ledgers of a topic that holds more than size bytes; checked
        every 60 seconds while the topic is open. 0: all of them; -1: only when topics.offload is
        called."""
        self._set_policy(target, "offload_threshold", whole("size", size))

    def get_offload_threshold(self, target: str) -> int | None:
        """The value set at this level; None: none is."""
        found: int | None = self._get_policy(target, "offload_threshold")
        return found

    def remove_offload_threshold(self, target: str) -> None:
        """The level above holds again."""
        self._remove_policy(target, "offload_threshold")

    def set_offload_deletion_lag(self, target: str, lag_ms: int) -> None:
        """Set how long the file of an offloaded ledger stays, in milliseconds."""
        self._set_policy(target, "offload_deletion_lag_ms", whole("lag_ms", lag_ms))

    def get_offload_deletion_lag(self, target: str) -> int | None:
        """The value set at this level; None: none is."""
        found: int | None = self._get_policy(target, "offload_deletion_lag_ms")
        return found

    def remove_offload_deletion_lag(self, target: str) -> None:
        """The level above holds again."""
        self._remove_policy(target, "offload_deletion_lag_ms")

    def set_schema_compatibility_strategy(self, target: str, strategy: str) -> None:
        """Set which schema may follow another: ALWAYS_INCOMPATIBLE, ALWAYS_COMPATIBLE, BACKWARD
        (the new one reads what was written before), FORWARD (the old one reads what is written from
        now on), FULL (both), or one of these three with _TRANSITIVE: for all versions and not the
        last alone. UNDEFINED: the level above applies. ValueError: anything else."""
        self._set_policy(target, "schema_compatibility_strategy", strategy)

    def get_schema_compatibility_strategy(self, target: str) -> str | None:
        """The value set at this level; None: none is."""
        found: str | None = self._get_policy(target, "schema_compatibility_strategy")
        return found

    def remove_schema_compatibility_strategy(self, target: str) -> None:
        self._remove_policy(target, "schema_compatibility_strategy")

    def set_schema_validation_enforced(self, target: str, enforced: bool) -> None:
        """True: a producer without a schema is refused where the topic has one."""
        self._set_policy(target, "schema_validation_enforced", enforced)

    def get_schema_validation_enforced(self, target: str) -> bool | None:
        """The value set at this level; None: none is."""
        found: bool | None = self._get_policy(target, "schema_validation_enforced")
        return found

    def remove_schema_validation_enforced(self, target: str) -> None:
        self._remove_policy(target, "schema_validation_enforced")

    def set_is_allow_auto_update_schema(self, target: str, allowed: bool) -> None:
        """False: producers and consumers register no schema, not even the first;
        `admin.schemas.create_schema` does."""
        self._set_policy(target, "is_allow_auto_update_schema", allowed)

    def get_is_allow_auto_update_schema(self, target: str) -> bool | None:
        """The value set at this level; None: none is."""
        found: bool | None = self._get_policy(target, "is_allow_auto_update_schema")
        return found

    def remove_is_allow_auto_update_schema(self, target: str) -> None:
        self._remove_policy(target, "is_allow_auto_update_schema")


class NamespacePolicies(PolicyMethods):
    """Base of `client.admin.namespaces`."""

    def set_deduplication(self, namespace: str, enabled: bool) -> None:
        """Set whether the topics of a namespace recognise messages that are sent again by their
        sequence ids, and do not store them again. Applies to open producers at once. Durable on
        return."""
        self._set_policy(namespace, "deduplication", flag("enabled", enabled))

    def get_deduplication(self, namespace: str) -> bool | None:
        """The value set here; None: none was."""
        found: bool | None = self._get_policy(namespace, "deduplication")
        return found

    def remove_deduplication(self, namespace: str) -> None:
        """Take back what was set here. Durable on return."""
        self._remove_policy(namespace, "deduplication")

    def set_auto_topic_creation(
        self, namespace: str, allowed: bool, type: str = "non-partitioned", partitions: int = 1
    ) -> None:
        """Set whether a producer, consumer or reader creates the topic that it names, and of which
        kind: `non-partitioned`, or `partitioned` with that many partitions. If not, TopicNotFound
        is raised. Durable on return."""
        value = {"allowed": allowed, "type": type, "partitions": partitions}
        self._set_policy(namespace, "auto_topic_creation", value)

    def get_auto_topic_creation(self, namespace: str) -> dict[str, Any] | None:
        """{"allowed", "type", "partitions"} as set for the namespace; None: nothing is."""
        found: dict[str, Any] | None = self._get_policy(namespace, "auto_topic_creation")
        return found

    def remove_auto_topic_creation(self, namespace: str) -> None:
        """The broker's options hold again."""
        self._remove_policy(namespace, "auto_topic_creation")

    def set_max_topics_per_namespace(self, namespace: str, count: int) -> None:
        """Set how many topics the namespace may have; each partition counts, system topics do not.
        Creating more raises NotAllowedError; existing ones stay. 0: no limit, whatever the option
        of the same name says. Durable on return."""
        self._set_policy(namespace, "max_topics_per_namespace", count)

    def get_max_topics_per_namespace(self, namespace: str) -> int | None:
        """The value set here; None: none was."""
        found: int | None = self._get_policy(namespace, "max_topics_per_namespace")
        return found

    def remove_max_topics_per_namespace(self, namespace: str) -> None:
        """Take back what was set here. Durable on return."""
        self._remove_policy(namespace, "max_topics_per_namespace")


class TopicPolicies(PolicyMethods):
    """Base of `client.admin.topics`."""

    def set_deduplication(self, topic: str, enabled: bool) -> None:
        """Set whether a topic, or all its partitions, recognises messages that are sent again by
        their sequence ids, and does not store them again. Applies to open producers at once.
        Durable on return."""
        self._set_policy(topic, "deduplication", flag("enabled", enabled))

    def get_deduplication(self, topic: str) -> bool | None:
        """The value set here; None: none was."""
        found: bool | None = self._get_policy(topic, "deduplication")
        return found

    def remove_deduplication(self, topic: str) -> None:
        """Take back what was set here. Durable on return."""
        self._remove_policy(topic, "deduplication")
