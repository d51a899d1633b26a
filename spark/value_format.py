"""Plans how the values of a topic become columns in Spark. Planned on the driver; tasks decode by
it (value_decoder).

format   value                                     columns
raw      bytes, as they were published             value binary
string   text in UTF-8                             value string
json     an object                                 those of the given schema
avro     a record, of the given definition         those of the definition
schema   of the topic's schema, its newest version: its fields; value, where it is no record

A record's fields stand beside the columns of the message, which begin with two underscores.
"""

from __future__ import annotations

import json

from pulsarx import errors
from pulsarx.spark.topic_columns import EVERY_TYPE, VALUE, check_column, read_schema
from pulsarx.spark.value_choice import (
    AVRO,
    CORRUPT_RECORD,
    FAIL_FAST,
    JSON,
    PERMISSIVE,
    STRING,
    check_format,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField, StructType

    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.tables.json_rules import JsonRules

SCHEMA_VERSION = "__schemaVersion"
_MESSAGE_COLUMNS = tuple(name for name in EVERY_TYPE if name != VALUE)


class ValueFormat:
    """Turns values into columns. A value that pickles: it travels to the tasks."""

    def __init__(
        self,
        kind: str,
        mode: str,
        columns: tuple[str, ...],
        fields: pa.Schema,
        reader: SchemaInfo | None,
        writers: dict[str, dict[int, SchemaInfo]],
        rules: JsonRules | None = None,
        corrupt: tuple[str, str] = (CORRUPT_RECORD, "binary"),
    ) -> None:
        self.rules = rules  # of JSON
        # The column with what cannot be decoded, where columns has it, and its type.
        self.corrupt: str
        self.corrupt_type: str
        self.corrupt, self.corrupt_type = corrupt
        self.kind = kind  # the type of a schema by its name, as "AVRO" or "INT32"
        self.mode = mode
        self.columns = columns  # all of them, in order
        self.fields = fields  # of the value, as Spark wants them from Arrow; only those in columns
        self.reader = reader  # what all versions are resolved into; None: of JSON and text
        self.writers = writers  # by topic and version

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that are read of the ledgers."""
        found = [name for name in self.columns if name in _MESSAGE_COLUMNS]
        if self.fields.names:
            found.append(VALUE)
            if self.reader is not None and SCHEMA_VERSION not in found:
                found.append(SCHEMA_VERSION)
        return tuple(found)

    @property
    def frame_schema(self) -> StructType:
        """The schema of a DataFrame with these columns."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        found = {field.name: field for field in read_schema(_MESSAGE_COLUMNS)}
        found[self.corrupt] = StructField(self.corrupt, _corrupt_types()[self.corrupt_type], True)
        for each in self.fields:
            found[each.name] = StructField(each.name, from_arrow_type(each.type), each.nullable)
        return StructType([found[name] for name in self.columns])

    def with_writers(self, broker: ReadOnlyBroker, topics: Iterable[str]) -> ValueFormat:
        """The same with the versions that the topics have by now."""
        if self.reader is None:
            return self
        writers = _writers(broker, topics)
        return ValueFormat(
            self.kind,
            self.mode,
            self.columns,
            self.fields,
            self.reader,
            writers,
            self.rules,
            (self.corrupt, self.corrupt_type),
        )


def _corrupt_types() -> dict[str, DataType]:
    """The types that the column of values that cannot be decoded may have: text as in from_json has
    a mark for what is none."""
    from pyspark.sql.types import BinaryType, StringType

    return {"binary": BinaryType(), "string": StringType()}


def _writers(broker: ReadOnlyBroker, topics: Iterable[str]) -> dict[str, dict[int, SchemaInfo]]:
    return {
        name: {info.version() or 0: info for info in broker.schemas.versions(TopicName.of(name))}
        for name in {TopicName.of(topic).partitioned_name for topic in topics}
    }


class FormatPlan:
    """Plans the format of values: looks up in the topics what the options say. Driver only."""

    def __init__(
        self,
        value_format: str,
        mode: str | None,
        value_schema: str | StructType | None,
        broker: ReadOnlyBroker,
        topics: Sequence[str],
        rules: JsonRules | None = None,
        corrupt: str | None = None,
    ) -> None:
        """corrupt: the name of the column of values that cannot be decoded. ValueError,
        OperationNotSupported: what cannot be; say what to change."""
        self._rules = rules
        self._corrupt = corrupt or CORRUPT_RECORD
        if self._corrupt in _MESSAGE_COLUMNS:
            raise ValueError(f"columnNameOfCorruptRecord {corrupt} is a column of messages")
        self._mode = (mode or FAIL_FAST).upper()  # as Spark has it, in any case
        self._given = value_schema
        self._broker = broker
        self._topics = list(topics)
        self._reader: SchemaInfo | None = None
        check_format(value_format, mode, value_schema)
        self._kind, self._fields = self._find(value_format)

    def _find(self, value_format: str) -> tuple[str, list[StructField] | None]:
        """The fields of the value; None: those that the user's schema names."""
        from pyspark.sql.types import StringType, StructField

        if value_format == STRING:
            return "STRING", [StructField(VALUE, StringType(), True)]
        if value_format == JSON:
            return "JSON", None if self._given is None else _given_fields(self._given)
        if value_format == AVRO:
            from pulsarx.schema.avro_schema import AvroSchema

            self._reader = AvroSchema(None, json.loads(str(self._given))).schema_info()
        else:
            self._reader = self._newest()
        return self._reader.schema_type().name, _fields_of(self._reader)

    def _newest(self) -> SchemaInfo:
        """The schema of the topics, which must be one."""
        found: dict[str, SchemaInfo] = {}
        for name in dict.fromkeys(TopicName.of(each).partitioned_name for each in self._topics):
            versions = self._broker.schemas.versions(TopicName.of(name))
            if not versions:
                raise ValueError(
                    f"valueFormat schema: {name} has no schema. Give valueFormat json with a "
                    "schema, string or raw; or register one with admin.schemas.create_schema"
                )
            kinds = {each.schema_type().name for each in versions}
            if len(kinds) > 1:
                raise errors.OperationNotSupported(
                    detail=f"valueFormat schema: the versions of {name} are of the types "
                    f"{', '.join(sorted(kinds))}, which have no columns together; use raw"
                )
            found[name] = versions[-1]
        (first, info), *others = found.items()
        for name, other in others:
            if other.schema_type() != info.schema_type() or other.schema() != info.schema():
                raise errors.OperationNotSupported(
                    detail=f"valueFormat schema: {first} and {name} have different schemas; read "
                    "them one by one"
                )
        return info

    def schema(self, columns: Sequence[str] | None) -> StructType:
        """Return the schema of the DataFrame. columns: None: all fields and the usual columns of a
        message."""
        from pyspark.sql.types import BinaryType, StructField, StructType

        if self._fields is None:
            raise ValueError(
                "valueFormat json needs the columns of the value: give .schema(...) or option "
                "valueSchema, as .schema('price double, tags array<string>, __key binary'); or "
                "valueFormat schema, where the topic has one"
            )
        known = {field.name: field for field in self._fields}
        if self._mode == PERMISSIVE:
            if self._corrupt in known and self._kind != JSON.upper():
                raise ValueError(
                    f"the value has a field {self._corrupt}; give another columnNameOfCorruptRecord"
                )
            known.setdefault(self._corrupt, StructField(self._corrupt, BinaryType(), True))
        _check_apart(known)
        for name in columns or ():
            check_column(name, (*known, *_MESSAGE_COLUMNS))
        from pulsarx.spark.topic_columns import COLUMN_TYPES

        wanted = columns or [*known, *(name for name in COLUMN_TYPES if name != VALUE)]
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"columns {', '.join(wanted)!r}: each must be named once")
        described = {field.name: field for field in read_schema(_MESSAGE_COLUMNS)}
        return StructType([(known | described)[name] for name in wanted])

    def of_schema(self, schema: StructType) -> ValueFormat:
        """The format of a DataFrame with this schema, which the user may have given.

        ValueError: columns that neither the values nor messages have, or of other types.
        """
        from pyspark.sql.types import StructType

        described = {field.name: field for field in read_schema(_MESSAGE_COLUMNS)}
        fields = []
        corrupt_type = "binary"
        for field in schema.fields:
            wanted: DataType | None = None
            if field.name in described:
                wanted = described[field.name].dataType
            elif field.name == self._corrupt:
                if self._mode != PERMISSIVE:
                    raise ValueError(f"column {self._corrupt} needs mode {PERMISSIVE}")
                wanted = _corrupt_types()["binary"]
                if field.dataType == _corrupt_types()["string"]:
                    wanted, corrupt_type = field.dataType, "string"
            elif self._fields is not None:
                known = {each.name: each for each in self._fields}
                check_column(field.name, (*known, *_MESSAGE_COLUMNS))
                wanted = known[field.name].dataType
            else:
                check_json(field.dataType, field.name)
            is_value = field.name not in described and field.name != self._corrupt
            may_require = is_value and self._kind == "JSON"
            if may_require and not field.nullable and self._mode == PERMISSIVE:
                raise ValueError(
                    f"column {field.name} is not null, and mode {PERMISSIVE} gives nulls for a "
                    "value that cannot be decoded; let it be null, or choose another mode"
                )
            if (wanted is not None and field.dataType != wanted) or not (
                field.nullable or may_require
            ):
                kind = field.dataType if wanted is None else wanted
                raise ValueError(
                    f"column {field.name} is {kind.simpleString()} and nullable, the schema says "
                    f"{field.dataType.simpleString()}{'' if field.nullable else ' not null'}"
                )
            if is_value:
                fields.append(field)
        if not schema.fields:
            raise ValueError("the schema has no column; name some")
        if self._corrupt in schema.names and not fields:
            raise ValueError(f"column {self._corrupt} needs a field of the value beside it")
        if len(set(schema.names)) < len(schema.names):
            raise ValueError(f"the schema names a column twice: {', '.join(schema.names)}")
        return ValueFormat(
            self._kind,
            self._mode,
            tuple(schema.names),
            arrow_schema(StructType(fields)),
            self._reader if self._kind != "JSON" else None,
            _writers(self._broker, self._topics) if self._kind != "JSON" else {},
            self._rules,
            (self._corrupt, corrupt_type),
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants from a data source."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _given_fields(given: str | StructType) -> list[StructField]:
    from pyspark.sql.types import StructType

    found = given if isinstance(given, StructType) else _of_json(given)
    if not isinstance(found, StructType) or not found.fields:
        raise ValueError(f"the schema of the value {given!r:.200} has no columns; name them")
    for field in found.fields:
        if field.name in _MESSAGE_COLUMNS:
            raise ValueError(
                f"the schema of the value names {field.name}, a column of messages. Leave it out "
                "there; columns says which of those are wanted"
            )
        check_json(field.dataType, field.name)
    return list(found.fields)


def _of_json(text: str) -> StructType:
    """The planner of a data source has no session, which would read DDL."""
    from pyspark.sql.types import StructType

    try:
        return StructType.fromJson(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            "option valueSchema of valueFormat json is the JSON of a Spark schema (schema.json()); "
            f"not {text!r:.80}. DDL goes into .schema(...), beside columns as __key binary"
        ) from error


def check_json(kind: DataType, path: str, *, writes: bool = False) -> None:
    """OperationNotSupported: nothing in JSON becomes it here, or it becomes nothing in JSON."""
    from pyspark.sql import types as t

    if isinstance(kind, t.DecimalType) and not writes:
        return
    if isinstance(kind, t.StructType):
        for field in kind.fields:
            check_json(field.dataType, f"{path}.{field.name}", writes=writes)
    elif isinstance(kind, t.ArrayType):
        check_json(kind.elementType, f"{path}[]", writes=writes)
    elif isinstance(kind, t.MapType) and isinstance(kind.keyType, t.StringType):
        check_json(kind.valueType, f"{path}{{}}", writes=writes)
    elif not isinstance(
        kind,
        (
            t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType,
            t.DoubleType, t.StringType, t.BinaryType, t.DateType, t.TimestampType,
            t.TimestampNTZType,
        ),
    ):  # fmt: skip
        raise errors.OperationNotSupported(
            detail=f"column {path}: JSON is not read as {kind.simpleString()}; read string or "
            "double, and cast afterwards"
        )


def _fields_of(info: SchemaInfo) -> list[StructField]:
    """The columns of a schema. OperationNotSupported: it has a type that Spark has not."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField

    from pulsarx.enumerations import SchemaType
    from pulsarx.tables.value_types import PRIMITIVES, record_schema

    kind = info.schema_type()
    if kind in (SchemaType.JSON, SchemaType.AVRO):
        try:
            fields = list(record_schema(info))
        except errors.OperationNotSupported as error:
            raise errors.OperationNotSupported(
                detail=f"{errors.detail_of(error)}: use valueFormat raw, and decode it yourself, "
                "as in the function of map_topic"
            ) from error
    elif kind in PRIMITIVES:
        fields = [pa.field(VALUE, PRIMITIVES[kind])]
    else:
        raise errors.OperationNotSupported(
            detail=f"columns of a schema of type {kind.name} are not supported: use valueFormat raw"
        )
    found = []
    for field in fields:
        try:
            found.append(StructField(field.name, from_arrow_type(_spark_kind(field.type)), True))
        except Exception as error:
            raise errors.OperationNotSupported(
                detail=f"column {field.name}: Spark has nothing for {field.type} ({error}); use "
                "valueFormat raw"
            ) from error
    return found


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    """The type with what Spark knows, and nulls allowed at any depth."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _spark_kind(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_spark_kind(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _spark_kind(kind.item_type))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time32(kind):
        return pa.time64("us")
    return kind


def _check_apart(fields: Iterable[str]) -> None:
    for name in fields:
        if name in _MESSAGE_COLUMNS:
            raise errors.OperationNotSupported(
                detail=f"the value has a field {name}, which is a column of messages; use "
                "valueFormat raw"
            )
