"""Values as typed columns: valueFormat of format("pulsarx"), and what the functions have for it."""

from __future__ import annotations

import datetime as dt
import enum
import json
from pathlib import Path
from typing import Any

import pytest
from spark_steps import send

import pulsarx
from pulsarx import errors
from pulsarx.schema import (
    Array,
    AvroSchema,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    String,
    StringSchema,
)
from pulsarx.spark import map_topic, read_topic, write_topic

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

# Spark makes and compiles code for each of their queries.
pytestmark = pytest.mark.standard


class Place(Record):
    name = String()
    floor = Integer()


class WithMap(Record):
    m = Map(Integer())


class Order(Record):
    price = Long()
    tags = Array(String())
    place = Place()


# Avro resolves records of one name.
LaterOrder = type(
    "Order",
    (Record,),
    {
        "price": Long(),
        "tags": Array(String()),
        "place": Place(),
        "note": String(default="none", required_default=True),
    },
)


def load(spark: Any, folder: Path, topic: str, **options: str) -> Any:
    source = spark.read.format("pulsarx").options(root=str(folder), topic=topic)
    return source.options(**options)


def publish_json(folder: Path, values: list[bytes | None]) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t", batching_enabled=True, batching_max_messages=7)
        for number, value in enumerate(values):
            producer.send_async(value, None, partition_key=f"k{number % 2}")
        producer.flush()


KINDS = (
    "n bigint, x double, s string, b boolean, at timestamp, day date, "
    "inner struct<a: int, list: array<struct<z: string>>>, m map<string, int>"
)


def test_json_becomes_typed_columns_nested_ones_too(spark, folder):
    whole = {
        "n": 7,
        "x": 1,
        "s": "ü",
        "b": True,
        "at": "2026-01-31T12:00:00Z",
        "day": "2026-01-31",
        "inner": {"a": 1, "list": [{"z": "deep"}], "unknown": 3},
        "m": {"one": 1},
        "unknown": [1],
    }
    publish_json(folder, [json.dumps(whole).encode(), b"{}", None])
    frame = read_topic(spark, "t", root=folder, schema=KINDS)
    assert frame.columns[:3] == ["n", "x", "s"] and frame.columns[-1] == "__messageProperties"
    first, empty, tombstone = frame.collect()
    assert (first.n, first.x, first.s, first.b) == (7, 1.0, "ü", True)
    at = first["at"].astimezone(dt.UTC)
    assert (at, first.day) == (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), dt.date(2026, 1, 31))
    assert first.inner.list[0].z == "deep" and first.m == {"one": 1}
    assert (bytes(first["__key"]), empty.n, tombstone.inner) == (b"k0", None, None)
    # Without the map it is pyarrow's reader that makes them; the same comes out.
    plain = frame.drop("m").schema
    found = load(spark, folder, "t", valueFormat="json").schema(plain).load().collect()
    names = ("n", "x", "s", "b", "at", "day", "inner")
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in (first, empty, tombstone)
    ]


def test_times_numbers_and_decimals_are_read_as_from_json_reads_them(spark, folder):
    value = b'{"at":"2013-01-31 11:00","on":15736,"price":1.10,"sent":"31.01.2013","x":"NaN"}'
    publish_json(folder, [value])
    fields = "at timestamp, price decimal(9,2), sent string, x double"
    frame = read_topic(spark, "t", root=folder, schema=fields, time_zone="Europe/Paris")
    (row,) = frame.collect()
    assert row["at"].astimezone(dt.UTC) == dt.datetime(2013, 1, 31, 10, tzinfo=dt.UTC)
    assert (str(row.price), row.sent) == ("1.10", "31.01.2013") and row.x != row.x
    options = {"valueFormat": "json", "dateFormat": "dd.MM.yyyy", "timeZone": "+01:00"}
    options["timestampFormat"] = "yyyy-MM-dd HH:mm"
    source = load(spark, folder, "t", **options).schema("at timestamp not null, sent date")
    (found,) = source.load().collect()
    assert found["at"].astimezone(dt.UTC) == dt.datetime(2013, 1, 31, 10, tzinfo=dt.UTC)
    assert found.sent == dt.date(2013, 1, 31)


