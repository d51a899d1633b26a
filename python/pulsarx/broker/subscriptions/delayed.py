"""Messages of a subscription that wait for their time: finds them, and acknowledges one before it
is due."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.subscriptions.subscription_changes import locked_in_order
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.faces import TopicView
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.topics.topic import Topic

_BATCH, _CHUNK = 1, 8  # flags of a frame


def delayed_messages(
    topic: TopicView,
    start: Position,
    now_ms: int,
    count: int,
    is_over: Callable[[int, int], bool],
) -> list[dict[str, Any]]:
    """The first messages from a position on that are due later than now, by id and time. is_over:
    whether a message, by ledger id and ordinal, waits no more for the subscription."""
    found: list[dict[str, Any]] = []
    for ledger_id, frame, place in _delayed_entries(topic.ledger, start, now_ms):
        for index in range(place, frame["message_count"]):
            if is_over(ledger_id, frame["first_message"] + index):
                continue
            batch_index = index if frame["flags"] & _BATCH else -1
            made = MessageId(topic.ledger.partition, ledger_id, frame["entry_id"], batch_index)
            found.append({"message_id": made.to_text(), "deliver_at": frame["deliver_at_ms"]})
            if len(found) == count:
                return found
    return found


def _delayed_entries(
    ledgers: LedgerList, start: Position, now_ms: int
) -> Iterator[tuple[int, dict[str, int], int]]:
    """(ledger id, frame, place of its first message that is meant) of entries that are for later.
    Of a message in chunks the last chunk."""
    for ledger in ledgers.ledgers():
        if ledger.ledger_id < start[0] or not ledgers.published_counts(ledger)[1]:
            continue
        try:
            file, end = ledgers.file_and_end(ledger)
        except (LedgerTrimmed, errors.CorruptDataError):
            continue  # its readers are told
        first = start[1] if ledger.ledger_id == start[0] else 0
        offset = file.find_message(first, end)
        while (entry := file.next_delayed(offset, end, now_ms)) is not None:
            frame, following = entry
            chunk = file.chunk(offset, end) if frame["flags"] & _CHUNK else None
            if chunk is None or chunk[1] + 1 == chunk[2]:
                yield ledger.ledger_id, frame, max(first - frame["first_message"], 0)
            offset = following


def cancel(topic: Topic, message_id: MessageId, name: str) -> list[str]:
    """Acknowledge a message, or all messages of an entry, that wait for their time, for a
    subscription, or for each where the name is empty. The names of those for which that was done.

    NotAllowedError: it is too late for all of them; the message is not delayed, or not there.
    """
    what = f"cancel {message_id} of {topic.name}"
    with locked_in_order([topic]):
        found = {each.name: each for each in topic.all_subscriptions()}
        if name and name not in found:
            raise errors.missing_subscription(name, topic.name)
        ledger_id, first, count = topic.ledger.locate(message_id)
        if not count:
            raise errors.NotAllowedError(detail=f"{what}: there is no such message (any more)")
        deliver_at_ms = _deliver_at(topic.ledger, ledger_id, first)
        if not deliver_at_ms:
            raise errors.NotAllowedError(detail=f"{what}: it was published without a delay")
        done, late = [], {}
        for each, subscription in found.items() if not name else [(name, found[name])]:
            subscription.ledger_changed()  # it may be in a ledger that came a moment ago
            why = subscription.dispatcher.cancel_delayed(ledger_id, first, count, deliver_at_ms)
            subscription.tracker.flush()
            if why:
                late[each] = why
            else:
                done.append(each)
    if not done:
        told = ", ".join(f"for {each} it is {why} already" for each, why in late.items())
        raise errors.NotAllowedError(
            detail=f"{what}, which is due at {deliver_at_ms} ms since 1970: "
            f"{told or 'the topic has no subscription'}"
        )
    topic.trim_soon()
    return sorted(done)


def _deliver_at(ledgers: LedgerList, ledger_id: int, message: int) -> int:
    """When an entry is due, in ms since 1970; 0: at once, or it cannot be read."""
    for ledger in ledgers.ledgers():
        if ledger.ledger_id == ledger_id:
            try:
                file, end = ledgers.file_and_end(ledger)
            except (LedgerTrimmed, errors.CorruptDataError):
                return 0
            frame = file.frame(file.find_message(message, end), end)
            return 0 if frame is None else frame["deliver_at_ms"]
    return 0
