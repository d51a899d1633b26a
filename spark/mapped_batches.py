"""Checks what a function of `map_topic` gives before Spark has it. Runs in workers.

Spark goes by the places of columns alone: with two of them swapped rows come out wrong, silently,
and another type is an error that names neither the column nor the function.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import DataType, StructType

# By the names of Spark. What is nested or newer is left to Spark.
_PLAIN = frozenset(
    ("binary", "string", "boolean", "byte", "short", "integer", "long", "float", "double", "date")
)


def checked_batches(found: Any, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The same batches. TypeError: they are not what schema says; names the first difference."""
    if not hasattr(found, "__iter__"):
        raise TypeError(
            f"the function of map_topic gave {type(found).__name__}; it must give an iterator of "
            "pyarrow.RecordBatch, so yield them"
        )
    seen: pa.Schema | None = None
    for batch in found:
        if not isinstance(batch, pa.RecordBatch):
            raise TypeError(
                f"the function of map_topic gave {type(batch).__name__}, not pyarrow.RecordBatch"
            )
        if seen is None or not seen.equals(batch.schema):
            _check(batch.schema, schema)
            seen = batch.schema
        yield batch


def _check(found: pa.Schema, schema: StructType) -> None:
    names = [field.name for field in schema.fields]
    if found.names != names:
        raise TypeError(
            f"the function of map_topic gave the columns {', '.join(found.names)}; its schema says "
            f"{', '.join(names)}, in this order"
        )
    for field in schema.fields:
        kind = found.field(field.name).type
        if not _is_kind(kind, field.dataType):
            raise TypeError(
                f"the function of map_topic gave column {field.name} as Arrow {kind}; its schema "
                f"says {field.dataType.simpleString()}. Cast it, or change the schema"
            )


def _is_kind(found: pa.DataType, wanted: DataType) -> bool:
    if wanted.typeName() not in _PLAIN or pa.types.is_null(found):
        return True
    try:
        return bool(from_arrow_type(found).typeName() == wanted.typeName())
    except Exception:  # Arrow has more types than Spark
        return False
