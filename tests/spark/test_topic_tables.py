"""tables: the topics of a namespace as temporary views."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import PREFIX, make_topics, send, write

from pulsarx.schema import AvroSchema, Long, Record
from pulsarx.spark import tables, tables_version


@pytest.fixture(autouse=True)
def no_views(spark: Any) -> Iterator[None]:
    yield
    for each in spark.catalog.listTables():
        spark.catalog.dropTempView(each.name)


def publish(folder: Path, topic: str, *values: bytes) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        send(client, topic, values)


def select(spark: Any, view: str) -> list[str]:
    found = spark.sql(f"SELECT string(value) AS value FROM `{view}` ORDER BY 1").collect()
    return [row["value"] for row in found]


def test_each_topic_of_a_namespace_is_a_table(spark: Any, folder: Path) -> None:
    make_topics(folder, "orders")
    make_topics(folder, "web.click-stream", partitions=2)
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.namespaces.create_namespace("public/other")
        client.admin.topics.create_non_partitioned_topic("public/other/elsewhere")
    publish(folder, "orders", b"1", b"2")
    publish(folder, "web.click-stream", b"3", b"4")
    spark = spark.newSession()  # without the views of the tests before
    made = tables(spark, folder, columns="value")
    assert sorted(made) == ["orders", "web.click-stream"]
    shown = {row["tableName"] for row in spark.sql("SHOW TABLES").collect()}
    assert shown == {"orders", "web.click-stream"}
    assert select(spark, "orders") == ["1", "2"]
    assert select(spark, "web.click-stream") == ["3", "4"]
    publish(folder, "orders", b"5")
    assert select(spark, "orders") == ["1", "2"]
    assert tables(spark, folder, prefix="now ") == ["now orders", "now web.click-stream"]
    assert select(spark, "now orders") == ["1", "2", "5"]
    assert tables(spark, folder, namespace="public/other") == ["elsewhere"]


def test_rows_are_inserted_into_tables_and_never_overwrite_them(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", "source")
    publish(folder, "source", b"5", b"6")
    tables(spark, folder, columns="value")
    spark.sql("INSERT INTO t VALUES (CAST('1' AS binary))")
    with pytest.raises(Exception, match="what was published stays"):
        spark.sql("INSERT OVERWRITE t VALUES (CAST('2' AS binary))")
    tables(spark, folder)
    spark.sql("INSERT INTO t (value, __key) VALUES (CAST('3' AS binary), CAST('k' AS binary))")
    spark.sql("INSERT INTO t SELECT * FROM source")
    tables(spark, folder, as_of=1)
    with pytest.raises(Exception, match="endingTimestamp is for read only"):
        spark.sql("INSERT INTO t (value) VALUES (CAST('4' AS binary))")
    tables(spark, folder)
    assert select(spark, "t") == ["1", "3", "5", "6"]
    (key,) = spark.sql("SELECT string(__key) FROM t WHERE string(value) = '3'").collect()
    assert key[0] == "k"
    with pytest.raises(Exception, match="option columns is value, and the DataFrame has __key"):
        write(spark.table("source").select("value", "__key"), folder, "t", columns="value")


def test_a_version_and_a_time_of_all_tables_are_read_again(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", "empty")
    make_topics(folder, "p", partitions=2)
    publish(folder, "t", b"1", b"2")
    publish(folder, "p", b"3")
    version = tables_version(folder)
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        last = max(reader.read_next(60_000).publish_timestamp() for _ in range(2))
    publish(folder, "t", b"4")
    publish(folder, "empty", b"5")
    publish(folder, "p", b"6")
    make_topics(folder, "later")
    publish(folder, "later", b"7")
    assert tables(spark, folder, as_of=version) == ["empty", "p", "t"]
    assert [select(spark, view) for view in ("empty", "p", "t")] == [[], ["3"], ["1", "2"]]
    assert tables(spark, folder, as_of={"t": json.loads(version)[PREFIX + "t"]}) == ["t"]
    assert select(spark, "t") == ["1", "2"]
    assert len(tables(spark, folder, as_of=last + 1)) == 4
    before = select(spark, "t")
    assert before[:2] == ["1", "2"]  # the third message may be of the same millisecond
    tables(spark, folder, as_of=datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
    assert select(spark, "t") == select(spark, "later") == []


class Order(Record):
    price = Long()


def test_a_topic_without_a_schema_is_a_table_of_payloads_beside_typed_ones(
    spark: Any, folder: Path
) -> None:
    """It ended the whole call."""
    make_topics(folder, "notes", "orders")
    publish(folder, "notes", b"as it is")
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("orders", schema=AvroSchema(Order)).send(Order(price=7))
    assert tables(spark, folder, valueFormat="schema", MODE="PERMISSIVE") == ["notes", "orders"]
    assert select(spark, "notes") == ["as it is"]
    assert spark.sql("SELECT price FROM orders").collect() == [(7,)]
    spark.sql("INSERT INTO notes (value) VALUES (CAST('b' AS binary))")
    tables(spark, folder, valueFormat="schema")
    spark.sql("INSERT INTO orders (price) VALUES (8)")
    tables(spark, folder, valueFormat="SCHEMA", as_of=tables_version(folder))
    assert select(spark, "notes") == ["as it is", "b"]
    assert spark.sql("SELECT price FROM orders ORDER BY 1").collect() == [(7,), (8,)]


def test_no_view_is_replaced_where_one_of_them_is_refused(spark: Any, folder: Path) -> None:
    make_topics(folder, "notes", "orders")
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("orders", schema=AvroSchema(Order)).send(Order(price=7))
    tables(spark, folder)
    publish(folder, "notes", b"later")
    # Which topic it was nobody told.
    with pytest.raises(ValueError, match=rf"^tables: {PREFIX}orders: .*is no column 'value'"):
        tables(spark, folder, valueFormat="schema", columns="value")  # orders has none
    assert select(spark, "notes") == []


def test_what_cannot_be_tables_is_refused(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", "T")
    with pytest.raises(ValueError, match="upper and lower case"):
        tables(spark, folder)
    with pytest.raises(pulsarx.TopicNotFound, match="no namespace 'public/nothing'; it has public"):
        tables(spark, folder, namespace="public/nothing")
    with pytest.raises(ValueError, match="topic is no option here"):
        tables(spark, folder, topic="t")
    with pytest.raises(ValueError, match=r"as_of names .*gone"):
        tables(spark, folder, as_of={"gone": [1, 1]})
    for text in ("latest", "{cut", "[1]"):
        with pytest.raises(ValueError, match=rf"as_of is {re.escape(repr(text))}; give a datetime"):
            tables(spark, folder, as_of=text)
    with pytest.raises(ValueError, match=r"^format.* no option colums; did you mean columns"):
        tables(spark, folder, colums="value")
    with pytest.raises(ValueError, match="has no zone"):
        tables(spark, folder, as_of=datetime.datetime(2026, 1, 1))