def test_what_is_said_of_times_is_checked_before_anything_is_read(spark, folder):
    publish_json(folder, [b"{}"])
    for options, text in (
        ({"timeZone": "Nowhere/Town"}, "Nowhere/Town"),
        ({"timestampFormat": "yyyy-QQ"}, "letters QQ"),
        ({"valueFormat": "string", "timeZone": "UTC"}, "about JSON"),
    ):
        with pytest.raises(Exception, match=text):
            source = load(spark, folder, "t", **{"valueFormat": "json", **options})
            source.schema("a int").load().collect()
    with pytest.raises(ValueError, match="about JSON; value_format is string"):
        read_topic(spark, "t", root=folder, value_format="string", time_zone="UTC")


def test_a_column_that_is_not_null_is_there_or_refused(spark, folder):
    publish_json(folder, [b'{"n": 1}', b"{}", b'{"n": 2}'])
    source = load(spark, folder, "t", valueFormat="json", mode="DROPMALFORMED")
    frame = source.schema("n int not null").load()
    assert [row.n for row in frame.collect()] == [1, 2]
    with pytest.raises(Exception, match="is required"):
        load(spark, folder, "t", valueFormat="json").schema("n int not null").load().collect()
    with pytest.raises(Exception, match="PERMISSIVE gives nulls"):
        load(spark, folder, "t", valueFormat="json", mode="PERMISSIVE").schema(
            "n int not null"
        ).load().collect()


def test_enumerations_are_read_by_value_and_unknown_logical_types_as_their_base(spark, folder):
    class Colour(enum.Enum):
        RED = 1

    class Row(Record):
        colour = Colour

    definition = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "u", "type": {"type": "string", "logicalType": "uuid"}}],
    }
    text = "00000000-0000-0000-0000-000000000007"
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("j", schema=JsonSchema(Row)).send(Row(colour=Colour.RED))
        avro = AvroSchema(None, schema_definition=definition)
        client.create_producer("a", schema=avro).send({"u": text})
    (row,) = load(spark, folder, "j", valueFormat="schema", columns="colour").load().collect()
    assert row.colour == "1"
    (row,) = load(spark, folder, "a", valueFormat="schema", columns="u").load().collect()
    assert row.u == text


def test_only_named_columns_are_decoded(spark, folder):
    publish_json(folder, [b'{"a": 1, "b": "no number"}'])
    frame = read_topic(spark, "t", root=folder, schema="a int, b int", columns="__key, a")
    assert [tuple(row) for row in frame.collect()] == [(b"k0", 1)]
    with pytest.raises(ValueError, match="did you mean 'a'"):
        read_topic(spark, "t", root=folder, schema="a int", columns="aa")


def test_what_cannot_be_decoded_is_refused_with_its_place_and_value(spark, folder):
    values = [b'{"n": %d}' % number for number in range(1000)]
    values[777] = b'{"n": "seven"}'
    publish_json(folder, list(values))
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        message_id = [reader.read_next(60_000).message_id() for _ in range(778)][-1]
    with pytest.raises(Exception, match="cannot be decoded as JSON") as refused:
        read_topic(spark, "t", root=folder, schema="n int").collect()
    text = str(refused.value)
    assert str(message_id) in text and "public/default/t" in text and "seven" in text


def test_modes_keep_or_drop_what_cannot_be_decoded(spark, folder):
    values: list[bytes | None] = [b'{"n": %d}' % number for number in range(300)]
    values[7], values[200], values[201] = b"no JSON", b"[1]", b'{"n": 1,}'
    publish_json(folder, [*values, None])
    options = {"valueFormat": "json", "mode": "PERMISSIVE"}
    frame = load(spark, folder, "t", **options).schema("n int, _corrupt_record binary").load()
    rows = frame.collect()
    assert [bytes(row[1]) for row in rows if row[1] is not None] == [
        values[7],
        values[200],
        values[201],
    ]
    assert sum(row.n is None for row in rows) == 4 and rows[8].n == 8
    dropped = read_topic(spark, "t", root=folder, schema="n int", mode="DROPMALFORMED")
    assert [row.n for row in dropped.collect()] == [
        number for number in range(300) if number not in (7, 200, 201)
    ] + [None]


