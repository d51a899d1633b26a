"""Topics as tables: types, times, partitions, and what is refused by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Float,
    Int32Schema,
    Integer,
    JsonSchema,
    KeyValueSchema,
    Long,
    Map,
    Record,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)


class Color(Enum):
    red = "rot"
    green = "grün"


class Item(Record):
    sku = String(required=True)
    amount = Integer()


class Order(Record):
    customer = String(required=True)
    number = Long()
    total = Double()
    paid = Boolean()
    note = Bytes()
    first = Item()
    items = Array(Item())


def publish(client: pulsarx.Client, topic: str, *contents: Any, **options: Any) -> list[MessageId]:
    with client.create_producer(topic, **options) as producer:
        return producer.send_many(list(contents))


def publish_json(client: pulsarx.Client, *values: Any, topic: str = "orders") -> list[MessageId]:
    return publish(client, topic, *[json.dumps(value).encode() for value in values])


def order(number: int) -> Order:
    return Order(
        customer=f"c{number}",
        number=number,
        total=number / 2,
        paid=number % 2 == 0,
        note="é".encode(),
        first=Item(sku="a", amount=1),
        items=[Item(sku="b", amount=2), Item(sku="c")],
    )


ORDER_TYPES = {
    "customer": pa.string(),
    "number": pa.int64(),
    "total": pa.float64(),
    "paid": pa.bool_(),
    "note": pa.binary(),
}


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_the_schema_of_the_topic_gives_the_types(memory_client: pulsarx.Client, schema: Any):
    publish(memory_client, "orders", order(1), order(2), schema=schema(Order))
    table = memory_client.read_table("orders")
    assert {name: table.schema.field(name).type for name in ORDER_TYPES} == ORDER_TYPES
    assert table.schema.field("first").type.field("amount").type == pa.int32()
    assert table["number"].to_pylist() == [1, 2] and table["total"].to_pylist() == [0.5, 1.0]
    assert table["note"].to_pylist() == ["é".encode()] * 2
    assert table["items"].to_pylist()[0] == [
        {"sku": "b", "amount": 2},
        {"sku": "c", "amount": None},
    ]


def test_without_a_schema_the_types_are_found_in_the_messages(memory_client: pulsarx.Client):
    publish_json(
        memory_client,
        {"a": None, "t": "2026-01-01T00:00:00Z", "n": {"d": ["2026-01-01"]}},
        {"a": 1, "b": [1, 2.5]},
        {"a": 2.5},
    )
    table = memory_client.read_table("orders")
    assert table.schema.types == [
        pa.float64(),
        pa.string(),  # what looks like a time is a text
        pa.struct([("d", pa.list_(pa.string()))]),
        pa.list_(pa.float64()),
    ]
    assert table.to_pydict() == {
        "a": [None, 1.0, 2.5],
        "t": ["2026-01-01T00:00:00Z", None, None],
        "n": [{"d": ["2026-01-01"]}, None, None],
        "b": [None, [1.0, 2.5], None],
    }


def test_line_breaks_between_tokens_are_white_space(memory_client: pulsarx.Client):
    publish(memory_client, "orders", b'\n{"a":\r\n1,\n"b": "x\\ny"}\n', b'{"a":2}')
    expected = {"a": [1, 2], "b": ["x\ny", None]}
    assert memory_client.read_table("orders").to_pydict() == expected


def test_columns_are_chosen_by_name_and_described_by_metadata(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    with memory_client.create_producer("orders") as producer:
        ids = producer.send_many(
            [b'{"a":1,"b":2}', b'{"a":3,"b":4}'],
            keys=["ada", None],
            properties=[{"p": "q"}, None],
            event_timestamps=[1_700_000_000_000, None],
        )
    names = ["message_id", "key", "publish_time", "event_time", "properties"]
    table = memory_client.read_table("orders", ["b"], metadata=names)
    assert table.column_names == ["b", *[f"__{name}__" for name in names]]
    assert table["b"].to_pylist() == [2, 4] and table["__key__"].to_pylist() == ["ada", None]
    assert [MessageId.from_row(row) for row in table.to_pylist()] == ids
    event = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert table["__event_time__"].to_pylist() == [event, None]
    assert table["__properties__"].to_pylist() == [[("p", "q")], []]


def test_metadata_of_decoded_messages_is_that_of_columns(memory_client: pulsarx.Client):
    names = ["message_id", "key", "publish_time", "event_time", "properties"]
    with memory_client.create_producer("orders", schema=StringSchema()) as producer:
        producer.send_many(
            ["one", "two"], keys=["ada", None], properties=[{"p": "q"}, None],
            event_timestamps=[None, 5],
        )  # fmt: skip
    table = memory_client.read_table("orders", metadata=names)
    assert table["value"].to_pylist() == ["one", "two"]
    rows = memory_client.create_reader("orders", MessageId.earliest).read_arrow(2).to_arrow()
    for name in names:
        assert table[f"__{name}__"].to_pylist() == rows[name].to_pylist()


def test_indexes_select_as_their_messages(client: pulsarx.Client) -> None:
    publish(client, "t", *map(str, range(6)), schema=StringSchema())
    chosen = {"start": pulsarx.MessageIndex(2), "end": pulsarx.MessageIndex(4)}
    assert client.read_table("t", **chosen)["value"].to_pylist() == ["2", "3"]
    with pytest.raises(errors.NotAllowedError, match="indexes from 0 to 5"):
        client.read_table("t", start=pulsarx.MessageIndex(6))
    client.admin.topics.create_partitioned_topic("p", 2)
    with pytest.raises(ValueError, match="a place in one partition"):
        client.read_table("p", start=pulsarx.MessageIndex(0))


def test_times_select_by_publish_time(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    times = []
    for number in range(4):
        publish_json(clocked_client, {"n": number})
        times.append(manual_clock.now_ms())
        manual_clock.advance(seconds=10)

    def read(**options: Any) -> list[int]:
        return clocked_client.read_table("orders", ["n"], **options)["n"].to_pylist()

    assert read(start=times[1]) == [1, 2, 3] and read(end=times[2]) == [0, 1]
    assert read(start=times[1] + 1, end=times[3]) == [2]
    moment = datetime.fromtimestamp(times[2] / 1000, UTC)
    assert read(start=moment) == [2, 3]
    assert read(start=moment.replace(microsecond=moment.microsecond + 1)) == [3]
    assert read(start=times[1], last=2) == [2, 3] and read(last=1, end=times[2]) == [1]
    for wrong in (datetime(2026, 1, 1), "2026", True):
        with pytest.raises(ValueError, match="start"):
            read(start=wrong)


def test_last_takes_the_latest_of_all_partitions(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    clocked_client.admin.topics.create_partitioned_topic("orders", 2)
    for number in range(6):
        publish_json(clocked_client, {"n": number}, topic=f"orders-partition-{number % 2}")
        manual_clock.advance(seconds=1)
    assert clocked_client.read_table("orders")["n"].to_pylist() == [0, 2, 4, 1, 3, 5]
    assert clocked_client.read_table("orders", last=3)["n"].to_pylist() == [4, 3, 5]
    assert clocked_client.read_table("orders", last=100).num_rows == 6


def test_last_reaches_over_blocks(memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch):
    from pulsarx.tables import reading

    monkeypatch.setattr(reading, "ROWS", 10)
    publish_json(memory_client, *[{"n": number} for number in range(95)])
    for last in (1, 5, 14, 25, 95, 200):
        found = memory_client.read_table("orders", last=last)["n"].to_pylist()
        assert found == list(range(max(95 - last, 0), 95))


def test_a_table_holds_what_was_there_when_it_was_asked_for(memory_client: pulsarx.Client):
    publish_json(memory_client, {"n": 1}, {"n": 2})

    def progress(done: int, total: int | None) -> None:
        publish_json(memory_client, {"n": 99})

    from pulsarx.tables import reading

    found = memory_client.read_table("orders", progress=progress)
    assert found["n"].to_pylist() == [1, 2] and reading.ROWS > 2
    assert memory_client.read_table("orders").num_rows == 3


def test_what_came_while_it_was_read_is_left_out(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    from pulsarx.tables import reading

    monkeypatch.setattr(reading, "ROWS", 4)
    publish_json(memory_client, *[{"n": number} for number in range(6)])
    calls = []

    def progress(done: int, total: int | None) -> None:
        calls.append((done, total))
        if done == 4:
            publish_json(memory_client, {"n": 99})

    found = memory_client.read_table("orders", progress=progress)
    assert found["n"].to_pylist() == list(range(6))
    assert calls == [(4, 6), (6, 6)]


# Refused by name ----------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("depth", [100, 500])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"b":', "}")])
def test_a_message_that_is_nested_too_deep_is_named(
    memory_client: pulsarx.Client, begin: str, end: str, depth: int, slow: bool
):
    """It ended in a RecursionError without the message."""
    deep = f'{{"a":{begin * depth}{"1" if end == "}" else ""}{end * depth}}}'
    large = '{"n":9007199254740993.0}' if slow else '{"n":1}'  # which pyarrow's reader would round
    ids = publish(memory_client, "orders", large.encode(), deep.encode())
    with pytest.raises(ValueError, match="nested deeper than 100") as caught:
        memory_client.read_table("orders")
    assert f"message {ids[1]} of" in str(caught.value)
    publish(memory_client, "shallow", f'{{"a":{begin * 90}1{end * 90}}}'.encode())
    assert memory_client.read_table("shallow").num_rows == 1


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "is no JSON: Expecting value"),
        (b"null", "is no JSON object: None"),
        (b"[1]", r"is no JSON object: \[1\]"),
        (b'{"n":1}{"n":2}', "is no JSON: Extra data"),
        (b'{"n":', "is no JSON: Expecting value"),
        (b"\xff", "is no JSON: 'utf-8'"),
        (b'{"s":"\xff"}', "is no JSON: 'utf-8'"),
        (b'{"n":1,"n":2}', "is no JSON: the field 'n' is there twice"),
        (b'{"n":' + b"[" * 100_000, "is no JSON"),
        (b'{"n":"1"}', "n is '1' and should be int64"),
        (b'{"n":1.0}', "n is 1.0 and should be int64"),
        (b'{"n":true}', "n is True and should be int64"),
        (b'{"n":9223372036854775808}', "n is 9223372036854775808 and should be int64"),
        (b'{"d":9007199254740993}', "d is 9007199254740993, which a double cannot hold exactly"),
        (b'{"x":1}', "x is in no version of the schema"),
        (b'{"o":{"y":1}}', "o.y is in no version of the schema"),
        (b'{"o":{}}', "o.r is missing or null, and is required"),
        (b'{"l":[1,null,"x"]}', r"l\[\] is 'x' and should be int64"),
    ],
)
def test_a_message_that_does_not_fit_is_named(
    memory_client: pulsarx.Client, payload: bytes, text: str
):
    columns = pa.schema(
        [
            ("n", pa.int64()),
            ("d", pa.float64()),
            ("s", pa.string()),
            ("o", pa.struct([pa.field("r", pa.int64(), False)])),
            ("l", pa.list_(pa.int64())),
        ]
    )
    ids = publish(memory_client, "orders", b'{"n":1}', b'{"o":null,"d":1e300}', payload, b"{}")
    with pytest.raises(ValueError, match=text) as caught:
        memory_client.read_table("orders", schema=columns)
    assert f"message {ids[2]} of persistent://public/default/orders" in str(caught.value)


def test_two_damaged_messages_do_not_pass_as_one_that_is_whole(memory_client: pulsarx.Client):
    """Parsers of JSON lines take a break in the middle of an object for white space: with one
    message of two objects besides, the number of rows was right and their values were not."""
    ids = publish(memory_client, "orders", b'{"n":1}{"n":2}', b'{"n":', b"3}")
    with pytest.raises(ValueError, match="Extra data") as caught:
        memory_client.read_table("orders", schema=pa.schema([("n", pa.int64())]))
    assert str(ids[0]) in str(caught.value)


def test_a_message_whose_type_does_not_go_with_those_before_is_named(
    memory_client: pulsarx.Client,
):
    values: list[Any] = [{"n": number} for number in range(50)]
    values[37] = {"n": "x"}
    ids = publish_json(memory_client, *values)
    with pytest.raises(ValueError, match=r"does not go with those before.*give schema=") as caught:
        memory_client.read_table("orders")
    assert str(ids[37]) in str(caught.value)


def test_a_large_integer_among_fractions_is_named(memory_client: pulsarx.Client):
    """pyarrow's reader makes 9007199254740992.0 of it."""
    ids = publish_json(memory_client, {"n": 0.5}, {"n": (1 << 53) + 1})
    with pytest.raises(ValueError) as caught:
        memory_client.read_table("orders")
    assert str(ids[1]) in str(caught.value)
    publish_json(memory_client, {"n": 0.5}, {"n": 1 << 60}, topic="exact")
    table = memory_client.read_table("exact", schema=pa.schema([("n", pa.float64())]))
    assert table["n"].to_pylist() == [0.5, float(1 << 60)]


