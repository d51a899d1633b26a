"""Which messages a table has: places, times, keys and the newest, chosen before a value is
decoded. For the calls that read topics as tables."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pulsarx.clock import wall_ms
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.options.argument_check import is_whole_number
from pulsarx.options.members import check_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Place = tuple[int, int, int]  # ledger id, entry id, batch index

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMS = (
    "a MessageId, a MessageIndex, a datetime with a zone, a text such as 2026-01-01T00:00Z, a "
    "timedelta (before now), or milliseconds since 1970"
)


class Block:
    """Messages of one topic, as columns; messages: the same as objects, where they are needed.
    version: of the schema that they all were written with, b"" for none, where that is. reached:
    how many messages of the source were chosen up to the end of this."""

    def __init__(
        self,
        topic: str,
        table: pa.Table,
        messages: list[Any] | None = None,
        version: bytes | None = None,
        source: Any = None,
    ) -> None:
        self.topic = topic
        self.table = table
        self.messages = messages
        self.version = version
        self.source = source
        self.reached = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, rows: Any) -> Block:
        """rows: numbers of rows, as an array."""
        messages = self.messages
        if messages is not None:
            messages = [messages[row] for row in rows.to_pylist()]
        return self._part(self.table.take(rows), messages)

    def tail(self, count: int) -> Block:
        """The last rows; all, where there are not more."""
        first = max(len(self) - count, 0)
        messages = None if self.messages is None else self.messages[first:]
        return self._part(self.table.slice(first), messages)

    def _part(self, table: pa.Table, messages: list[Any] | None) -> Block:
        made = Block(self.topic, table, messages, self.version, self.source)
        made.reached = self.reached
        return made

    def values(self) -> pa.Array:
        """The payloads, in one piece."""
        values = self.table["value"]
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()

    def present(self) -> pa.Array:
        """The values, without those of tombstones."""
        values = self.values()
        return values.drop_null() if values.null_count else values

    def name(self, row: int) -> str:
        """Return how errors call the message of a row."""
        message_id = MessageId.from_row(self.table["message_id"][row])
        return f"message {message_id} of {self.topic}"


class Selection:
    """Chooses the messages that are wanted. A value."""

    def __init__(
        self,
        start: Any,
        end: Any,
        last: int | None,
        keys: str | Iterable[str] | None,
        tombstones: str,
        selector: str | None = None,
        now_ms: int | None = None,
    ) -> None:
        """selector: which messages are read at all. now_ms: by the client's clock; None: that of
        the system. InvalidConfiguration: the selector is wrong."""
        if last is not None and (type(last) is not int or last < 1):
            raise ValueError(f"last is {last!r}; it must be an int of at least 1, or None")
        if tombstones not in ("raise", "null", "skip"):
            raise ValueError(f"tombstones is {tombstones!r}; it must be raise, null or skip")
        now_ms = wall_ms() if now_ms is None else now_ms
        self.start_id: MessageId | None = start if isinstance(start, MessageId) else None
        self.end_id: MessageId | None = end if isinstance(end, MessageId) else None
        # Instead of them until `locate` was called.
        self.start_index: MessageIndex | None = start if isinstance(start, MessageIndex) else None
        self.end_index: MessageIndex | None = end if isinstance(end, MessageIndex) else None
        self.start_ms: int | None = _milliseconds(start, "start", now_ms)
        self.end_ms: int | None = _milliseconds(end, "end", now_ms)
        self.last = last
        self.keys: Any = None if keys is None else _key_texts(keys)
        self.tombstones = tombstones
        self.selector: str = check_selector(selector)

    def locate(self, find: Callable[[int], MessageId]) -> None:
        """Have the ids of messages that are named by their indexes. find: raises where there is
        none."""
        if self.start_index is not None:
            self.start_id = find(self.start_index.index())
        if self.end_index is not None:
            self.end_id = find(self.end_index.index())

    @property
    def has_all(self) -> bool:
        """Whether every message is wanted, or the newest of all."""
        return (
            self.start_ms is None
            and self.end_ms is None
            and self.end_id in (None, MessageId.latest)
            and self.keys is None
            and self.tombstones != "skip"
        )

    def of(self, block: Block) -> Block:
        """The messages that are wanted, without tombstones where these are not."""
        table = block.table
        masks = []
        if self.start_ms is not None or self.end_ms is not None:
            times = table["publish_time"].cast(pa.int64())
            if self.start_ms is not None:
                masks.append(pc.greater_equal(times, self.start_ms))
            if self.end_ms is not None:
                masks.append(pc.less(times, self.end_ms))
        if self.end_id is not None and self.end_id != MessageId.latest:
            ids = table["message_id"].combine_chunks()
            masks.append(before(ids, place_of(self.end_id)))
        if self.keys is not None:
            masks.append(pc.is_in(table["key"], self.keys))
        if self.tombstones == "skip" and table["value"].null_count:
            masks.append(pc.is_valid(table["value"]))
        if not masks:
            return block
        wanted = masks[0]
        for mask in masks[1:]:
            wanted = pc.and_(wanted, mask)
        return block.take(pc.indices_nonzero(wanted))

    def of_all(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Choose from the blocks of all partitions, one behind the other."""
        chosen = (block for block in map(self.of, blocks) if len(block))
        return chosen if self.last is None else iter(_last_of(chosen, self.last))


