"""The backlog that a subscription has left to acknowledge, counted from its cursor and its topic's
ledgers.

For statistics, of an owned folder and of one that is read beside its owner. Nothing is fetched from
an object store for them: of a ledger that is there alone and that nobody reads, what has to be
looked up is in proportion to its messages."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from pulsarx._pycore.cursor.entry_backlog import hidden_chunks, open_entries
from pulsarx.broker.ledgers.ledger_gone import LedgerAway, LedgerTrimmed
from pulsarx.errors import CorruptDataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx._pycore.cursor.ack_tracker import AckTracker
    from pulsarx._pycore.ledger.ledger_tail import LedgerSpan
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position

HEADER_SIZE = 4096  # of a ledger file
NOTHING = (-1, -1)  # as Pulsar's earliest position


def count_backlog(tracker: AckTracker, ledger_list: LedgerList) -> tuple[int, int]:
    """(entries, messages): messages that are not acknowledged, and entries that hold one. A message
    in chunks counts once, its chunks as entries. The subscription's mutex is held."""
    # All but one that is being added right now; one below the first is being removed.
    known = tracker.ledger_ids
    counts = [
        _open_counts(tracker, ledger_list, ledger, ledger.ledger_id in known)
        for ledger in ledger_list.ledgers()
        if not known or ledger.ledger_id >= known[0]
    ]
    return sum(each[0] for each in counts), sum(each[1] for each in counts)