def test_integers_of_64_bits_stay_what_they_are(memory_client: pulsarx.Client):
    numbers = [(1 << 53) + 1, -(1 << 63), (1 << 63) - 1]
    publish_json(memory_client, *[{"n": number} for number in numbers])
    assert memory_client.read_table("orders")["n"].to_pylist() == numbers


def test_tombstones_are_named_or_null_or_left_out(memory_client: pulsarx.Client):
    publish(memory_client, "orders", b'{"n":1}', None, b'{"n":3}', None)
    with pytest.raises(ValueError, match=r"message .*,1\) .* has no value .*tombstones='null'"):
        memory_client.read_table("orders")

    def read(**options: Any) -> list[Any]:
        return memory_client.read_table("orders", **options)["n"].to_pylist()

    assert read(tombstones="null") == [1, None, 3, None]
    assert read(tombstones="skip") == [1, 3]
    assert read(tombstones="skip", last=1) == [3]
    columns = pa.schema([pa.field("n", pa.int64(), False)])
    assert read(tombstones="null", schema=columns) == [1, None, 3, None]
    with pytest.raises(ValueError, match="tombstones is 'drop'"):
        read(tombstones="drop")


def test_tombstones_of_avro_are_treated_alike(memory_client: pulsarx.Client):
    with memory_client.create_producer("orders", schema=AvroSchema(Item)) as producer:
        producer.send(Item(sku="a"))
        producer.send(None)
    with pytest.raises(ValueError, match="has no value"):
        memory_client.read_table("orders")
    table = memory_client.read_table("orders", tombstones="null")
    assert table["sku"].to_pylist() == ["a", None]
    assert memory_client.read_table("orders", tombstones="skip").num_rows == 1


