"""Rows of tables as payloads of messages, by a schema or as JSON."""

from __future__ import annotations

import json

from pulsarx import errors
from pulsarx.enumerations import SchemaType
from pulsarx.ground.extras import optional_module
from pulsarx.schema.definition import Record, plain_values
from pulsarx.schema.schema import Schema, SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def python_rows(batch: Any, first: int = 0) -> Iterator[dict[str, Any]]:
    """The rows of an Arrow record batch as dicts, with dicts for maps.

    first: the number of the first row. ValueError names the row and the column whose value is
    outside of Python's range, such as a time after the year 9999, or finer than its times are.
    """
    import pyarrow as pa

    for name, column in zip(batch.schema.names, batch.columns):
        _check_times(pa, name, column, first)
    convert = {f.name: c for f in batch.schema if (c := converter(pa, f.type)) is not None}
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):
        rows = _rows_one_by_one(batch, first)
    for number, row in enumerate(rows, first):
        for name, call in convert.items():
            try:
                row[name] = call(row[name])
            except (ValueError, TypeError) as error:
                raise ValueError(f"row {number}: column {name}: {error}") from error
        yield row


def _rows_one_by_one(batch: Any, first: int) -> Iterator[dict[str, Any]]:
    names = batch.schema.names
    for at in range(batch.num_rows):
        row = {}
        for name, column in zip(names, batch.columns):
            try:
                row[name] = column[at].as_py()
            except (ValueError, OverflowError) as error:
                raise ValueError(
                    f"row {first + at}: column {name} has a {column.type} outside of Python's "
                    f"range: {error}. Dates and times must be of the years 1 to 9999"
                ) from error
        yield row


def _check_times(pa: Any, name: str, column: Any, first: int) -> None:
    """Check times of day in nanoseconds, which to_pylist cuts to microseconds."""
    coarse = _in_microseconds(pa, column.type)
    if coarse == column.type:
        return
    try:
        column.cast(coarse)
        return
    except pa.ArrowInvalid:
        pass  # which looks at what lies beside the rows of a slice, too
    for at in range(len(column)):
        try:
            column.take(pa.array([at])).cast(coarse)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"row {first + at}: column {name} has a time that is finer than a microsecond "
                f"({error}): round it, and cast it to time64('us')"
            ) from error


