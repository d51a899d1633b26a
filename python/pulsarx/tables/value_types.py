"""Arrow types of what schemas describe, and values checked against them.

A record of JSON or Avro becomes columns. JSON: a float has 64 bits, as its text may need them, and
what Avro calls a logical type is what the text says. Avro: logical types are Arrow's.
"""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa

from pulsarx import errors
from pulsarx.enumerations import SchemaType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx.schema.schema import SchemaInfo

_SIMPLE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
DECIMAL_DIGITS_MAX = 38
# With the types that they are of; others are ignored.
LOGICAL_TYPES = {("bytes", "decimal"), ("fixed", "decimal"), *_LOGICAL}
PRIMITIVES = {
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT: pa.float32(),
    SchemaType.DOUBLE: pa.float64(),
}


def record_schema(info: SchemaInfo) -> pa.Schema:
    """The columns of a record. OperationNotSupported: a type that has no column."""
    definition = json.loads(info.schema())
    if not isinstance(definition, dict) or definition.get("type") != "record":
        raise errors.OperationNotSupported(
            detail=f"a table of a {info.schema_type().name} schema that is no record: "
            f"{definition!r:.80}"
        )
    found = _Definition(info.schema_type() == SchemaType.JSON).of(definition, definition["name"])
    return pa.schema(list(found))


class _Definition:
    """Turns a definition into a type. Knows the named types it has met."""

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._named: dict[str, Any] = {}

    def of(self, definition: Any, path: str) -> pa.DataType:
        if isinstance(definition, str):
            if definition == "float" and self._is_json:
                return pa.float64()
            if definition in _SIMPLE:
                return _SIMPLE[definition]
            found = self._named.get(definition)
            if found is None:
                raise _refused(path, f"{definition} stands in itself, or is not defined")
            return found
        if isinstance(definition, list):
            return self._of_union(definition, path)[0]
        kind = definition["type"]
        if kind == "record":
            return self._keep(definition, self._of_record(definition, path))
        if kind == "enum":
            return self._keep(definition, pa.string())
        if kind == "array":
            return pa.list_(self._field("item", definition["items"], f"{path}[]"))
        if kind == "map":
            return pa.map_(pa.string(), self._field("value", definition["values"], f"{path}{{}}"))
        if kind == "fixed" and not self._is_json:
            if definition.get("logicalType") is not None:
                return self._of_logical(definition, path)
            return self._keep(definition, pa.binary(definition["size"]))
        if kind == "fixed":
            raise _refused(path, "fixed in JSON")
        if definition.get("logicalType") is not None and not self._is_json:
            return self._of_logical(definition, path)
        return self.of(kind, path)

    def _of_union(self, branches: list[Any], path: str) -> tuple[pa.DataType, bool]:
        others = [each for each in branches if each != "null"]
        if len(others) > 1:
            raise _refused(path, f"a union of several types: {branches!r:.80}")
        return (self.of(others[0], path) if others else pa.null()), len(others) < len(branches)

    def _of_logical(self, definition: dict[str, Any], path: str) -> pa.DataType:
        kind, logical = definition["type"], definition["logicalType"]
        if logical == "decimal" and kind in ("bytes", "fixed"):
            if definition["precision"] > DECIMAL_DIGITS_MAX:
                raise _refused(path, f"a decimal of {definition['precision']} digits")
            return pa.decimal128(definition["precision"], definition.get("scale", 0))
        found = _LOGICAL.get((kind, logical))
        if found is None:  # as Avro says: one that is not known is ignored
            if kind == "fixed":
                return self._keep(definition, pa.binary(definition["size"]))
            return self.of(kind, path)
        return found

    def _of_record(self, definition: dict[str, Any], path: str) -> pa.DataType:
        return pa.struct(
            [
                self._field(each["name"], each["type"], f"{path}.{each['name']}")
                for each in definition["fields"]
            ]
        )

    def _field(self, name: str, definition: Any, path: str) -> pa.Field:
        if isinstance(definition, list):
            kind, nullable = self._of_union(definition, path)
        else:
            kind, nullable = self.of(definition, path), definition == "null"
        return pa.field(name, kind, nullable)

    def _keep(self, definition: dict[str, Any], found: pa.DataType) -> pa.DataType:
        name, namespace = definition["name"], definition.get("namespace")
        self._named[name] = found
        if namespace is not None:
            self._named[f"{namespace}.{name}"] = found
        return found