# Schemas ------------------------------------------------------------------------------------------


def definition(**fields: Any) -> str:
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "R", "fields": kinds})


def register(client: pulsarx.Client, kind: SchemaType, text: str, topic: str = "orders") -> None:
    client.admin.schemas.create_schema(topic, SchemaInfo(kind, "R", text))


@pytest.mark.parametrize("kind", [SchemaType.JSON, SchemaType.AVRO])
def test_versions_of_a_schema_make_one_table(memory_client: pulsarx.Client, kind: SchemaType):
    memory_client.admin.topics.create_non_partitioned_topic("orders")
    memory_client.admin.namespaces.set_schema_compatibility_strategy(
        "public/default", "ALWAYS_COMPATIBLE"
    )

    class R(Record):
        old = String(required=True)
        number = Integer(required=True)

    first = R
    schema = JsonSchema if kind == SchemaType.JSON else AvroSchema
    publish(memory_client, "orders", first(old="x", number=1), schema=schema(first))

    class R(Record):  # type: ignore[no-redef]
        number = Long(required=True)
        new = Double()

    publish(memory_client, "orders", R(number=1 << 40, new=0.5), schema=schema(R))
    table = memory_client.read_table("orders")
    assert table.schema.field("number").type == pa.int64()
    assert table.to_pylist() == [
        {"old": "x", "number": 1, "new": None},
        {"old": None, "number": 1 << 40, "new": 0.5},
    ]


