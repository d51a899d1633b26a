"""The columns of a topic as Spark sees them, read and written. Imports Spark only to speak of its
types.

column               Spark type            read                  written
value                binary                the payload           binary or string
__key                binary                the partition key     binary or string
__topic              string                of the partition      chooses the topic
__messageId          binary                MessageId.serialize   ignored: it gets a new one
__publishTime        timestamp             always there          ignored: it gets a new one
__eventTime          timestamp             null without one      timestamp, or ms since 1970
__messageProperties  map<string, string>   maybe empty           map<string, string>

Read where they are named alone:

__partition          int                   -1: the topic has none
__ledgerId           bigint                with __entryId and __batchIndex the place of a message:
__entryId            bigint                messages of a topic partition sort by them
__batchIndex         int                   -1: in no batch
__sequenceId         bigint                of its producer
__producerName       string
__orderingKey        binary                null without one
__keyBytes           binary                the key; decoded, where the producer's was of bytes
__schemaVersion      bigint                null: written without a schema

Of those __partition (null and -1: as producers choose), __orderingKey (binary or string) and
__keyBytes (a key of bytes, as key_bytes of a producer; beside __key as both were read) are written,
and so is one that is not read:

__deliverAt          timestamp, or ms since 1970: when Shared and Key_Shared subscriptions get it
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql.types import DataType, StructType

VALUE, KEY, TOPIC, MESSAGE_ID = "value", "__key", "__topic", "__messageId"
PARTITION = "__partition"
PUBLISH_TIME, EVENT_TIME, PROPERTIES = "__publishTime", "__eventTime", "__messageProperties"
ORDERING_KEY, DELIVER_AT, KEY_BYTES = "__orderingKey", "__deliverAt", "__keyBytes"
COLUMN_TYPES = {
    VALUE: "binary",
    KEY: "binary",
    TOPIC: "string",
    MESSAGE_ID: "binary",
    PUBLISH_TIME: "timestamp",
    EVENT_TIME: "timestamp",
    PROPERTIES: "map<string,string>",
}
COLUMN_TYPES_ON_DEMAND = {
    PARTITION: "int",
    "__ledgerId": "bigint",
    "__entryId": "bigint",
    "__batchIndex": "int",
    "__sequenceId": "bigint",
    "__producerName": "string",
    ORDERING_KEY: "binary",
    KEY_BYTES: "binary",
    "__schemaVersion": "bigint",
}
EVERY_TYPE = {**COLUMN_TYPES, **COLUMN_TYPES_ON_DEMAND}
_WITHOUT_MEANING = {
    "__redeliveryCount": "a job reads ledgers, which nobody redelivers; consumers have it",
}
WRITTEN_TYPES: dict[str, tuple[str, ...]] = {
    VALUE: ("binary", "string"),
    KEY: ("binary", "string"),
    TOPIC: ("string",),
    EVENT_TIME: ("timestamp", "bigint"),
    PROPERTIES: ("map<string,string>",),
    PARTITION: ("int",),
    ORDERING_KEY: ("binary", "string"),
    KEY_BYTES: ("binary",),
    DELIVER_AT: ("timestamp", "bigint"),
}
PASSED_OVER = (MESSAGE_ID, PUBLISH_TIME)
WRITTEN = (*WRITTEN_TYPES, *PASSED_OVER)  # what a frame that is written may have


def column_names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """None: the usual seven; "value, __key" as a list. ValueError: an unknown one."""
    if columns is None:
        return tuple(COLUMN_TYPES)
    if isinstance(columns, str):
        columns = [each.strip() for each in columns.split(",")]
    names = tuple(columns)
    for name in names:
        check_column(name, EVERY_TYPE)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns {', '.join(names)!r}: each must be named once, and one at least")
    return names


def check_column(name: str, known: Iterable[str]) -> None:
    """ValueError: there is no such column; says the nearest."""
    if name in known:
        return
    if name in _WITHOUT_MEANING:
        raise ValueError(f"there is no column {name!r}: {_WITHOUT_MEANING[name]}")
    raise ValueError(
        f"there is no column {name!r}{nearest(name, known)} Columns: {', '.join(known)}"
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names what was probably meant."""
    import difflib

    near = difflib.get_close_matches(name, list(known), 1, 0.4)
    return f"; did you mean {near[0]!r}?" if near else "."


# Reading ------------------------------------------------------------------------------------------


def read_schema(columns: Iterable[str]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    kinds = spark_types()
    return StructType([StructField(name, kinds[EVERY_TYPE[name]], True) for name in columns])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema that the user gave. ValueError: not as they are."""
    if not schema.fields:
        raise ValueError("the schema has no column; name some of " + ", ".join(COLUMN_TYPES))
    names = column_names([field.name for field in schema.fields])
    for field, wanted in zip(schema.fields, read_schema(names).fields):
        if field.dataType != wanted.dataType or not field.nullable:
            raise ValueError(
                f"column {field.name} is {wanted.dataType.simpleString()} and nullable, the schema "
                f"says {field.dataType.simpleString()}{'' if field.nullable else ' not null'}. "
                "Leave .schema() away, choose with option columns, and cast what you read"
            )
    return names


def spark_types() -> dict[str, DataType]:
    from pyspark.sql.types import (
        BinaryType,
        IntegerType,
        LongType,
        MapType,
        StringType,
        TimestampType,
    )

    kinds = (BinaryType(), StringType(), TimestampType(), LongType(), IntegerType())
    found: dict[str, DataType] = {kind.simpleString(): kind for kind in kinds}
    return found | {"map<string,string>": MapType(StringType(), StringType(), True)}
