"""Facts about which schema may follow which; most were tried on a broker of Apache Pulsar 4.2.4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarx.broker.schemas.avro_definition import DEFINITION_SIZE_MAX, AvroDefinition
from pulsarx.broker.schemas.avro_resolution import why_unreadable
from pulsarx.broker.schemas.compatibility import (
    check_compatible,
    consumer_strategy,
    identity_of,
    is_transitive,
)
from pulsarx.broker_options import SCHEMA_STRATEGIES
from pulsarx.errors import IncompatibleSchema
from pulsarx.schema import (
    BytesSchema,
    DoubleSchema,
    Int32Schema,
    JsonSchema,
    KeyValueSchema,
    ProtobufNativeSchema,
    Record,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)

# What the broker of Pulsar answered to `test compatibility` with each strategy.
CASES = json.loads((Path(__file__).parent / "compatibility.json").read_text())
STRATEGIES = SCHEMA_STRATEGIES[1:]


def info(kind: SchemaType, definition: Any) -> SchemaInfo:
    return SchemaInfo(kind, "", json.dumps(definition))


def is_accepted(old: list[SchemaInfo], new: SchemaInfo, strategy: str) -> bool:
    try:
        check_compatible(new, old if is_transitive(strategy) else old[-1:], strategy)
    except IncompatibleSchema:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['type']} {case['name']}")
def test_a_schema_is_accepted_where_the_broker_of_pulsar_accepts_it(case: dict[str, Any]) -> None:
    kind = SchemaType.__members__[case["type"]]
    old, new = [info(kind, each) for each in case["old"]], info(kind, case["new"])
    identity_of(new)
    assert [each for each in STRATEGIES if is_accepted(old, new, each)] == case["accepted"]


def test_protobuf_follows_the_rules_of_avro() -> None:
    """The broker of Pulsar takes any definition of the old type PROTOBUF."""
    old = info(SchemaType.PROTOBUF, {"type": "record", "name": "R", "fields": []})
    field = {"name": "a", "type": "int"}
    new = info(SchemaType.PROTOBUF, {"type": "record", "name": "R", "fields": [field]})
    assert not is_accepted([old], new, "BACKWARD") and is_accepted([old], new, "FORWARD")


class One(Record):
    a = String()


@pytest.mark.parametrize("schema", [StringSchema(), Int32Schema(), DoubleSchema()])
def test_a_topic_keeps_a_type_without_a_definition(schema: Any) -> None:
    for strategy in STRATEGIES:
        takes = strategy != "ALWAYS_INCOMPATIBLE"
        assert is_accepted([schema.schema_info()], schema.schema_info(), strategy) is takes
        other = JsonSchema(One).schema_info()
        for old, new in ((schema.schema_info(), other), (other, schema.schema_info())):
            assert is_accepted([old], new, strategy) is (strategy == "ALWAYS_COMPATIBLE")


def test_pairs_are_compared_part_by_part() -> None:
    def pair(key: Any, definition: Any) -> SchemaInfo:
        parts = {"key": key.schema_info().as_document(), "value": info(SchemaType.JSON, definition)}
        parts["value"] = parts["value"].as_document()
        return SchemaInfo(SchemaType.KEY_VALUE, "", json.dumps(parts))

    old = {"type": "record", "name": "R", "fields": []}
    new = {**old, "fields": [{"name": "a", "type": "int"}]}
    before = pair(StringSchema(), old)
    assert is_accepted([before], pair(StringSchema(), new), "FORWARD")
    assert not is_accepted([before], pair(StringSchema(), new), "BACKWARD")
    assert not is_accepted([before], pair(Int32Schema(), old), "FULL")
    with pytest.raises(IncompatibleSchema, match="the value: it cannot read"):
        check_compatible(pair(StringSchema(), new), [before], "FULL")


def test_a_protobuf_message_keeps_its_name() -> None:
    from google.protobuf import duration_pb2, timestamp_pb2

    one = ProtobufNativeSchema(timestamp_pb2.Timestamp).schema_info()
    other = ProtobufNativeSchema(duration_pb2.Duration).schema_info()
    for strategy in STRATEGIES:
        assert is_accepted([one], one, strategy) is (strategy != "ALWAYS_INCOMPATIBLE")
        assert is_accepted([one], other, strategy) is (strategy == "ALWAYS_COMPATIBLE")


def test_consumers_are_checked_by_what_they_can_read() -> None:
    rules = {strategy: consumer_strategy(strategy) for strategy in STRATEGIES}
    latest = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")
    assert {each for each, rule in rules.items() if rule == ("BACKWARD", False)} == set(latest)
    assert all(rules[each] == (each, True) for each in STRATEGIES if each not in latest)


# Identity -----------------------------------------------------------------------------------------


def test_white_space_order_of_keys_documentation_and_aliases_make_no_other_schema() -> None:
    field = {"name": "a", "type": "string"}
    plain = {"type": "record", "name": "R", "fields": [field]}
    same = [
        json.dumps(plain),
        json.dumps(plain, indent=4),
        json.dumps({"fields": [field], "name": "R", "type": "record"}),
        json.dumps({**plain, "doc": "x", "aliases": ["S"]}),
        json.dumps({**plain, "fields": [{**field, "doc": "x"}]}),
    ]
    assert len({identity_of(SchemaInfo(SchemaType.AVRO, "", each)) for each in same}) == 1
    others = [
        {**plain, "name": "S"},
        {**plain, "namespace": "n"},
        {**plain, "fields": []},
        {**plain, "fields": [{**field, "default": ""}]},
        {**plain, "fields": [{"name": "a", "type": "bytes"}]},
        {**plain, "fields": [{**field, "default": {"doc": 1}}]},
    ]
    found = {identity_of(info(SchemaType.AVRO, each)) for each in (plain, *others)}
    assert len(found) == 1 + len(others)
    assert identity_of(info(SchemaType.JSON, plain)) not in found


def test_the_name_of_a_schema_makes_no_other_one() -> None:
    assert identity_of(SchemaInfo(SchemaType.STRING, "a", "")) == identity_of(
        SchemaInfo(SchemaType.STRING, "b", "")
    )


# Bad input ----------------------------------------------------------------------------------------

R = {"type": "record", "name": "R", "fields": []}


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("{nope", "Expecting property name"),
        ("", "Expecting value"),
        ("5", "is no type"),
        ("null", "is no type"),
        ('"zork"', "neither a type nor defined before"),
        ('{"type": "array"}', "has no items"),
        ('{"type": "map"}', "has no values"),
        ('{"type": ["null"]}', "has no type that is a text"),
        ('["null", "int"]', "a union at its root"),
        ('{"type": "record", "fields": []}', "has no name"),
        ('{"type": "record", "name": "R"}', "has no list of fields"),
        ('{"type": "record", "name": "R-x", "fields": []}', "is no name"),
        ('{"type": "record", "name": "", "fields": []}', "is no name"),
        ('{"type": "record", "name": "R", "namespace": "a..b", "fields": []}', "is no name"),
        ('{"type": "record", "name": "R", "fields": [5]}', "is no field with a type"),
        ('{"type": "record", "name": "R", "fields": [{"type": "int"}]}', "field with a name"),
        ('{"type": "fixed", "name": "F", "size": -1}', "has no size"),
        ('{"type": "fixed", "name": "F", "size": true}', "has no size"),
        ('{"type": "enum", "name": "E"}', "has no list of symbols"),
        ('{"type": "enum", "name": "E", "symbols": ["a", "a"]}', "has a symbol twice"),
        ('{"type": "enum", "name": "E", "symbols": ["a b"]}', "is no name"),
        ('{"type": "enum", "name": "E", "symbols": ["a"], "default": "b"}', "is no symbol"),
        ('{"type": "array", "items": ["int", ["null"]]}', "a union in a union"),
        ('{"type": "array", "items": ["int", "int"]}', "has int twice"),
        ('{"type": "record", "name": "R", "aliases": 5, "fields": []}', "no list of texts"),
        ("[" * 100_000, "nested too deep"),
        ('{"type": "array", "items": ' * 200 + '"int"' + "}" * 200, "nested deeper than 100"),
        (json.dumps({**R, "doc": "x" * DEFINITION_SIZE_MAX}), "at most 1048576"),
    ],
)
def test_a_malformed_definition_is_refused(definition: str, text: str) -> None:
    for kind in (SchemaType.AVRO, SchemaType.JSON):
        with pytest.raises(ValueError, match=text):
            identity_of(SchemaInfo(kind, "", definition))


def test_a_name_is_defined_once() -> None:
    field = {"name": "a", "type": R}
    for text, definition in (
        ("R is defined twice", {**R, "fields": [field]}),
        ("the field a twice", {**R, "fields": [{"name": "a", "type": "int"}] * 2}),
    ):
        with pytest.raises(ValueError, match=text):
            AvroDefinition(json.dumps(definition))


def test_types_without_a_definition_have_none() -> None:
    for schema in (Int32Schema(), BytesSchema()):
        kind = schema.schema_info().schema_type()
        identity_of(SchemaInfo(kind, "", ""))
        identity_of(SchemaInfo(kind, "", "null"))
        with pytest.raises(ValueError, match="has no definition"):
            identity_of(SchemaInfo(kind, "", "x"))
    identity_of(SchemaInfo(SchemaType.STRING, "", "anything"))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rootMessageTypeName": 5}', "[" * 50_000])
def test_a_malformed_definition_of_protobuf_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no definition of PROTOBUF_NATIVE"):
        identity_of(SchemaInfo(SchemaType.PROTOBUF_NATIVE, "", text))


def test_a_malformed_definition_of_a_pair_is_refused() -> None:
    part = StringSchema().schema_info().as_document()
    pair = KeyValueSchema(StringSchema(), StringSchema()).schema_info()
    for document in ({}, {"key": part}, {"key": part, "value": 5}, [part, part]):
        with pytest.raises(ValueError, match="no definition of a KEY_VALUE schema"):
            identity_of(info(SchemaType.KEY_VALUE, document))
    for text in ("[" * 50_000, '{"key":' * 50_000):
        with pytest.raises(ValueError, match="no definition of a KEY_VALUE schema"):
            identity_of(SchemaInfo(SchemaType.KEY_VALUE, "", text))
    with pytest.raises(ValueError, match="KEY_VALUE schema inside"):
        identity_of(info(SchemaType.KEY_VALUE, {"key": part, "value": pair.as_document()}))
    broken = {"key": part, "value": {"type": "AVRO", "name": "", "schema": "{"}}
    with pytest.raises(ValueError, match="no definition of Avro"):
        identity_of(info(SchemaType.KEY_VALUE, broken))


def chain(length: int, kind: str) -> AvroDefinition:
    """A record of records that refer to each other: each has the one before it twice."""
    fields: list[Any] = [
        {"name": "f0", "type": {**R, "name": "R0", "fields": [{"name": "x", "type": kind}]}}
    ]
    for number in range(1, length):
        inner = [{"name": name, "type": f"R{number - 1}"} for name in ("a", "b")]
        fields.append(
            {"name": f"f{number}", "type": {**R, "name": f"R{number}", "fields": inner}}
        )  # fmt: skip
    return AvroDefinition(json.dumps({**R, "fields": fields}))


def test_records_that_refer_to_each_other_are_compared_once() -> None:
    """Each path on its own would be 2^60 of them."""
    assert why_unreadable(chain(60, "int"), chain(60, "long")) is None
    assert "long cannot be read as int" in str(why_unreadable(chain(60, "long"), chain(60, "int")))


def test_definitions_that_refer_too_deep_are_refused_and_do_not_kill() -> None:
    fields: list[Any] = [{"name": "f0", "type": {**R, "name": "R0", "fields": []}}]
    for number in range(1, 5000):
        inner = [{"name": "f", "type": f"R{number - 1}"}]
        fields.append({"name": f"f{number}", "type": {**R, "name": f"R{number}", "fields": inner}})
    one, other = (AvroDefinition(json.dumps({**R, "fields": fields})) for _ in range(2))
    for each in (one, other):
        each.type.fields.reverse()  # the last one, which refers to all others, comes first
    with pytest.raises(ValueError, match="too deep to compare"):
        why_unreadable(one, other)


def union(names: list[str], fields: list[Any]) -> AvroDefinition:
    """A record with a union of records of these names."""
    records = [{**R, "name": name, "fields": fields} for name in names]
    return AvroDefinition(json.dumps({**R, "fields": [{"name": "u", "type": records}]}))


@pytest.mark.standard
def test_unions_of_thousands_of_records_are_compared_by_name_or_refused() -> None:
    """Each was compared with each, for minutes, while nobody else could commit."""
    before = [f"a{number}" for number in range(8000)]
    field = {"name": "x", "type": "int"}
    assert why_unreadable(union(before, [field]), union(before[::-1], [field])) is None
    # Only the last one fits, which any of the others may be read as.
    others = [f"b{number}" for number in range(8000)]
    unlike = [{**R, "name": each, "fields": [{**field, "name": "y"}]} for each in others]
    fits = {**R, "name": "last", "fields": [field]}
    reader = AvroDefinition(json.dumps({**R, "fields": [{"name": "u", "type": [*unlike, fits]}]}))
    with pytest.raises(ValueError, match="too large to compare"):
        why_unreadable(union(before, [field]), reader)
