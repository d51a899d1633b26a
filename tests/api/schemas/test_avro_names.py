"""Facts about records that have another name where they are read: they are matched by their
fields, as the check of compatibility does it."""

from __future__ import annotations

from typing import Any

import pytest

import pulsarx
from pulsarx.schema import Array, AvroSchema, Integer, Long, Map, Record, String

EARLIEST = pulsarx.InitialPosition.Earliest


def record(name: str, **fields: Any) -> Any:
    return type(name, (Record,), fields)


def inner(name: str, **more: Any) -> Any:
    return record(name, x=Integer(required=True), **more)


def read(client: pulsarx.Client, written: Any, value: Any, wanted: Any) -> Any:
    """What a consumer with one schema makes of a value of a producer with another."""
    client.admin.namespaces.set_schema_compatibility_strategy("public/default", "ALWAYS_COMPATIBLE")
    with client.create_producer("t", schema=written) as producer:
        producer.send(value)
    consumer = client.subscribe("t", "s", initial_position=EARLIEST, schema=wanted)
    return consumer.receive(60_000).value()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"a": Integer(required=True)}, {"a": 7}),
        ({"a": Long(required=True)}, {"a": 7}),
        (
            {"a": Integer(required=True), "b": String(default="x", required_default=True)},
            {"a": 7, "b": "x"},
        ),
    ],
)
def test_a_record_of_another_name_is_read_by_its_fields(
    memory_client: pulsarx.Client, wanted: dict[str, Any], expected: dict[str, Any]
) -> None:
    """It was told compatible, and each value raised."""
    written = record("A", a=Integer(required=True), gone=String())
    reader = record("B", **wanted)
    found = read(memory_client, AvroSchema(written), written(a=7, gone="g"), AvroSchema(reader))
    assert {name: getattr(found, name) for name in expected} == expected
    assert type(found) is reader


@pytest.mark.parametrize("kind", ["field", "required field", "array", "map"])
def test_nested_records_of_other_names_are_read_by_their_fields(
    memory_client: pulsarx.Client, kind: str
) -> None:
    one, other = inner("One"), inner("Other", y=Long(required_default=True))

    def field(of: Any) -> Any:
        if kind == "array":
            return Array(of())
        if kind == "map":
            return Map(of())
        return of(required=kind == "required field")

    written, wanted = record("R", n=field(one)), record("R", n=field(other))
    value = one(x=3)
    sent = {"array": [value], "map": {"k": value}}.get(kind, value)
    found = read(memory_client, AvroSchema(written), written(n=sent), AvroSchema(wanted)).n
    got = {"array": lambda: found[0], "map": lambda: found["k"]}.get(kind, lambda: found)()
    assert (type(got), got.x, got.y) == (other, 3, None)


def test_of_several_records_in_a_union_the_name_decides(memory_client: pulsarx.Client) -> None:
    def definition(first: str, second: str) -> dict[str, Any]:
        branches = [
            {"type": "record", "name": name, "fields": [{"name": "n", "type": kind}]}
            for name, kind in ((first, "int"), (second, "string"))
        ]
        return {"type": "record", "name": "R", "fields": [{"name": "u", "type": branches}]}

    written: Any = AvroSchema(None, definition("A", "B"))
    wanted: Any = AvroSchema(None, definition("A", "B") | {"name": "S"})
    assert read(memory_client, written, {"u": {"n": "x"}}, wanted) == {"u": {"n": "x"}}


def test_records_in_themselves_are_matched_once(memory_client: pulsarx.Client) -> None:
    def definition(name: str) -> dict[str, Any]:
        fields = [
            {"name": "n", "type": "int"},
            {"name": "next", "type": ["null", name], "default": None},
        ]
        return {"type": "record", "name": name, "fields": fields}

    written: Any = AvroSchema(None, definition("Link"))
    wanted: Any = AvroSchema(None, definition("Chain"))
    value = {"n": 1, "next": {"n": 2, "next": None}}
    assert read(memory_client, written, value, wanted) == value


def test_aliases_of_the_definition_stay(memory_client: pulsarx.Client) -> None:
    written: Any = AvroSchema(
        None, {"type": "record", "name": "A", "fields": [{"name": "old", "type": "int"}]}
    )
    fields = [{"name": "new", "type": "int", "aliases": ["old"]}]
    wanted: Any = AvroSchema(
        None, {"type": "record", "name": "B", "aliases": ["C"], "fields": fields}
    )
    assert read(memory_client, written, {"old": 5}, wanted) == {"new": 5}


def test_a_table_resolves_records_of_other_names(memory_client: pulsarx.Client) -> None:
    written = inner("One")
    with memory_client.create_producer("t", schema=AvroSchema(written)) as producer:
        producer.send(written(x=4))
    table = memory_client.read_table("t", schema=AvroSchema(inner("Other")))
    assert table.to_pylist() == [{"x": 4}]
