"""Turns columns into the value of messages: planned on the driver, encoded in tasks.

format   columns                                     value
raw      value, binary or string                     as it is
string   value, string                               text in UTF-8
json     all that are not of the message             an object
avro     those of the given definition               a record; the topic has the definition
schema   those of the topic's newest schema; value,  of that schema
         where it is no record

Messages of avro and schema carry the schema's version.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

from pulsarx import errors
from pulsarx.enumerations import SchemaType
from pulsarx.spark.topic_columns import VALUE, WRITTEN, nearest
from pulsarx.spark.value_choice import AVRO, FORMATS, RAW, SCHEMA, STRING
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.schema.schema import SchemaInfo


class WrittenValues:
    """Turns columns into values. A value that pickles: it travels to the tasks."""

    def __init__(
        self,
        value_format: str,
        info: SchemaInfo | None = None,
        version: int | None = None,
        is_new: bool = False,
    ) -> None:
        self.value_format = value_format
        self.info = info
        self.version = version  # of info on the topic
        self.is_new = is_new  # the commit registers info, as this version

    @property
    def is_record(self) -> bool:
        """Whether the value has fields, which are columns of their own."""
        return self.info is None or self.info.schema_type().name in ("JSON", "AVRO")

    @property
    def is_of_version(self) -> bool:
        """Whether another version of the schema may make another payload of the same row."""
        return self.info is not None and self.info.schema_type().name != "JSON"

    def fields_of(self, schema: StructType) -> list[StructField]:
        """Return the columns of a frame that become the value. ValueError: they cannot."""
        from pyspark.sql.types import StringType

        from pulsarx.spark.value_format import check_json

        if self.value_format == STRING or not self.is_record:
            found = [field for field in schema.fields if field.name == VALUE]
            if not found:
                raise ValueError(
                    f"the DataFrame has no column 'value', which valueFormat {self.value_format} "
                    f"needs here; it has {', '.join(schema.names) or 'none'}"
                )
            if self.value_format == STRING and not isinstance(found[0].dataType, StringType):
                raise ValueError(
                    f"column value is {found[0].dataType.simpleString()}; valueFormat string "
                    "needs a string"
                )
            if self.info is not None:
                self._check_single(found[0])
            return found
        found = [field for field in schema.fields if _is_field(field.name)]
        for field in found:
            _check_name(field.name)
            if self.info is None:
                check_json(field.dataType, field.name, writes=True)
        if self.info is not None:
            self._check_fields(found)
        if not found:
            raise ValueError(
                f"the DataFrame has columns of messages alone: {', '.join(schema.names)}. "
                f"valueFormat {self.value_format} needs some to make the value of"
            )
        return found

    def _check_single(self, field: StructField) -> None:
        from pulsarx.spark.written_types import check_fits
        from pulsarx.tables.value_types import PRIMITIVES

        assert self.info is not None
        # Of types that are not encoded at all check_encodes has told.
        wanted = PRIMITIVES.get(self.info.schema_type(), PRIMITIVES[SchemaType.BYTES])
        check_fits(field.dataType, wanted, field.name, False)

    def _check_fields(self, fields: list[StructField]) -> None:
        from pulsarx.spark.written_types import check_field
        from pulsarx.tables.value_types import record_schema

        assert self.info is not None
        known = record_schema(self.info)
        given = {field.name for field in fields}
        for name in sorted(given.difference(known.names)):
            raise ValueError(
                f"the schema of the value has no field {name!r}{nearest(name, known.names)} "
                f"Fields: {', '.join(known.names)}. Drop the column, or register a schema with it"
            )
        missing = [field.name for field in known if not field.nullable and field.name not in given]
        if missing:
            raise ValueError(
                f"the DataFrame has no column {', '.join(missing)}, which the schema of the value "
                "does not let be null"
            )
        is_json = self.info.schema_type() == SchemaType.JSON
        for field in fields:
            check_field(field.dataType, known.field(field.name), field.name, is_json)


def plan_values(
    value_format: str,
    value_schema: str | None,
    topic: str | None,
    broker: ReadOnlyBroker,
    is_new: bool,
) -> WrittenValues | None:
    """Plan the values as the options say, looked up in the topic; None: the payload is a column.
    Driver only.

    topic: None: the column __topic chooses. is_new: the commit makes it.
    A definition that the topic does not have is registered by the commit; here it is checked that
    the policies of the topic let a producer do that.
    ValueError, IncompatibleSchema, OperationNotSupported: say what to change.
    """
    check_choice(value_format, value_schema)
    if value_format in (AVRO, SCHEMA) and topic is None:
        raise ValueError(
            f"valueFormat {value_format} needs option topic: the schema is that of one topic. Use "
            "valueFormat json, where the column __topic chooses"
        )
    if value_format == SCHEMA and is_new:
        raise ValueError(
            f"valueFormat schema: {topic} is not there yet, so it has no schema. Give valueFormat "
            "avro with valueSchema, which the write registers, or json"
        )
    if topic is None or (is_new and value_format != AVRO):
        return None if value_format == RAW else WrittenValues(value_format)
    info, name = None, TopicName.of(topic)
    if value_format == AVRO:
        info = given_schema(value_schema)
    elif value_format == SCHEMA:
        versions = broker.schemas.versions(name)
        if not versions:
            raise ValueError(
                f"valueFormat schema: {topic} has no schema. Register one with "
                "client.admin.schemas.create_schema, or give valueFormat avro with valueSchema, "
                "or json"
            )
        info = versions[-1]
    broker.schemas.check_producer(name, info)
    if value_format == RAW:
        return None
    if info is None:
        return WrittenValues(value_format)
    version = broker.schemas.version_of(name, info)
    planned = broker.schemas.next_version(name) if version is None else version
    values = WrittenValues(value_format, info, planned, version is None)
    check_encodes(values)
    return values


def check_encodes(values: WrittenValues) -> None:
    """OperationNotSupported: the schema is of a type that rows are not encoded by."""
    _encoder_of(values)


def check_choice(value_format: str, value_schema: str | None) -> None:
    """ValueError: the two do not go together."""
    if value_format not in FORMATS:
        raise ValueError(f"valueFormat {value_format!r} must be one of {', '.join(FORMATS)}")
    if value_format == AVRO and not isinstance(value_schema, str):
        raise ValueError(
            "valueFormat avro needs option valueSchema: the definition as Avro's JSON; or use "
            "valueFormat schema, where the topic has one"
        )
    if value_format != AVRO and value_schema is not None:
        raise ValueError(
            f"valueSchema is the definition of valueFormat avro; {value_format} writes the columns "
            "as they are"
        )


def given_schema(definition: str | None) -> SchemaInfo:
    """The schema of valueFormat avro. ValueError: it is none."""
    from pulsarx.schema.avro_schema import AvroSchema

    return AvroSchema(None, _definition(definition)).schema_info()


def _definition(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except ValueError as error:
        raise ValueError(f"valueSchema is no JSON: {error}: {text!r:.200}") from None
    if not isinstance(found, dict) or found.get("type") != "record":
        raise ValueError(f"valueSchema must be the definition of a record, not {text!r:.200}")
    return found


def _is_field(name: str) -> bool:
    return name == VALUE or name not in WRITTEN


def _check_name(name: str) -> None:
    if name.startswith("__"):
        raise ValueError(
            f"column {name!r} is not a message column{nearest(name, WRITTEN)} Fields of the value "
            "must not begin with two underscores"
        )


# In tasks -----------------------------------------------------------------------------------------


class ValueEncoder:
    """Encodes the batches of one task. One thread at a time."""

    def __init__(self, values: WrittenValues, *, is_compared: bool = False) -> None:
        """is_compared: a later write may have to tell whether it is of the same rows."""
        self._values = values
        self._encode = _encoder_of(values)
        self._given: list[str] | None = None
        if is_compared and values.is_of_version:
            self._given = []
            self._encode = _noting(self._given, self._encode)

    def take_given(self) -> pa.Array | None:
        """Return what the values of the last batch were made of, as texts; None: the values
        tell."""
        import pyarrow as pa

        if self._given is None:
            return None
        found = pa.array(self._given, pa.large_string())
        self._given.clear()
        return found

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of messages, with value made of the others. ValueError names the row of this
        batch."""
        import pyarrow as pa

        from pulsarx.tables.row_encoding import python_rows

        names = batch.schema.names
        fields = [name for name in names if _is_field(name)]
        single = not self._values.is_record or self._values.value_format == STRING
        if single and fields != [VALUE]:
            raise ValueError(f"there must be column 'value' alone, not {', '.join(fields)}")
        for name in fields:
            _check_name(name)
        payloads: list[bytes | None] = []
        for at, row in enumerate(python_rows(batch.select(fields))):
            try:
                payloads.append(self._encode(row[VALUE] if single else row))
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                raise ValueError(f"row {at}: {error}") from error
        kept = [name for name in names if not _is_field(name)]
        return pa.RecordBatch.from_arrays(
            [pa.array(payloads, pa.large_binary()), *(batch.column(name) for name in kept)],
            [VALUE, *kept],
        )