def _in_microseconds(pa: Any, kind: Any) -> Any:
    """The type with times of day in microseconds for those in nanoseconds, wherever they lie."""

    def of(each: Any) -> Any:
        return _in_microseconds(pa, each)

    types = pa.types
    if kind == pa.time64("ns"):
        return pa.time64("us")
    if types.is_struct(kind):
        return pa.struct([field.with_type(of(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(of(kind.key_type), kind.item_field.with_type(of(kind.item_type)))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(of(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(of(kind.value_type)))
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(of(kind.value_type)), kind.list_size)
    if types.is_dictionary(kind) and kind.value_type == pa.time64("ns"):
        return pa.time64("us")
    return kind


def converter(pa: Any, kind: Any) -> Callable[[Any], Any] | None:
    """Make the function that turns the maps in a value into dicts; None: it has none."""
    if pa.types.is_map(kind):
        inner = converter(pa, kind.item_type)
        return lambda value: None if value is None else _dict_of(value, inner)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = converter(pa, kind.value_type)
        if inner is None:
            return None
        return lambda value: None if value is None else [inner(each) for each in value]
    if pa.types.is_struct(kind):
        fields = {f.name: c for f in kind if (c := converter(pa, f.type)) is not None}
        if not fields:
            return None
        return lambda value: (
            None
            if value is None
            else value | {name: call(value[name]) for name, call in fields.items()}
        )
    return None


def _dict_of(pairs: list[tuple[Any, Any]], inner: Callable[[Any], Any] | None) -> dict[Any, Any]:
    found = {key: each if inner is None else inner(each) for key, each in pairs}
    if len(found) < len(pairs):
        raise ValueError(f"a map has a key twice: {pairs!r:.80}")
    return found


def row_encoder(info: SchemaInfo, record_cls: type[Record] | None = None) -> Callable[[Any], bytes]:
    """Make the function that encodes dicts by a definition. Each value is checked first: neither
    Avro nor JSON says what it would leave out, cut or replace. A float field of Avro takes the
    nearest of 32 bits.

    record_cls: of a JsonSchema, whose enumerations have texts besides the symbols.
    """
    if info.schema_type() not in (SchemaType.JSON, SchemaType.AVRO):
        raise errors.OperationNotSupported(
            detail=f"rows cannot be published by a schema of type {info.schema_type().name}: they "
            "need a JSON or Avro record; send the values with a producer"
        )
    optional_module("pyarrow", "arrow", "send_rows by a schema")
    from pulsarx.tables.value_types import record_checker, record_schema
    from pulsarx.tables.written_limits import limit_checker, member_texts

    check = record_checker(record_schema(info), "")
    is_json = info.schema_type() == SchemaType.JSON
    others = None if record_cls is None or not is_json else member_texts(record_cls)
    check_limits = limit_checker(json.loads(info.schema()), is_json, others)
    if is_json:

        def encode_json(row: Any) -> bytes:
            row = plain_values(row)
            check(row)
            if check_limits is not None:
                check_limits(row)
            try:
                return _dumps(_texts(row)).encode()
            except ValueError:
                check_in_json(row, "", lambda value: _dumps(_texts(value)))
                raise

        return encode_json
    from pulsarx.schema.avro_schema import AvroSchema

    avro = AvroSchema(None, json.loads(info.schema()))

    def encode_avro(row: Any) -> bytes:
        row = plain_values(row)
        check(row)
        if check_limits is not None:
            check_limits(row)
        return avro.encode(row)

    return encode_avro


def record_encoder(schema: Schema[Any]) -> Callable[[Any], bytes]:
    """Make the function that encodes records of the class of a schema, which has checked their
    types. ValueError: a number is too large for a float of Avro."""
    info = schema.schema_info()
    if info.schema_type() != SchemaType.AVRO:
        return schema.encode
    from pulsarx.tables.written_limits import limit_checker

    check_limits = limit_checker(json.loads(info.schema()), False)
    if check_limits is None:
        return schema.encode

    def encode(record: Any) -> bytes:
        found = schema.encode(record)
        check_limits(plain_values(record))
        return found

    return encode


def _texts(value: Any) -> Any:
    """Convert a value to one with text for bytes, as JsonSchema writes them."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    return value


def as_json(row: Any) -> bytes:
    _check_names(row)
    try:
        return _dumps(row).encode()
    except ValueError:
        check_in_json(row, "", _dumps)
        raise
    except TypeError as error:
        raise TypeError(f"{error}; schema='infer' has times, dates, decimals and bytes") from error


def check_in_json(value: Any, path: str, encode: Callable[[Any], object]) -> None:
    """ValueError: JSON has nothing for it, or for what lies in it; names the column, and the path
    below that. encode: raises for a value that JSON does not have."""
    if isinstance(value, dict):
        inside = f"{path}." if path else ""
        for name, each in value.items():
            check_in_json(each, f"{inside}{name}", encode)
        return
    if isinstance(value, list):
        for at, each in enumerate(value):
            check_in_json(each, f"{path}[{at}]", encode)
        return
    try:
        encode(value)
    except UnicodeDecodeError:
        why = "which is no text in UTF-8, as JSON has it: encode it, as base64"
    except ValueError:
        why = "which is no number of JSON: give null, or a string"
    except TypeError as error:
        why = f"which JSON does not have ({error})"
    else:
        return
    raise ValueError(f"column {path} is {errors.shown(value)}, {why}")


def _check_names(value: Any) -> None:
    """JSON would make texts of names that are none."""
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise TypeError(f"a name of JSON must be a str, not {name!r:.80}")
            _check_names(each)
    elif isinstance(value, list):
        for each in value:
            _check_names(each)
    elif isinstance(value, tuple):
        raise TypeError(f"a tuple has no place in JSON: {value!r:.80}; give a list")


def check_json_types(columns: Any) -> None:
    """Check, before anything is published, that JSON has something for the types of all columns."""
    if columns is None:
        return
    import pyarrow as pa

    def check(kind: Any, path: str) -> None:
        if pa.types.is_struct(kind):
            for field in kind:
                check(field.type, f"{path}.{field.name}")
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            check(kind.value_type, f"{path}[]")
        elif pa.types.is_map(kind):
            check(kind.item_type, f"{path}{{}}")
        elif pa.types.is_dictionary(kind):
            check(kind.value_type, path)
        elif not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
            or str(kind) in ("string", "large_string", "string_view")
        ):
            raise ValueError(
                f"column {path} is {kind}, which JSON does not have: cast it to a string or a "
                "number, leave it out with columns=, or give schema='infer' or an AvroSchema"
            )

    for field in columns:
        check(field.type, field.name)


class EncodedSchema(Schema["Any"]):
    """Declares a schema to the topic; its values are encoded already."""

    def __init__(self, info: SchemaInfo) -> None:
        self._schema_info = info

    def encode(self, obj: Any) -> bytes:
        return obj  # type: ignore[no-any-return]
