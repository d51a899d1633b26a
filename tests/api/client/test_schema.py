"""Facts about the schemas that need no definition."""

from __future__ import annotations

from typing import Any

import pytest

import pulsarx
from pulsarx.enumerations import SchemaType
from pulsarx.schema import BytesSchema, Schema, StringSchema


def test_bytes_pass_as_they_are() -> None:
    payload = b"\x00\xff"
    assert BytesSchema().encode(payload) is payload
    assert BytesSchema().decode(payload) is payload


@pytest.mark.parametrize("wrong", ["x", bytearray(b"x"), memoryview(b"x"), None, 5])
def test_bytes_must_be_bytes(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected type is <class 'bytes'>"):
        BytesSchema().encode(wrong)


def test_text_travels_as_utf_8() -> None:
    assert StringSchema().encode("grün") == b"gr\xc3\xbcn"
    assert StringSchema().decode(b"gr\xc3\xbcn") == "grün"
    with pytest.raises(TypeError, match="expected type is <class 'str'>"):
        StringSchema().encode(b"x")  # type: ignore[arg-type]
    with pytest.raises(UnicodeDecodeError):
        StringSchema().decode(b"\xff")


@pytest.mark.parametrize(
    ("schema", "kind", "name"),
    [(BytesSchema(), SchemaType.BYTES, "BYTES"), (StringSchema(), SchemaType.STRING, "STRING")],
)
def test_what_a_topic_remembers(schema: Schema, kind: SchemaType, name: str) -> None:
    info = schema.schema_info()
    assert (info.schema_type(), info.name(), info.schema()) == (kind, name, "null")
    assert str(schema) == type(schema).__name__


def test_own_schemas_can_be_made() -> None:
    class Number(Schema):
        def __init__(self) -> None:
            super().__init__(int, SchemaType.NONE, {"type": "number"}, "NUMBER")

        def encode(self, obj: int) -> bytes:
            self._validate_object_type(obj)
            return str(obj).encode()

        def decode(self, data: bytes) -> int:
            return int(data)

    class Message:
        def data(self) -> bytes:
            return b"17"

    schema = Number()
    schema.attach_client(object())
    assert schema.decode_message(Message()) == 17
    assert schema.schema_info().schema() == '{\n "type": "number"\n}'


def test_own_schemas_need_no_more_than_both_ways(memory_client: pulsarx.Client) -> None:
    class Upper(Schema):
        def __init__(self) -> None:
            """Without that of the base."""

        def encode(self, obj: str) -> bytes:
            return obj.upper().encode()

        def decode(self, data: bytes) -> str:
            return data.decode().lower()

    consumer = memory_client.subscribe("t", "s", schema=Upper())
    memory_client.create_producer("t", schema=Upper()).send("x")
    message = consumer.receive(60_000)
    assert (message.data(), message.value(), message.schema_version()) == (b"X", "x", "")
    assert memory_client.admin.schemas.get_all_schemas("t") == []
