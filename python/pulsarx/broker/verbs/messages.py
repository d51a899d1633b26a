"""Verbs that look at single messages of a topic, whatever its subscriptions have acknowledged."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.topic_subscriptions import unacknowledged
from pulsarx.broker.verbs.verb import CONSUME, verb
from pulsarx.message_id import MessageId
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.faces import OpenFolder, TopicView
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position

    Json = dict[str, Any]

BROWSE_MAX = 200  # messages of a page


@verb("topics.examine_message", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/examinemessage", "Get the n-th message of a topic, from either end.",
        query={"from_end": "initialPosition", "number": "messagePosition"},
        refused=412))  # fmt: skip
def examine_message(folder: OpenFolder, topic: TopicName, number: int, from_end: bool) -> Json:
    """The message that many from the first one on, which is 1, or from the last one backwards.
    NotAllowedError: there are not so many. OperationNotSupported: the topic has partitions; or,
    from the end, chunks, which are counted only by reading them."""
    if number < 1:
        raise ValueError(f"examine_message: the number of a message is 1 or more, not {number}")
    found = _topic(folder, topic)
    if found.ledger.holds_chunks():
        if from_end:
            raise errors.OperationNotSupported(
                detail=f"examine a message from the end of {found.name}: it holds messages in "
                "chunks; count from its beginning"
            )
        told = _described(found, found.ledger.first_position(), number)
    else:
        place = _place_of(found.ledger, number, from_end)
        told = [] if place is None else _described(found, place, 1)
    if not told:
        raise errors.NotAllowedError(
            detail=f"message {number} of {found.name}: there are not so many"
        )
    return told[-1]


@verb("topics.get_message_by_id", needs=CONSUME, reads=True)
def get_message_by_id(folder: OpenFolder, topic: TopicName, message_id: str) -> Json | None:
    """The message of an id, of a batch its first one; None: there is none."""
    found = _topic(folder, topic)
    wanted = MessageId.from_text(message_id)
    ledger_id, ordinal, messages = found.ledger.locate(wanted)
    if not messages:
        return None
    told = _described(found, (ledger_id, ordinal), 1)
    place = (wanted.ledger_id(), wanted.entry_id())
    ids = [MessageId.from_text(each["message_id"]) for each in told]
    return told[0] if [(each.ledger_id(), each.entry_id()) for each in ids] == [place] else None


@verb("topics.find_message_id", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/messageid/{publish_time_ms}",
        "Get the id of the first message published at a time (ms) or later.",
        answer="MessageId"))  # fmt: skip
def find_message_id(folder: OpenFolder, topic: TopicName, publish_time_ms: int) -> str:
    """The id of the first entry published then or later, as text; earliest, where none is older;
    the one behind the last, where all are. As Pulsar answers."""
    found = _topic(folder, topic)
    place = found.ledger.position_at_time(publish_time_ms)
    last = found.ledger.last_message_id()
    if place == found.ledger.first_position() or last.entry_id() < 0:
        return MessageId.earliest.to_text()
    told = _described(found, place, 1)
    first = MessageId.from_text(told[0]["message_id"]) if told else last
    entry_id = first.entry_id() + (0 if told else 1)
    return MessageId(first.partition(), first.ledger_id(), entry_id, -1).to_text()


@verb("topics.get_message_id_by_index", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/getMessageIdByIndex", "Get the id of the message of an index.",
        query={"index": "index"}, answer="MessageId"))  # fmt: skip
def get_message_id_by_index(folder: OpenFolder, topic: TopicName, index: int) -> str:
    """The id as text. NotAllowedError: there is no such message, or not any more.
    OperationNotSupported: the topic has partitions."""
    if index < 0:
        raise ValueError(f"get_message_id_by_index: an index is 0 or more, not {index}")
    found = _topic(folder, topic)
    ledgers = found.ledger
    ledger_id, ordinal = ledgers.position_at_index(index)
    if index < ledgers.indexes.end() and ledgers.indexes.first(ledger_id) + ordinal == index:
        told = _described(found, (ledger_id, ordinal), 1)
        if told:
            return str(told[0]["message_id"])
    first, end = ledgers.indexes.first(ledgers.first_position()[0]), ledgers.indexes.end()
    left = f"those that are left have indexes from {first} to {end - 1}"
    raise errors.NotAllowedError(
        detail=f"message of index {index} of {found.name}: there is none; "
        + (left if first < end else f"the next one gets the index {end}")
    )


@verb("topics.browse_messages", needs=CONSUME, reads=True)
def browse_messages(
    folder: OpenFolder,
    topic: TopicName,
    position: Json,
    count: int,
    name: str = "",
    text: str = "",
) -> Json:
    """A page of up to count messages; see `browse`. name: a durable subscription, of which what it
    has not acknowledged is shown.

    position: {"place": what `next` was of the page before}, {"message_id": text},
    {"publish_time_ms": n}, or {"from_end": n}, so many messages before the end. {"before": place},
    or {"before": null}, the end: the messages in front of it, the newest first.
    OperationNotSupported: the topic has partitions.
    """
    from pulsarx.broker.subscriptions.browse import browse, browse_back

    if not 1 <= count <= BROWSE_MAX:
        raise ValueError(f"browse_messages: {count} messages; it must be from 1 to {BROWSE_MAX}")
    if not name:
        found = _topic(folder, topic)
        if "before" in position:
            before, lowest = _end_of(found.ledger, position), found.ledger.first_position()
            return browse_back(found, before, count, lowest=lowest, text=text)
        return browse(found, _start_of(found.ledger, position), count, text=text)
    with unacknowledged(folder, topic, name) as (found, first, is_acknowledged):
        if "before" in position:
            before, known = _end_of(found.ledger, position), is_acknowledged
            return browse_back(found, before, count, lowest=first, text=text, is_acknowledged=known)
        start = max(first, _start_of(found.ledger, position))
        return browse(found, start, count, text=text, is_acknowledged=is_acknowledged)


def _end_of(ledgers: LedgerList, position: Json) -> Position:
    """The place that {"before": place} means."""
    value = position["before"]
    if value is None:
        return ledgers.end_position()
    return _start_of(ledgers, {"place": value})


def _start_of(ledgers: LedgerList, position: Json) -> Position:
    """See browse_messages."""
    if len(position) == 1:
        [(kind, value)] = position.items()
        if kind == "place" and isinstance(value, list) and len(value) == 2:
            if all(each.__class__ is int and 0 <= each < 1 << 63 for each in value):
                return (value[0], value[1])
        elif kind == "message_id" and isinstance(value, str):
            return ledgers.position_of(MessageId.from_text(value), True)
        elif kind == "publish_time_ms" and value.__class__ is int:
            return ledgers.position_at_time(value)
        elif kind == "from_end" and value.__class__ is int and value > 0:
            return _place_of(ledgers, value, True) or ledgers.first_position()
    raise ValueError(f"{position!r:.200} is no position in a topic")


def _topic(folder: OpenFolder, topic: TopicName) -> TopicView:
    folder.refresh()
    name = check_keeps_messages(topic)
    if name.full not in folder.catalogue.state.topics:
        raise errors.missing_topic(name)
    return folder.topic(name, create=False)


def _place_of(ledgers: LedgerList, number: int, from_end: bool) -> Position | None:
    records = ledgers.ledgers()
    for each in reversed(records) if from_end else records:
        messages = ledgers.published_counts(each)[1]
        if number <= messages:
            return (each.ledger_id, messages - number if from_end else number - 1)
        number -= messages
    return None


def _described(topic: TopicView, start: Position, count: int) -> list[Json]:
    """The last of so many messages; empty, where there are not so many."""
    from pulsarx.broker.subscriptions.peek import described, next_messages

    found = [message for _, message in next_messages(topic, start, _never, count)]
    return [described(found[-1])] if len(found) == count else []


def _never(*_: int) -> bool:
    return False