@pytest.mark.parametrize("beside", ["", ", m map<string, string>"])
def test_a_struct_with_times_may_be_null_beside_what_is_read_value_by_value(spark, folder, beside):
    """It failed the query with a bare ArrowInvalid, in every mode: no row of the topic could be
    read that way."""
    day = dt.date(2026, 1, 31)
    inner = b'{"day": "2026-01-31", "list": [{"at": null}, null]}'
    values = [b'{"c": %s, "n": 1}' % inner, b'{"c": null, "n": 2}', b'{"n": 3}', None]
    schema = f"c struct<day: date, list: array<struct<at: timestamp>>>, n int{beside}"
    if beside:
        publish_json(folder, values)
        frame = read_topic(spark, "t", root=folder, schema=schema)
    else:
        publish_json(folder, [*values, b'{"n": "four"}'])
        frame = read_topic(spark, "t", root=folder, schema=schema, mode="DropMalformed")
    rows = frame.collect()
    assert [row.n for row in rows] == [1, 2, 3, None]
    assert rows[0].c.day == day and [each and each["at"] for each in rows[0].c.list] == [None, None]
    assert [row.c for row in rows[1:]] == [None] * 3
    kept = read_topic(spark, "t", root=folder, schema=schema, mode="PERMISSIVE").collect()
    assert [row.n for row in kept] == [1, 2, 3, None] + ([] if beside else [None])
    assert sum(row._corrupt_record is not None for row in kept) == (0 if beside else 1)


def test_a_version_that_comes_while_a_read_is_planned_is_known(spark, folder, monkeypatch):
    """Versions were looked up before the messages: what a producer wrote with a new one in between
    failed the query, or was a row of nulls in mode PERMISSIVE."""
    from pulsarx.spark import partition_reader

    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t", schema=AvroSchema(Order)).send(Order(price=1))
    plan_groups = partition_reader._plan_groups

    def publish_and_plan(*arguments: Any) -> Any:
        with pulsarx.Client(folder, durability="os") as client:
            producer = client.create_producer("t", schema=AvroSchema(LaterOrder))
            producer.send(LaterOrder(price=2))
        return plan_groups(*arguments)

    monkeypatch.setattr(partition_reader, "_plan_groups", publish_and_plan)
    frame = read_topic(spark, "t", root=folder, value_format="schema", columns="price")
    assert [row.price for row in frame.collect()] == [1, 2]


def test_text_is_a_column_of_strings(spark, folder):
    publish_json(folder, ["grün".encode(), None, b"\xff"])
    frame = load(spark, folder, "t", valueFormat="string", mode="PERMISSIVE").load()
    rows = frame.select("value", "_corrupt_record").collect()
    assert [tuple(row) for row in rows] == [("grün", None), (None, None), (None, b"\xff")]


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_a_topics_own_schema_and_its_versions_are_resolved(spark, folder, schema):
    place = Place(name="hall", floor=2)
    with pulsarx.Client(folder, durability="os") as client:
        old = client.create_producer("t", schema=schema(Order))
        old.send(Order(price=1, tags=["a", "b"], place=place))
        old.close()
        new = client.create_producer("t", schema=schema(LaterOrder))
        new.send(LaterOrder(price=1 << 40, tags=[], place=place, note="new"))
        new.close()
    frame = load(spark, folder, "t", valueFormat="schema").load()
    assert frame.schema["price"].dataType.simpleString() == "bigint"
    first, second = frame.collect()
    assert (first.price, first.tags, first.place.name, first.place.floor) == (
        1,
        ["a", "b"],
        "hall",
        2,
    )
    assert (second.price, second.note) == (1 << 40, "new")
    # As Avro resolves it; JSON has no rule for what is not there.
    assert first.note == ("none" if schema is AvroSchema else None)