def test_versions_that_do_not_go_together_are_named(memory_client: pulsarx.Client):
    memory_client.admin.topics.create_non_partitioned_topic("orders")
    memory_client.admin.namespaces.set_schema_compatibility_strategy(
        "public/default", "ALWAYS_COMPATIBLE"
    )
    register(memory_client, SchemaType.JSON, definition(a="string"))
    register(memory_client, SchemaType.JSON, definition(a="long"))
    with pytest.raises(errors.OperationNotSupported, match="a is string and int64 as of version 1"):
        memory_client.read_table("orders")
    publish_json(memory_client, {"a": 1})
    table = memory_client.read_table("orders", schema=pa.schema([("a", pa.int64())]))
    assert table["a"].to_pylist() == [1]


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_maps_and_enumerations_are_columns(memory_client: pulsarx.Client, schema: Any):
    class Paint(Record):
        color = CustomEnum(Color)
        amounts = Map(Long())
        weight = Float()

    publish(
        memory_client,
        "orders",
        Paint(color=Color.red, amounts={"a": 1, "b": 2}, weight=0.5),
        Paint(),
        schema=schema(Paint),
    )
    table = memory_client.read_table("orders")
    assert table["amounts"].to_pylist() == [[("a", 1), ("b", 2)], None]
    # JsonSchema writes the value of a member, Avro its name.
    assert table["color"].to_pylist() == ["rot" if schema is JsonSchema else "red", None]
    assert table["weight"].to_pylist()[0] == 0.5


