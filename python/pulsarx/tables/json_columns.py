"""Decodes a column of JSON objects into columns of their fields, by a schema. For Spark's tasks.

The fast way is native (`_pycore/arrow/json_reader`), of objects whose fields have types that it
builds. What it refuses is read value by value (`json_values`), whose word is final. What has small
integers or floats goes, one payload a line, to pyarrow's reader; what that refuses is halved until
what is wrong with it is alone, and read value by value, as is all that has maps.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from pulsarx._pycore.arrow.json_lines import json_lines
from pulsarx._pycore.arrow.json_reader import JsonReader
from pulsarx.tables.built_columns import BuiltColumn, NotNative
from pulsarx.tables.json_rules import JsonRules
from pulsarx.tables.json_tokens import DIGITS_MAX, NAME_MAX
from pulsarx.tables.json_values import JsonRows, Partial
from pulsarx.tables.value_types import without_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Flaws = dict[int, str]  # what is wrong, by the row

# pyarrow makes -0 a number below zero in a column of floats.
_INTEGER_ZEROS = tuple(b"-0" + bytes([each]) for each in b",}] \n\r\t")
_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * (DIGITS_MAX // 2)
_ALONE = 64  # rows that are not worth another try of the fast way
_ARROWS = (pa.ArrowException, ValueError, TypeError, OverflowError)


class JsonDecoder:
    """Payloads that are JSON objects, as columns. Fields that are not asked for are passed over,
    those that are missing are null, as Spark's from_json has it."""

    def __init__(
        self, fields: pa.Schema, *, natively: bool = True, rules: JsonRules | None = None
    ) -> None:
        """natively: False, to have all read by pyarrow and value by value. rules: how the JSON is
        written; None: as from_json has it without options, times without a zone in UTC."""
        self._target = fields
        rules = rules or JsonRules()
        self._is_utc = rules.times.is_utc
        # pyarrow's reader takes these words for numbers, and odd ones such as -NaN and Inf, also in
        # the fields that it passes over.
        self._words_max = 1 if rules.allow_non_numeric_numbers else 0
        self._rows = JsonRows(fields, rules)
        self._required = [each.name for each in fields if not each.nullable]
        # pyarrow's reader takes texts for times and dates, and makes them by a cast.
        self._texts = pa.schema([each.with_type(_as_read(each.type)) for each in fields])
        # Arrow knows one form of times alone.
        self._is_fast = not any(
            _has_map(each.type) or rules.times.are_given(each.type) for each in fields
        )
        self._parse = arrow_json.ParseOptions(
            explicit_schema=self._texts, unexpected_field_behavior="ignore"
        )
        self._columns: list[BuiltColumn] = []
        self._reader = self._native_reader() if natively else None
        # What the native reader refuses is odd, and pyarrow's reader would mostly refuse it, too.
        self._is_halved = self._is_fast and self._reader is None

    def _native_reader(self) -> JsonReader | None:
        """None: the fields have types that it does not build."""
        built: list[tuple[int, tuple[int, ...]]] = []
        try:
            if not self._is_fast or not all(_is_of_json(each.type) for each in self._texts):
                return None
            self._columns = [BuiltColumn(each, built) for each in self._texts]
        except NotNative:
            return None
        names: list[bytes | None] = [None] * len(built)
        for column in self._columns:
            column.name_fields(names)
        return JsonReader(built, tuple(each.number for each in self._columns), names)

    def decode(self, payloads: pa.Array, batch: object = None) -> tuple[pa.Table, Flaws]:
        flaws: Flaws = {}
        table, left = self._natively(payloads)
        if not left:
            return table, flaws
        there = pa.array(left, pa.int64())
        others = self._decoded(payloads.take(there), 0, flaws)
        if len(left) == len(payloads):
            return others, flaws
        places: list[int] = list(range(len(payloads)))
        for place, row in enumerate(left):
            places[row] = len(payloads) + place
        return (
            pa.concat_tables([table, others]).take(pa.array(places, pa.int64())),
            {left[row]: why for row, why in flaws.items()},
        )

    def _natively(self, payloads: pa.Array) -> tuple[pa.Table, list[int]]:
        """The columns, with nulls for the rows that are for another way."""
        validity, offsets, data = payloads.buffers()
        if self._reader is not None and len(payloads):
            try:
                built, refused = self._reader.read(
                    offsets, data or b"", validity, payloads.offset, len(payloads)
                )
                table = pa.table([each.array(built) for each in self._columns], self._texts)
                if self._required:
                    refused = sorted({*refused, *self._lacking(table)})
                return _with_times(table, self._target, self._is_utc), refused
            except _ARROWS:  # a text that Arrow takes for no time, or 2 GiB of something
                if len(payloads) > _ALONE:
                    half = len(payloads) // 2
                    table, refused = self._natively(payloads.slice(0, half))
                    others, more = self._natively(payloads.slice(half))
                    return pa.concat_tables([table, others]), [
                        *refused, *(half + row for row in more),
                    ]  # fmt: skip
        nothing = pa.table([pa.nulls(len(payloads), each.type) for each in self._target],
                           schema=self._target)  # fmt: skip
        if self._required:
            return nothing, list(range(len(payloads)))
        return nothing, pc.indices_nonzero(payloads.is_valid()).to_pylist()

    def _lacking(self, table: pa.Table) -> list[int]:
        """The rows that have null where that must not be."""
        lacks = [pc.indices_nonzero(table[name].is_null()).to_pylist() for name in self._required]
        return [row for each in lacks for row in each]

    def _decoded(self, payloads: pa.Array, first: int, flaws: Flaws) -> pa.Table:
        """first: the number of the first of them, for flaws."""
        if not len(payloads):
            return self._target.empty_table()
        if self._is_halved:
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
                rows.append(self._rows.row(payload))
            except Partial as error:
                rows.append(error.value)
                here[row] = str(error)
            except ValueError as error:
                rows.append(None)
                here[row] = str(error)
        table = table_of(rows, self._target, self._target, here)
        flaws.update({first + row: why for row, why in here.items()})
        return table

    def _fast(self, payloads: pa.Array) -> pa.Table | None:
        """None: pyarrow does not take them all."""
        _, offsets, data = payloads.buffers()
        lines, taken, longest, words = json_lines(
            offsets, data or b"", payloads.offset, len(payloads)
        )
        if taken < len(payloads) or words > self._words_max or _may_be_long(lines, longest):
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
            if found.num_rows != len(payloads) or self._lacking(found):
                return None
            if any(
                _has_negative_zero(each) for column in found.columns for each in column.chunks
            ) and any(each in lines for each in _INTEGER_ZEROS):
                return None
            return _with_times(found, self._target, self._is_utc)
        except _ARROWS:
            return None


