"""Checks the columns of a DataFrame that is written. Driver only."""

from __future__ import annotations

from pulsarx.spark.topic_columns import (
    PASSED_OVER,
    TOPIC,
    VALUE,
    WRITTEN,
    WRITTEN_TYPES,
    nearest,
    spark_types,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

    from pulsarx.spark.written_values import WrittenValues


def check_write_schema(
    schema: StructType, topic_given: bool, values: WrittenValues | None = None
) -> None:
    """values: what the other columns become; None: column value is the payload.

    ValueError: columns that no message has, or of other types, or none that must be.
    """
    names = [field.name for field in schema.fields]
    fields: list[StructField] = []
    if values is not None:
        fields = values.fields_of(schema)
    elif VALUE not in names:
        raise ValueError(
            "the DataFrame has no column 'value', which is the payload of a message; rename "
            "or make one, or have columns become it with valueFormat json, avro or schema "
            f"(argument value_format). It has {', '.join(names) or 'none'}"
        )
    for field in schema.fields:
        if field not in fields and field.name not in PASSED_OVER:
            _check_written(field)
    if len(set(names)) < len(names):
        raise ValueError(f"the DataFrame has a column twice: {', '.join(names)}")
    # As with Spark's Kafka sink the option overrides the column.
    if not topic_given and TOPIC not in names:
        raise ValueError(
            "no topic to write to: give option topic, or a column __topic with the names"
        )


def _check_written(field: StructField) -> None:
    allowed = WRITTEN_TYPES.get(field.name)
    if allowed is None:
        raise ValueError(
            f"the DataFrame has a column {field.name!r}{nearest(field.name, WRITTEN)} Columns "
            f"of a message: {', '.join(WRITTEN)}. Have others become the value with valueFormat "
            "json, avro or schema (argument value_format), or put them into __messageProperties"
        )
    kinds = spark_types()
    if not any(_is_kind(field.dataType, kinds[name]) for name in allowed):
        raise ValueError(
            f"column {field.name} is {field.dataType.simpleString()}; it must be "
            f"{' or '.join(allowed)}. Cast it before writing"
        )


def _is_kind(found: DataType, wanted: DataType) -> bool:
    """Collations of strings, and whether the values of a map may be null, do not matter."""
    from pyspark.sql.types import MapType, StringType

    if isinstance(found, MapType):
        inside = isinstance(found.keyType, StringType) and isinstance(found.valueType, StringType)
        return inside and isinstance(wanted, MapType)
    return isinstance(found, type(wanted))