def _open_counts(
    tracker: AckTracker, ledger_list: LedgerList, ledger: LedgerRecord, known: bool
) -> tuple[int, int]:
    """(entries, messages) of one ledger. known: the tracker was told of it."""
    entries, messages = ledger_list.published_counts(ledger)
    if not known:
        return entries, messages
    span = partial(ledger_list.span_at_hand, ledger)
    acknowledged = tracker.acknowledged_count(ledger.ledger_id)
    try:
        entries = open_entries(tracker, span, ledger.ledger_id, entries, messages)
    except LedgerTrimmed:
        return 0, 0
    except CorruptDataError:
        pass  # none of its entries can be read; whoever reads it is told
    except LedgerAway:
        entries = -(-entries * (messages - acknowledged) // messages)
    if entries == 0:
        # One that is not sealed yet and lies behind the position has no count of its own.
        return 0, 0
    hidden = 0
    if ledger_list.holds_chunks():
        with suppress(LedgerTrimmed, LedgerAway, CorruptDataError):
            hidden = hidden_chunks(tracker, span(), ledger.ledger_id, messages)
    return entries, max(messages - acknowledged - hidden, 0)


def hidden_before(position: Position, tracker: AckTracker, ledger_list: LedgerList) -> int:
    """Chunks before a position that are not acknowledged, and not the last one of their message,
    which counts once. The subscription's mutex is held."""
    if not ledger_list.holds_chunks():
        return 0
    known = tracker.ledger_ids
    found = 0
    for ledger in ledger_list.ledgers():
        if ledger.ledger_id > position[0]:
            break
        if ledger.ledger_id not in known:
            continue
        end = position[1]
        if ledger.ledger_id < position[0]:
            end = ledger_list.published_counts(ledger)[1]
        with suppress(LedgerTrimmed, LedgerAway, CorruptDataError):
            span = ledger_list.span_at_hand(ledger)
            found += hidden_chunks(tracker, span, ledger.ledger_id, end)
    return found


def entries_before(position: Position, tracker: AckTracker, ledger_list: LedgerList) -> int:
    """Entries before a position, which is the end of one, that hold a message that is not
    acknowledged. The subscription's mutex is held."""
    known = tracker.ledger_ids
    found = 0
    for ledger in ledger_list.ledgers():
        if ledger.ledger_id > position[0]:
            break
        if ledger.ledger_id not in known:
            continue
        if ledger.ledger_id < position[0]:
            found += _open_counts(tracker, ledger_list, ledger, True)[0]
            continue
        entries = mark_delete_position(position, ledger_list)[1] + 1
        span = partial(ledger_list.span_at_hand, ledger)
        with suppress(LedgerTrimmed, LedgerAway, CorruptDataError):
            found += open_entries(tracker, span, ledger.ledger_id, entries, position[1])
    return found


def backlog_extent(position: Position, ledger_list: LedgerList, now_ms: int) -> dict[str, int]:
    """Bytes of the entries from the first unacknowledged message on, and for how many seconds that
    one is there; 0 and -1: there is none.

    position: (ledger id, ordinal) of the first message that is not acknowledged. What is
    acknowledged behind it counts, as in Pulsar. A ledger that cannot be read counts as a whole.
    """
    size, oldest_ms = 0, -1
    for ledger in ledger_list.ledgers():
        if ledger.ledger_id < position[0]:
            continue
        ordinal = position[1] if ledger.ledger_id == position[0] else 0
        messages = ledger_list.published_counts(ledger)[1]
        if ordinal >= messages:
            continue
        begin, publish_ms = _place_of(ledger_list, ledger, ordinal, messages)
        size += max(ledger_list.size_of(ledger) - begin, 0)
        if oldest_ms < 0:
            oldest_ms = publish_ms
    age = -1 if oldest_ms < 0 else max(now_ms - oldest_ms, 0) // 1000
    return {"backlog_size": size, "oldest_backlog_message_age_seconds": age}


def _place_of(
    ledger_list: LedgerList, ledger: LedgerRecord, ordinal: int, messages: int
) -> tuple[int, int]:
    """Offset and publish time of the entry that holds a message, or of the next one. messages: of
    the ledger."""
    try:
        file, end = ledger_list.file_and_end(ledger, ledger_list.span_at_hand)
        offset = file.find_message(ordinal, end)
        frame = file.frame(offset, end)
    except (LedgerTrimmed, CorruptDataError):
        return HEADER_SIZE, ledger.first_publish_ms
    except LedgerAway:
        lasted_ms = ledger.last_publish_ms - ledger.first_publish_ms
        return (
            HEADER_SIZE + (ledger.size - HEADER_SIZE) * ordinal // messages,
            ledger.first_publish_ms + lasted_ms * ordinal // messages,
        )
    if frame is None:
        return HEADER_SIZE, ledger.first_publish_ms
    return int(offset), int(frame["publish_time_ms"])


def counts_behind(position: Position, ledger_list: LedgerList) -> tuple[int, int]:
    """(entries, messages) from a message on: its ledger id and ordinal."""
    entries, messages = 0, 0
    ledger_id, entry_id = mark_delete_position(position, ledger_list)
    for ledger in ledger_list.ledgers():
        if ledger.ledger_id < position[0]:
            continue
        there = ledger_list.published_counts(ledger)
        begun = ledger.ledger_id == position[0]
        entries += there[0] - (entry_id + 1 if ledger.ledger_id == ledger_id and begun else 0)
        messages += there[1] - (min(position[1], there[1]) if begun else 0)
    return entries, messages


def mark_delete_position(
    position: Position, ledger_list: LedgerList, *, exact: bool = False
) -> Position:
    """(ledger id, entry id) of the last entry up to which all is acknowledged; entry -1: nothing of
    that ledger is. (-1, -1): the topic has no ledger.

    position: (ledger id, ordinal) of the first message that is not acknowledged. exact: also where
    the ledger has to be fetched.
    """
    ledger_id, ordinal = position
    span_of = ledger_list.span if exact else ledger_list.span_at_hand
    for ledger in ledger_list.ledgers():
        if ledger.ledger_id == ledger_id:
            try:
                return ledger_id, _entry_before(ledger_list, ledger, ordinal, span_of)
            except (LedgerTrimmed, CorruptDataError):
                return ledger_id, -1
    return NOTHING if not ledger_list.ledgers() else (ledger_id, -1)


def _entry_before(
    ledger_list: LedgerList,
    ledger: LedgerRecord,
    ordinal: int,
    span_of: Callable[[LedgerRecord], LedgerSpan],
) -> int:
    """The last entry that ends at or before a message of its ledger; -1: there is none."""
    entries, messages = ledger_list.published_counts(ledger)
    if ordinal >= messages or entries == messages:
        return min(ordinal, entries) - 1 if entries == messages else entries - 1
    try:
        file, end = ledger_list.file_and_end(ledger, span_of)
    except LedgerAway:
        return entries * ordinal // messages - 1
    frame = file.frame(file.find_message(ordinal, end), end)
    return entries - 1 if frame is None else int(frame["entry_id"]) - 1
