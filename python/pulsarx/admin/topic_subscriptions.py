"""The calls of `client.admin.topics` about the subscriptions of a topic."""

from __future__ import annotations

from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import check_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel
    from pulsarx.admin.peeked_message import PeekedMessage


class TopicSubscriptions:
    """Base of Topics. On a partitioned topic each call acts on the subscription of every partition,
    unless it says otherwise. SubscriptionNotFound: the topic has no such subscription. Changes are
    durable on return."""

    _channel: Channel

    def create_subscription(
        self, topic: str, subscription_name: str, position: MessageId | int = MessageId.latest
    ) -> None:
        """Create a durable subscription without a consumer.

        position: where it begins: `MessageId.latest`, `MessageId.earliest`, at a message, or with
        the first one published at a time (ms since 1970). NotAllowedError: it exists.
        """
        self._perform("create_subscription", topic, subscription_name, position=_position(position))

    def delete_subscription(self, topic: str, subscription_name: str, force: bool = False) -> None:
        """Delete a subscription. NotAllowedError: consumers are attached. force: they are
        closed."""
        self._perform("delete_subscription", topic, subscription_name, force=bool(force))

    def get_subscriptions(self, topic: str) -> list[str]:
        """Names of the durable subscriptions; of a non-persistent topic, of all that are there, be
        they of readers."""
        found: list[str] = self._channel.perform("topics.get_subscriptions", {"topic": topic})
        return found

    def reset_cursor(self, topic: str, subscription_name: str, position: MessageId | int) -> None:
        """Move a subscription; its consumers stay attached. Everything before the position counts
        as acknowledged, everything from it on as unacknowledged.

        position: as in create_subscription; the message of an id is delivered again itself.
        """
        self._perform("reset_cursor", topic, subscription_name, position=_position(position))

    def skip_messages(self, topic: str, subscription_name: str, count: int) -> None:
        """Acknowledge the first num_messages unacknowledged messages. OperationNotSupported: the
        topic has partitions."""
        count = check_integer(count, "count")
        self._perform("skip_messages", topic, subscription_name, count=count)

    def skip_all_messages(self, topic: str, subscription_name: str) -> None:
        """Acknowledge all messages of the topic."""
        self._perform("skip_all_messages", topic, subscription_name)

    def expire_messages(self, topic: str, subscription_name: str, seconds: int) -> None:
        """Acknowledge messages that are older than that, up to the first one that is not."""
        seconds = check_integer(seconds, "seconds")
        self._perform("expire_messages", topic, subscription_name, seconds=seconds)

    def peek_messages(
        self, topic: str, subscription_name: str, count: int = 1
    ) -> list[PeekedMessage]:
        """Return the first unacknowledged messages, at most count and at most 1000; they stay
        unacknowledged. OperationNotSupported: the topic has partitions. NotAllowedError: they have
        more than 16 MiB together."""
        from pulsarx.admin.peeked_message import PeekedMessage

        count = check_integer(count, "count")
        found = self._perform("peek_messages", topic, subscription_name, count=count)
        return [PeekedMessage(each) for each in found]

    def _perform(self, verb: str, topic: str, subscription_name: str, **more: object) -> Any:
        arguments = {"topic": topic, "name": subscription_name, **more}
        return self._channel.perform(f"topics.{verb}", arguments)


def _position(position: MessageId | int) -> dict[str, object]:
    if isinstance(position, MessageId):
        return {"message_id": position.to_text()}
    return {"publish_time_ms": check_integer(position, "position", "a MessageId or an int")}
