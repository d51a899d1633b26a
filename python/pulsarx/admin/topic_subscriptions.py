"""The calls of `client.admin.topics` about the subscriptions of a topic."""

from __future__ import annotations

from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import check_integer, check_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel
    from pulsarx.admin.delayed_message import DelayedMessage
    from pulsarx.admin.peeked_message import PeekedMessage


class TopicSubscriptions:
    """Base of Topics. On a partitioned topic each call acts on the subscription of every partition,
    unless it says otherwise. SubscriptionNotFound: the topic has no such subscription. Changes are
    durable on return."""

    _channel: Channel

    def create_subscription(
        self,
        topic: str,
        subscription_name: str,
        position: MessageId | int = MessageId.latest,
        properties: dict[str, str] | None = None,
    ) -> None:
        """Create a durable subscription without a consumer.

        Args:
            topic: A name.
            subscription_name: Its name.
            position: Where it begins: `MessageId.latest`, `MessageId.earliest`, at a message, or
                with the first one published at a time in milliseconds since 1970.
            properties: Texts by name. That called jms.selector is the selector of the subscription.

        Raises:
            InvalidConfiguration: The selector is wrong.
            NotAllowedError: It exists, or the topic has max_subscriptions_per_topic.
            OperationNotSupported: The topic is non-persistent; or position is a message and the
                topic has partitions.
            TopicNotFound: There is no such topic.
            ValueError: An argument is none of these.

        Durability:
            It is on the device when this returns.

        Example:
            client.admin.topics.create_subscription("orders", "audit", pulsarx.MessageId.earliest)
            assert client.subscribe("orders", "audit").receive().data() == b"one"
        """
        more = {} if properties is None else {"properties": _checked(properties)}
        self._perform(
            "create_subscription", topic, subscription_name, position=_position(position), **more
        )

    def get_subscription_properties(self, topic: str, subscription_name: str) -> dict[str, str]:
        """Return the properties of a durable subscription, its selector among them.

        Args:
            topic: A name.
            subscription_name: Its name.

        Raises:
            SubscriptionNotFound: The topic does not have it.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.
        """
        found: dict[str, str] = self._perform(
            "get_subscription_properties", topic, subscription_name
        )
        return found

    def update_subscription_properties(
        self, topic: str, subscription_name: str, properties: dict[str, str]
    ) -> None:
        """Give a durable subscription these properties, in the place of all that it has.

        Args:
            topic: A name.
            subscription_name: Its name.
            properties: Texts by name. That called jms.selector selects what is dispatched from now
                on; without it, everything is delivered.

        Raises:
            InvalidConfiguration: The selector is wrong.
            SubscriptionNotFound: The topic does not have it.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.
            ValueError: A property is no text.

        Durability:
            They are on the device when this returns.

        Example:
            topics = client.admin.topics
            topics.create_subscription("orders", "europe")
            selector = {"jms.selector": "region = 'EU'"}
            topics.update_subscription_properties("orders", "europe", selector)
        """
        self._perform(
            "update_subscription_properties", topic, subscription_name,
            properties=_checked(properties),
        )  # fmt: skip

    def delete_subscription(self, topic: str, subscription_name: str, force: bool = False) -> None:
        """Delete a subscription: its messages are no longer held.

        Args:
            topic: A name.
            subscription_name: Its name.
            force: Its consumers are closed.

        Raises:
            NotAllowedError: Consumers are attached.
            SubscriptionNotFound: The topic does not have it.
            TopicNotFound: There is no such topic.

        Durability:
            It is gone from the device when this returns.
        """
        self._perform("delete_subscription", topic, subscription_name, force=bool(force))

    def get_subscriptions(self, topic: str) -> list[str]:
        """Return the names of the durable subscriptions; of a non-persistent topic, of all that are
        there, be they of readers.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such topic.
        """
        found: list[str] = self._channel.perform("topics.get_subscriptions", {"topic": topic})
        return found

    def reset_cursor(self, topic: str, subscription_name: str, position: MessageId | int) -> None:
        """Move a subscription; its consumers stay attached. Everything before the position counts
        as acknowledged, everything from it on as unacknowledged.

        Args:
            topic: A name.
            subscription_name: Its name.
            position: As create_subscription: a MessageId, or milliseconds since 1970; the message
                of an id is delivered again itself.

        Raises:
            SubscriptionNotFound: The topic does not have it.
            OperationNotSupported: As create_subscription.
            TopicNotFound: There is no such topic.
            ValueError: position is none of these.

        Durability:
            The new position is on the device when this returns.
        """
        self._perform("reset_cursor", topic, subscription_name, position=_position(position))

    def skip_messages(self, topic: str, subscription_name: str, count: int) -> None:
        """Acknowledge the first unacknowledged messages.

        Args:
            topic: A name.
            subscription_name: Its name.
            count: How many messages, from 0.

        Raises:
            OperationNotSupported: The topic has partitions, or is non-persistent.
            SubscriptionNotFound: The topic does not have it.
            TopicNotFound: There is no such topic.
            ValueError: count is negative or no int.

        Durability:
            It is on the device when this returns.
        """
        count = check_integer(count, "count")
        self._perform("skip_messages", topic, subscription_name, count=count)

    def skip_all_messages(self, topic: str, subscription_name: str) -> None:
        """Acknowledge all messages of the topic.

        Args:
            topic: A name.
            subscription_name: Its name.

        Raises:
            SubscriptionNotFound: The topic does not have it.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.

        Durability:
            It is on the device when this returns.
        """
        self._perform("skip_all_messages", topic, subscription_name)

    def expire_messages(self, topic: str, subscription_name: str, seconds: int) -> None:
        """Acknowledge messages that are older than an age, up to the first one that is not.

        Args:
            topic: A name.
            subscription_name: Its name.
            seconds: The age in seconds, not 0.

        Raises:
            NotAllowedError: seconds is 0, which expires nothing, as in Pulsar.
            SubscriptionNotFound: The topic does not have it.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.
            ValueError: seconds is no int.

        Durability:
            It is on the device when this returns.
        """
        seconds = check_integer(seconds, "seconds")
        self._perform("expire_messages", topic, subscription_name, seconds=seconds)

    def peek_messages(
        self, topic: str, subscription_name: str, count: int = 1
    ) -> list[PeekedMessage]:
        """Return the first unacknowledged messages; they stay unacknowledged.

        Args:
            topic: A name.
            subscription_name: Its name.
            count: Messages at most, from 1 to 1000.

        Raises:
            OperationNotSupported: The topic has partitions, or is non-persistent.
            NotAllowedError: They have more than 16 MiB together.
            SubscriptionNotFound: The topic does not have it.
            TopicNotFound: There is no such topic.
            ValueError: count is out of bounds.
        """
        return self._peeked(topic, subscription_name, check_integer(count, "count"))

    def get_delayed_messages(
        self,
        topic: str,
        subscription_name: str,
        count: int = 100,
        behind: MessageId | None = None,
    ) -> list[DelayedMessage]:
        """Return messages of a subscription of a non-partitioned topic that are not due yet, in the
        order of the topic.

        Args:
            topic: A name.
            subscription_name: Its name.
            count: How many, from 1 to 1000.
            behind: The id that the page before ended with; None: from the first on.

        Raises:
            OperationNotSupported: The topic has partitions, or is non-persistent.
            SubscriptionNotFound: The topic does not have it.
            TopicNotFound: There is no such topic.
            ValueError: count is out of bounds.

        Example:
            for each in client.admin.topics.get_delayed_messages("orders", "billing"):
                print(each.message_id(), each.deliver_at())
        """
        from pulsarx.admin.delayed_message import DelayedMessage

        check_integer(count, "count")
        more: dict[str, object] = {"count": count}
        if behind is not None:
            more["behind"] = behind.to_text()
        found = self._perform("get_delayed_messages", topic, subscription_name, **more)
        return [DelayedMessage(each) for each in found]

    def cancel_message(
        self, topic: str, message_id: MessageId, subscription_name: str | None = None
    ) -> list[str]:
        """Cancel a message before it is due: it counts as acknowledged, and is not delivered after
        the call. The id of a batch means all its messages.

        A consumer or the call comes first, never both: a message of which a consumer was given
        something, or that is due, is refused. Subscriptions that are created later are not meant.

        Args:
            topic: A name; of a partitioned topic, where the id says of which partition it is.
            message_id: What send returned.
            subscription_name: The subscription that is meant; None: every one of the topic.

        Returns:
            The subscriptions for which it was cancelled.

        Raises:
            NotAllowedError: It is due, delivered or acknowledged already, for each subscription
                that is meant; it was published without a delay; or there is no such message.
            OperationNotSupported: The topic is non-persistent; or it has partitions, and the id
                does not say of which one it is.
            SubscriptionNotFound: The topic does not have it.
            TopicNotFound: There is no such topic.

        Durability:
            It is on the device when this returns.

        Example:
            from datetime import timedelta

            reminder = producer.send(b"pay", deliver_after=timedelta(days=3))
            client.admin.topics.cancel_message("orders", reminder, "billing")
        """
        arguments = {"topic": topic, "message_id": message_id.to_text()}
        if subscription_name is not None:
            arguments["name"] = subscription_name
        found: list[str] = self._channel.perform("topics.cancel_message", arguments)
        return found

    def _peeked(
        self, topic: str, subscription_name: str, count: int, skip: int = 0
    ) -> list[PeekedMessage]:
        """See peek_messages. skip: how many of those messages it goes on behind."""
        from pulsarx.admin.peeked_message import PeekedMessage

        behind = {"skip": skip} if skip else {}
        found = self._perform("peek_messages", topic, subscription_name, count=count, **behind)
        return [PeekedMessage(each) for each in found]

    def _perform(self, verb: str, topic: str, subscription_name: str, **more: object) -> Any:
        arguments = {"topic": topic, "name": subscription_name, **more}
        return self._channel.perform(f"topics.{verb}", arguments)


def _checked(properties: dict[str, str]) -> dict[str, str]:
    check_properties(properties)
    return dict(properties)


def _position(position: MessageId | int) -> dict[str, object]:
    if isinstance(position, MessageId):
        return {"message_id": position.to_text()}
    return {"publish_time_ms": check_integer(position, "position", "a MessageId or an int")}
