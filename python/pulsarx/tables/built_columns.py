"""Converts columns that native readers build (`_pycore/arrow/column_reader`) to those of
pyarrow."""

from __future__ import annotations

import pyarrow as pa

from pulsarx._pycore.arrow import column_reader as native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.arrow.column_reader import Built

DEPTH_MAX = 64
_NOTHING = pa.py_buffer(b"")
_BUILDERS = {
    pa.bool_(): native.BUILD_BOOLEAN,
    pa.int32(): native.BUILD_INT32,
    pa.date32(): native.BUILD_INT32,
    pa.int64(): native.BUILD_INT64,
    pa.time64("us"): native.BUILD_INT64,
    pa.time64("ns"): native.BUILD_INT64,
    pa.timestamp("us"): native.BUILD_INT64,
    pa.timestamp("us", "UTC"): native.BUILD_INT64,
    pa.float32(): native.BUILD_FLOAT,
    pa.float64(): native.BUILD_DOUBLE,
    pa.binary(): native.BUILD_BYTES,
    pa.string(): native.BUILD_BYTES,
}


class NotNative(Exception):
    """No native reader can read it."""


def built_schema(fields: pa.Schema) -> pa.Schema:
    """The columns that native readers build instead of others: all may be null, times are in
    microseconds, `fixed` has no size. They hold what the others hold, which `cast` makes of them.
    """
    return pa.schema([_built_field(each) for each in fields])


def _built_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _built_type(field.type))


def _built_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_built_field(each) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_built_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _built_field(kind.item_field))
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time32(kind):
        return pa.time64("us")
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


class BuiltColumn:
    """A column that is built, with its children."""

    def __init__(
        self,
        field: pa.Field,
        built: list[tuple[int, tuple[int, ...]]],
        is_key: bool = False,
        depth: int = 0,
    ) -> None:
        """built: where it and its children are added, as AvroReader wants them."""
        kind = field.type
        if not (field.nullable or is_key) or depth > DEPTH_MAX:
            raise NotNative
        self.name: Any = field.name
        self.type = kind
        self.number: int = len(built)
        self.children: list[BuiltColumn] = []
        self.has_data: bool = False
        built.append((0, ()))
        if pa.types.is_struct(kind):
            builder = native.BUILD_STRUCT
            self.children = [BuiltColumn(each, built, False, depth + 1) for each in kind]
        elif pa.types.is_list(kind):
            builder = native.BUILD_LIST
            self.children = [BuiltColumn(kind.value_field, built, False, depth + 1)]
        elif pa.types.is_map(kind) and kind.key_type == pa.string():
            builder = native.BUILD_LIST
            self.children = [BuiltEntries(kind, built, depth + 1)]
        elif pa.types.is_decimal128(kind):
            builder = native.BUILD_DECIMAL
        elif kind in _BUILDERS:
            builder = _BUILDERS[kind]
            self.has_data = builder == native.BUILD_BYTES
        else:
            raise NotNative
        built[self.number] = (builder, tuple(each.number for each in self.children))

    def name_fields(self, names: list[bytes | None]) -> None:
        """Write the name of this column, and of the fields below it, to the place of its number."""
        names[self.number] = self.name.encode()
        for each in self.children:
            each.name_fields(names)

    def array(self, built: list[Built]) -> pa.Array:
        length, null_count, validity, values, data = built[self.number]
        buffers = [None if validity is None else pa.py_buffer(validity)]
        if values is not None:
            buffers.append(pa.py_buffer(values))
        if self.has_data:
            buffers.append(_NOTHING if data is None else pa.py_buffer(data))
        children = [each.array(built) for each in self.children]
        return pa.Array.from_buffers(self.type, length, buffers, null_count, 0, children)


class BuiltEntries(BuiltColumn):
    """The struct of the keys and values of a map, which no null is in the place of."""

    def __init__(
        self, kind: pa.DataType, built: list[tuple[int, tuple[int, ...]]], depth: int
    ) -> None:
        self.name = ""
        self.type: Any = pa.struct([kind.key_field, kind.item_field])
        self.number: int = len(built)
        self.has_data = False
        built.append((0, ()))
        key = BuiltColumn(kind.key_field, built, True, depth + 1)
        self.children: list[BuiltColumn] = [
            key,
            BuiltColumn(kind.item_field, built, False, depth + 1),
        ]
        built[self.number] = (native.BUILD_STRUCT, tuple(each.number for each in self.children))
