"""How far a stream may read at once: offsets between start and end under limits. Knows no Spark."""

from __future__ import annotations

from pulsarx.broker.read_range import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.ledger_range import LedgerRange
    from pulsarx.broker.offsets import Offsets, Position
    from pulsarx.broker.plan import Planner

_WHOLE = 1 << 62  # ledgers are not cut: no file is opened
_FRAME_SIZE = 64
_COLUMNS = ("value",)


def pending_messages(planner: Planner, start: Offsets, end: Offsets) -> int:
    """How many messages lie between; start and end name every topic."""
    ranges = planner.plan(start, end, _COLUMNS, target_bytes=_WHOLE, fail_on_data_loss=False)
    return sum(each.message_count for each in ranges)


def admit(
    planner: Planner,
    start: Offsets,
    end: Offsets,
    *,
    bytes_max: int | None = None,
    messages_max: int | None = None,
    entries_max: int | None = None,
    fail_on_data_loss: bool = True,
) -> Offsets:
    """Offsets from start towards end; start and end name every topic.

    Topics share the limits by what waits in them. messages_max and entries_max are kept exactly,
    bytes_max about; one entry is admitted at least, and one message of it under messages_max.
    """
    ranges = planner.plan(
        start, end, _COLUMNS, target_bytes=_WHOLE, fail_on_data_loss=fail_on_data_loss
    )
    by_topic: dict[str, list[LedgerRange]] = {}
    for each in ranges:
        by_topic.setdefault(each.topic, []).append(each)
    left = _Left(bytes_max, messages_max, entries_max)
    left.size = sum(each.size for each in ranges)
    left.messages = sum(each.message_count for each in ranges)
    found = dict(start)
    for topic, waiting in by_topic.items():
        position = _advance(planner, waiting, left)
        if position is not None:
            found[topic] = position
    if found == start and ranges:
        first = ranges[0]
        count = 1 if messages_max is not None else _entries(first, 1)[1] - first.first_message
        found[first.topic] = (first.ledger_id, first.first_message + max(count, 1))
    for topic in end.keys() - by_topic.keys():
        found[topic] = end[topic]
    return found


class _Left:
    """What is left of the limits, and of the topics that share it. One thread."""

    def __init__(
        self, bytes_max: int | None, messages_max: int | None, entries_max: int | None
    ) -> None:
        self.bytes_max = bytes_max
        self.messages_max = messages_max
        self.entries_max = entries_max
        self.size = 0
        self.messages = 0


def _share(limit: int | None, part: int, whole: int) -> int | None:
    return None if limit is None else limit * part // max(whole, 1)


def _advance(planner: Planner, waiting: list[LedgerRange], left: _Left) -> Position | None:
    """How far one topic gets; takes that from what is left."""
    size = sum(each.size for each in waiting)
    messages = sum(each.message_count for each in waiting)
    bytes_max = _share(left.bytes_max, size, left.size)
    messages_max = _share(left.messages_max, messages, left.messages)
    entries_max = _share(left.entries_max, messages, left.messages)
    left.size -= size
    left.messages -= messages
    position = None
    for each in waiting:
        entries, until = (0, each.end_message)
        if entries_max is not None:
            entries, until = _entries(each, entries_max)
        if messages_max is not None:
            until = min(until, each.first_message + messages_max)
        if bytes_max is not None and each.size > bytes_max:
            until = min(until, _cut(planner, each, bytes_max))
        if until <= each.first_message:
            break
        position = (each.ledger_id, until)
        taken = until - each.first_message
        if bytes_max is not None and left.bytes_max is not None:
            used = each.size * taken // each.message_count
            bytes_max, left.bytes_max = max(bytes_max - used, 0), max(left.bytes_max - used, 0)
        if messages_max is not None and left.messages_max is not None:
            messages_max, left.messages_max = messages_max - taken, left.messages_max - taken
        if entries_max is not None and left.entries_max is not None:
            entries_max, left.entries_max = entries_max - entries, left.entries_max - entries
        if until < each.end_message:
            break
    return position


def _cut(planner: Planner, planned: LedgerRange, bytes_max: int) -> int:
    """The first message of a range that is beyond about so many bytes."""
    if bytes_max <= 0:
        return planned.first_message
    here = planner.earliest()
    start = {**here, planned.topic: (planned.ledger_id, planned.first_message)}
    end = {**here, planned.topic: (planned.ledger_id, planned.end_message)}
    parts = planner.plan(start, end, _COLUMNS, target_bytes=bytes_max, fail_on_data_loss=False)
    first = next((part for part in parts if part.ledger_id == planned.ledger_id), None)
    if first is None or first.size > 2 * bytes_max:
        return planned.first_message
    return first.end_message


def _entries(planned: LedgerRange, entries_max: int) -> tuple[int, int]:
    """(entries, first message behind them) of at most so many entries of a range."""
    count, until, offset = 0, planned.first_message, planned.offset
    file = open_ledger(planned)
    while count < entries_max and until < planned.end_message:
        frame = file.frame(offset, planned.end)
        if frame is None:
            # Damage: what is behind it is read, or refused, by the job.
            return count + 1, planned.end_message
        until = min(frame["first_message"] + frame["message_count"], planned.end_message)
        offset += (_FRAME_SIZE + frame["entry_size"] + 7) & ~7
        count += 1
    return count, until
