"""Verbs about the subscriptions of one topic: creating and deleting them, moving their positions,
looking at what they have to acknowledge. On a partitioned topic they are done on each partition."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from pulsarx import errors
from pulsarx._pycore.message.message_id import MessageId
from pulsarx.broker.subscriptions.subscription_changes import (
    create_subscriptions,
    delete_subscriptions,
    locked_in_order,
    update_properties,
)
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.subscriptions import kept_topics_of
from pulsarx.broker.verbs.verb import CONSUME, verb
from pulsarx.options.argument_check import check_properties
from pulsarx.topic_name import (
    TopicName,
    check_is_not_of_the_system,
    check_keeps_messages,
    check_subscription_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder, TopicView
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.topic import Topic

PEEK_MAX = 1000
_TIME_END = 1 << 63


@verb("topics.create_subscription", needs=CONSUME,
    http=Http("PUT", "{topic}/subscription/{name}", "Create a subscription.",
        body="ResetCursorData", argument="position"))  # fmt: skip
def create_subscription(
    broker: Broker,
    topic: TopicName,
    name: str,
    position: dict[str, Any],
    properties: dict[str, Any] | None = None,
) -> None:
    """position: see `_find`. NotAllowedError: it exists, on a partition for one.
    InvalidConfiguration: the selector among the properties is wrong."""
    check_subscription_name(name)
    given = _properties(properties or {})
    check_is_not_of_the_system(topic, f"create subscription {name} of")
    topics = kept_topics_of(broker, topic)
    _check_position(position, topics)
    with locked_in_order(topics):
        for each in topics:
            if name in each.subscriptions:
                raise errors.NotAllowedError(
                    detail=f"create subscription {name} of {each.name}: it exists already"
                )
        places = [(each, _find(each.ledger, position)) for each in topics]
        create_subscriptions(broker.catalogue, places, name, "Exclusive", given)


def _properties(given: dict[str, Any]) -> dict[str, str]:
    check_properties(given)
    return dict(given)


@verb("topics.get_subscription_properties", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/subscription/{name}/properties",
        "Get the properties of a subscription.", answer="properties"))  # fmt: skip
def get_subscription_properties(folder: OpenFolder, topic: TopicName, name: str) -> dict[str, str]:
    """The properties of a durable one; of a partitioned topic, those of all partitions together."""
    folder.refresh()
    records = folder.catalogue.state.topics
    found: dict[str, str] | None = None
    for each in _names_of(folder, check_keeps_messages(topic)):
        record = records[each].subscriptions.get(name) if each in records else None
        if record is not None:
            found = {**record.properties, **(found or {})}
    if found is None:
        raise errors.missing_subscription(name, topic.full)
    return found


@verb("topics.update_subscription_properties", needs=CONSUME,
    http=Http("PUT", "{topic}/subscription/{name}/properties",
        "Set the properties of a subscription.", body="properties",
        argument="properties"))  # fmt: skip
def update_subscription_properties(
    broker: Broker, topic: TopicName, name: str, properties: dict[str, Any]
) -> None:
    """In the place of all that it has. InvalidConfiguration: the selector among them is wrong."""
    update_properties(kept_topics_of(broker, topic), name, _properties(properties))


@verb("topics.delete_subscription", needs=CONSUME, removes=True,
    http=Http("DELETE", "{topic}/subscription/{name}", "Delete a subscription.",
        query={"force": "force"}, refused=412))  # fmt: skip
def delete_subscription(broker: Broker, topic: TopicName, name: str, force: bool) -> None:
    """NotAllowedError: consumers are attached, and it is not forced."""
    delete_subscriptions(kept_topics_of(broker, topic), name, force)


@verb("topics.get_subscriptions", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/subscriptions", "Get the subscriptions of a topic.",
        answer="names"))  # fmt: skip
def get_subscriptions(folder: OpenFolder, topic: TopicName) -> list[str]:
    """Names of the durable ones, of a non-persistent topic those that have consumers; of a
    partitioned topic, those of any partition."""
    folder.refresh()
    state = folder.catalogue.state
    found: set[str] = set()
    if not topic.persistent:
        return _attached_subscriptions(folder, topic)
    for each in _names_of(folder, topic):
        record = state.topics.get(each)
        found.update(() if record is None else record.subscriptions)
    return sorted(found)


def _attached_subscriptions(folder: OpenFolder, topic: TopicName) -> list[str]:
    """The subscriptions of a non-persistent topic: those that have consumers."""
    found: set[str] = set()
    for each in _names_of(folder, topic):
        found.update(folder.topic(TopicName.of(each), create=False).subscription_statistics())
    return sorted(found)


def _names_of(folder: OpenFolder, topic: TopicName) -> list[str]:
    """The topic, or its partitions. TopicNotFound."""
    state = folder.catalogue.state
    if topic.full not in state.topics and topic.full not in folder.volatile:
        raise errors.missing_topic(topic)
    count = partition_count_of(state, topic)
    return partition_names(topic, count) if count else [topic.full]


# Moving -------------------------------------------------------------------------------------------


@verb("topics.reset_cursor", needs=CONSUME,
    http=Http("POST", "{topic}/subscription/{name}/resetcursor",
        "Move a subscription to a message.", body="ResetCursorData",
        argument="position"))  # fmt: skip
def reset_cursor(broker: Broker, topic: TopicName, name: str, position: dict[str, Any]) -> None:
    """position: see `_find`."""
    topics = kept_topics_of(broker, topic)
    _check_position(position, topics)
    for each, subscription in _subscriptions(topics, name):
        with locked_in_order([each]):
            subscription.seek(partial(_find, each.ledger, position))
        each.trim_soon()


@verb("topics.skip_all_messages", needs=CONSUME, removes=True,
    http=Http("POST", "{topic}/subscription/{name}/skip_all",
        "Skip all messages of a subscription."))  # fmt: skip
def skip_all_messages(broker: Broker, topic: TopicName, name: str) -> None:
    for each, subscription in _subscriptions(kept_topics_of(broker, topic), name):
        _acknowledge_before(each, subscription, each.ledger.end_position)


@verb("topics.skip_messages", needs=CONSUME, removes=True,
    http=Http("POST", "{topic}/subscription/{name}/skip/{count}",
        "Skip messages of a subscription."))  # fmt: skip
def skip_messages(broker: Broker, topic: TopicName, name: str, count: int) -> None:
    """OperationNotSupported: the topic has partitions."""
    from pulsarx.broker.subscriptions.peek import next_messages

    if count < 0:
        raise ValueError(f"skip_messages: {count} messages; it must be 0 or more")
    found = broker.topic(topic, create=False).require_kept("skip messages")
    for each, subscription in _subscriptions([found], name):
        if each.ledger.holds_chunks():
            # One by one: between the chunks of a message there may be some of a later one.
            is_acknowledged = _knows_acknowledged(subscription)
            start = subscription.mark_delete()
            for position, _ in next_messages(each, start, is_acknowledged, count):
                subscription.dispatcher.acknowledge_message(*position)
            subscription.tracker.flush()
            each.trim_soon()
            continue
        _acknowledge_before(each, subscription, partial(subscription.position_behind, count))


@verb("topics.expire_messages", needs=CONSUME,
    http=Http("POST", "{topic}/subscription/{name}/expireMessages/{seconds}",
        "Expire older messages of a subscription."))  # fmt: skip
def expire_messages(broker: Broker, topic: TopicName, name: str, seconds: int) -> None:
    """Acknowledge what is older, up to the first message that is not; of a negative age, as in
    Pulsar, what is older than a moment to come, which is everything. NotAllowedError: of none."""
    if seconds == 0:
        raise errors.NotAllowedError(
            detail=f"expire messages of {topic} for {name}: an age of 0 seconds expires nothing, "
            "as in Pulsar; skip_all_messages acknowledges all messages"
        )
    before_ms = broker.runtime.clock.now_ms() - seconds * 1000
    for each, subscription in _subscriptions(kept_topics_of(broker, topic), name):
        with locked_in_order([each]):
            expired = subscription.expire(before_ms)
        if expired:
            each.trim_soon()


def _acknowledge_before(
    topic: Topic, subscription: Subscription, find: Callable[[], Position]
) -> None:
    with locked_in_order([topic]):
        position = find()
        if not position[0]:
            return  # the topic has no ledger
        subscription.ledger_changed()  # it may be in a ledger that came a moment ago
        moved = subscription.acknowledge_before(position)
    if moved:
        topic.trim_soon()


def _subscriptions(topics: list[Topic], name: str) -> list[tuple[Topic, Subscription]]:
    """SubscriptionNotFound: a topic does not have it, or none of several."""
    found = []
    for topic in topics:
        with locked_in_order([topic]):
            subscription = topic.subscriptions.get(name)
        if subscription is not None:
            found.append((topic, subscription))
    if not found:
        raise errors.missing_subscription(name, topics[0].name)
    return found


def _check_position(position: dict[str, Any], topics: list[Topic]) -> None:
    kind = set(position)
    if kind == {"publish_time_ms"} and position["publish_time_ms"].__class__ is int:
        if not -_TIME_END <= position["publish_time_ms"] < _TIME_END:
            raise ValueError(
                f"{errors.shown(position['publish_time_ms'])} is no time: give milliseconds since "
                "1970, an int of 64 bits"
            )
        return
    if kind != {"message_id"} or not isinstance(position["message_id"], str):
        raise ValueError(f"{position!r:.200} is no position in a topic")
    message_id = MessageId.from_text(position["message_id"])
    if len(topics) > 1 and message_id not in (MessageId.earliest, MessageId.latest):
        raise errors.OperationNotSupported(
            detail=f"{message_id} is on one of {len(topics)} partitions; name that partition as "
            "the topic, or give a time"
        )


def _find(ledger: LedgerList, position: dict[str, Any]) -> Position:
    """{"message_id": text}: at that message; {"publish_time_ms": n}: the first published then."""
    if "publish_time_ms" in position:
        return ledger.position_at_time(position["publish_time_ms"])
    return ledger.position_of(MessageId.from_text(position["message_id"]), True)


# Looking ------------------------------------------------------------------------------------------


@verb("topics.peek_messages", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/subscription/{name}/position/{position}",
        "Get the n-th message that a subscription has to acknowledge."))  # fmt: skip
def peek_messages(
    folder: OpenFolder, topic: TopicName, name: str, count: int, skip: int = 0
) -> list[dict[str, Any]]:
    """skip: how many messages it goes on behind. OperationNotSupported: the topic has
    partitions."""
    from pulsarx.broker.subscriptions.peek import peek

    if not 1 <= count <= PEEK_MAX:
        raise ValueError(f"peek_messages: {count} messages; it must be from 1 to {PEEK_MAX}")
    if skip < 0:
        raise ValueError(f"peek_messages: behind {skip} messages; it must be 0 or more")
    with unacknowledged(folder, topic, name) as (found, start, is_acknowledged):
        return peek(found, start, is_acknowledged, count, skip)


@contextmanager
def unacknowledged(
    folder: OpenFolder, topic: TopicName, name: str
) -> Iterator[tuple[TopicView, Position, Callable[[int, int], bool]]]:
    """The topic, where its subscription has acknowledged all before, and what says of a ledger id
    and an ordinal in it whether that message is acknowledged. OperationNotSupported: the topic has
    partitions."""
    folder.refresh()
    found: Any = folder.topic(check_keeps_messages(topic), create=False)
    record = folder.catalogue.state.topics[found.name].subscriptions.get(name)
    if record is None:
        raise errors.missing_subscription(name, found.name)
    if folder.read_only:
        from pulsarx.broker.subscriptions.cursor_view import opened_cursor

        beside: Any = folder
        with opened_cursor(beside, found.ledger, record) as tracker:
            yield found, tracker.mark_delete(), tracker.is_message_acknowledged
        return
    [(_, subscription)] = _subscriptions([found], name)
    yield found, subscription.mark_delete(), _knows_acknowledged(subscription)


def _knows_acknowledged(subscription: Subscription) -> Callable[[int, int], bool]:
    """A function that says of a ledger id and an ordinal in it whether that message is
    acknowledged."""

    def is_acknowledged(*place: int) -> bool:
        look = partial(subscription.tracker.is_message_acknowledged, *place)
        return bool(subscription.core.locked(look))

    return is_acknowledged
