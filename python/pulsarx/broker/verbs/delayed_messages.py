"""Verbs about messages that wait for their time in a subscription."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.topics.partitioned_topic import partition_count_of
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.topic_subscriptions import unacknowledged
from pulsarx.broker.verbs.verb import CONSUME, verb
from pulsarx.message_id import MessageId
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder

DELAYED_MAX = 1000  # messages of a page


@verb("topics.get_delayed_messages", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/subscription/{name}/delayed",
        "Get the messages of a subscription that are not due yet.",
        query={"count": "count", "behind": "behind"}))  # fmt: skip
def get_delayed_messages(
    folder: OpenFolder, topic: TopicName, name: str, count: int, behind: str = ""
) -> list[dict[str, Any]]:
    """Ids, and when they are due, in the order of the topic. behind: the id that the page before
    ended with; empty: from the first on. OperationNotSupported: the topic has partitions."""
    from pulsarx.broker.subscriptions.delayed import delayed_messages
    from pulsarx.clock import wall_ms

    if not 1 <= count <= DELAYED_MAX:
        raise ValueError(
            f"get_delayed_messages: {count} messages; it must be from 1 to {DELAYED_MAX}"
        )
    with unacknowledged(folder, topic, name) as (found, start, is_acknowledged):
        if behind:
            start = max(start, found.ledger.position_of(MessageId.from_text(behind), False))
        delivered = None if folder.read_only else _knows_delivered(found, name)

        def is_over(*place: int) -> bool:
            return is_acknowledged(*place) or (delivered is not None and delivered(*place))

        opened: Any = folder
        now_ms = wall_ms() if folder.read_only else opened.runtime.clock.now_ms()
        return delayed_messages(found, start, now_ms, count, is_over)


def _knows_delivered(topic: Any, name: str) -> Any:
    """A function that says of a ledger id and an ordinal in it whether a consumer was given that
    message."""
    subscription = topic.subscriptions[name]

    def is_delivered(*place: int) -> bool:
        look = subscription.dispatcher.was_delivered
        return bool(subscription.core.locked(lambda: look(*place)))

    return is_delivered


@verb("topics.cancel_message", needs=CONSUME, removes=True,
    http=Http("DELETE", "{topic}/delayed/{message_id}",
        "Cancel a message before it is due, for all subscriptions.", refused=412))  # fmt: skip
def cancel_message(broker: Broker, topic: TopicName, message_id: str, name: str = "") -> list[str]:
    """The names of the subscriptions for which it was cancelled. name: of the one that is meant;
    empty: all. NotAllowedError: it is too late for all of them, or there is no such message."""
    from pulsarx.broker.subscriptions.delayed import cancel

    wanted = MessageId.from_text(message_id)
    check_keeps_messages(topic)
    if partition_count_of(broker.catalogue.state, topic):
        if wanted.partition() < 0:
            raise errors.OperationNotSupported(
                detail=f"cancel {wanted} of {topic}: the topic has partitions, and the id does not "
                "say of which it is; name the partition as the topic"
            )
        topic = topic.partition(wanted.partition())
    return cancel(broker.topic(topic, create=False).require_kept("cancel"), wanted, name)
