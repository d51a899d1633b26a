"""Converts rows of an RDD to Arrow record batches, for the writer. Runs in workers.

A time is a datetime, or int: milliseconds since 1970. A datetime without a zone is local
time, as Spark makes them of timestamps.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from pulsarx.spark.topic_columns import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

ROWS_MAX = 8192
_TIMES = ("__eventTime", "__deliverAt")
BYTES_MAX = 8 << 20  # of values, about
# The writer of a message decides these: so a topic's rows can be written as they were read.
LEFT_OUT = frozenset(("__messageId", "__publishTime"))
TYPES = {
    "value": pa.binary(),
    "__key": pa.binary(),
    "__topic": pa.string(),
    "__eventTime": pa.timestamp("us", "UTC"),
    "__messageProperties": pa.map_(pa.string(), pa.string()),
    "__partition": pa.int32(),
    "__orderingKey": pa.binary(),
    "__keyBytes": pa.binary(),
    "__deliverAt": pa.timestamp("us", "UTC"),
}


def row_batches(parts: Iterable[Any], partition_id: int = 0) -> Iterator[pa.RecordBatch]:
    """Record batches as they are; everything else is rows, some thousand together.

    partition_id: of Spark. TypeError, ValueError: a row that is no message, by its number there.
    """
    waiting: list[dict[str, Any]] = []
    size = 0
    place = _Place(partition_id)
    for part in parts:
        if isinstance(part, pa.RecordBatch):
            if waiting:
                yield _batch(waiting, place)
                waiting, size = [], 0
            place.first += part.num_rows
            yield part
            continue
        row = _described(part, place, len(waiting))
        value = row.get("value")
        size += len(value) if isinstance(value, (bytes, bytearray, str)) else 0
        waiting.append(row)
        if len(waiting) == ROWS_MAX or size >= BYTES_MAX:
            yield _batch(waiting, place)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, place)


class _Place:
    """Names the rows of one Spark partition in errors."""

    def __init__(self, partition_id: int) -> None:
        self.first = 0  # of the rows that are waiting
        self._partition_id = partition_id

    def of(self, at: int) -> str:
        return f"row {self.first + at} of Spark partition {self._partition_id}"


def _batch(rows: list[dict[str, Any]], place: _Place) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in TYPES}
    for at, row in enumerate(rows):
        for name, value in row.items():
            if name in columns:
                columns[name][at] = _time(name, value, place, at) if name in _TIMES else value
            elif name not in LEFT_OUT:
                raise ValueError(
                    f"{place.of(at)} has {name!r}, which is no column of a message"
                    f"{nearest(name, TYPES)} Columns: {', '.join(TYPES)}"
                )
    found = {
        name: _column(name, values, place)
        for name, values in columns.items()
        if name == "value" or any(value is not None for value in values)
    }
    place.first += len(rows)
    return pa.RecordBatch.from_pydict(found)


def _time(name: str, value: Any, place: _Place, at: int) -> Any:
    if isinstance(value, int):
        return value * 1000
    if not isinstance(value, datetime):
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(
            f"{place.of(at)} has {name} {value}, which is not in the years 1 to 9999 of UTC"
        ) from None


def _column(name: str, values: list[Any], place: _Place) -> pa.Array:
    try:
        return pa.array(values, TYPES[name])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        for at, value in enumerate(values):
            try:
                pa.array([value], TYPES[name])
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                raise TypeError(
                    f"{place.of(at)} has {name} {value!r:.200}, which is no {TYPES[name]}: {error}"
                ) from None
        raise


def _described(row: Any, place: _Place, at: int) -> dict[str, Any]:
    """A row by the names of the columns: bytes or str is a value, a pair a key and a value."""
    if row is None or isinstance(row, (bytes, bytearray, str)):
        return {"value": row}
    if isinstance(row, dict):
        return row
    as_dict = getattr(row, "asDict", None)
    if as_dict is not None:
        return as_dict()  # type: ignore[no-any-return]
    if isinstance(row, tuple) and len(row) == 2:
        return {"__key": row[0], "value": row[1]}
    raise TypeError(
        f"{place.of(at)}: a row of an RDD is bytes, str, a pair of key and value, a dict or Row "
        f"with the columns {', '.join(TYPES)}, or an Arrow record batch; not {type(row).__name__}"
    )