def test_avro_of_a_given_definition(spark, folder):
    definition = {
        "type": "record",
        "name": "Point",
        "fields": [
            {"name": "x", "type": "double"},
            {"name": "names", "type": {"type": "map", "values": "string"}},
            {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        ],
    }
    encode = AvroSchema(None, definition).encode
    day = dt.date(2026, 1, 2)
    publish_json(folder, [encode({"x": 1.5, "names": {"de": "Punkt"}, "on": day}), b"\x01"])
    options = {"valueSchema": json.dumps(definition), "valueFormat": "avro"}
    frame = load(spark, folder, "t", mode="PERMISSIVE", **options).load()
    good, bad = frame.select("x", "names", "on", "_corrupt_record").collect()
    assert tuple(good) == (1.5, {"de": "Punkt"}, day, None)
    assert tuple(bad) == (None, None, None, b"\x01")
    with pytest.raises(Exception, match="cannot be decoded as AVRO"):
        load(spark, folder, "t", **options).load().collect()


def test_a_function_of_map_topic_gets_typed_batches(spark, folder):
    publish_json(folder, [b'{"a": %d}' % number for number in range(100)])

    def doubled(batches):
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            assert batch.schema.names == ["a"] and batch.schema.field("a").type == pa.int32()
            yield pa.RecordBatch.from_arrays([pc.multiply(batch["a"], 2)], ["twice"])

    frame = map_topic(
        spark,
        "t",
        doubled,
        "twice bigint",
        root=folder,
        columns="a",
        value_schema="a int, b string",
    )
    assert sorted(row.twice for row in frame.collect()) == list(range(0, 200, 2))


def test_a_stream_has_typed_columns_and_learns_of_new_versions(spark, folder, tmp_path):
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t", schema=AvroSchema(LaterOrder)).send(LaterOrder(price=1))
    rows: list[int] = []

    def run() -> None:
        frame = (
            spark.readStream.format("pulsarx")
            .options(root=str(folder), topic="t", valueFormat="schema", columns="price")
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.toPandas().price))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("t", schema=AvroSchema(Order)).send(Order(price=2))
    run()
    assert rows == [1, 2]


def test_schemas_that_have_no_columns_are_refused_when_planned(spark, folder):
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("text", schema=StringSchema()).send("x")
        client.create_producer("maps", schema=JsonSchema(WithMap)).send(WithMap(m={"a": 1}))
        send(client, "plain", [b"1"])
    assert load(spark, folder, "text", valueFormat="schema").load().first().value == "x"
    assert load(spark, folder, "maps", valueFormat="schema").load().first().m == {"a": 1}
    with pytest.raises(ValueError, match="has no schema"):
        read_topic(spark, "plain", root=folder, value_format="schema")
    with pytest.raises(errors.OperationNotSupported, match="different schemas"):
        read_topic(spark, ["text", "maps"], root=folder, value_format="schema")
    union = {"type": "record", "name": "U", "fields": [{"name": "u", "type": ["int", "string"]}]}
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("unions", schema=AvroSchema(None, union)).send({"u": 1})
    with pytest.raises(errors.OperationNotSupported, match=r"U\.u: a union .* valueFormat raw"):
        read_topic(spark, "unions", root=folder, value_format="schema")
    with pytest.raises(errors.OperationNotSupported, match="map<int,string>"):
        read_topic(spark, "plain", root=folder, schema="a map<int, string>")


def test_a_schema_of_the_value_has_no_columns_of_messages(spark, folder):
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b'{"a": 1}', partition_key="k")
    with pytest.raises(
        ValueError,
        match=r"names __key, a column of messages\. Leave it out there; columns says which",
    ):
        read_topic(spark, "t", root=folder, schema="a int, __key binary")
    frame = read_topic(spark, "t", root=folder, schema="a int", columns="a, __key")
    assert [tuple(row) for row in frame.collect()] == [(1, b"k")]


def test_places_and_producers_are_columns_to_filter_and_sort_by(spark, folder, publish):
    publish("t", 30, partitions=2)
    names = "value, __partition, __ledgerId, __entryId, __batchIndex, __sequenceId, __keyBytes"
    frame = load(spark, folder, "t", columns=f"{names}, __producerName, __schemaVersion").load()
    rows = frame.orderBy("__partition", "__ledgerId", "__entryId", "__batchIndex").collect()
    assert {row["__partition"] for row in rows} == {0, 1}
    for partition in (0, 1):
        numbers = [int(bytes(row.value)) for row in rows if row["__partition"] == partition]
        assert numbers == sorted(numbers) and numbers
    row = frame.where("__partition = 1 and __batchIndex = 0").first()
    assert row["__producerName"] and row["__schemaVersion"] is None
    assert bytes(row["__keyBytes"]) == b"k%d" % (int(bytes(row.value)) % 5)


def test_an_unknown_argument_is_refused_by_the_name_that_was_called(spark, folder):
    with pytest.raises(TypeError, match="read_topic has no argument 'colums'; did you mean"):
        read_topic(spark, "t", root=folder, colums="value")
    with pytest.raises(TypeError, match="map_topic has no argument 'min_partition'; did you mean"):
        map_topic(spark, "t", iter, "value binary", root=folder, min_partition=2)
    frame = spark.range(1).selectExpr("binary('x') AS value")
    with pytest.raises(TypeError, match="write_topic has no argument 'txn_version'; did you mean"):
        write_topic(frame, "t", root=folder, txn_version=2)
