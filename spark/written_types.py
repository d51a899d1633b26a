"""Checks, by their types, whether columns of a DataFrame have values that a schema takes. Driver
only.

What some value may not fit, as a long in an int, is for the tasks to tell, by the row.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.types import DataType

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# What a value of the schema may be made of.
_TAKEN: list[tuple[Callable[[pa.DataType], bool], tuple[str, ...]]] = [
    (types.is_boolean, ("boolean",)),
    (types.is_integer, _INTEGERS),
    (types.is_floating, (*_INTEGERS, "float", "double")),
    (types.is_string, ("string",)),
    (types.is_binary, ("binary",)),
    (types.is_fixed_size_binary, ("binary",)),
    (types.is_date, ("date",)),
    (types.is_time, ("time",)),
    (types.is_decimal, ("decimal",)),
]


def check_field(kind: DataType, field: pa.Field, path: str, is_json: bool) -> None:
    """Like check_fits, for a field; ValueError, too: it must not be null, and the column is."""
    from pyspark.sql.types import NullType

    if isinstance(kind, NullType) and not field.nullable:
        raise ValueError(
            f"column {path} is null in each row (void), and the schema of the value does not let "
            "it be null"
        )
    check_fits(kind, field.type, path, is_json)


def check_fits(kind: DataType, wanted: pa.DataType, path: str, is_json: bool) -> None:
    """ValueError: no value of a column of this type but null is one of the wanted type.

    wanted: of tables.value_types. is_json: bytes are text there, so text is taken for them.
    """
    from pyspark.sql import types as t

    if isinstance(kind, t.UserDefinedType):
        kind = kind.sqlType()
    if isinstance(kind, t.NullType) or types.is_null(wanted):
        return
    if types.is_struct(wanted):
        if not isinstance(kind, t.StructType):
            raise _flaw(path, kind, "a struct")
        _check_struct(kind, wanted, path, is_json)
    elif types.is_list(wanted):
        if not isinstance(kind, t.ArrayType):
            raise _flaw(path, kind, "an array")
        check_fits(kind.elementType, wanted.value_type, f"{path}[]", is_json)
    elif types.is_map(wanted):
        if not isinstance(kind, t.MapType) or not isinstance(kind.keyType, t.StringType):
            raise _flaw(path, kind, "a map of string")
        check_fits(kind.valueType, wanted.item_type, f"{path}{{}}", is_json)
    else:
        taken = _taken(wanted)
        if is_json and types.is_binary(wanted):
            taken = (*taken, "string")
        # Collations of strings, and digits of decimals, do not matter.
        name = "string" if isinstance(kind, t.StringType) else kind.simpleString()
        if name.partition("(")[0] not in taken:
            raise _flaw(path, kind, " or ".join(taken))


def _check_struct(kind: DataType, wanted: pa.DataType, path: str, is_json: bool) -> None:
    from pulsarx.spark.topic_columns import nearest

    fields = {each.name: each for each in wanted}
    found = {each.name: each.dataType for each in kind.fields}  # type: ignore[attr-defined]
    for name, its_kind in found.items():
        if name not in fields:
            raise ValueError(
                f"the schema of the value has no field {path}.{name}{nearest(name, fields)} "
                f"Fields: {', '.join(fields)}. Leave it out of the struct, or register a schema "
                "with it"
            )
        check_field(its_kind, fields[name], f"{path}.{name}", is_json)
    for name, field in fields.items():
        if not field.nullable and name not in found:
            raise ValueError(
                f"column {path} has no field {name}, which the schema of the value does not let "
                "be null"
            )


def _taken(wanted: pa.DataType) -> tuple[str, ...]:
    if types.is_timestamp(wanted):
        return ("timestamp_ntz",) if wanted.tz is None else ("timestamp",)
    for is_kind, names in _TAKEN:
        if is_kind(wanted):
            return names
    raise AssertionError(wanted)


def _flaw(path: str, kind: DataType, taken: str) -> ValueError:
    return ValueError(
        f"column {path} is {kind.simpleString()}, and the schema of the value takes {taken} "
        "there. Cast it before writing"
    )
