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
    """

    def set_retention(self, target: str, time_minutes: int, size_mb: int) -> None:
        """Keep acknowledged messages for a time and up to a size, whichever is reached first. Whole
        ledgers are removed, never parts.

        Args:
            target: The namespace, or the topic.
            time_minutes: Minutes; -1: without limit; 0, in both: not at all.
            size_mb: MiB of each topic; -1: without limit; 0, in both: not at all.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: 0 in one of them alone, with which nothing would be kept; or one is out of
                bounds.
            NotAllowedError: size_mb is not more than the backlog quota.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "time_minutes": whole("time_minutes", time_minutes),
            "size_mb": whole("size_mb", size_mb),
        }
        self._set_policy(target, "retention", value)

    def get_retention(self, target: str) -> tuple[int, int] | None:
        """Return (time_minutes, size_mb) as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: Any = self._get_policy(target, "retention")
        return None if found is None else (found["time_minutes"], found["size_mb"])

    def remove_retention(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "retention")

    def set_message_ttl(self, target: str, seconds: int) -> None:
        """Set how old messages may become: older ones are not delivered, and count as acknowledged
        on every subscription.

        Args:
            target: The namespace, or the topic.
            seconds: Seconds; 0: they do not expire, whatever the levels above say.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "message_ttl", whole("seconds", seconds))

    def get_message_ttl(self, target: str) -> int | None:
        """Return the seconds as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "message_ttl")
        return found

    def remove_message_ttl(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "message_ttl")

    def set_subscription_expiration_time(self, target: str, minutes: int) -> None:
        """Delete durable subscriptions that have no consumer and were not used for a while.

        Args:
            target: The namespace, or the topic.
            minutes: Minutes; 0: they stay, whatever the levels above say.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "subscription_expiration_time", whole("minutes", minutes))

    def get_subscription_expiration_time(self, target: str) -> int | None:
        """Return the minutes as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "subscription_expiration_time")
        return found

    def remove_subscription_expiration_time(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "subscription_expiration_time")

    def set_auto_subscription_creation(self, target: str, allowed: bool) -> None:
        """Set whether a consumer creates the durable subscription that it names. If not, it gets
        SubscriptionNotFound.

        Args:
            target: The namespace, or the topic.
            allowed: Whether it does.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "auto_subscription_creation", allowed)

    def get_auto_subscription_creation(self, target: str) -> bool | None:
        """Return the value as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: bool | None = self._get_policy(target, "auto_subscription_creation")
        return found

    def remove_auto_subscription_creation(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "auto_subscription_creation")

    def set_subscription_types_enabled(self, target: str, types: Iterable[str]) -> None:
        """Set the types of subscriptions that consumers may use; with another one `subscribe`
        raises NotAllowedError. Attached consumers stay.

        Args:
            target: The namespace, or the topic.
            types: Some of Exclusive, Failover, Shared and Key_Shared.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "subscription_types_enabled", words("types", types))

    def get_subscription_types_enabled(self, target: str) -> list[str] | None:
        """Return the types as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: list[str] | None = self._get_policy(target, "subscription_types_enabled")
        return found

    def remove_subscription_types_enabled(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "subscription_types_enabled")

    def set_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """Set how many messages and bytes each topic dispatches in a period, to all subscriptions
        and readers together, redeliveries included; consumers wait for the next one.

        Args:
            target: The namespace, or the topic.
            msgs: Messages in a period; 0 and -1: without limit.
            bytes: Bytes in a period; 0 and -1: without limit.
            period_seconds: Seconds of a period.
            relative_to_publish_rate: The publish rate of the topic, averaged over the last minute,
                is added.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "msgs": whole("msgs", msgs),
            "bytes": whole("bytes", bytes),
            "period_seconds": whole("period_seconds", period_seconds),
            "relative_to_publish_rate": flag("relative_to_publish_rate", relative_to_publish_rate),
        }
        self._set_policy(target, "dispatch_rate", value)

    def get_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """Return {"msgs", "bytes", "period_seconds", "relative_to_publish_rate"} as set here; None:
        nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "dispatch_rate")
        return found

    def remove_dispatch_rate(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "dispatch_rate")

    def set_subscription_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """Set how many messages and bytes each subscription and each reader is dispatched in a
        period. The rate of the topic applies as well.

        Args:
            target: The namespace, or the topic.
            msgs: Messages in a period; 0 and -1: without limit.
            bytes: Bytes in a period; 0 and -1: without limit.
            period_seconds: Seconds of a period.
            relative_to_publish_rate: The publish rate of the topic, averaged over the last minute,
                is added.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "msgs": whole("msgs", msgs),
            "bytes": whole("bytes", bytes),
            "period_seconds": whole("period_seconds", period_seconds),
            "relative_to_publish_rate": flag("relative_to_publish_rate", relative_to_publish_rate),
        }
        self._set_policy(target, "subscription_dispatch_rate", value)

    def get_subscription_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """Return {"msgs", "bytes", "period_seconds", "relative_to_publish_rate"} as set here; None:
        nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "subscription_dispatch_rate")
        return found

    def remove_subscription_dispatch_rate(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "subscription_dispatch_rate")

    def set_publish_rate(self, target: str, msgs: int = -1, bytes: int = -1) -> None:
        """Set how many messages and bytes all producers of a topic publish in a second. Above it
        sending waits, send_async too, until send_timeout_millis are over.

        Dead and retry letters, and what a callback of send_async sends, do not wait; they are
        counted, and others wait for them. It applies to non-persistent topics too.

        Args:
            target: The namespace, or the topic.
            msgs: Messages a second; 0 and -1: without limit.
            bytes: Bytes a second; 0 and -1: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        value = {"msgs": whole("msgs", msgs), "bytes": whole("bytes", bytes)}
        self._set_policy(target, "publish_rate", value)

    def get_publish_rate(self, target: str) -> dict[str, Any] | None:
        """Return {"msgs", "bytes"} as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "publish_rate")
        return found

    def remove_publish_rate(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "publish_rate")

    def set_subscribe_rate(self, target: str, per_consumer: int = 0, period: int = 30) -> None:
        """Set how often consumers of one name may subscribe to a topic in a period: one time more
        raises NotAllowedError. Readers are not counted.

        Args:
            target: The namespace, or the topic.
            per_consumer: How often; 0: without limit.
            period: Seconds of a period.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "per_consumer": whole("per_consumer", per_consumer),
            "period_seconds": whole("period", period),
        }
        self._set_policy(target, "subscribe_rate", value)

    def get_subscribe_rate(self, target: str) -> dict[str, Any] | None:
        """Return {"per_consumer", "period_seconds"} as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "subscribe_rate")
        return found

    def remove_subscribe_rate(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "subscribe_rate")

    def set_delayed_delivery_policies(
        self,
        target: str,
        active: bool,
        tick_time_millis: int,
        max_delivery_delay_in_millis: int = 0,
    ) -> None:
        """Set whether messages wait for their delivery time; else they are delivered at once.

        Args:
            target: The namespace, or the topic.
            active: Whether they wait.
            tick_time_millis: How many milliseconds earlier they may come, where delivery is not
                strict.
            max_delivery_delay_in_millis: Milliseconds that a message may be delayed at most: a
                longer delay raises NotAllowedError. 0: as BrokerOptions say.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "active": flag("active", active),
            "tick_time_millis": whole("tick_time_millis", tick_time_millis),
            "max_delivery_delay_in_millis": whole(
                "max_delivery_delay_in_millis", max_delivery_delay_in_millis
            ),
        }
        self._set_policy(target, "delayed_delivery", value)

    def get_delayed_delivery_policies(self, target: str) -> dict[str, Any] | None:
        """Return {"active", "tick_time_millis", "max_delivery_delay_in_millis"} as set here; None:
        nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "delayed_delivery")
        return found

    def remove_delayed_delivery_policies(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "delayed_delivery")

    def set_inactive_topic_policies(
        self, target: str, mode: str, seconds: int, enabled: bool
    ) -> None:
        """Set whether a topic is deleted that was not used for a while.

        With messages it stays for the time that retention keeps them, for ever where that is -1.
        Partitioned topics go as a whole, where BrokerOptions(
        broker_delete_inactive_partitioned_topic_metadata_enabled=True) says so.

        Args:
            target: The namespace, or the topic.
            mode: `delete_when_no_subscriptions`: it has no producer, reader or subscription;
                `delete_when_subscriptions_caught_up`: no producer, reader or consumer, and its
                subscriptions have acknowledged everything; they go with it.
            seconds: Seconds without use.
            enabled: Whether it is deleted.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        value = {
            "mode": mode,
            "seconds": whole("seconds", seconds),
            "enabled": flag("enabled", enabled),
        }
        self._set_policy(target, "inactive_topics", value)

    def get_inactive_topic_policies(self, target: str) -> dict[str, Any] | None:
        """Return {"mode", "seconds", "enabled"} as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, "inactive_topics")
        return found

    def remove_inactive_topic_policies(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "inactive_topics")

    def set_max_producers_per_topic(self, target: str, count: int) -> None:
        """Set how many producers a topic may have: one more raises ProducerBusy.

        Args:
            target: The namespace, or the topic.
            count: How many producers a topic has; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_producers_per_topic", count)

    def get_max_producers_per_topic(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_producers_per_topic")
        return found

    def remove_max_producers_per_topic(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_producers_per_topic")

    def set_max_consumers_per_topic(self, target: str, count: int) -> None:
        """Set how many consumers all subscriptions of a topic may have together: one more raises
        ConsumerBusy.

        Args:
            target: The namespace, or the topic.
            count: How many consumers a topic has; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_consumers_per_topic", count)

    def get_max_consumers_per_topic(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_consumers_per_topic")
        return found

    def remove_max_consumers_per_topic(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_consumers_per_topic")

    def set_max_consumers_per_subscription(self, target: str, count: int) -> None:
        """Set how many consumers each subscription may have: one more raises ConsumerBusy.

        Args:
            target: The namespace, or the topic.
            count: How many consumers a subscription has; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_consumers_per_subscription", count)

    def get_max_consumers_per_subscription(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_consumers_per_subscription")
        return found

    def remove_max_consumers_per_subscription(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_consumers_per_subscription")

    def set_max_subscriptions_per_topic(self, target: str, count: int) -> None:
        """Set how many subscriptions a topic may have, those of readers and non-durable ones too:
        one more raises NotAllowedError.

        Args:
            target: The namespace, or the topic.
            count: How many subscriptions a topic has; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_subscriptions_per_topic", count)

    def get_max_subscriptions_per_topic(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_subscriptions_per_topic")
        return found

    def remove_max_subscriptions_per_topic(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_subscriptions_per_topic")

    def set_max_unacked_messages_per_consumer(self, target: str, count: int) -> None:
        """Set how many messages a consumer of a Shared or Key_Shared subscription may hold
        unacknowledged: at that many it gets no more until it has acknowledged half of them. Applies
        to attached consumers at once.

        Args:
            target: The namespace, or the topic.
            count: How many messages a consumer holds unacknowledged; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_unacked_messages_per_consumer", count)

    def get_max_unacked_messages_per_consumer(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_unacked_messages_per_consumer")
        return found

    def remove_max_unacked_messages_per_consumer(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_unacked_messages_per_consumer")

    def set_max_unacked_messages_per_subscription(self, target: str, count: int) -> None:
        """Set how many messages all consumers of a Shared or Key_Shared subscription may hold
        unacknowledged together, like set_max_unacked_messages_per_consumer.

        Args:
            target: The namespace, or the topic.
            count: How many messages the consumers of a subscription hold unacknowledged; 0: without
                limit.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "max_unacked_messages_per_subscription", count)

    def get_max_unacked_messages_per_subscription(self, target: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "max_unacked_messages_per_subscription")
        return found

    def remove_max_unacked_messages_per_subscription(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "max_unacked_messages_per_subscription")

    def set_compaction_threshold(self, target: str, threshold: int) -> None:
        """Compact a topic when enough was published since the last compaction; checked every 60
        seconds while the topic is open.

        Args:
            target: The namespace, or the topic.
            threshold: Bytes; 0: only when trigger_compaction is called.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "compaction_threshold", whole("threshold", threshold))

    def get_compaction_threshold(self, target: str) -> int | None:
        """Return the bytes as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "compaction_threshold")
        return found

    def remove_compaction_threshold(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "compaction_threshold")

    def set_offload_threshold(self, target: str, size: int) -> None:
        """Offload the oldest sealed ledgers of a topic that holds more than a size; checked every
        60 seconds while the topic is open.

        Args:
            target: The namespace, or the topic.
            size: Bytes; 0: all ledgers; -1: only when topics.offload is called.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The folder has no object store.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "offload_threshold", whole("size", size))

    def get_offload_threshold(self, target: str) -> int | None:
        """Return the bytes as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "offload_threshold")
        return found

    def remove_offload_threshold(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "offload_threshold")

    def set_offload_deletion_lag(self, target: str, lag_ms: int) -> None:
        """Set how long the file of an offloaded ledger stays.

        Args:
            target: The namespace, or the topic.
            lag_ms: Milliseconds.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The folder has no object store.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "offload_deletion_lag_ms", whole("lag_ms", lag_ms))

    def get_offload_deletion_lag(self, target: str) -> int | None:
        """Return the milliseconds as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: int | None = self._get_policy(target, "offload_deletion_lag_ms")
        return found

    def remove_offload_deletion_lag(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "offload_deletion_lag_ms")

    def set_schema_compatibility_strategy(self, target: str, strategy: str) -> None:
        """Set which schema may follow another.

        Args:
            target: The namespace, or the topic.
            strategy: ALWAYS_INCOMPATIBLE, ALWAYS_COMPATIBLE, BACKWARD (the new one reads what was
                written before), FORWARD (the old one reads what is written from now on), FULL
                (both), or one of these three with _TRANSITIVE: for all versions and not the last
                alone. UNDEFINED: the level above applies.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "schema_compatibility_strategy", strategy)

    def get_schema_compatibility_strategy(self, target: str) -> str | None:
        """Return the strategy as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: str | None = self._get_policy(target, "schema_compatibility_strategy")
        return found

    def remove_schema_compatibility_strategy(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "schema_compatibility_strategy")

    def set_schema_validation_enforced(self, target: str, enforced: bool) -> None:
        """Set whether a producer without a schema is refused where the topic has one.

        Args:
            target: The namespace, or the topic.
            enforced: Whether it is.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "schema_validation_enforced", enforced)

    def get_schema_validation_enforced(self, target: str) -> bool | None:
        """Return the value as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: bool | None = self._get_policy(target, "schema_validation_enforced")
        return found

    def remove_schema_validation_enforced(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "schema_validation_enforced")

    def set_is_allow_auto_update_schema(self, target: str, allowed: bool) -> None:
        """Set whether producers and consumers register their schemas. If not, not even the first is
        registered but by `admin.schemas.create_schema`.

        Args:
            target: The namespace, or the topic.
            allowed: Whether they do.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(target, "is_allow_auto_update_schema", allowed)

    def get_is_allow_auto_update_schema(self, target: str) -> bool | None:
        """Return the value as set here; None: nothing is.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found: bool | None = self._get_policy(target, "is_allow_auto_update_schema")
        return found

    def remove_is_allow_auto_update_schema(self, target: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(target, "is_allow_auto_update_schema")


class NamespacePolicies(PolicyMethods):
    """Base of `client.admin.namespaces`."""

    def set_deduplication(self, namespace: str, enabled: bool) -> None:
        """Set whether the topics of a namespace recognise messages that are sent again by their
        sequence ids, and do not store them again. Applies to open producers at once.

        Args:
            namespace: The namespace.
            enabled: Whether they are.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(namespace, "deduplication", flag("enabled", enabled))

    def get_deduplication(self, namespace: str) -> bool | None:
        """Return the value as set here; None: nothing is.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        found: bool | None = self._get_policy(namespace, "deduplication")
        return found

    def remove_deduplication(self, namespace: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(namespace, "deduplication")

    def set_auto_topic_creation(
        self, namespace: str, allowed: bool, type: str = "non-partitioned", partitions: int = 1
    ) -> None:
        """Set whether a producer, consumer or reader creates the topic that it names, and of which
        kind. If not, it gets TopicNotFound.

        Args:
            namespace: The namespace.
            allowed: Whether it does.
            type: `non-partitioned` or `partitioned`.
            partitions: How many, of a partitioned one.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        value = {"allowed": allowed, "type": type, "partitions": partitions}
        self._set_policy(namespace, "auto_topic_creation", value)

    def get_auto_topic_creation(self, namespace: str) -> dict[str, Any] | None:
        """Return {"allowed", "type", "partitions"} as set here; None: nothing is.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        found: dict[str, Any] | None = self._get_policy(namespace, "auto_topic_creation")
        return found

    def remove_auto_topic_creation(self, namespace: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(namespace, "auto_topic_creation")

    def set_max_topics_per_namespace(self, namespace: str, count: int) -> None:
        """Set how many topics the namespace may have; each partition counts, system topics do not.
        Creating more raises NotAllowedError; existing ones stay.

        Args:
            namespace: The namespace.
            count: How many topics there are; 0: without limit.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: An argument is out of bounds, or of no such value.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(namespace, "max_topics_per_namespace", count)

    def get_max_topics_per_namespace(self, namespace: str) -> int | None:
        """Return the number as set here; None: nothing is.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        found: int | None = self._get_policy(namespace, "max_topics_per_namespace")
        return found

    def remove_max_topics_per_namespace(self, namespace: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            namespace: The namespace.

        Raises:
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(namespace, "max_topics_per_namespace")


class TopicPolicies(PolicyMethods):
    """Base of `client.admin.topics`."""

    def set_deduplication(self, topic: str, enabled: bool) -> None:
        """Set whether a topic, or all its partitions, recognises messages that are sent again by
        their sequence ids, and does not store them again. Applies to open producers at once.

        Args:
            topic: The topic, or a partition of it.
            enabled: Whether they are.

        Raises:
            TopicNotFound: There is no such topic.
            ValueError: An argument is out of bounds, or of no such value.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns.
        """
        self._set_policy(topic, "deduplication", flag("enabled", enabled))

    def get_deduplication(self, topic: str) -> bool | None:
        """Return the value as set here; None: nothing is.

        Args:
            topic: The topic, or a partition of it.

        Raises:
            TopicNotFound: There is no such topic.
        """
        found: bool | None = self._get_policy(topic, "deduplication")
        return found

    def remove_deduplication(self, topic: str) -> None:
        """Take back what was set here: the level above applies again.

        Args:
            topic: The topic, or a partition of it.

        Raises:
            TopicNotFound: There is no such topic.

        Durability:
            It is on the device when this returns.
        """
        self._remove_policy(topic, "deduplication")
