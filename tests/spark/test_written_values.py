"""Columns that become values: valueFormat of a write, and the columns of a message besides."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from spark_steps import make_topics, write

import pulsarx
from pulsarx import errors
from pulsarx.broker.staging.content_digest import ContentDigest
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    DoubleSchema,
    FloatSchema,
    Int8Schema,
    Integer,
    JsonSchema,
    Long,
    Record,
    SchemaType,
    String,
    StringSchema,
)
from pulsarx.schema.schema import SchemaInfo
from pulsarx.spark import (
    plan_write,
    read_topic,
    save_rdd,
    upsert_topic,
    write_partitions,
    write_topic,
)
from pulsarx.spark.write_commit import commit_write

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
pytestmark = pytest.mark.standard

NOON = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)


class Order(Record):
    price = Long(required=True)
    customer = String()


def stage(folder: Path, table: pa.Table, topic: str = "t", **options: Any) -> None:
    """Write a table as a task would, and commit it."""
    job = plan_write(folder, topic, **options)
    commit_write(job, list(write_partitions(table.to_batches(), job)))


def received(folder: Path, topic: str = "t", **options: Any) -> list[Any]:
    with pulsarx.Client(folder) as client:
        reader = client.create_reader(topic, pulsarx.MessageId.earliest, **options)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next())
        return found


def register(folder: Path, schema: Any, topic: str = "t") -> int:
    with pulsarx.Client(folder) as client:
        return client.admin.schemas.create_schema(topic, schema.schema_info())


def test_columns_become_json_that_is_read_as_the_same_columns(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    ddl = (
        "id bigint, name string, at timestamp, day date, "
        "place struct<floor:int,tags:array<string>>, counts map<string,bigint>, "
        "__key string, __eventTime timestamp"
    )
    row = (1, "né", NOON, dt.date(2026, 1, 2), (3, ["a", None]), {"x": 7}, "k", NOON)
    frame = spark.createDataFrame([row, (2, *[None] * 7)], ddl)
    frame.coalesce(1).write.format("pulsarx").mode("append").options(
        root=str(folder), topic="t", valueFormat="json"
    ).save()
    first, second = received(folder)
    assert json.loads(first.data()) == {
        "id": 1, "name": "né", "at": "2026-11-23T12:00:00Z", "day": "2026-01-02",
        "place": {"floor": 3, "tags": ["a", None]}, "counts": {"x": 7},
    }  # fmt: skip
    assert (first.partition_key(), first.event_timestamp()) == ("k", NOON.timestamp() * 1000)
    assert set(json.loads(second.data()).values()) == {2, None}
    plain = ddl.split(", __key")[0]
    again = read_topic(spark, "t", root=folder, value_format="json", schema=plain)
    columns = plain.replace("<floor:int,tags:array<string>>", "").replace("<string,bigint>", "")
    names = [each.split()[0] for each in columns.split(", ")]
    assert again.select(*names).collect() == frame.select(*names).collect()


def test_maps_of_times_are_read_as_they_were_written(spark: Any, folder: Path) -> None:
    """They were written, and every value was malformed to those who read it."""
    make_topics(folder, "t")
    ddl = (
        "at map<string,timestamp>, local map<string,timestamp_ntz>, days map<string,array<date>>, "
        "deep array<map<string,struct<at:timestamp,n:int>>>"
    )
    local, day = NOON.replace(tzinfo=None), dt.date(2026, 1, 2)
    row = (
        {"a": NOON, "b": None}, {"": local}, {"x": [day, None], "y": None},
        [{"c": (NOON, 1), "d": (None, None), "e": None}, None],
    )  # fmt: skip
    frame = spark.createDataFrame([row, (None,) * 4, ({}, {}, {}, [])], ddl).coalesce(1)
    write_topic(frame, "t", root=folder, value_format="json")
    again = read_topic(spark, "t", root=folder, schema=ddl)
    assert again.select(*frame.columns).collect() == frame.collect()


def test_columns_with_dots_in_their_names_are_written(spark: Any, folder: Path) -> None:
    """write_topic took such a name for a field of a column, and Spark found none."""
    make_topics(folder, "t")
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS `c d`, 3 AS `e``f`, 'k' AS __key")
    write_topic(frame, "t", root=folder, value_format="json")
    (found,) = received(folder)
    assert json.loads(found.data()) == {"a.b": 1, "c d": 2, "e`f": 3}
    assert found.partition_key() == "k"


def test_columns_become_records_of_the_topics_schema(spark: Any, folder: Path) -> None:
    make_topics(folder, "json", "avro")
    register(folder, JsonSchema(Order), "json")
    register(folder, AvroSchema(Order), "avro")
    frame = spark.createDataFrame([("a", 5), (None, 6)], "customer string, price bigint")
    for topic, schema in (("json", JsonSchema(Order)), ("avro", AvroSchema(Order))):
        write_topic(frame.coalesce(1), topic, root=folder, value_format="schema")
        found = received(folder, topic, schema=schema)
        assert [(each.value().customer, each.value().price) for each in found] == [
            ("a", 5),
            (None, 6),
        ]
        again = read_topic(spark, topic, root=folder, value_format="schema")
        assert again.select("customer", "price").collect() == frame.collect()
        versions = read_topic(spark, topic, root=folder, columns="__schemaVersion").collect()
        assert [each[0] for each in versions] == [0, 0]


def test_a_value_of_a_simple_schema_is_one_column(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", "texts")
    register(folder, StringSchema(), "texts")
    frame = spark.createDataFrame([("x",), ("é",)], "value string").coalesce(1)
    write_topic(frame, "texts", root=folder, value_format="schema")
    assert [each.value() for each in received(folder, "texts", schema=StringSchema())] == ["x", "é"]
    write_topic(frame, "t", root=folder, value_format="string")
    assert [each.data() for each in received(folder)] == [b"x", "é".encode()]
    with pytest.raises(ValueError, match="valueFormat string needs a string"):
        write_topic(spark.createDataFrame([(b"x",)], "value binary"), "t", root=folder,
                    value_format="string")  # fmt: skip


def test_a_definition_is_registered_where_a_producer_could(folder: Path) -> None:
    make_topics(folder, "t")
    definition = AvroSchema(Order).schema_info().schema()
    table = pa.table({"price": [1], "customer": ["a"]})
    for _ in range(2):
        stage(folder, table, value_format="avro", value_schema=definition)
    with pulsarx.Client(folder) as client:
        assert len(client.admin.schemas.get_all_schemas("t")) == 1
        policies = client.admin.namespaces
        policies.set_is_allow_auto_update_schema("public/default", False)
    assert [each.value().price for each in received(folder, schema=AvroSchema(Order))] == [1, 1]

    class Other(Record):
        weight = Integer()

    with pytest.raises(errors.IncompatibleSchema):
        stage(folder, table, value_format="avro",
              value_schema=AvroSchema(Other).schema_info().schema())  # fmt: skip
    assert not list((folder / "staging").glob("spark-*/*"))


def definition_of(**fields: Any) -> str:
    described = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "R", "fields": described})


def register_definition(folder: Path, kind: str, definition: str) -> None:
    with pulsarx.Client(folder) as client:
        info = SchemaInfo(SchemaType.__members__[kind], "t", definition)
        client.admin.schemas.create_schema("t", info)


def versions(folder: Path, topic: str = "t") -> list[str]:
    """The definitions that a topic has."""
    with pulsarx.Client(folder) as client:
        return [each.schema() for each in client.admin.schemas.get_all_schemas(topic)]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (definition_of(price="long"), "row 1 of Spark partition 0: price"),
        (definition_of(price=["string", "long"]), "a union of several types"),
        (definition_of(weight="long"), "no field 'price'"),
    ],
    ids=["row", "type", "column"],
)
def test_a_refused_write_leaves_no_version_of_its_schema(
    spark: Any, folder: Path, definition: str, expected: str
) -> None:
    """The definition stayed on the topic, and refused the next one that was right."""
    make_topics(folder, "t")
    frame = spark.createDataFrame([(1,), (None,)], "price bigint").coalesce(1)
    with pytest.raises(Exception, match=expected):
        write(frame, folder, "t", valueFormat="avro", valueSchema=definition)
    with pytest.raises(Exception, match=expected):
        write_topic(frame, "t", root=folder, value_format="avro", value_schema=definition)
    assert versions(folder) == [] and received(folder) == []
    right = definition_of(price="double")
    stage(folder, pa.table({"price": [0.5]}), value_format="avro", value_schema=right)
    assert [json.loads(each) for each in versions(folder)] == [json.loads(right)]
    (message,) = received(folder, schema=AvroSchema(None, json.loads(right)))
    assert message.value() == {"price": 0.5}


def test_a_schema_is_registered_with_its_rows_as_the_version_they_carry(folder: Path) -> None:
    """Two writes at a time register one version of the same definition; of two definitions the
    later one is planned again, and its rows are not taken for those of the other."""
    make_topics(folder, "t")
    with pulsarx.Client(folder) as client:
        client.admin.namespaces.set_schema_compatibility_strategy(
            "public/default", "ALWAYS_COMPATIBLE"
        )
    given = [
        (definition_of(price="long"), pa.table({"price": [1]})),
        (definition_of(price="long"), pa.table({"price": [2]})),
        (definition_of(name="string"), pa.table({"name": ["x"]})),
    ]
    jobs = [
        plan_write(folder, "t", value_format="avro", value_schema=definition)
        for definition, _ in given
    ]
    assert versions(folder) == []
    told = [list(write_partitions(table.to_batches(), job)) for job, (_, table) in zip(jobs, given)]
    for job, messages in zip(jobs[:2], told):
        commit_write(job, messages)
    with pytest.raises(errors.IncompatibleSchema, match="since this one was planned as version 0"):
        commit_write(jobs[2], told[2])
    assert len(versions(folder)) == 1
    stage(folder, given[2][1], value_format="avro", value_schema=given[2][0])
    assert len(versions(folder)) == 2
    found = received(folder, schema=AutoConsumeSchema())
    assert [each.value() for each in found] == [{"price": 1}, {"price": 2}, {"name": "x"}]


def test_a_stream_registers_its_schema_with_its_first_batch(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    make_topics(folder, "in", "t")
    definition = definition_of(price="long")
    for batch in range(2):
        stage(folder, pa.table({"value": [b"%d" % batch]}), "in")
        query = (
            spark.readStream.format("pulsarx")
            .options(root=str(folder), topic="in", startingOffsets="earliest", columns="value")
            .load()
            .selectExpr("bigint(string(value)) AS price")
            .writeStream.format("pulsarx")
            .options(root=str(folder), topic="t", checkpointLocation=str(tmp_path / "checkpoint"))
            .options(valueFormat="avro", valueSchema=definition)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(200)
        assert len(versions(folder)) == 1
    found = received(folder, schema=AvroSchema(None, json.loads(definition)))
    assert [each.value()["price"] for each in found] == [0, 1]


# Avro resolves records of one name.
LaterOrder = type(
    "Order",
    (Record,),
    {"price": Long(required=True), "customer": String(), "at": Long(required_default=True)},
)


def test_the_same_rows_are_the_same_write_under_a_later_version_of_the_schema(
    folder: Path,
) -> None:
    """The digest was of what the version had made of the rows: a write that was killed behind its
    commit, while a producer brought a field more, was refused for ever when it was repeated."""
    make_topics(folder, "t")
    register(folder, AvroSchema(Order))
    named: dict[str, Any] = {"value_format": "schema", "application": "a", "version": 1}
    rows = {"price": [1, 2, 2], "customer": ["a", None, "b"], "__key": ["k", None, "k"]}
    stage(folder, pa.table(rows), **named)
    assert register(folder, AvroSchema(LaterOrder)) == 1
    turned = {name: [*column[1:], column[0]] for name, column in reversed(rows.items())}
    for again in (rows, turned):
        stage(folder, pa.table(again), **named)
    for other in (
        {**rows, "price": [1, 2, 3]},
        {**rows, "customer": ["a", None, None]},
        {**rows, "customer": ["a", "None", "b"]},
        {**rows, "__key": ["k", "k", "k"]},
        {**rows, "at": [None, None, 5]},
        {name: column[1:] for name, column in rows.items()},
    ):
        with pytest.raises(errors.NotAllowedError, match="not the same"):
            stage(folder, pa.table(other), **named)
    assert len(received(folder)) == 3
    stage(folder, pa.table(rows), **{**named, "version": 2})
    assert received(folder)[-1].schema_version() == "\0" * 7 + "\1"


def test_rows_of_every_type_are_compared_whatever_the_zone_of_the_session(folder: Path) -> None:
    make_topics(folder, "t")
    kinds: dict[str, Any] = {
        "raw": "bytes",
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "local": {"type": "long", "logicalType": "local-timestamp-micros"},
        "day": {"type": "int", "logicalType": "date"},
        "cost": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "counts": {"type": "map", "values": "long"},
        "x": {"type": "array", "items": "double"},
    }
    fields: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in kinds.items()]
    first: dict[str, Any] = {"type": "record", "name": "Every", "fields": fields}
    more = {"name": "more", "type": ["null", "string"], "default": None}
    register(folder, AvroSchema(None, first))

    def table(zone: str = "UTC", **columns: Any) -> pa.Table:
        local = NOON.replace(tzinfo=None)
        found = {
            "raw": [b"\xff"], "at": pa.array([NOON], pa.timestamp("us", zone)), "local": [local],
            "day": [NOON.date()], "cost": [decimal.Decimal("1.50")],
            "counts": pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64())),
            "x": [[0.1, float("inf")]],
        }  # fmt: skip
        return pa.table({**found, **columns})

    named: dict[str, Any] = {"value_format": "schema", "application": "a", "version": 1}
    stage(folder, table(), **named)
    register(folder, AvroSchema(None, {**first, "fields": [*fields, more]}))
    stage(folder, table("America/New_York"), **named)
    turned = pa.array([[("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int64()))
    stage(folder, table(counts=turned), **named)
    later = NOON + dt.timedelta(microseconds=1)
    others: dict[str, Any] = {
        "raw": [b"\xfe"],
        "at": pa.array([later], pa.timestamp("us", "UTC")),
        "day": [NOON.date() + dt.timedelta(days=1)],
        "cost": [decimal.Decimal("1.51")],
        "counts": pa.array([[("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int64())),
        "x": [[0.1, 1e300]],
    }
    for name, column in others.items():
        with pytest.raises(errors.NotAllowedError, match="not the same"):
            stage(folder, table(**{name: column}), **named)
    assert len(received(folder)) == 1


def test_a_row_that_is_not_of_the_schema_is_named(folder: Path) -> None:
    make_topics(folder, "t")
    register(folder, AvroSchema(Order))
    job = plan_write(folder, "t", value_format="schema")
    batches = pa.table({"price": [1, 2, None], "customer": ["a", "b", "c"]}).to_batches(2)
    with pytest.raises(ValueError, match=r"row 2 of Spark partition 0: .*price"):
        list(write_partitions(batches, job))
    with pytest.raises(ValueError, match="row 0 of Spark partition 0"):
        list(write_partitions(pa.table({"x": [float("nan")]}).to_batches(),
                              plan_write(folder, "t", value_format="json")))  # fmt: skip
    assert received(folder) == []


def test_what_cannot_be_written_is_refused_before_anything_runs(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", "json")
    register(folder, JsonSchema(Order), "json")

    def write(ddl: str, topic: str | None = "t", **options: Any) -> None:
        write_topic(spark.createDataFrame([], ddl), topic, root=folder, **options)

    for expected, ddl, topic, options in (
        ("t has no schema", "price bigint", "t", {"value_format": "schema"}),
        ("no field 'prize'; did you mean 'price'", "prize bigint", "json",
         {"value_format": "schema"}),
        ("no column price, which the schema", "customer string", "json",
         {"value_format": "schema"}),
        ("column amount: JSON is not", "amount decimal(9,2)", "t", {"value_format": "json"}),
        ("did you mean '__eventTime'", "x int, __evenTime timestamp", "t",
         {"value_format": "json"}),
        ("columns of messages alone", "__key string", "t", {"value_format": "json"}),
        ("needs option valueSchema", "x int", "t", {"value_format": "avro"}),
        ("definition of a record", "x int", "t", {"value_format": "avro", "value_schema": "1"}),
        ("writes the columns as they are", "x int", "t",
         {"value_format": "json", "value_schema": "{}"}),
        ("must be one of raw", "x int", "t", {"value_format": "xml"}),
        ("new is not there yet", "x int", "new", {"value_format": "schema", "create_topic": True}),
        ("needs option topic", "x int, __topic string", None,
         {"value_format": "avro", "value_schema": "{}"}),
    ):  # fmt: skip
        with pytest.raises((ValueError, errors.OperationNotSupported), match=expected):
            write(ddl, topic, **options)
    with pytest.raises(errors.OperationNotSupported, match="upsert_topic: value_format is 'json'"):
        upsert_topic(spark.createDataFrame([], "value string, __key string"), "t", root=folder,
                     application="a", version=1, value_format="json")  # fmt: skip
    with pytest.raises(ValueError, match="valueFormat json"):
        write("x int", "t")
    assert not list((folder / "staging").glob("spark-*"))


EVERY_KIND = json.dumps(
    {
        "type": "record",
        "name": "Every",
        "fields": [
            {"name": name, "type": ["null", kind], "default": None}
            for name, kind in {
                "flag": "boolean",
                "size": "int",
                "weight": "float",
                "name": "string",
                "data": "bytes",
                "day": {"type": "int", "logicalType": "date"},
                "at": {"type": "long", "logicalType": "timestamp-micros"},
                "local": {"type": "long", "logicalType": "local-timestamp-millis"},
                "cost": {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": 9,
                    "scale": 2,
                },
                "tags": {"type": "array", "items": "string"},
                "counts": {"type": "map", "values": "long"},
                "place": {
                    "type": "record",
                    "name": "Place",
                    "fields": [
                        {"name": "floor", "type": "int"},
                        {"name": "door", "type": ["null", "string"]},
                    ],
                },
            }.items()
        ],
    }
)


@pytest.mark.parametrize(
    ("ddl", "says"),
    [
        ("flag int", "column flag is int, and the schema of the value takes boolean there"),
        ("size string", "column size is string, .* tinyint or smallint or int or bigint there"),
        ("size double", "column size is double"),
        ("weight decimal(9,2)", r"column weight is decimal\(9,2\)"),
        ("name binary", "column name is binary, .* takes string"),
        ("data string", "column data is string, .* takes binary there"),
        ("day timestamp", "column day is timestamp, .* takes date"),
        ("at timestamp_ntz", "column at is timestamp_ntz, .* takes timestamp there"),
        ("local timestamp", "column local is timestamp, .* takes timestamp_ntz"),
        ("cost double", "column cost is double, .* takes decimal"),
        ("tags string", "column tags is string, .* takes an array"),
        ("tags array<int>", r"column tags\[\] is int, .* takes string"),
        ("counts map<int,bigint>", "column counts is map<int,bigint>, .* a map of string"),
        ("counts map<string,string>", r"column counts\{\} is string"),
        ("place int", "column place is int, .* takes a struct"),
        ("place struct<floor:string>", r"column place\.floor is string"),
        ("place struct<flor:int>", r"no field place\.flor; did you mean 'floor'"),
        ("place struct<door:string>", "column place has no field floor"),
        ("place struct<floor:void>", r"column place\.floor is null in each row"),
        ("name interval day", "column name is interval day, .* takes string"),
    ],
)
def test_a_column_of_a_type_that_no_value_fits_is_refused_on_the_driver(
    spark: Any, folder: Path, ddl: str, says: str
) -> None:
    """Each task told it by its first row, and a stream in its first batch."""
    make_topics(folder, "t")
    frame = spark.createDataFrame([], ddl)
    named: dict[str, Any] = {"value_format": "avro", "value_schema": EVERY_KIND}
    with pytest.raises(ValueError, match=says):
        write_topic(frame, "t", root=folder, **named)
    assert not list((folder / "staging").glob("spark-*"))


def test_columns_of_types_whose_values_may_fit_are_written(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    ddl = (
        "flag boolean, size bigint, weight int, name string, data binary, day date, "
        "at timestamp, local timestamp_ntz, cost decimal(9,2), tags array<string>, "
        "counts map<string,tinyint>, place struct<floor:smallint>, __key string"
    )
    local, day = NOON.replace(tzinfo=None), dt.date(2026, 1, 2)
    row = (True, 1, 2, "n", b"d", day, NOON, local, decimal.Decimal("1.50"), ["x"], {"y": 1}, (3,))
    frame = spark.createDataFrame([(*row, "k"), (*[None] * 12, "l")], ddl)
    named: dict[str, Any] = {"value_format": "avro", "value_schema": EVERY_KIND}
    write_topic(frame, "t", root=folder, **named)
    write_topic(frame.selectExpr("NULL AS size"), "t", root=folder, **named)
    read = read_topic(spark, "t", root=folder, value_format="schema")
    assert read.where("size = 1").select("name", "cost", "place.floor").collect() == [
        ("n", decimal.Decimal("1.50"), 3)
    ]
    assert read.count() == 4


@pytest.mark.parametrize(
    ("schema", "kind", "says"),
    [
        (StringSchema(), "bigint", "column value is bigint, .* takes string there"),
        (Int8Schema(), "string", "column value is string, .* takes tinyint or"),
        (DoubleSchema(), "binary", "column value is binary"),
    ],
    ids=str,
)
def test_a_value_of_a_type_that_no_simple_schema_takes_is_refused_on_the_driver(
    spark: Any, folder: Path, schema: Any, kind: str, says: str
) -> None:
    make_topics(folder, "t")
    register(folder, schema)
    with pytest.raises(ValueError, match=says):
        frame = spark.createDataFrame([], f"value {kind}")
        write_topic(frame, "t", root=folder, value_format="schema")


def test_a_topic_is_created_with_the_schema_of_its_first_rows(spark: Any, folder: Path) -> None:
    """It was refused, so somebody had to create the topic by hand."""
    make_topics(folder, "other")
    definition = AvroSchema(Order).schema_info().schema()
    named: dict[str, Any] = {
        "root": folder, "value_format": "avro", "value_schema": definition, "create_topic": True,
    }  # fmt: skip
    wrong = spark.createDataFrame([(None, "a")], "price bigint, customer string")
    with pytest.raises(Exception, match="price is missing or null"):
        write_topic(wrong, "t", **named)
    with pulsarx.Client(folder, read_only=True) as client:
        names = client.admin.topics.get_list("public/default")
        assert names == ["persistent://public/default/other"]
    for price in (7, 8):
        frame = spark.createDataFrame([(price, "a")], "price bigint, customer string")
        write_topic(frame, "t", **named)
    found = received(folder, schema=AvroSchema(Order))
    assert [each.value().price for each in found] == [7, 8]
    with pulsarx.Client(folder, read_only=True) as client:
        assert len(client.admin.schemas.get_all_schemas("t")) == 1


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([1.0, math.nan]), "column x is nan, which is no number of JSON"),
        (pa.array([b"a", b"\xff" * 500]), r"column x is b'\\xff.*, which is no text in UTF-8"),
        (
            pa.array([None, {"a": [{"b": 1.0}, {"b": math.inf}]}]),
            r"column x\.a\[1\]\.b is inf, which is no number",
        ),
        (
            pa.array([[], [("k", b"\xff")]], pa.map_(pa.string(), pa.binary())),
            r"column x\.k is b'\\xff', which is no text",
        ),
    ],
)
def test_what_json_does_not_have_is_told_by_row_and_column(
    folder: Path, column: pa.Array, says: str
) -> None:
    """It was told by the row alone, as the codec has it."""
    make_topics(folder, "t")
    with pytest.raises(ValueError, match=f"row 1 of Spark partition 0: {says}"):
        stage(folder, pa.table({"x": column}), value_format="json")
    assert received(folder) == []


@pytest.mark.parametrize(
    ("kind", "values", "says"),
    [
        ("double", [1.0, math.nan], "column x is nan, which is no number of JSON"),
        ("bytes", [b"a", b"\xff"], r"column x is b'\\xff', which is no text in UTF-8"),
    ],
)
def test_what_json_does_not_have_is_told_by_row_and_column_of_a_schema_too(
    folder: Path, kind: str, values: list[Any], says: str
) -> None:
    make_topics(folder, "t")
    definition = {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}
    register(folder, SimpleNamespace(schema_info=lambda: _json_schema(definition)))
    with pytest.raises(ValueError, match=f"row 1 of Spark partition 0: {says}"):
        stage(folder, pa.table({"x": values}), value_format="schema")
    assert received(folder) == []


def _json_schema(definition: dict[str, Any]) -> SchemaInfo:
    return SchemaInfo(SchemaType.JSON, "R", json.dumps(definition))


def test_enforced_schemas_keep_payloads_of_no_schema_out(folder: Path) -> None:
    make_topics(folder, "t")
    register(folder, JsonSchema(Order))
    with pulsarx.Client(folder) as client:
        client.admin.namespaces.set_schema_validation_enforced("public/default", True)
    with pytest.raises(errors.IncompatibleSchema, match="schema_validation_enforced"):
        stage(folder, pa.table({"value": [b"1"]}))
    stage(folder, pa.table({"price": [1]}), value_format="schema")


@pytest.mark.parametrize("value_format", ["raw", "string", "json"])
def test_enforced_schemas_hold_for_the_topics_that_rows_name(
    folder: Path, value_format: str
) -> None:
    """Payloads of no schema came into a topic that has one, by the column __topic."""
    make_topics(folder, "free", "t")
    make_topics(folder, "p", partitions=2)
    register(folder, JsonSchema(Order))
    register(folder, JsonSchema(Order), "p")
    with pulsarx.Client(folder) as client:
        client.admin.namespaces.set_schema_validation_enforced("public/default", True)

    def rows(*topics: str) -> pa.Table:
        return pa.table({"value": ["1"] * len(topics), "__topic": list(topics)})

    stage(folder, rows("free", "free"), None, value_format=value_format)
    for topic in ("t", "p", "p-partition-1"):
        with pytest.raises(errors.IncompatibleSchema, match=r"row 1 .*: .*validation_enforced"):
            stage(folder, rows("free", topic), None, value_format=value_format)
    assert len(received(folder, "free")) == 2 and received(folder) == []
    with pulsarx.Client(folder) as client:
        client.admin.namespaces.set_schema_validation_enforced("public/default", False)
    stage(folder, rows("free", "t"), None, value_format=value_format)
    assert len(received(folder)) == 1


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
def test_a_text_that_is_no_symbol_of_its_enumeration_is_refused(folder: Path, kind: str) -> None:
    """JSON with it was written, which no reader of the schema takes."""
    make_topics(folder, "t")
    others = {"type": "array", "items": "Colour"}
    register_definition(folder, kind, definition_of(colour=["null", COLOUR], others=others))
    good = {"colour": ["RED", None], "others": [["GREEN", "RED"], []]}
    stage(folder, pa.table(good), value_format="schema")
    for flaw, field in (
        ({"colour": ["RED", "BLUE"]}, "colour"),
        ({"others": [["RED"], ["RED", "BLUE"]]}, r"others\[\]"),
    ):
        with pytest.raises(
            ValueError,
            match=f"row 1 of Spark partition 0: {field} is 'BLUE', .* symbols RED, GREEN",
        ):
            stage(folder, pa.table(good | flaw), value_format="schema")
    assert len(received(folder)) == 2


def test_enumerations_of_one_name_are_told_apart_by_namespace(folder: Path) -> None:
    make_topics(folder, "t")
    metals = {"type": "enum", "name": "Colour", "namespace": "metals", "symbols": ["GOLD"]}
    fields = [{"name": "colour", "type": metals}, {"name": "other", "type": "Colour"}]
    inner = {"type": "record", "name": "Inner", "namespace": "metals", "fields": fields}
    register_definition(
        folder, "JSON", definition_of(a=COLOUR, b="Colour", inner=inner, c="metals.Colour")
    )
    rows = {"a": ["RED"], "b": ["GREEN"], "inner": [{"colour": "GOLD", "other": "GOLD"}]}
    stage(folder, pa.table(rows | {"c": ["GOLD"]}), value_format="schema")
    with pytest.raises(ValueError, match="c is 'RED', which is none of the symbols GOLD"):
        stage(folder, pa.table(rows | {"c": ["RED"]}), value_format="schema")
    rows["inner"] = [{"colour": "GOLD", "other": "RED"}]
    with pytest.raises(ValueError, match=r"inner\.other is 'RED', which is none of .* GOLD"):
        stage(folder, pa.table(rows | {"c": ["GOLD"]}), value_format="schema")


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
def test_a_number_that_is_too_large_for_its_float_is_refused(folder: Path, kind: str) -> None:
    """Avro had infinity in its place. JSON has as many digits as it needs."""
    make_topics(folder, "t")
    definition = definition_of(x="float", more={"type": "map", "values": "float"})
    register_definition(folder, kind, definition)

    def rows(*numbers: Any, item: float = 1.0) -> pa.Table:
        items = pa.array([[("k", item)]] * len(numbers), pa.map_(pa.string(), pa.float64()))
        return pa.table({"x": list(numbers), "more": items})

    if kind == "JSON":
        stage(folder, rows(0.1, 1e300, 16777217.0), value_format="schema")
        found = [json.loads(each.data())["x"] for each in received(folder)]
        assert found == [0.1, 1e300, 16777217.0]
        return
    stage(folder, rows(0.5, 0.1, 3.4e38), value_format="schema")
    for table, expected in (
        (rows(0.5, 1e300), "row 1 of Spark partition 0: x is 1e.300, which is too large"),
        (rows(0.5, -3.5e38), "row 1 of Spark partition 0: x is -3.5e.38, which is too large"),
        (rows(0.5, item=1e39), r"row 0 of Spark partition 0: more\{\} is 1e.39, which is too"),
        (rows(1, 16777217), "row 1 of Spark partition 0: x is 16777217, which .* exactly"),
    ):
        with pytest.raises(ValueError, match=expected):
            stage(folder, table, value_format="schema")
    stage(folder, rows(16777216, 3), value_format="schema")
    stage(folder, rows(float("inf"), float("nan")), value_format="schema")
    messages = received(folder, schema=AvroSchema(None, json.loads(definition)))
    found = [each.value()["x"] for each in messages]
    assert found[:2] == [0.5, struct.unpack("f", struct.pack("f", 0.1))[0]]
    assert found[3:6] == [16777216.0, 3.0, math.inf] and math.isnan(found[6])


@pytest.mark.parametrize(
    ("schema", "good", "flaw", "expected"),
    [
        (DoubleSchema(), [1, 1 << 53], (1 << 60) + 1, "value is 1152921504606846977, which a "),
        (DoubleSchema(), [0.1, 1e300], None, ""),
        (FloatSchema(), [1, 1 << 24], (1 << 24) + 1, "value is 16777217, which a float"),
        (FloatSchema(), [0.5, 0.1], 1e300, r"value is 1e\+300, which is too large"),
        (Int8Schema(), [1, 127], 128, "Int8Schema: 128 does not fit"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_of_a_simple_schema_is_refused_as_a_field_is(
    folder: Path, schema: Any, good: list[Any], flaw: Any, expected: str
) -> None:
    """Integers were rounded to the nearest float."""
    make_topics(folder, "t")
    register(folder, schema)
    stage(folder, pa.table({"value": good}), value_format="schema")
    if flaw is not None:
        with pytest.raises(ValueError, match=f"row 2 of Spark partition 0: {expected}"):
            stage(folder, pa.table({"value": [*good, flaw]}), value_format="schema")
    found = [each.value() for each in received(folder, schema=schema)]
    assert found == [schema.decode(schema.encode(each)) for each in good]


@pytest.mark.parametrize("value_format", ["json", "schema"])
def test_a_time_that_python_does_not_have_is_refused_by_row_and_column(
    folder: Path, value_format: str
) -> None:
    """It raised OverflowError: date value out of range, without either."""
    make_topics(folder, "t")
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    days = {"type": "int", "logicalType": "date"}
    register_definition(folder, "AVRO", definition_of(n="long", at=["null", micros], day=days))
    far_us, far_days = 253_402_300_800_000_000, 5_000_000  # the years 10000 and 15659

    def rows(at: list[int | None], day: list[int]) -> pa.Table:
        return pa.table(
            {
                "n": range(len(at)),
                "at": pa.array(at, pa.timestamp("us", "UTC")),
                "day": pa.array(day, pa.int32()).cast(pa.date32()),
            }
        )

    for table, row, column in (
        (rows([0, None, far_us], [0, 0, 0]), 2, r"at has a timestamp\[us, tz=UTC\]"),
        (rows([0, -far_us], [0, 0]), 1, r"at has a timestamp\[us, tz=UTC\]"),
        (rows([0, 0], [0, far_days]), 1, r"day has a date32\[day\]"),
    ):
        expected = f"row {row} of Spark partition 0: column {column} outside of Python's range"
        with pytest.raises(ValueError, match=expected):
            stage(folder, table, value_format=value_format)
    assert received(folder) == []
    stage(folder, rows([0, far_us - 1], [0, 0]), value_format=value_format)
    assert len(received(folder)) == 2


def test_an_event_before_1970_is_refused_by_its_row_beside_an_ordering_key(folder: Path) -> None:
    """It raised OverflowError, without the row."""
    make_topics(folder, "t")
    rows = {"value": ["a", "b"], "__orderingKey": ["x", "y"], "__eventTime": [0, -1]}
    with pytest.raises(ValueError, match="row 1 of Spark partition 0: __eventTime is before 1970"):
        stage(folder, pa.table(rows))
    assert received(folder) == []


def test_a_delivery_that_python_has_no_time_for_is_written_once(folder: Path) -> None:
    """With application and version it raised OverflowError."""
    make_topics(folder, "t")
    far = pa.array([253_402_300_800_000_000], pa.timestamp("us", "UTC"))
    for _ in range(2):
        stage(folder, pa.table({"value": ["a"], "__deliverAt": far}), application="a", version=1)
    with pytest.raises(errors.NotAllowedError):
        later = pa.array([253_402_300_800_001_000], pa.timestamp("us", "UTC"))
        stage(folder, pa.table({"value": ["a"], "__deliverAt": later}), application="a", version=1)
    assert len(received(folder)) == 1


def test_rows_name_their_partition(folder: Path) -> None:
    make_topics(folder, "p", partitions=3)
    make_topics(folder, "t")
    rows = {"value": ["a", "b", "c"], "__partition": pa.array([2, 0, None], pa.int32())}
    stage(folder, pa.table(rows | {"__key": ["k", "k", None]}), "p")
    for partition, expected in ((2, [b"a"]), (0, [b"b"])):
        found = [each.data() for each in received(folder, f"p-partition-{partition}")]
        assert [each for each in found if each != b"c"] == expected
    for topic, number, expected in (("p", 3, "has 3 partitions"), ("t", 0, "has no partitions")):
        table = pa.table({"value": ["a", "b"], "__partition": pa.array([-1, number], pa.int32())})
        with pytest.raises(ValueError, match=rf"row 1 of Spark partition 0: .*{expected}"):
            stage(folder, table, topic)


def test_rows_have_ordering_keys_and_times_of_delivery(folder: Path) -> None:
    make_topics(folder, "t")
    later = NOON + dt.timedelta(hours=1)
    table = pa.table(
        {
            "value": [b"plain", b"ordered", b"late", b"plain too"],
            "__key": [None, "k", None, None],
            "__orderingKey": [None, b"\xff", None, None],
            "__deliverAt": pa.array([None, None, later, None], pa.timestamp("us", "UTC")),
            "__eventTime": [7, 8, None, None],
            "__messageProperties": pa.array(
                [None, [("a", "b")], None, None], pa.map_(pa.string(), pa.string())
            ),
        }
    )
    stage(folder, table)
    found = received(folder)
    assert [each.data() for each in found] == [b"plain", b"ordered", b"late", b"plain too"]
    ordered = found[1]
    assert (ordered.partition_key(), ordered.event_timestamp()) == ("k", 8)
    assert ordered.properties() == {"a": "b"}
    clock = pulsarx.ManualClock(int(NOON.timestamp() * 1000))
    with pulsarx.Client(folder, clock=clock) as client:
        shared = pulsarx.ConsumerType.Shared
        consumer = client.subscribe(
            "t", "s", shared, initial_position=pulsarx.InitialPosition.Earliest
        )
        there = []
        for _ in range(3):
            there.append(consumer.receive(60_000).data())
        assert there == [b"plain", b"ordered", b"plain too"]
        clock.advance(3_600_000)
        assert consumer.receive(60_000).data() == b"late"
    with pytest.raises(ValueError, match="row 1 of Spark partition 0: __deliverAt is before 1970"):
        stage(folder, pa.table({"value": ["a", "b"], "__deliverAt": [1, -1]}))


def test_another_place_or_time_is_another_write(folder: Path) -> None:
    make_topics(folder, "p", partitions=2)

    def write(partition: int, deliver_at: int | None, version: int = 1) -> None:
        rows = {"value": ["a"], "__partition": pa.array([partition], pa.int32())}
        rows["__deliverAt"] = pa.array([deliver_at], pa.int64())
        stage(folder, pa.table(rows), "p", application="a", version=version)

    write(0, None)
    write(0, None)
    for partition, deliver_at in ((1, None), (0, 5)):
        with pytest.raises(errors.NotAllowedError):
            write(partition, deliver_at)
    assert ContentDigest().value == 0
    assert len(received(folder, "p-partition-0")) == 1


def test_an_rdd_and_a_dataframe_are_told_apart(spark: Any, folder: Path) -> None:
    """It failed inside of Spark, by an attribute."""
    make_topics(folder, "t")
    frame = spark.createDataFrame([("1",)], "value string")
    rdd: Any = frame.rdd
    with pytest.raises(TypeError, match="save_rdd takes an RDD; write_topic writes a DataFrame"):
        save_rdd(frame, "t", root=folder)
    with pytest.raises(TypeError, match=r"takes a DataFrame of Spark, not pyspark\S+\.RDD; save"):
        write_topic(rdd, "t", root=folder)
    assert not list((folder / "staging").glob("*"))
