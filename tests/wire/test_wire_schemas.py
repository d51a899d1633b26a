"""Facts about schemas on the wire."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from seeds import seeds

from pulsarx.errors import IncompatibleSchema
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    DoubleSchema,
    Int8Schema,
    KeyValueSchema,
    ProtobufNativeSchema,
    Record,
    Schema,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)
from pulsarx.wire.commands import command_decode, command_encode
from pulsarx.wire.schemas import schema_of, schema_values


class One(Record):
    a = String()


PAIR = KeyValueSchema(StringSchema(), AvroSchema(One))
PARTS = [
    {"key": f"{part}.schema.type", "value": kind}
    for part, kind in (("key", "STRING"), ("value", "AVRO"))
]
SCHEMAS: list[Schema[Any]] = [
    StringSchema(),
    Int8Schema(),
    DoubleSchema(),
    AvroSchema(One),
    PAIR,
    ProtobufNativeSchema(timestamp_pb2.Timestamp),
    AutoConsumeSchema(),
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_comes_back_from_a_command(schema: Schema[Any]) -> None:
    info = schema.schema_info()
    values = {"topic": "t", "producer_id": 1, "request_id": 2, "schema": schema_values(info)}
    name, read = command_decode(command_encode("PRODUCER", values))
    assert name == "PRODUCER" and schema_of(read["schema"]) == info


def test_types_have_the_numbers_of_the_protocol() -> None:
    numbers = {int(each.schema_info().schema_type()): each for each in SCHEMAS}
    found = {schema_values(each.schema_info())["type"] for each in numbers.values()}
    assert found == {1, 6, 11, 4, 15, 20, 21}
    assert schema_values(BytesSchema().schema_info())["type"] == 0


def test_a_schema_of_bytes_is_one_of_the_type_none() -> None:
    assert schema_of(None) is None
    found = schema_of(schema_values(BytesSchema().schema_info()))
    assert found is not None
    assert found.schema_type() == SchemaType.NONE


def test_a_pair_has_pulsars_binary_form() -> None:
    values = schema_values(PAIR.schema_info())
    key, value = "null", AvroSchema(One).schema_info().schema()
    assert values["data"] == (
        len(key).to_bytes(4, "big") + key.encode() + len(value).to_bytes(4, "big") + value.encode()
    )
    properties = {each["key"]: each["value"] for each in values["properties"]}
    assert properties["key.schema.type"] == "STRING" and properties["value.schema.type"] == "AVRO"
    assert properties["kv.encoding.type"] == "INLINE"


@pytest.mark.parametrize("number", [5, 12, 13, 14, 16, 17, 18, 19, 22])
def test_types_of_other_clients_come_back_as_they_are(number: int) -> None:
    values = {"name": "n", "data": b"", "type": number, "properties": []}
    info = schema_of(values)
    assert info is not None
    assert schema_values(info) == values


def test_a_pair_whose_key_is_outside_of_the_payload_stays_one() -> None:
    values = schema_values(PAIR.schema_info())
    outside = [each for each in values["properties"] if each["key"] != "kv.encoding.type"]
    outside.append({"key": "kv.encoding.type", "value": "SEPARATED"})
    info = schema_of(values | {"properties": outside})
    assert info is not None
    assert info.properties() == {"kv.encoding.type": "SEPARATED"}
    told = {each["key"]: each["value"] for each in schema_values(info)["properties"]}
    assert told["kv.encoding.type"] == "SEPARATED" and told["key.schema.type"] == "STRING"


@pytest.mark.parametrize(
    "changed",
    [
        {"type": 99},
        {"type": -1},
        {"data": b""},
        {"data": b"\0\0\0"},
        {"data": b"\x7f\xff\xff\xff"},
        {"data": b"\0\0\0\0\0\0\0\0x"},
        {"data": b"\0\0\0\1\xff\0\0\0\0"},
        {"properties": []},
        {"properties": [*PARTS, {"key": "kv.encoding.type", "value": "OUTSIDE"}]},
    ],
)
def test_what_is_no_schema_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(IncompatibleSchema):
        schema_of(schema_values(PAIR.schema_info()) | changed)
    with pytest.raises(IncompatibleSchema):
        schema_of(schema_values(StringSchema().schema_info()) | {"data": b"\xff"})


@pytest.mark.parametrize("seed", seeds(1))
def test_random_bytes_are_a_schema_or_refused(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(2000):
        values = schema_values(PAIR.schema_info())
        data = bytearray(values["data"])
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        values["data"] = bytes(data[: chance.randrange(len(data) + 1)])
        try:
            assert isinstance(schema_of(values), SchemaInfo)
        except IncompatibleSchema:
            pass
    assert SchemaType.KEY_VALUE
