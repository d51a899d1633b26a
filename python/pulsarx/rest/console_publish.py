"""Publishing one message from the page: its value is written as text, and encoded by the schema
that the topic has. As `console`, for the page alone."""

from __future__ import annotations

import base64
import binascii
import json

from pulsarx import errors
from pulsarx.enumerations import SchemaType
from pulsarx.rest.call import Refusal, integer_of
from pulsarx.rest.console import text_of
from pulsarx.rest.route import Route
from pulsarx.schema.schema import BytesSchema, Schema, SchemaInfo, StringSchema
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

    Json = dict[str, Any]


def _publish(call: Call) -> Json:
    """Publish one message. text: its value, of a topic with a schema as JSON unless that is one of
    text; or base64: the bytes. key, properties, event_time_ms: as they are given."""
    given = call.json_object()
    name = str(TopicName.of(text_of(given, "topic")))
    if call.host.access is not None and call.role is not None:
        call.host.access.require_produce(call.role, name)
    properties = given.get("properties") or {}
    if not (isinstance(properties, dict) and all(map(_is_text, properties.values()))):
        raise Refusal(412, "properties are texts by name")
    more: Json = {"properties": properties}
    if given.get("key"):
        more["partition_key"] = text_of(given, "key")
    if given.get("event_time_ms") is not None:
        more["event_timestamp"] = integer_of(given, "event_time_ms")
    schema, content = _content(call, name, given)
    with call.host.folder.client() as client:
        producer = client.create_producer(name, schema=schema, batching_enabled=False)
        try:
            sent = producer.send(content, **more)
        finally:
            producer.close()
    return {"message_id": sent.to_text()}


def _content(call: Call, topic: str, given: Json) -> tuple[Schema, Any]:
    """The schema to publish with, and what that encodes."""
    if given.get("base64") is not None:
        try:
            return BytesSchema(), base64.b64decode(text_of(given, "base64"), validate=True)
        except binascii.Error as error:
            raise Refusal(412, f"that is no base64: {error}") from None
    text = given.get("text")
    if not isinstance(text, str):
        raise Refusal(412, "text must be a text")
    found = _newest_schema(call, topic)
    if found is None:
        return BytesSchema(), text.encode("utf-8", "surrogatepass")
    return _encoded(found, text)


def _newest_schema(call: Call, topic: str) -> SchemaInfo | None:
    try:
        versions = call.perform("schemas.get_all_schemas", topic=topic)
    except errors.TopicNotFound:
        return None  # it is made by the producer
    return SchemaInfo.of_document(versions[-1]) if versions else None


def _encoded(info: SchemaInfo, text: str) -> tuple[Schema, Any]:
    """Refusal: the text is no value of the schema, or the schema is of another kind."""
    schema: Schema
    from pulsarx.schema.primitives import NUMBER_SCHEMAS

    kind = info.schema_type()
    if kind in (SchemaType.BYTES, SchemaType.NONE):
        return BytesSchema(), text.encode("utf-8", "surrogatepass")
    if kind == SchemaType.STRING:
        return StringSchema(), text
    value = _read(kind.name, text)
    if kind == SchemaType.JSON:
        return _Encoded(info), _checked(info, value)
    if kind == SchemaType.AVRO:
        schema = _avro(info)
    else:
        number = next((each for each in NUMBER_SCHEMAS if kind == each.KIND), None)
        if number is None:
            raise Refusal(412, f"a value of a {kind.name} schema is published as base64 here")
        schema = number()
    try:
        return _Encoded(info), schema.encode(value)
    except RecursionError:
        raise Refusal(400, f"that value of a {kind.name} schema is nested too deeply") from None
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise Refusal(412, f"that is no value of the schema: {error}") from None


def _read(kind: str, text: str) -> Any:
    """The value that a text in JSON is of."""
    try:
        return json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except RecursionError:
        raise Refusal(400, f"that value of a {kind} schema is nested too deeply") from None
    except ValueError as error:
        raise Refusal(412, f"a value of a {kind} schema is written in JSON: {error}") from None


def _finite(text: str) -> float:
    found = float(text)
    if found in (float("inf"), float("-inf")):
        _refuse_number(text)
    return found


def _refuse_number(text: str) -> None:
    raise ValueError(f"{text:.80} is no number of JSON")


def _checked(info: SchemaInfo, value: Any) -> bytes:
    """A value as the rows of `send_rows` are encoded, each of which is checked by the definition.
    Refusal: it does not fit, or the definition cannot be checked by here."""
    from pulsarx.tables.row_encoding import row_encoder

    try:
        encode = row_encoder(info)
    except ImportError as error:
        raise Refusal(412, f"a value of a JSON schema cannot be checked: {error}") from None
    except (errors.OperationNotSupported, ValueError, KeyError, TypeError) as error:
        ours = isinstance(error, errors.PulsarException)
        told = errors.detail_of(error) if ours else repr(error)
        raise Refusal(
            412, f"a value of this JSON schema cannot be checked: {told}; publish it as base64"
        ) from None
    try:
        return encode(value)
    except RecursionError:
        raise Refusal(400, "that value of a JSON schema is nested too deeply") from None
    except (ValueError, TypeError) as error:
        raise Refusal(412, f"that is no value of the schema: {error}") from None


def _avro(info: SchemaInfo) -> Schema:
    from pulsarx.schema.avro_schema import AvroSchema

    try:
        return AvroSchema(None, json.loads(info.schema()))
    except ImportError as error:
        raise Refusal(412, f"a value of an AVRO schema cannot be encoded: {error}") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class _Encoded(Schema[bytes]):
    """Publishes payloads that are encoded already, under a schema of the topic."""

    def __init__(self, info: SchemaInfo) -> None:
        super().__init__(bytes, info.schema_type(), None, info.name())
        self._info = info

    def schema_info(self) -> SchemaInfo:
        return self._info

    def encode(self, obj: bytes) -> bytes:
        return obj

    def decode(self, data: bytes) -> bytes:
        return data


ROUTES = [
    Route("POST", "/console/publish", _publish, "Publish a message.", refused=412),
]
