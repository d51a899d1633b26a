"""Facts about tables of Avro: they hold what the messages' values are, which no Python code decodes
where that can be helped."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pulsarx
from pulsarx.schema import AvroSchema, SchemaInfo, SchemaType

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "long"}]}


def record(**fields: Any) -> dict[str, Any]:
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": kinds}


def publish(client: pulsarx.Client, definition: dict[str, Any], *rows: Any) -> None:
    schema: Any = AvroSchema(None, definition)
    with client.create_producer("t", schema=schema) as producer:
        producer.send_many(list(rows))


@pytest.fixture
def no_value_is_decoded_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a value was to be decoded by Python")

    monkeypatch.setattr(AvroSchema, "decoder", refuse)
    monkeypatch.setattr(AvroSchema, "decode", refuse)


@pytest.fixture
def any_versions(memory_client: pulsarx.Client) -> pulsarx.Client:
    memory_client.admin.namespaces.set_schema_compatibility_strategy(
        "public/default", "ALWAYS_COMPATIBLE"
    )
    return memory_client


@pytest.mark.parametrize(
    ("kind", "value", "column"),
    [
        ("long", -3, pa.int64()),
        (["null", "string"], None, pa.string()),
        ("bytes", b"\x00\xff", pa.binary()),
        ("float", 0.5, pa.float32()),
        ({"type": "int", "logicalType": "date"}, date(2026, 1, 2), pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, time(3, 4, 5, 678000), pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, time(3, 4, 5, 1), pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, MOMENT, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, MOMENT, pa.timestamp("us", "UTC")),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            MOMENT.replace(tzinfo=None),
            pa.timestamp("ms"),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            Decimal("-12.30"),
            pa.decimal128(10, 2),
        ),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc", pa.binary(3)),
        ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", pa.string()),
        (
            {"type": "array", "items": INNER},
            [{"n": 1}, {"n": 2}],
            pa.list_(
                pa.field("item", pa.struct([pa.field("n", pa.int64(), nullable=False)]), False)
            ),
        ),
        (
            {
                "type": "map",
                "values": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
            },
            {"a": MOMENT, "b": None},
            pa.map_(pa.string(), pa.timestamp("ms", "UTC")),
        ),
    ],
)
def test_each_type_is_read_without_python(
    memory_client: pulsarx.Client, request: Any, kind: Any, value: Any, column: pa.DataType
) -> None:
    publish(memory_client, record(x=kind, y="int"), *({"x": value, "y": n} for n in range(3)))
    request.getfixturevalue("no_value_is_decoded_by_python")
    table = memory_client.read_table("t")
    assert table.schema.field("x").type == column
    expected = list(value.items()) if isinstance(value, dict) else value
    assert table.to_pylist() == [{"x": expected, "y": n} for n in range(3)]


def test_versions_that_alternate_stay_in_order(any_versions: pulsarx.Client, request: Any) -> None:
    first = record(n="int", inner=INNER)
    wider = INNER | {"fields": [*INNER["fields"], {"name": "s", "type": ["null", "string"]}]}
    second = record(n="long", inner=wider, more="double")
    rows = []
    for number in range(6):
        row: dict[str, Any] = {"n": number, "inner": {"n": number}}
        if number % 2:
            row["inner"]["s"], row["more"] = f"text {number}", number / 2
        publish(any_versions, second if number % 2 else first, row, row)
        rows += [row, row]
    request.getfixturevalue("no_value_is_decoded_by_python")
    table = any_versions.read_table("t")
    assert table.schema.field("n").type == pa.int64()
    assert table.to_pylist() == [
        {"more": None} | row | {"inner": {"s": None} | row["inner"]} for row in rows
    ]
    last = any_versions.read_table("t", ["n"], last=3, metadata=["message_id"])
    assert last["n"].to_pylist() == [4, 5, 5]
    assert len({str(each) for each in last["__message_id__"].to_pylist()}) == 3


def test_a_schema_that_is_given_resolves_every_version(
    any_versions: pulsarx.Client, request: Any
) -> None:
    publish(any_versions, record(n="int", gone="string"), {"n": 1, "gone": "x"})
    publish(any_versions, record(n="long"), {"n": 2})
    wanted = record(n="double")
    wanted["fields"].append({"name": "new", "type": "string", "default": "none"})
    schema: Any = AvroSchema(None, wanted)
    request.getfixturevalue("no_value_is_decoded_by_python")
    assert any_versions.read_table("t", schema=schema).to_pylist() == [
        {"n": 1.0, "new": "none"},
        {"n": 2.0, "new": "none"},
    ]


def test_what_only_python_can_read_is_read_by_it(memory_client: pulsarx.Client) -> None:
    """A definition with an alias has no native reader: all messages are read once more."""
    told: list[tuple[int, int]] = []
    publish(memory_client, record(old="long"), *({"old": n} for n in range(3)))
    wanted = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "new", "type": "long", "aliases": ["old"]}],
    }
    schema: Any = AvroSchema(None, wanted)
    table = memory_client.read_table("t", schema=schema, progress=lambda *at: told.append(at))
    assert table["new"].to_pylist() == [0, 1, 2]
    assert told[-1] == (3, 3)


def test_one_value_that_does_not_fit_is_named(memory_client: pulsarx.Client) -> None:
    publish(memory_client, record(n="int"), *({"n": n} for n in range(3)))
    with memory_client.create_producer("t") as producer:
        wrong = producer.send(b"")
    with pytest.raises(ValueError) as caught:
        memory_client.read_table("t")
    assert str(wrong) in str(caught.value)


def test_messages_without_a_schema_are_read_by_the_one_that_is_given(
    memory_client: pulsarx.Client,
) -> None:
    definition = record(n="int")
    encode = AvroSchema(None, definition).encode
    with memory_client.create_producer("t") as producer:
        producer.send_many([encode({"n": n}) for n in range(3)])
    schema: Any = AvroSchema(None, definition)
    assert memory_client.read_table("t", schema=schema)["n"].to_pylist() == [0, 1, 2]


def test_tombstones_without_a_version_are_no_values(
    any_versions: pulsarx.Client, request: Any
) -> None:
    publish(any_versions, record(n="int"), {"n": 1})
    with any_versions.create_producer("t") as producer:
        producer.send(None, partition_key="k")
    publish(any_versions, record(n="long"), {"n": 2})
    request.getfixturevalue("no_value_is_decoded_by_python")
    table = any_versions.read_table("t", tombstones="null")
    assert table["n"].to_pylist() == [1, None, 2]


def test_a_schema_registered_meanwhile_needs_no_native_reader(
    any_versions: pulsarx.Client,
) -> None:
    """A version that was not listed when the table began is decoded by what the reader asks for."""
    publish(any_versions, record(n="int"), {"n": 1})
    info = SchemaInfo(SchemaType.AVRO, "R", json.dumps(record(n="int", m=["null", "int"])))
    any_versions.admin.schemas.create_schema("t", info)
    assert any_versions.read_table("t").to_pylist() == [{"n": 1, "m": None}]
