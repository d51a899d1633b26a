"""Applies the filters that Spark hands over, exactly, so that Spark need not apply them again.
Planned on the driver, where they leave out ranges; tasks apply them to rows.

A filter is one comparison of a column of messages with values, in which no null is, as SQL has it,
or says whether the column is null; all of them hold together.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pulsarx import errors
from pulsarx.spark.topic_columns import EVERY_TYPE, MESSAGE_ID, PARTITION, PUBLISH_TIME, TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import pyarrow as pa

    from pulsarx.broker.scan.ledger_range import LedgerRange

LEDGER_ID = "__ledgerId"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What is the same for all messages of a range.
_OF_RANGE: dict[str, Callable[[LedgerRange], Any]] = {
    TOPIC: lambda planned: planned.topic,
    PARTITION: lambda planned: planned.partition,
    LEDGER_ID: lambda planned: planned.ledger_id,
}
_OPERATIONS = ("in", "greater", "greater_equal", "less", "less_equal")
_OF_NULLS = ("is_null", "is_valid")


class RowFilter:
    """A comparison of a column with values, or with null. A value that pickles."""

    def __init__(self, column: str, operation: str, values: list[Any]) -> None:
        """operation: in, or the name of a function of pyarrow.compute: a comparison with one
        value, or is_null or is_valid, without values."""
        self.column = column
        self.operation = operation
        self.values = values

    def is_of_range(self) -> bool:
        return self.column in _OF_RANGE

    def holds(self, planned: LedgerRange) -> bool:
        """Whether it holds for the messages of a range; of those that is_of_range."""
        found = _OF_RANGE[self.column](planned)
        if self.operation == "in":
            return found in self.values
        if self.operation in _OF_NULLS:
            return (found is None) == (self.operation == "is_null")
        import operator

        names = {"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}
        return bool(getattr(operator, names[self.operation])(found, self.values[0]))

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute which rows the filter holds for."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = batch.column(self.column)
        if self.operation == "in":
            return pc.is_in(column, value_set=pa.array(self.values, column.type))
        if self.operation in _OF_NULLS:
            return getattr(pc, self.operation)(column)
        return getattr(pc, self.operation)(column, pa.scalar(self.values[0], column.type))


class RangeChoice:
    """Ranges that may have a row which some filters hold for. A value that pickles."""

    def __init__(self) -> None:
        self._of_range: list[RowFilter] = []
        self._ledgers: set[int] | None = None
        # What was published before and from then on has no such row; None: nobody knows.
        self.from_ms: int | None = None
        self.until_ms: int | None = None

    def add(self, found: RowFilter) -> None:
        if found.is_of_range():
            self._of_range.append(found)
        elif found.column == MESSAGE_ID and found.operation == "in":
            named = set(map(_ledger_of, found.values))
            self._ledgers = named if self._ledgers is None else self._ledgers & named
        elif found.column == PUBLISH_TIME and found.operation in _OPERATIONS:
            self._add_times(found)

    def _add_times(self, found: RowFilter) -> None:
        """Publish times are whole milliseconds, and what they are compared with need not be."""
        times = [_floor_ms(each) for each in found.values] or [0]
        between = found.operation != "in" and bool(found.values[0].microsecond % 1000)
        behind = max(times) + 1
        if found.operation in ("in", "greater", "greater_equal"):
            later = found.operation == "greater" or between
            self.from_ms = max(self.from_ms or 0, behind if later else min(times))
        if found.operation in ("in", "less", "less_equal"):
            until_ms = behind - 1 if found.operation == "less" and not between else behind
            self.until_ms = until_ms if self.until_ms is None else min(self.until_ms, until_ms)

    def of(self, ranges: Iterable[LedgerRange]) -> list[LedgerRange]:
        """Choose among the ranges of a plan, which was made with from_ms and until_ms."""
        return [
            each
            for each in ranges
            if (self._ledgers is None or each.ledger_id in self._ledgers)
            and all(one.holds(each) for one in self._of_range)
        ]


def _floor_ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _ledger_of(value: Any) -> int:
    """The ledger that a message id names; 0, which is none, for what is no message id."""
    from pulsarx.message_id import MessageId

    try:
        return int(MessageId.deserialize(bytes(value)).ledger_id())
    except (ValueError, TypeError, errors.PulsarException):
        return 0


def filter_of(column: Any, operation: str, values: list[Any]) -> RowFilter | None:
    """None: it is not exactly one of these; Spark applies it."""
    kind = EVERY_TYPE.get(column, "")
    if kind and operation in _OF_NULLS:
        return RowFilter(column, operation, [])
    check = _IS_OF.get(kind)
    if check is None or operation not in _OPERATIONS or not all(map(check, values)):
        return None
    if operation != "in" and kind in ("binary", "string"):
        return None  # Java and Arrow need not order them alike
    return RowFilter(column, operation, [_plain(value) for value in values])


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _is_number(value: Any, bits: int) -> bool:
    return type(value) is int and -(1 << bits) <= value < 1 << bits


_IS_OF: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: _is_number(value, 31),
    "bigint": lambda value: _is_number(value, 63),
    "string": lambda value: isinstance(value, str),
    "binary": lambda value: isinstance(value, bytes | bytearray),
    "timestamp": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
}


def filtered(batch: pa.RecordBatch, filters: Iterable[RowFilter]) -> pa.RecordBatch:
    for each in filters:
        mask = each.mask(batch)
        # Columns that are never null are asked for nulls with every comparison: no copy for that.
        if mask.true_count < batch.num_rows:
            batch = batch.filter(mask)
    return batch
