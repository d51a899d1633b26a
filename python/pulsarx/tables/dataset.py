"""A scan of topics as a dataset of pyarrow, to whose scanner DuckDB hands columns and conditions.

DuckDB takes every `pyarrow.dataset.Dataset`, calls `scanner` with the columns and conditions of the
query, and reads what that returns. It does not check the conditions again.
"""

from __future__ import annotations

import operator
import re
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as arrow_dataset

from pulsarx import errors
from pulsarx.tables.reading import METADATA, metadata_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.tables.reading import Early, TableRead
    from pulsarx.tables.selection import Block

_DESCRIBED = {f"__{name}__": name for name in METADATA}
_COMPARISONS = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NAME = re.compile(r"\w+")
_TEXT = re.compile(r'\((__key__|__topic__) (==) "([^"\\]*)"\)')
_TIME = re.compile(r"\((__publish_time__|__event_time__) (==|[<>]=?) ([0-9: .-]{19,})Z\)")


class TopicDataset(arrow_dataset.Dataset):  # type: ignore[misc]  # of pyarrow, without types
    """Topics as a dataset. Any thread may scan it."""

    def __init__(self, read: TableRead) -> None:
        """OperationNotSupported: see check_names."""
        check_names(read.schema, read.topic)
        self._read = read

    @property
    def schema(self) -> pa.Schema:
        return self._read.schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> _Scanner:
        """Return what reads the columns of the messages that the filter keeps. Further arguments
        are how much pyarrow would read at once."""
        return _Scanner(self._read, columns, filter)


def folded(name: str) -> bytes:
    """Make what is equal of names that are one for DuckDB, in quotes as well: it takes a to z for A
    to Z, and no other letter for another."""
    return name.encode("utf-8", "surrogatepass").lower()


def check_names(columns: pa.Schema, topic: str) -> None:
    """OperationNotSupported: two columns, or fields of a record, are one by name for DuckDB, which
    would answer with the first."""
    levels = [("", list(columns))]
    while levels:
        path, fields = levels.pop()
        names: dict[bytes, str] = {}
        for field in fields:
            at = f"{path}.{field.name}" if path else field.name
            other = names.setdefault(folded(field.name), at)
            if other != at:
                raise errors.OperationNotSupported(
                    detail=f"SQL over {topic}: {other} and {at} differ in capitals alone, which "
                    "DuckDB does not tell apart: leave the column of one out, with columns= or "
                    "metadata= of scan, or query scan(topic).to_polars()"
                )
            kind = field.type
            levels.append((at, [kind.field(number) for number in range(kind.num_fields)]))


class _Scanner:
    """One reading of a dataset."""

    def __init__(self, read: TableRead, columns: list[str] | None, condition: Any) -> None:
        self._read = read
        self._condition = condition
        self._names = read.schema.names if columns is None else columns
        self.projected_schema = pa.schema([read.schema.field(each) for each in self._names])

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._condition is None:
            for table in self._read.tables(self._names):
                yield from table.to_batches()
            return
        early = early_of(self._condition, self._read.schema, self._read.names_described())
        names = [*self._names, *_fields_of(self._condition, self._names, self._read.schema)]
        for table in self._read.tables(names, early):
            yield from table.filter(self._condition).select(self._names).to_batches()


def _fields_of(condition: Any, names: list[str], schema: pa.Schema) -> list[str]:
    """The further columns that a condition is about: those by whose names its text has words."""
    text = str(condition)
    return [each for each in schema.names if each not in names and each in text]


def early_of(condition: Any, schema: pa.Schema, names: list[str]) -> Early:
    """Make the filter of what a condition says of anything but values. names: of the columns that
    are none of values."""
    empty = pa.schema([schema.field(each) for each in names]).empty_table()
    try:
        empty.filter(condition)
    except (pa.ArrowException, LookupError):  # it is about values, too
        # Names stand in the text without quotes.
        is_plain = all(map(_NAME.fullmatch, schema.names))
        condition = _described_part(str(condition), names) if is_plain else None

    def early(block: Block) -> Block:
        if condition is None or not names:
            return block
        table = pa.table({name: metadata_of(block, _DESCRIBED[name]) for name in names})
        rows = pa.array(range(len(block)), pa.int64())
        kept = table.append_column(_ROW, rows).filter(condition)[_ROW]
        return block if len(kept) == len(block) else block.take(kept.combine_chunks())

    return early


_ROW = "pulsarx row"


def _described_part(text: str, names: list[str]) -> Any:
    """Read from the text of a condition the simple parts on keys, topics and times of those names,
    which must hold for all of it to hold. None: there are none."""
    found = None
    for part in _parts(text):
        condition = _comparison(part, names)
        if condition is not None:
            found = condition if found is None else found & condition
    return found


def _comparison(part: str, names: list[str]) -> Any:
    if (match := _TEXT.fullmatch(part)) and match[1] in names:
        return pc.field(match[1]) == pa.scalar(match[3])
    if (match := _TIME.fullmatch(part)) and match[1] in names:
        try:
            time = datetime.fromisoformat(f"{match[3]}+00:00")
        except ValueError:
            return None
        value = pa.scalar(time, pa.timestamp("us", "UTC"))
        return _COMPARISONS[match[2]](pc.field(match[1]), value)
    return None


def _parts(text: str) -> Iterator[str]:
    """The parts of `(a and b)`, and of those that are such themselves; else the whole text."""
    middle = _middle_of(text)
    if middle is None:
        yield text
        return
    yield from _parts(text[1:middle])
    yield from _parts(text[middle + len(" and ") : -1])


def _middle_of(text: str) -> int | None:
    """Return where the ` and ` of `(a and b)` begins; None: it is something else."""
    if not (text.startswith("(") and text.endswith(")")):
        return None
    depth, at = 0, 0
    while at < len(text):
        letter = text[at]
        if letter == '"':
            closing = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL).match(text, at)
            if closing is None:
                return None
            at = closing.end()
            continue
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            return None  # `(a) op (b)`
        if depth == 1 and text.startswith(" and ", at):
            return at
        at += 1
    return None
