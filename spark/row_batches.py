"""Rows of an RDD as Arrow record batches, for the writer. Runs in workers.

An event time is a datetime, or int: milliseconds since 1970.
"""

from __future__ import annotations

import pyarrow as pa

from pulsarx.spark.topic_columns import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

ROWS_MAX = 8192
# Whoever writes a message decides these: so a topic's rows can be written as they were read.
LEFT_OUT = frozenset(("__messageId", "__publishTime"))
TYPES = {
    "value": pa.binary(),
    "__key": pa.binary(),
    "__topic": pa.string(),
    "__eventTime": pa.timestamp("us", "UTC"),
    "__messageProperties": pa.map_(pa.string(), pa.string()),
}


def row_batches(parts: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Record batches as they are; everything else is rows, some thousand together."""
    waiting: list[Any] = []
    for part in parts:
        if isinstance(part, pa.RecordBatch):
            if waiting:
                yield _batch(waiting)
                waiting = []
            yield part
        else:
            waiting.append(part)
            if len(waiting) == ROWS_MAX:
                yield _batch(waiting)
                waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[Any]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in TYPES}
    for at, row in enumerate(rows):
        for name, value in _described(row).items():
            if name in columns:
                columns[name][at] = value
            elif name not in LEFT_OUT:
                raise ValueError(
                    f"a row has {name!r}, which is no column of a message{nearest(name, TYPES)} "
                    f"Columns: {', '.join(TYPES)}"
                )
    times = columns["__eventTime"]
    columns["__eventTime"] = [each * 1000 if isinstance(each, int) else each for each in times]
    found = {
        name: pa.array(values, TYPES[name])
        for name, values in columns.items()
        if name == "value" or any(value is not None for value in values)
    }
    return pa.RecordBatch.from_pydict(found)


def _described(row: Any) -> dict[str, Any]:
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
        f"a row of an RDD is bytes, str, a pair of key and value, a dict or Row with the columns "
        f"{', '.join(TYPES)}, or an Arrow record batch; not {type(row).__name__}"
    )