def table_of(
    rows: list[dict[str, Any] | None], fields: pa.Schema, target: pa.Schema, flaws: Flaws
) -> pa.Table:
    """The rows as fields, cast to target; a row that cannot be is null, and among the flaws."""
    try:
        return _table_of(rows, fields, target)
    except _ARROWS:
        pass
    pieces = []
    for at, row in enumerate(rows):
        try:
            pieces.append(_table_of([row], fields, target))
        except _ARROWS as error:
            flaws[at] = str(error)
            pieces.append(_table_of([None], fields, target))
    return pa.concat_tables(pieces)


def _table_of(rows: list[dict[str, Any] | None], fields: pa.Schema, target: pa.Schema) -> pa.Table:
    empty: dict[str, Any] = {}
    found = [[(row or empty).get(name) for row in rows] for name in fields.names]
    arrays = [pa.array(each, field.type) for each, field in zip(found, fields)]
    return _with_times(pa.table(arrays, schema=fields), target, False)


def _with_times(table: pa.Table, target: pa.Schema, is_utc: bool) -> pa.Table:
    """The columns with times made of texts. ArrowInvalid: a text is no time, or a decimal too
    large."""
    if table.schema == target:
        return table
    columns = []
    for field in target:
        chunks = [_cast(each, field.type, field.name, is_utc) for each in table[field.name].chunks]
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.table(columns, schema=target)


def _cast(array: pa.Array, kind: pa.DataType, path: str, is_utc: bool) -> pa.Array:
    """Arrow's own cast of a struct parses what lies below its nulls, too, where an empty text is no
    time; and it knows no maps. is_utc: times that name no zone are of UTC. ArrowInvalid names the
    path."""
    if array.type == kind:
        return array
    buffers, offset = array.buffers()[:2], array.offset
    if pa.types.is_struct(kind):
        children = [
            _cast(each, field.type, f"{path}.{field.name}", is_utc)
            for each, field in zip(array.flatten(), kind)
        ]
        # Fields that must be there are null below a null struct, which from_arrays would refuse.
        nullable = pa.StructArray.from_arrays(
            children, names=[each.name for each in kind], mask=array.is_null()
        )
        buffers, offset = nullable.buffers()[:1], 0
    elif pa.types.is_list(kind):
        children = [_cast(array.values, kind.value_type, f"{path}[]", is_utc)]
    elif pa.types.is_map(kind):
        items = _cast(array.items, kind.item_type, f"{path}{{}}", is_utc)
        entry = pa.struct([kind.key_field, kind.item_field])
        pair = [array.keys, items]
        children = [pa.Array.from_buffers(entry, len(items), [None], 0, 0, pair)]
    else:
        try:
            return array.cast(kind)
        except pa.ArrowInvalid as error:
            if is_utc and pa.types.is_timestamp(kind) and pa.types.is_string(array.type):
                try:  # none may name a zone
                    return array.cast(pa.timestamp(kind.unit)).cast(kind)
                except pa.ArrowInvalid:
                    pass
            raise pa.ArrowInvalid(f"{path}: {error}") from None
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, offset, children)


def _may_be_long(lines: bytes, longest: int) -> bool:
    """Whether a number or name may be longer than others than pyarrow take."""
    if longest > NAME_MAX:
        return True
    return longest > DIGITS_MAX and _LONG_NUMBER in lines.translate(_ALIKE)


def _has_negative_zero(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_struct(kind):
        return any(_has_negative_zero(each) for each in array.flatten())
    if pa.types.is_list(kind):
        return _has_negative_zero(array.values)
    if not pa.types.is_floating(kind):
        return False
    bits = array.view(pa.int64() if kind == pa.float64() else pa.int32())
    below_zero = pa.scalar(-1 << (kind.bit_width - 1), bits.type)
    return bool(pc.any(pc.equal(bits, below_zero)).as_py())


def _as_read(kind: pa.DataType) -> pa.DataType:
    """The type that pyarrow's reader is asked for: texts for times, and decimals that are twice as
    wide, for it does not look whether a number fits."""
    kind = without_times(kind)
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_as_read(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_read(kind.value_type)))
    return pa.decimal256(kind.precision, kind.scale) if pa.types.is_decimal128(kind) else kind


def _is_of_json(kind: pa.DataType) -> bool:
    """Whether a value of it is one of JSON; of a float it would have to be rounded twice."""
    if pa.types.is_struct(kind):
        return all(_is_of_json(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _is_of_json(kind.value_type)
    return kind in (
        pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.binary(),
    )  # fmt: skip


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _has_map(kind.value_type)
    return bool(pa.types.is_map(kind))
