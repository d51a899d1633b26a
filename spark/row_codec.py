"""Columns of format("pulsarx") and what they are in a message. For reader and writer.

column               Spark type            read                  written
value                binary                the payload           binary or string
__key                binary                the partition key     binary or string
__topic              string                of the partition      chooses the topic
__messageId          binary                MessageId.serialize   passed over: it gets a new one
__publishTime        timestamp             always there          passed over: it gets a new one
__eventTime          timestamp             null without one      timestamp, or ms since 1970
__messageProperties  map<string, string>   maybe empty           map<string, string>
"""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarx.spark.topic_columns import COLUMN_TYPES, nearest

VALUE, KEY, TOPIC = "value", "__key", "__topic"
PUBLISH_TIME, EVENT_TIME = "__publishTime", "__eventTime"
PROPERTIES = "__messageProperties"
_PASSED_OVER = ("__messageId", PUBLISH_TIME)
_MAP = MapType(StringType(), StringType(), True)
_READ: dict[str, DataType] = {
    VALUE: BinaryType(),
    KEY: BinaryType(),
    TOPIC: StringType(),
    "__messageId": BinaryType(),
    PUBLISH_TIME: TimestampType(),
    EVENT_TIME: TimestampType(),
    PROPERTIES: _MAP,
}
_WRITTEN: dict[str, tuple[type[DataType], ...]] = {
    VALUE: (BinaryType, StringType),
    KEY: (BinaryType, StringType),
    TOPIC: (StringType,),
    EVENT_TIME: (TimestampType, LongType),
    PROPERTIES: (MapType,),
}


def read_schema(columns: tuple[str, ...]) -> StructType:
    return StructType([StructField(name, _READ[name], True) for name in columns])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema that somebody gave. ValueError: not as they are."""
    if not schema.fields:
        raise ValueError("the schema has no column; name some of " + ", ".join(COLUMN_TYPES))
    for field in schema.fields:
        wanted = _READ.get(field.name)
        if wanted is None:
            raise ValueError(
                f"the schema has a column {field.name!r}{nearest(field.name, COLUMN_TYPES)} "
                f"Columns: {', '.join(COLUMN_TYPES)}"
            )
        if field.dataType != wanted or not field.nullable:
            raise ValueError(
                f"column {field.name} is {wanted.simpleString()} and nullable, the schema says "
                f"{field.dataType.simpleString()}. Leave .schema() away, choose with option "
                "columns, and cast what you read"
            )
    return tuple(field.name for field in schema.fields)


def check_write_schema(schema: StructType, topic_given: bool) -> None:
    """ValueError: columns that no message has, or of other types, or none that must be."""
    names = [field.name for field in schema.fields]
    if VALUE not in names:
        raise ValueError(
            "the DataFrame has no column 'value', which is the payload of a message; rename or "
            f"make one. It has {', '.join(names) or 'none'}"
        )
    for field in schema.fields:
        if field.name not in _PASSED_OVER:
            _check_written(field)
    if len(set(names)) < len(names):
        raise ValueError(f"the DataFrame has a column twice: {', '.join(names)}")
    # As with Spark's Kafka sink the option overrides the column.
    if not topic_given and TOPIC not in names:
        raise ValueError(
            "no topic to write to: give option topic, or a column __topic with the names"
        )


def _check_written(field: StructField) -> None:
    known = (*_WRITTEN, *_PASSED_OVER)
    allowed = _WRITTEN.get(field.name)
    if allowed is None:
        raise ValueError(
            f"the DataFrame has a column {field.name!r}{nearest(field.name, known)} Columns "
            f"of a message: {', '.join(known)}. Put others into value, for instance with "
            "to_json(struct(...)), or into __messageProperties"
        )
    if not isinstance(field.dataType, allowed) or not _fits(field.dataType):
        wanted = " or ".join(_simple(each) for each in allowed)
        raise ValueError(
            f"column {field.name} is {field.dataType.simpleString()}; it must be {wanted}. "
            "Cast it before writing"
        )


def _fits(kind: DataType) -> bool:
    return not isinstance(kind, MapType) or (
        isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    )


def _simple(kind: type[DataType]) -> str:
    return "map<string,string>" if kind is MapType else kind().simpleString()