def test_logical_types_of_avro_are_those_of_arrow(memory_client: pulsarx.Client):
    from decimal import Decimal

    text = definition(
        t={"type": "long", "logicalType": "timestamp-millis"},
        d={"type": "int", "logicalType": "date"},
        m={"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    row = {"t": moment, "d": moment.date(), "m": Decimal("12.30")}
    schema = AvroSchema(None, json.loads(text))
    publish(memory_client, "orders", row, schema=schema)
    table = memory_client.read_table("orders")
    assert table.schema.types == [pa.timestamp("ms", "UTC"), pa.date32(), pa.decimal128(10, 2)]
    assert table.to_pylist() == [row]


def test_logical_types_without_a_column_are_their_base_type(memory_client: pulsarx.Client):
    text = definition(
        u={"type": "string", "logicalType": "uuid"},
        n={"type": "long", "logicalType": "made-up"},
        f={"type": "fixed", "name": "F", "size": 2, "logicalType": "made-up"},
    )
    row = {"u": "00000000-0000-0000-0000-000000000007", "n": 7, "f": b"ab"}
    publish(memory_client, "orders", row, schema=AvroSchema(None, json.loads(text)))
    table = memory_client.read_table("orders")
    assert table.schema.types == [pa.string(), pa.int64(), pa.binary(2)]
    assert table.to_pylist() == [row]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (definition(a=["string", "long"]), "R.a: a union of several types"),
        (definition(a=["null", {"type": "array", "items": "R"}]), r"R.a\[\]: R stands in itself"),
    ],
)
def test_a_type_that_has_no_column_is_named(memory_client: pulsarx.Client, text: str, what: str):
    memory_client.admin.topics.create_non_partitioned_topic("orders")
    register(memory_client, SchemaType.AVRO, text)
    with pytest.raises(errors.OperationNotSupported, match=what):
        memory_client.read_table("orders")


def test_other_schemas_are_one_column_or_refused(memory_client: pulsarx.Client):
    publish(memory_client, "numbers", 1, 2, schema=Int32Schema())
    table = memory_client.read_table("numbers")
    assert table.schema.types == [pa.int32()] and table["value"].to_pylist() == [1, 2]
    pairs: Any = KeyValueSchema(StringSchema(), StringSchema())
    memory_client.create_producer("pairs", schema=pairs)
    with pytest.raises(errors.OperationNotSupported, match="KEY_VALUE"):
        memory_client.read_table("pairs")


def test_a_schema_that_is_given_comes_before_that_of_the_topic(memory_client: pulsarx.Client):
    publish(memory_client, "orders", Item(sku="a", amount=1), schema=AvroSchema(Item))

    class Item2(Record):
        sku = String(required=True)

    table = memory_client.read_table(
        "orders", schema=AvroSchema(None, json.loads(definition(sku="string")) | {"name": "Item"})
    )
    assert table.to_pylist() == [{"sku": "a"}]
    publish(memory_client, "texts", b"one")
    assert memory_client.read_table("texts", schema=StringSchema())["value"].to_pylist() == ["one"]
    publish_json(memory_client, {"sku": "b"}, topic="plain")
    assert memory_client.read_table("plain", schema=Item2).to_pylist() == [{"sku": "b"}]
    with pytest.raises(ValueError, match="schema must be"):
        memory_client.read_table("plain", schema="json")
    with pytest.raises(errors.OperationNotSupported, match=r"JSON has no timestamp\[ms\]"):
        memory_client.read_table("plain", schema=pa.schema([("t", pa.timestamp("ms"))]))