def _refused(path: str, what: str) -> errors.OperationNotSupported:
    return errors.OperationNotSupported(detail=f"a column of {path}: {what} is not supported")


# Several versions ---------------------------------------------------------------------------------


def merged(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of all versions or topics, by what errors call them: what one of them has not may
    be null, and numbers get the larger of two sizes. OperationNotSupported: a field has types that
    do not go together."""
    found: pa.Schema | None = None
    for called, schema in schemas:
        try:
            found = schema if found is None else pa.schema(_merged_fields(found, schema, ""))
        except ValueError as error:
            raise errors.OperationNotSupported(
                detail=f"one table: {error} as of {called}; give schema="
            ) from error
    return found


def _merged_fields(left: Any, right: Any, path: str) -> list[pa.Field]:
    ours, theirs = {each.name: each for each in left}, {each.name: each for each in right}
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            there: Any = one or other
            found.append(there.with_nullable(True))
        else:
            found.append(_merged_field(one, other, f"{path}{name}"))
    return found


def _merged_field(one: pa.Field, other: pa.Field, path: str) -> pa.Field:
    nullable = one.nullable or other.nullable
    left, right = one.type, other.type
    if left == right:
        kind = left
    elif pa.types.is_struct(left) and pa.types.is_struct(right):
        kind = pa.struct(_merged_fields(left, right, f"{path}."))
    elif pa.types.is_list(left) and pa.types.is_list(right):
        kind = pa.list_(_merged_field(left.value_field, right.value_field, f"{path}[]"))
    elif pa.types.is_map(left) and pa.types.is_map(right):
        kind = pa.map_(pa.string(), _merged_field(left.item_field, right.item_field, path))
    elif {left, right} == {pa.int32(), pa.int64()}:
        kind = pa.int64()
    elif {left, right} <= {pa.int32(), pa.float32(), pa.float64()}:
        kind = pa.float64()
    else:
        raise ValueError(f"{path} is {left} and {right}")
    return pa.field(one.name, kind, nullable)


# Values -------------------------------------------------------------------------------------------


class Unfit(ValueError):
    """A value that its column cannot hold as it is."""


def checker(kind: pa.DataType, path: str, nullable: bool = True) -> Callable[[Any], Any]:
    """Make the function that turns a value into what pyarrow makes an array of, or raises Unfit:
    nothing is rounded, cut or left out, but a float becomes the nearest one of its size."""
    check = _checker(kind, path)

    def checked(value: Any) -> Any:
        if value is None:
            if nullable:
                return None
            raise Unfit(f"{path} is missing or null, and is required")
        return check(value)

    return checked


def _checker(kind: pa.DataType, path: str) -> Callable[[Any], Any]:
    if pa.types.is_struct(kind):
        return record_checker(kind, f"{path}.")
    if pa.types.is_list(kind):
        field = kind.value_field
        item = checker(field.type, f"{path}[]", field.nullable)
        return lambda value: [item(each) for each in _of_class(value, list, path, kind)]
    if pa.types.is_map(kind):
        field = kind.item_field
        item = checker(field.type, f"{path}{{}}", field.nullable)
        return lambda value: [
            (key, item(each)) for key, each in _of_class(value, dict, path, kind).items()
        ]
    if pa.types.is_integer(kind):
        return _integer_checker(kind, path)
    if pa.types.is_floating(kind):
        return lambda value: _float_of(value, path, kind)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda value: _bytes_of(value, path)
    if pa.types.is_boolean(kind):
        return lambda value: _of_class(value, bool, path, kind)
    if pa.types.is_string(kind):
        return lambda value: _text_of(value, path)
    if pa.types.is_null(kind):
        return lambda value: _refuse(value, path, kind)
    if pa.types.is_timestamp(kind):
        return _timestamp_checker(kind, path)
    if pa.types.is_date(kind):
        return lambda value: _date_of(value, path, kind)
    if pa.types.is_time(kind):
        return lambda value: _fine_enough(_of_class(value, time, path, kind), path, kind)
    if pa.types.is_decimal(kind):
        return lambda value: _decimal_of(value, path, kind)
    raise AssertionError(kind)


def record_checker(fields: Any, path: str) -> Callable[[Any], dict[str, Any]]:
    """fields: a struct type or a schema."""
    checks = {each.name: checker(each.type, f"{path}{each.name}", each.nullable) for each in fields}

    def checked(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Unfit(f"{path.rstrip('.') or 'the value'} is no object: {value!r:.80}")
        for name in value:
            if name not in checks:
                raise Unfit(f"{path}{name} is in no version of the schema")
        get = value.get
        return {name: check(get(name)) for name, check in checks.items()}

    return checked


def _integer_checker(kind: pa.DataType, path: str) -> Callable[[Any], int]:
    bound = 1 << (kind.bit_width - 1)

    def checked(value: Any) -> int:
        if type(value) is not int or not -bound <= value < bound:
            _refuse(value, path, kind)
        found: int = value
        return found

    return checked


def _float_of(value: Any, path: str, kind: pa.DataType) -> float:
    if type(value) is int:
        try:
            if int(float(value)) == value:
                return float(value)
        except OverflowError:
            pass
        raise Unfit(f"{path} is {value!r:.80}, which a {kind} cannot hold exactly")
    found: float = _of_class(value, float, path, kind)
    return found


def _timestamp_checker(kind: pa.DataType, path: str) -> Callable[[Any], datetime]:
    def checked(value: Any) -> datetime:
        found: datetime = _of_class(value, datetime, path, kind)
        if (found.tzinfo is None) != (kind.tz is None):
            raise Unfit(
                f"{path} is {found}, {'with' if found.tzinfo else 'without'} a time zone, and "
                f"should be {kind}"
            )
        _fine_enough(found, path, kind)
        return found

    return checked


def _fine_enough(value: Any, path: str, kind: pa.DataType) -> Any:
    if getattr(value, "nanosecond", 0) or (kind.unit == "ms" and value.microsecond % 1000):
        raise Unfit(f"{path} is {value}, which is finer than {kind}")
    return value


def _date_of(value: Any, path: str, kind: pa.DataType) -> Any:
    if isinstance(value, datetime):
        _refuse(value, path, kind)
    return _of_class(value, date, path, kind)


def _decimal_of(value: Any, path: str, kind: pa.DataType) -> Any:
    found: Decimal = _of_class(value, Decimal, path, kind)
    _, digits, exponent = found.as_tuple()
    whole = len(digits) + (exponent if isinstance(exponent, int) else kind.precision)
    if (
        not found.is_finite()
        or -int(exponent) > kind.scale
        or (whole > kind.precision - kind.scale and found)
    ):
        _refuse(value, path, kind)
    return found


def _bytes_of(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    found: bytes = _of_class(
        value.bytes if isinstance(value, UUID) else value, bytes, path, "binary"
    )
    return found


def _text_of(value: Any, path: str) -> str:
    """A UUID is what fastavro makes of a logical type that has no column."""
    found: str = _of_class(str(value) if isinstance(value, UUID) else value, str, path, "string")
    return found


def _of_class(value: Any, expected: type, path: str, kind: Any) -> Any:
    if not isinstance(value, expected):
        _refuse(value, path, kind)
    return value


def _refuse(value: Any, path: str, kind: Any) -> None:
    raise Unfit(f"{path} is {value!r:.80} and should be {kind}")


def has_large_number(array: Any) -> bool:
    """Whether some number of 64 bits is beyond those that hold every integer."""
    import pyarrow.compute as pc

    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        return _may_be_large(kind) and any(has_large_number(each) for each in array.chunks)
    if pa.types.is_float64(kind):
        largest = pc.min_max(array).as_py()
        return any(each is not None and abs(each) >= 1 << 53 for each in largest.values())
    if pa.types.is_struct(kind):
        return any(has_large_number(each) for each in array.flatten())
    if pa.types.is_list(kind):
        return has_large_number(array.flatten())
    return False


def _may_be_large(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_may_be_large(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _may_be_large(kind.value_type)
    return bool(pa.types.is_float64(kind))


def without_times(kind: pa.DataType) -> pa.DataType:
    """The type with strings for the times that a reader of JSON took texts for."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(without_times(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(without_times(kind.item_type)))
    return kind