def _last_of(blocks: Iterator[Block], count: int) -> list[Block]:
    """The last ones: of each partition, then of all by their publish times."""
    tails: dict[str, deque[Block]] = {}
    for block in blocks:
        tail = tails.setdefault(block.topic, deque())
        tail.append(block)
        while _count(tail) - len(tail[0]) >= count:
            tail.popleft()
    found: list[Block] = []
    for tail in tails.values():
        spare = _count(tail) - count
        if spare > 0:
            tail[0] = tail[0].tail(len(tail[0]) - spare)
        found += tail
    if len(tails) < 2 or _count(found) <= count:
        return found
    return _latest(found, count)


def _count(blocks: Iterable[Block]) -> int:
    return sum([len(block) for block in blocks])


def _latest(blocks: list[Block], count: int) -> list[Block]:
    times = pa.concat_arrays(
        [block.table["publish_time"].combine_chunks().cast(pa.int64()) for block in blocks]
    )
    wanted = pc.sort_indices(times)[len(times) - count :].cast(pa.int64())
    found, first = [], 0
    for block in blocks:
        end = first + len(block)
        here = pc.and_(pc.greater_equal(wanted, first), pc.less(wanted, end))
        rows = pc.subtract(wanted.filter(here), first)
        if len(rows):
            found.append(block.take(rows.take(pc.sort_indices(rows))))
        first = end
    return found


# Places and times ---------------------------------------------------------------------------------


def place_of(message_id: MessageId) -> Place:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


def before(ids: pa.Array, place: Place) -> pa.Array:
    """Which of some message ids are before a place."""
    ledgers, entries = ids.field("ledger_id"), ids.field("entry_id")
    in_entry = pc.and_(pc.equal(entries, place[1]), pc.less(ids.field("batch_index"), place[2]))
    in_ledger = pc.and_(pc.equal(ledgers, place[0]), pc.or_(pc.less(entries, place[1]), in_entry))
    return pc.or_(pc.less(ledgers, place[0]), in_ledger)


def _milliseconds(time: Any, name: str, now_ms: int) -> int | None:
    """None: it is not a time, but a message, or nothing."""
    if time is None or isinstance(time, (MessageId, MessageIndex)):
        return None
    if is_whole_number(time):
        return time
    if isinstance(time, timedelta):
        if time < timedelta(0):
            raise ValueError(f"{name} is {time!r}: a timedelta is before now, so not negative")
        return now_ms - time // timedelta(milliseconds=1)
    if isinstance(time, str):
        time = _of_text(time, name)
    if not isinstance(time, datetime):
        raise ValueError(f"{name} must be {_FORMS}; it is {time!r:.80}")
    if time.tzinfo is None:
        raise ValueError(f"{name} is {time}, which has no time zone")
    # Upwards: a time between two milliseconds is before the later one.
    return -((_EPOCH - time) // timedelta(milliseconds=1))


def _of_text(text: str, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} must be {_FORMS}; it is {text!r:.80}") from None


def _key_texts(keys: str | Iterable[str]) -> pa.Array:
    found = [keys] if isinstance(keys, str) else list(keys)
    for each in found:
        if not isinstance(each, str):
            raise ValueError(f"keys must be a str or strs, not {each!r:.80}")
    return pa.array(found, pa.string())