def test_a_payload_that_the_schema_cannot_decode_is_named(memory_client: pulsarx.Client):
    memory_client.create_producer("orders", schema=AvroSchema(Item)).close()
    ids = publish(memory_client, "orders", b"no avro")
    with pytest.raises(ValueError) as caught:
        memory_client.read_table("orders")
    assert str(ids[0]) in str(caught.value)


# Topics -------------------------------------------------------------------------------------------


def test_a_topic_that_is_not_there_is_not_created(memory_client: pulsarx.Client):
    with pytest.raises(errors.TopicNotFound):
        memory_client.read_table("orders")
    assert memory_client.admin.topics.get_list() == []


def test_an_empty_topic_is_an_empty_table(memory_client: pulsarx.Client):
    memory_client.create_producer("plain").close()
    assert memory_client.read_table("plain").shape == (0, 0)
    memory_client.create_producer("orders", schema=JsonSchema(Order)).close()
    table = memory_client.read_table("orders", ["total"], metadata=["key"])
    assert table.schema == pa.schema([("total", pa.float64()), ("__key__", pa.string())])
    with pytest.raises(ValueError, match="no field 'x'"):
        memory_client.read_table("orders", ["x"])


def test_a_non_persistent_topic_keeps_nothing_to_read(memory_client: pulsarx.Client):
    with pytest.raises(errors.NotAllowedError, match="keeps no messages"):
        memory_client.read_table("non-persistent://public/default/orders")


def test_a_read_only_client_reads_tables(open_client: Any, folder: Path):
    publish_json(open_client(), {"n": 1})
    assert open_client(read_only=True).read_table("orders")["n"].to_pylist() == [1]


def test_wrong_arguments_are_named(memory_client: pulsarx.Client):
    publish_json(memory_client, {"n": 1})
    for options, text in [
        ({"columns": "n"}, "columns is a str"),
        ({"columns": ["n", "n"]}, "a name twice"),
        ({"columns": ["m"]}, "no field 'm'; it has n"),
        ({"metadata": ["producer"]}, "metadata has 'producer'"),
        ({"last": 0}, "last is 0"),
        ({"last": True}, "last is True"),
        ({"progress": 1}, "progress must be"),
    ]:
        with pytest.raises(ValueError, match=text):
            memory_client.read_table("orders", **options)  # type: ignore[arg-type]
    publish_json(memory_client, {"__key__": 1}, topic="same")
    with pytest.raises(ValueError, match="leave key out of metadata"):
        memory_client.read_table("same", metadata=["key"])


def test_a_bar_shows_the_progress(
    memory_client: pulsarx.Client, capsys: pytest.CaptureFixture[str]
):
    publish_json(memory_client, {"n": 1}, {"n": 2})
    memory_client.read_table("orders", progress=True)
    assert capsys.readouterr().err == "\r[" + "#" * 40 + "] 2 of 2 messages\n"


def test_objects_without_fields_are_rows(memory_client: pulsarx.Client):
    publish(memory_client, "orders", b"{}", b"{}")
    table = memory_client.read_table("orders", metadata=["key"])
    assert table.num_rows == 2 and table.column_names == ["__key__"]


def test_chunks_and_compressed_entries_are_read(folder: Path):
    options = pulsarx.BrokerOptions(max_message_size=1000)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        value = {"text": "x" * 5000}
        publish_json(client, {"text": "a"})
        with client.create_producer("orders", chunking_enabled=True) as producer:
            producer.send(json.dumps(value).encode())
        with client.create_producer(
            "orders", compression_type=pulsarx.CompressionType.ZSTD
        ) as producer:
            producer.send_many([b'{"text":"b"}'] * 3)
        found = client.read_table("orders")["text"].to_pylist()
        assert found == ["a", "x" * 5000, "b", "b", "b"]


@pytest.mark.parametrize("schema", [None, pa.schema([("a", pa.float64())])])
def test_a_number_beyond_a_double_is_refused(memory_client: pulsarx.Client, schema: Any):
    """It was read as infinity."""
    publish(memory_client, "orders", b'{"a":1.5}', b'{"a":-1e400}')
    with pytest.raises(ValueError, match=r"message .*: the number -1e400 is beyond a double"):
        memory_client.read_table("orders", schema=schema)
