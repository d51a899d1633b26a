"""Verbs about subscriptions: creating them, moving them while they have no consumer."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.subscriptions.subscription_changes import locked_in_order
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.verbs.verb import SUPERUSER, verb
from pulsarx.topic_name import (
    TopicName,
    check_is_not_of_the_system,
    check_subscription_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.topic import Topic

    Json = dict[str, Any]


@verb("subscriptions.create", needs=SUPERUSER)
def create(broker: Broker, topics: list[Any], name: str, position: str) -> Json:
    """Create a subscription on topics, and on all partitions of partitioned ones.

    position: earliest or latest. A subscription that exists stays where it is, and the answer says
    where: its first message that is not acknowledged."""
    check_subscription_name(name)
    if position not in ("earliest", "latest"):
        raise ValueError(f"subscriptions.create: position {position!r:.100}: earliest or latest")
    created, found = 0, {}
    names = [_name_of(each) for each in topics]
    for each in [one for topic in names for one in kept_topics_of(broker, topic)]:
        check_is_not_of_the_system(each.topic_name, f"create subscription {name} of")
        with locked_in_order([each]):
            if name in each.subscriptions:
                found[each.name] = list(each.subscriptions[name].mark_delete())
                continue
            ledgers = each.ledger
            start = ledgers.first_position() if position == "earliest" else ledgers.end_position()
            each.create_subscription(name, start)
            created += 1
    return {"created": created, "found": found}


def _name_of(topic: object) -> TopicName:
    if not isinstance(topic, str):
        raise ValueError(f"{topic!r:.100} is no name of a topic")
    return TopicName.of(topic)


def kept_topics_of(broker: Broker, topic: TopicName) -> list[Topic]:
    """Like topics_of, for a topic that keeps messages, and durable subscriptions. Else
    OperationNotSupported."""
    action = "work with the positions of subscriptions"
    return [each.require_kept(action) for each in topics_of(broker, topic)]


def topics_of(broker: Broker, topic: TopicName) -> list[AnyTopic]:
    """The topic, or all its partitions. TopicNotFound."""
    count = partition_count_of(broker.catalogue.state, topic)
    if not count:
        return [broker.topic(topic, create=False)]
    names = partition_names(topic, count)
    return [broker.topic(TopicName.of(each), create=False) for each in names]


@verb("subscriptions.move", needs=SUPERUSER)
def move(broker: Broker, name: str, positions: Json) -> Json:
    """Acknowledge everything before a message, given by topic as its ledger and its ordinal there.
    Never goes back. Gone are topics that are not there, or do not have the subscription.

    NotAllowedError: consumers are attached, or a topic has no such message."""
    check_subscription_name(name)
    moved, gone = [], []
    for topic, place in positions.items():
        if not isinstance(place, list) or [each.__class__ for each in place] != [int, int]:
            raise ValueError(f"subscriptions.move: {place!r:.100} of {topic:.200} is no place")
    for topic, (ledger_id, message) in positions.items():
        try:
            (found,) = kept_topics_of(broker, TopicName.of(topic))
            if _move_subscription(found, name, ledger_id, message):
                moved.append(topic)
        except TopicGone:
            raise  # it may be another one by now
        except (errors.TopicNotFound, errors.SubscriptionNotFound):
            gone.append(topic)
        else:
            found.trim_soon()
    return {"moved": moved, "gone": gone}


def _move_subscription(topic: Topic, name: str, ledger_id: int, message: int) -> bool:
    with locked_in_order([topic]):
        subscription = topic.subscriptions.get(name)
        if subscription is None:
            raise errors.missing_subscription(f"{name:.200}", topic.name)
        if subscription.consumers():
            raise errors.NotAllowedError(
                detail=f"move subscription {name:.200} of {topic.name}: consumers are attached"
            )
        return bool(subscription.acknowledge_before((ledger_id, message)))
