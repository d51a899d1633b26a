"""Facts about schemas of numbers, pairs and Protobuf, and about what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from pulsarx.errors import OperationNotSupported
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    DoubleSchema,
    FloatSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValueSchema,
    ProtobufNativeSchema,
    Record,
    Schema,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)

# As the schemas of Pulsar's Java client write them.
NUMBERS: list[tuple[Schema[Any], Any, str]] = [
    (Int8Schema(), -1, "ff"),
    (Int16Schema(), 258, "0102"),
    (Int32Schema(), -2, "fffffffe"),
    (Int64Schema(), 2**40, "0000010000000000"),
    (FloatSchema(), 1.5, "3fc00000"),
    (DoubleSchema(), -2.5, "c004000000000000"),
]


@pytest.mark.parametrize(("schema", "value", "data"), NUMBERS)
def test_numbers_are_big_endian(schema: Schema[Any], value: Any, data: str) -> None:
    assert schema.encode(value).hex() == data
    assert schema.decode(bytes.fromhex(data)) == value
    assert schema.schema_info().schema() == ""


@pytest.mark.parametrize("schema", [each[0] for each in NUMBERS])
def test_what_is_no_such_number_is_refused(schema: Schema[Any]) -> None:
    for wrong in ("1", None, True, b"\x01", [1]):
        with pytest.raises(TypeError, match=f"{type(schema).__name__} takes"):
            schema.encode(wrong)
    for data in (b"", b"123", b"123456789"):
        with pytest.raises(ValueError, match="the message has"):
            schema.decode(data)


def test_a_number_that_needs_more_bits_is_refused() -> None:
    for schema, bits in ((Int8Schema(), 8), (Int16Schema(), 16), (Int32Schema(), 32)):
        with pytest.raises(ValueError, match="does not fit"):
            schema.encode(2 ** (bits - 1))
    with pytest.raises(ValueError, match="does not fit"):
        FloatSchema().encode(1e300)
    with pytest.raises(TypeError):
        Int64Schema().encode(1.0)  # type: ignore[arg-type]
    assert DoubleSchema().encode(1) == DoubleSchema().encode(1.0)


class Inner(Record):
    x = String()


PAIR = KeyValueSchema(StringSchema(), JsonSchema(Inner))


def test_pairs_are_inline() -> None:
    data = PAIR.encode(("k", Inner(x="v")))
    assert data == b"\0\0\0\1k" + len(b'{"x":"v"}').to_bytes(4, "big") + b'{"x":"v"}'
    assert PAIR.decode(data) == ("k", Inner(x="v"))
    assert PAIR.decode(PAIR.encode((None, None))) == (None, None)


def test_a_broken_pair_is_refused() -> None:
    whole = PAIR.encode(("k", Inner(x="v")))
    for data in (*(whole[:size] for size in range(len(whole))), whole + b"x", b"\xff\xff\xff\xfe"):
        with pytest.raises(ValueError, match=r"no \(key, value\)"):
            PAIR.decode(data)
    for wrong in (5, ("k",), ["k", None]):
        with pytest.raises(TypeError, match="takes"):
            PAIR.encode(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key_schema must be a schema"):
        KeyValueSchema(str, StringSchema())  # type: ignore[arg-type]


def test_protobuf_messages_travel() -> None:
    from google.protobuf import timestamp_pb2

    schema = ProtobufNativeSchema(timestamp_pb2.Timestamp)
    message = timestamp_pb2.Timestamp(seconds=5)
    assert schema.encode(message) == b"\x08\x05" and schema.decode(b"\x08\x05") == message
    with pytest.raises(TypeError, match=r"expected type is .*Timestamp"):
        schema.encode({"seconds": 5})
    for wrong in (dict, None, message):
        with pytest.raises(TypeError, match="must be a protobuf Message subclass"):
            ProtobufNativeSchema(wrong)


def test_auto_consume_reads_what_any_schema_wrote() -> None:
    from google.protobuf import timestamp_pb2

    auto = AutoConsumeSchema()
    written: list[tuple[Schema[Any], Any, Any]] = [
        (StringSchema(), "x", "x"),
        (BytesSchema(), b"x", b"x"),
        (JsonSchema(Inner), Inner(x="v"), {"x": "v"}),
        (AvroSchema(Inner), Inner(x="v"), {"x": "v"}),
        (PAIR, ("k", Inner(x="v")), ("k", {"x": "v"})),
        (ProtobufNativeSchema(timestamp_pb2.Timestamp), timestamp_pb2.Timestamp(nanos=5), {}),
        *((schema, value, value) for schema, value, _ in NUMBERS),
    ]
    for schema, value, expected in written:
        read = auto.decoder(schema.schema_info())(schema.encode(value))
        if schema.schema_info().schema_type() == SchemaType.PROTOBUF_NATIVE:
            assert read.startswith("1970")
        else:
            assert read == expected
    assert auto.decoder(None)(b"raw") == b"raw"
    with pytest.raises(TypeError, match="AutoConsumeSchema reads"):
        auto.encode("x")
    with pytest.raises(OperationNotSupported, match="PROTOBUF"):
        auto.decoder(SchemaInfo(SchemaType.PROTOBUF, "x", "{}"))


def test_avro_resolves_what_another_version_wrote() -> None:
    old = {"type": "record", "name": "Inner", "fields": [{"name": "gone", "type": "int"}]}
    new = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "x", "type": "string", "default": "d"}],
    }
    data = AvroSchema(None, old).encode({"gone": 5})
    writer = AvroSchema(None, old).schema_info()
    assert AvroSchema(None, new).decoder(writer)(data) == {"x": "d"}
    with pytest.raises(ValueError, match="cannot be read as AVRO"):
        AvroSchema(None, new).decoder(JsonSchema(Inner).schema_info())


def test_a_description_survives_json() -> None:
    info = SchemaInfo(SchemaType.JSON, "n", "{}", {"a": "b"})
    assert SchemaInfo.of_document(json.loads(json.dumps(info.as_document()))) == info
    for wrong in ({"type": "ZORK", "name": "", "schema": ""}, {"type": "JSON"}, 5):
        with pytest.raises((ValueError, LookupError, TypeError)):
            SchemaInfo.of_document(wrong)  # type: ignore[arg-type]


@pytest.mark.standard
@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("fastavro", "AvroSchema(R)", "pulsarx[avro]"),
        ("google", "ProtobufNativeSchema(R)", "pulsarx[protobuf]"),
    ],
)
def test_a_missing_package_is_named(package: str, call: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from pulsarx.schema import *\n"
        "class R(Record): a = String()\n"
        "JsonSchema(R).encode(R(a='x'))\n"
        f"try: {call}\nexcept ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert extra in run.stdout, run.stderr


@pytest.mark.standard
def test_importing_pulsarx_loads_no_record_and_no_fastavro() -> None:
    program = (
        "import sys, pulsarx; before = set(sys.modules); pulsarx.Client; "
        "print(sorted(n for n in sys.modules if n.startswith('pulsarx.schema')), "
        "[n for n in before if n.startswith('pulsarx.schema')], 'fastavro' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "['pulsarx.schema', 'pulsarx.schema.schema'] [] False", run
