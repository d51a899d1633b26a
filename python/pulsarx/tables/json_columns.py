"""JSON objects of a column as columns of their fields, by a schema. For Spark's tasks.

The fast way: the payloads, one a line, to pyarrow's reader. What it refuses is halved until what is
wrong with it is alone, and read value by value.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from pulsarx._pycore.arrow.json_lines import json_lines
from pulsarx.tables.value_types import record_checker, without_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Flaws = dict[int, str]  # what is wrong, by the row

_ALONE = 64  # rows that are not worth another try of the fast way
_ARROWS = (pa.ArrowException, ValueError, TypeError, OverflowError)


class JsonDecoder:
    """Payloads that are JSON objects, as columns. Fields that are not asked for are passed over,
    those that are missing are null, as Spark's from_json has it."""

    def __init__(self, fields: pa.Schema) -> None:
        self._target = fields
        # pyarrow's reader takes texts for times and dates, and makes them by a cast.
        self._texts = pa.schema([each.with_type(without_times(each.type)) for each in fields])
        self._check = record_checker(self._texts, "")
        self._is_fast = not any(_has_map(each.type) for each in fields)
        self._parse = arrow_json.ParseOptions(
            explicit_schema=self._texts, unexpected_field_behavior="ignore"
        )

    def decode(self, payloads: pa.Array, batch: object = None) -> tuple[pa.Table, Flaws]:
        flaws: Flaws = {}
        if not payloads.null_count:
            return self._decoded(payloads, 0, flaws), flaws
        there = pc.indices_nonzero(payloads.is_valid()).to_pylist()
        table = self._decoded(payloads.drop_null(), 0, flaws)
        places: list[int | None] = [None] * len(payloads)
        for place, row in enumerate(there):
            places[row] = place
        return (
            table.take(pa.array(places, pa.int64())),
            {there[row]: why for row, why in flaws.items()},
        )

    def _decoded(self, payloads: pa.Array, first: int, flaws: Flaws) -> pa.Table:
        """first: the number of the first of them, for flaws."""
        if not len(payloads):
            return self._target.empty_table()
        if self._is_fast:
            found = self._fast(payloads)
            if found is not None:
                return found
            if len(payloads) > _ALONE:
                half = len(payloads) // 2
                return pa.concat_tables(
                    [
                        self._decoded(payloads.slice(0, half), first, flaws),
                        self._decoded(payloads.slice(half), first + half, flaws),
                    ]
                )
        rows: list[dict[str, Any] | None] = []
        here: Flaws = {}
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                rows.append(self._check(_pruned(_object(payload), self._texts)))
            except (ValueError, RecursionError, OverflowError) as error:
                rows.append(None)
                here[row] = str(error)
        table = table_of(rows, self._texts, self._target, here)
        flaws.update({first + row: why for row, why in here.items()})
        return table

    def _fast(self, payloads: pa.Array) -> pa.Table | None:
        """None: pyarrow does not take them all."""
        _, offsets, data = payloads.buffers()
        lines, taken, longest = json_lines(offsets, data or b"", payloads.offset, len(payloads))
        if taken < len(payloads):
            return None
        try:
            found = arrow_json.read_json(
                pa.py_buffer(lines),
                # A line must fit into a block. Spark's tasks are the threads.
                read_options=arrow_json.ReadOptions(
                    block_size=max(1 << 20, longest + 2), use_threads=False
                ),
                parse_options=self._parse,
            )
            if found.num_rows != len(payloads):
                return None
            return found if self._texts is self._target else found.cast(self._target)
        except _ARROWS:
            return None


def table_of(
    rows: list[dict[str, Any] | None], fields: pa.Schema, target: pa.Schema, flaws: Flaws
) -> pa.Table:
    """The rows as fields, cast to target; a row that cannot be is null, and among the flaws."""
    empty: dict[str, Any] = {}
    try:
        found = [[(row or empty).get(name) for row in rows] for name in fields.names]
        arrays = [pa.array(each, field.type) for each, field in zip(found, fields)]
        return pa.table(arrays, schema=fields).cast(target)
    except _ARROWS:
        if len(rows) == 1:
            raise
    pieces = []
    for at, row in enumerate(rows):
        try:
            pieces.append(table_of([row], fields, target, flaws))
        except _ARROWS as error:
            flaws[at] = str(error)
            pieces.append(table_of([None], fields, target, flaws))
    return pa.concat_tables(pieces)


def _object(payload: bytes) -> dict[str, Any]:
    found = json.loads(payload.decode("utf-8"), object_pairs_hook=_distinct)
    if not isinstance(found, dict):
        raise ValueError(f"it is no JSON object: {found!r:.80}")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _pruned(value: Any, kind: Any) -> Any:
    """What the type has of a value; an integer for a double is a double."""
    if isinstance(value, dict) and (isinstance(kind, pa.Schema) or pa.types.is_struct(kind)):
        return {
            field.name: _pruned(value[field.name], field.type)
            for field in kind
            if field.name in value
        }
    if isinstance(kind, pa.Schema):
        return value
    if isinstance(value, list) and pa.types.is_list(kind):
        return [_pruned(each, kind.value_type) for each in value]
    if isinstance(value, dict) and pa.types.is_map(kind):
        return {name: _pruned(each, kind.item_type) for name, each in value.items()}
    if type(value) is int and pa.types.is_floating(kind):
        return float(value)
    return value


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _has_map(kind.value_type)
    return bool(pa.types.is_map(kind))