def _encoder_of(values: WrittenValues) -> Callable[[Any], bytes | None]:
    """Make the function that encodes a row, a dict; where the value is no record, the value."""
    if values.value_format == STRING:
        return _text
    info = values.info
    if info is None:
        return _as_json
    from pulsarx.tables.row_encoding import row_encoder

    if values.is_record:
        return row_encoder(info)
    from pulsarx.schema.primitives import NUMBER_SCHEMAS
    from pulsarx.schema.schema import BytesSchema, StringSchema

    kind = info.schema_type()
    schemas: dict[SchemaType, Any] = {each.KIND: each for each in NUMBER_SCHEMAS}
    schemas |= {SchemaType.STRING: StringSchema, SchemaType.BYTES: BytesSchema}
    schemas[SchemaType.NONE] = BytesSchema
    if kind not in schemas:
        raise errors.OperationNotSupported(
            detail=f"values of a schema of type {kind.name} cannot be made of columns: encode "
            "them, and write them with valueFormat raw"
        )
    encode = schemas[kind]().encode
    check = _number_checker(kind)
    return lambda value: None if value is None else encode(check(value))


def _number_checker(kind: SchemaType) -> Callable[[Any], Any]:
    """Make the function that converts a number before it is encoded, as a field of a record would
    take it: an integer that a float cannot hold exactly is refused."""
    from pulsarx.tables.value_types import PRIMITIVES, checker
    from pulsarx.tables.written_limits import check_float

    if kind not in (SchemaType.FLOAT, SchemaType.DOUBLE):
        return lambda value: value
    check = checker(PRIMITIVES[kind], VALUE)

    def checked(value: Any) -> Any:
        found = check(value)
        if kind == SchemaType.FLOAT:
            check_float(value, VALUE)
        return found

    return checked


def _noting(
    notes: list[str], encode: Callable[[Any], bytes | None]
) -> Callable[[Any], bytes | None]:
    """The encoder, which also notes each row: as a text that is one for equal rows, whatever the
    order of their fields."""

    def noted(row: Any) -> bytes | None:
        found = encode(row)
        notes.append(_dumps_sorted(row))
        return found

    return noted


def _text(value: Any) -> bytes | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"valueFormat string needs text, not {value!r:.80}")
    return None if value is None else value.encode()


def _as_json(row: Any) -> bytes:
    try:
        return _dumps(row).encode()
    except (ValueError, TypeError):
        from pulsarx.tables.row_encoding import check_in_json

        check_in_json(row, "", _dumps)
        raise


def _plain(value: Any) -> Any:
    """Convert a value that JSON has no type for, as valueFormat json reads it."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"JSON has nothing for {value!r:.80}")


_dumps = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, ensure_ascii=False, default=_plain
).encode


def _told(value: Any) -> Any:
    """Convert a value that JSON has no type for, so that it is told apart from texts."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return {"time": str(value - _EPOCH)}  # the zone is that of the session
    return {type(value).__name__: str(value)}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_dumps_sorted = json.JSONEncoder(sort_keys=True, default=_told).encode
