"""The Avro schema that rows get by the types of their columns: `send_rows(schema="infer")`."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "Row"  # of the record
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRECISION_MAX = 38  # of decimal128, as which tables have it
_SIMPLE = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.uint32(): "long",
    pa.uint64(): "long",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.date64(): {"type": "int", "logicalType": "date"},
    pa.time32("s"): {"type": "int", "logicalType": "time-millis"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.time64("ns"): {"type": "long", "logicalType": "time-micros"},
}


def schema_of(columns: pa.Schema) -> SchemaInfo:
    """Make the schema. Every field may be null. ValueError names a column that has no type in Avro,
    or no name."""
    names = _Names()
    text = json.dumps(names.record(NAME, columns, ""))
    return SchemaInfo(SchemaType.AVRO, NAME, text)


def columns_of(rows: list[dict[str, Any]]) -> pa.Schema:
    """The columns of dicts, by all of them. ValueError names the first row whose types do not go
    with those of the rows before."""
    try:
        return _found(rows)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        good, bad = 0, len(rows)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                _found(rows[:middle])
                good = middle
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                bad = middle
        try:
            return _found(rows[:bad])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"row {bad - 1}: no type of Avro is found for it and those before: {error}; give "
                "an AvroSchema"
            ) from error


def _found(rows: list[dict[str, Any]]) -> pa.Schema:
    for row in rows:
        for name in row:
            if not isinstance(name, str):
                raise TypeError(f"the name of a column must be a str, not {name!r:.80}")
    kind = pa.array(rows, None).type
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [])


class _Names:
    """Turns columns into definitions. Records and fixed types have names that differ."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def record(self, name: str, fields: Any, path: str) -> dict[str, Any]:
        """fields: a schema, or a struct type."""
        made: list[dict[str, Any]] = []
        record = {"type": "record", "name": self._new(name), "fields": made}
        for field in fields:
            at = f"{path}.{field.name}" if path else field.name
            if not _AVRO_NAME.fullmatch(field.name):
                raise ValueError(
                    f"column {at}: {field.name!r:.80} is no name of Avro (letters, digits and _, "
                    "no digit first): rename it, leave it out with columns=, or cast times and "
                    "decimals to strings, for JSON"
                )
            kind = self._nullable(field.type, at)
            made.append({"name": field.name, "type": kind, "default": None})
        return record

    def _new(self, name: str) -> str:
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}_{number}", number + 1
        self._taken.add(found)
        return found

    def _nullable(self, kind: pa.DataType, path: str) -> Any:
        found = self._of(kind, path)
        return found if found == "null" else ["null", found]

    def _of(self, kind: pa.DataType, path: str) -> Any:
        types = pa.types
        if types.is_dictionary(kind):
            return self._of(kind.value_type, path)
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if str(kind) in ("string", "large_string", "string_view"):
            return "string"
        if str(kind) in ("binary", "large_binary", "binary_view"):
            return "bytes"
        if types.is_fixed_size_binary(kind):
            name = self._new(path.rpartition(".")[2].strip("[]{}") or NAME)
            return {"type": "fixed", "name": f"{name}_bytes", "size": kind.byte_width}
        if types.is_timestamp(kind):
            local = "" if kind.tz is not None else "local-"
            unit = "millis" if kind.unit in ("s", "ms") else "micros"
            return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
        if types.is_decimal(kind) and kind.precision <= _PRECISION_MAX and kind.scale >= 0:
            precision = max(kind.precision, kind.scale)
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": precision,
                "scale": kind.scale,
            }
        if types.is_struct(kind):
            return self.record(path.rpartition(".")[2].strip("[]{}") or NAME, kind, path)
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return {"type": "array", "items": self._nullable(kind.value_type, f"{path}[]")}
        if types.is_map(kind) and str(kind.key_type) in ("string", "large_string"):
            return {"type": "map", "values": self._nullable(kind.item_type, f"{path}{{}}")}
        raise ValueError(
            f"column {path} is {kind}, which Avro does not have: cast it to a string or a number, "
            "leave it out with columns=, or give a schema"
        )
