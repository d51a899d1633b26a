"""format("pulsarx") in batches: what is read and written, and what is refused before it begins."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import (
    PREFIX,
    ledger_count,
    make_topics,
    messages,
    read,
    send,
    staged,
    values,
    write,
)

from pulsarx.spark import batch_reader
from pulsarx.spark.batch_reader import PUSHED_STAY_APART
from pulsarx.spark.data_source import PulsarxDataSource

TREE = str(Path(pulsarx.__file__).parents[1])
Publish = Callable[..., None]


# Reading ------------------------------------------------------------------------------------------


def test_every_column_comes_as_it_was_published(spark: Any, folder: Path, publish: Publish) -> None:
    publish("t", 20)
    frame = read(spark, folder, "t")
    assert frame.columns == [
        "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
        "__messageProperties",
    ]  # fmt: skip
    rows = frame.selectExpr("*", "unix_millis(__eventTime) AS event_ms").collect()
    assert [row["value"] for row in rows] == [b"%d" % number for number in range(20)]
    assert [row["__key"] for row in rows] == [b"k%d" % (number % 5) for number in range(20)]
    assert {row["__topic"] for row in rows} == {PREFIX + "t"}
    assert [row["event_ms"] for row in rows] == [1_700_000_000_000 + n for n in range(20)]
    assert [row["__messageProperties"] for row in rows] == [{"number": str(n)} for n in range(20)]
    ids = [pulsarx.MessageId.deserialize(bytes(row["__messageId"])) for row in rows]
    assert ids == sorted(ids) and len(set(map(str, ids))) == 20


def test_a_frame_is_of_what_was_there_when_it_was_made(
    spark: Any, folder: Path, publish: Publish
) -> None:
    publish("t", 30)
    frame = read(spark, folder, "t", columns="value")
    publish("t", 10, first=30)
    assert frame.count() == 30
    assert frame.filter("length(value) = 1").count() == 10
    assert read(spark, folder, "t").count() == 40


def test_a_large_read_of_all_columns_is_told_how_to_read_fewer(
    folder: Path, publish: Publish, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    """Spark tells no data source of Python what a query selects, nor that it counts."""
    publish("t", 20)

    def warned(**options: str) -> str:
        caplog.clear()
        source = PulsarxDataSource({"root": str(folder), "topic": "t", **options})
        source.reader(source.schema()).partitions()
        return caplog.text

    assert not warned()
    monkeypatch.setattr(batch_reader, "_ADVISED_FROM", 1)
    assert "also for count()" in warned() and 'option columns, as columns="value"' in warned()
    assert not warned(columns="value")
    assert not warned(valueFormat="string")


def test_named_columns_come_in_their_order_and_partitions_as_asked(
    spark: Any, folder: Path, publish: Publish
) -> None:
    publish("p", 50, partitions=2)
    frame = read(spark, folder, "p", columns="__key, value", minPartitions=5)
    assert frame.columns == ["__key", "value"]
    assert frame.rdd.getNumPartitions() >= 5
    found = sorted(int(row["value"]) for row in frame.collect())
    assert found == list(range(50))
    limited = read(spark, folder, "p", maxRecordsPerPartition=10)
    assert all(len(part) <= 10 for part in limited.rdd.glom().collect())


def test_offsets_and_times_cut_where_they_say(spark: Any, folder: Path) -> None:
    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock, durability="os") as client:
        for number in range(5):
            send(client, "t", [b"%d" % (10 * number + each) for each in range(10)])
            clock.advance(10)
    ledger = json.dumps({PREFIX + "t": [first_ledger(folder, "t"), 13]})
    until = json.dumps({PREFIX + "t": [first_ledger(folder, "t"), 17]})
    found = read(spark, folder, "t", startingOffsets=ledger, endingOffsets=until).collect()
    assert [int(row["value"]) for row in found] == [13, 14, 15, 16]
    start_ms = clock.now_ms() - 40_000
    found = read(
        spark, folder, "t", startingTimestamp=start_ms, endingTimestamp=start_ms + 20_000
    ).collect()
    assert sorted(int(row["value"]) for row in found) == list(range(10, 30))
    # The same as a filter, told to the source.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read(spark, folder, "t", filterPushdown="true")
        start = datetime.datetime.fromtimestamp(start_ms / 1000, datetime.UTC)
        found = frame.filter(frame["__publishTime"] >= start).collect()
        assert sorted(int(row["value"]) for row in found) == list(range(10, 50))
        assert frame.filter(frame["__topic"] == PREFIX + "u").count() == 0
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def first_ledger(folder: Path, topic: str) -> int:
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader(topic, pulsarx.MessageId.earliest)
        return int(reader.read_next().message_id().ledger_id())


def test_a_filter_of_one_query_takes_no_rows_from_another(spark: Any, folder: Path) -> None:
    """Spark up to 4.3 takes what it planned with the filters of one query for other queries of the
    same DataFrame, and for its other uses in one query: count() answered 1 after the first."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        for key in ("a", "b", "c", None):
            producer.send(b"", partition_key=key)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read(spark, folder, "t", columns="__key", filterPushdown="true")
        texts = frame.selectExpr("string(__key) AS key")
        assert texts.where("key = 'a'").count() == 1
        assert frame.where("__key = CAST('a' AS binary)").count() == 1
        assert frame.count() == 4
        either = "__key = CAST('a' AS binary) OR __key = CAST('b' AS binary)"
        assert frame.where(either).count() == 2
        ones = [frame.where(f"__key = CAST('{key}' AS binary)") for key in "abc"]
        found = ones[0].union(ones[1]).union(ones[2]).collect()
        assert sorted(bytes(row[0]) for row in found) == [b"a", b"b", b"c"]
        assert ones[0].union(frame).count() == 5
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


@pytest.mark.skipif(not PUSHED_STAY_APART, reason="filters are left to Spark")
def test_filters_that_the_source_applies_are_not_in_the_plan(spark: Any, folder: Path) -> None:
    """Spark asks of each column that is compared whether it is null, too; that stayed."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        for key in ("a", "b", None):
            producer.send(b"", partition_key=key)

    def count(condition: str) -> int:
        frame = read(spark, folder, "t", filterPushdown="true").where(condition)
        with contextlib.redirect_stdout(io.StringIO()) as plan:
            frame.explain()
        assert "BatchScan" in plan.getvalue() and "Filter (" not in plan.getvalue()
        return int(frame.count())

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert count("__key = CAST('a' AS binary) AND __publishTime > TIMESTAMP '2020-01-01'") == 1
        assert count("__key IS NULL AND __topic IS NOT NULL") == 1
        assert count("__key IS NOT NULL AND __messageProperties IS NOT NULL") == 2
        assert count("__topic IS NULL") == 0
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_messages_are_chosen_where_they_are_read(spark: Any, folder: Path) -> None:
    """By columns that are read or not, and before values are decoded: bad ones may be among the
    others."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        for number, key in enumerate(("a", "b", None, "it's", "b")):
            value = b"{" if key == "a" else b'{"n": %d}' % number
            producer.send(value, partition_key=key, event_timestamp=1_700_000_000_000 + number)

    def numbers(where: str) -> list[int]:
        frame = read(spark, folder, "t", columns="value", where=where)
        assert frame.columns == ["value"]
        schema = "n int"
        typed = (
            spark.read.format("pulsarx")
            .options(root=str(folder), topic="t", valueFormat="json", where=where)
            .schema(schema)
        )
        found = sorted(row["n"] for row in typed.load().collect())
        assert frame.count() == len(found)
        return found

    assert numbers("__key = 'b'") == [1, 4]
    assert numbers("__key IN ('b', 'it''s') and __eventTime < 1700000000004") == [1, 3]
    assert numbers("__KEY is null") == [2]
    assert numbers("__key IS NOT NULL AND __key IN (X'62', 'c')") == [1, 4]
    assert numbers(f"__topic = '{PREFIX}t' AND __eventTime >= '2023-11-14T22:13:20.003Z'") == [3, 4]
    assert numbers("__partition = 0") == []
    assert numbers("__partition = -1 AND __sequenceId > 3") == [4]
    # The functions, too, whose ranges travel as text.
    given: dict[str, Any] = {"root": str(folder), "where": "__key = 'b' AND __partition < 0"}
    topic = pulsarx.spark.read_topic(spark, "t", **given, columns="__sequenceId")
    assert sorted(row[0] for row in topic.collect()) == [1, 4]
    topic = pulsarx.spark.map_topic(spark, "t", iter, "value binary", **given, columns="value")
    assert topic.count() == 2
    rows = pulsarx.spark.topic_rdd(spark, "t", **given, columns="value")
    assert rows.count() == 2
    groups = pulsarx.spark.plan_topic(folder, "t", where="__partition = 0")
    assert not groups
    with pytest.raises(ValueError, match="'__kay' is no column of messages to compare"):
        pulsarx.spark.read_topic(spark, "t", root=folder, where="__kay = 'b'")
    with pytest.raises(TypeError, match="where is 5; it must be a text"):
        pulsarx.spark.map_topic(spark, "t", iter, "value binary", root=folder, where=5)
    frame = read(spark, folder, "t", where="__sequenceId = 4")
    assert frame.count() == 1 and frame.where("__key IS NULL").count() == 0 and frame.count() == 1


def test_messages_are_chosen_by_a_selector(spark: Any, folder: Path) -> None:
    """By their properties, before values are decoded: bad ones may be among the others."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t", batching_enabled=True)
        for number in range(20):
            value = b"{" if number % 2 else b'{"n": %d}' % number
            described = {"kind": "bad" if number % 2 else "good", "size": str(number)}
            producer.send_async(value, None, properties=described)
        producer.flush()
    selector = "kind = 'good' AND size BETWEEN 4 AND 8"
    typed = (
        spark.read.format("pulsarx")
        .options(root=str(folder), topic="t", valueFormat="json", selector=selector)
        .schema("n int")
    )
    assert sorted(row["n"] for row in typed.load().collect()) == [4, 6, 8]
    assert read(spark, folder, "t", selector=selector).count() == 3
    assert read(spark, folder, "t", selector="kind = 'none'").count() == 0
    given: dict[str, Any] = {"root": str(folder), "selector": selector, "columns": "value"}
    assert pulsarx.spark.read_topic(spark, "t", **given).count() == 3
    assert pulsarx.spark.topic_rdd(spark, "t", **given).count() == 3
    with pytest.raises(Exception, match="column 7: expected a name"):
        read(spark, folder, "t", selector="kind =").count()


def test_topics_by_list_and_by_pattern(spark: Any, folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        for name in ("in-a", "in-b", "other"):
            send(client, name, [name.encode()])
    reading = spark.read.format("pulsarx").option("root", str(folder)).option("columns", "value")
    both = reading.option("topics", "in-a, in-b").load().collect()
    assert sorted(bytes(row[0]) for row in both) == [b"in-a", b"in-b"]
    reading = spark.read.format("pulsarx").option("root", str(folder))
    found = reading.option("topicsPattern", "in-.*").load().collect()
    assert sorted(bytes(row[0]) for row in found) == [b"in-a", b"in-b"]


def test_an_empty_topic_is_an_empty_table_and_sql_knows_the_format(
    spark: Any, folder: Path, publish: Publish
) -> None:
    make_topics(folder, "empty")
    assert read(spark, folder, "empty").count() == 0
    publish("t", 5)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING pulsarx OPTIONS (root '{folder}', topic 't')"
    )
    assert spark.sql("SELECT count(*) FROM v").first()[0] == 5
    # Spark 4.3 asks for such a table without its options.
    with pytest.raises(Exception, match="TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE broken USING pulsarx OPTIONS (root '{folder}', topic 't')")


def test_the_open_ledger_of_a_living_owner_is_read_up_to_its_end(spark: Any, folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        send(client, "t", [b"1", b"2"])
        frame = read(spark, folder, "t")
        send(client, "t", [b"3"])
        assert [bytes(row["value"]) for row in frame.collect()] == [b"1", b"2"]
        write(frame, folder, "t")
        send(client, "t", [b"4"])
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        assert [reader.read_next().data() for _ in range(6)] == [
            b"1", b"2", b"3", b"1", b"2", b"4",
        ]  # fmt: skip


# Writing ------------------------------------------------------------------------------------------


def test_a_table_becomes_messages_with_their_keys_on_the_producers_partitions(
    spark: Any, folder: Path
) -> None:
    make_topics(folder, "p", partitions=3)
    rows = [(f"v{n}", f"k{n % 7}", {"n": str(n)}, n * 1000) for n in range(200)]
    frame = spark.createDataFrame(
        rows, "value string, __key string, __messageProperties map<string,string>, __eventTime long"
    )
    write(frame.repartition(4, "__key").sortWithinPartitions("__eventTime"), folder, "p")
    found = messages(folder, "p", 3)
    assert sorted(int(value[1:]) for _, value in found) == list(range(200))
    for key in {key for key, _ in found}:
        mine = [int(value[1:]) for each, value in found if each == key]
        assert mine == sorted(mine)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("p")
        for n in range(7):
            producer.send(b"plain", partition_key=f"k{n}")
    for index in range(3):
        part = messages(folder, f"p-partition-{index}")
        assert {key for key, value in part if value != b"plain"} == {
            key for key, value in part if value == b"plain"
        }
    assert not staged(folder)


def test_a_column_may_choose_the_topic(spark: Any, folder: Path) -> None:
    make_topics(folder, "a", "b")
    frame = spark.createDataFrame(
        [("1", "a"), ("2", "b"), ("3", "persistent://public/default/a")],
        "value string, __topic string",
    ).coalesce(1)
    write(frame, folder, compression="zstd")
    assert values(folder, "a") == [b"1", b"3"]
    assert values(folder, "b") == [b"2"]
    wrong = spark.createDataFrame([("1", "nowhere")], "value string, __topic string")
    with pytest.raises(Exception, match="nowhere"):
        write(wrong, folder)
    with pytest.raises(Exception, match="null"):
        write(spark.createDataFrame([("1", None)], "value string, __topic string"), folder)
    assert values(folder, "a") == [b"1", b"3"]
    assert not staged(folder)


def test_what_was_read_may_be_written_to_another_topic(
    spark: Any, folder: Path, publish: Publish
) -> None:
    publish("t", 40)
    make_topics(folder, "copy")
    write(read(spark, folder, "t"), folder, "copy")
    assert messages(folder, "copy") == messages(folder, "t")
    columns = ["value", "__key", "__eventTime", "__messageProperties"]
    copied = read(spark, folder, "copy").select(columns).collect()
    assert copied == read(spark, folder, "t").select(columns).collect()


def test_null_values_are_refused_unless_allowed(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    frame = spark.createDataFrame([("a", "k"), (None, "k")], "value string, __key string")
    frame = frame.coalesce(1)
    with pytest.raises(Exception, match="null"):
        write(frame, folder, "t")
    assert values(folder, "t") == [] and not staged(folder)
    write(frame, folder, "t", nullValues="allow")
    rows = read(spark, folder, "t").collect()
    assert [row["value"] for row in rows] == [b"a", None]


def test_values_over_the_limit_attach_nothing(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    frame = spark.createDataFrame([("short",), ("x" * 101,)], "value string")
    with pytest.raises(Exception, match="MessageTooBig"):
        write(frame, folder, "t", maxMessageSize="100")
    assert values(folder, "t") == [] and not staged(folder)


def test_small_ledgers_may_be_refused(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    frame = spark.range(40).selectExpr("CAST(id AS string) AS value").repartition(20)
    with pytest.raises(Exception, match="coalesce"):
        write(frame, folder, "t", onSmallFiles="error")
    assert values(folder, "t") == []
    write(frame.coalesce(1), folder, "t", onSmallFiles="error", maxLedgerBytes="1g")
    assert ledger_count(folder, "t") == 1


# What is refused ----------------------------------------------------------------------------------


def test_overwriting_is_refused(spark: Any, folder: Path) -> None:
    make_topics(folder, "t")
    frame = spark.range(1).selectExpr("'a' AS value")
    with pytest.raises(Exception, match="append"):
        frame.write.format("pulsarx").options(root=str(folder), topic="t").mode("overwrite").save()
    assert values(folder, "t") == []


def test_another_schema_is_refused(spark: Any, folder: Path, publish: Publish) -> None:
    publish("t", 3)
    reading = spark.read.format("pulsarx").options(root=str(folder), topic="t")
    assert reading.schema("value binary").load().count() == 3
    with pytest.raises(Exception, match="cast"):
        reading.schema("value string").load().count()


def test_a_mistake_is_told_by_spark_before_anything_runs(
    spark: Any, folder: Path, publish: Publish
) -> None:
    publish("t", 3)
    with pytest.raises(Exception, match="no option topik; did you mean topic"):
        spark.read.format("pulsarx").options(root=str(folder), topik="t").load()
    with pytest.raises(Exception, match="no column 'value'"):
        write(spark.range(1), folder, "t")


BROKEN = """
import sys
sys.modules["pulsarx"] = None  # as with compiled parts that cannot be loaded
import pyspark_pulsarx
source = pyspark_pulsarx.DefaultSource({"root": "x"})
assert source.name() == "pulsarx"
try:
    source.schema()
except ImportError as error:
    print(error)
"""


def test_the_module_spark_looks_for_never_fails_and_loads_nothing() -> None:
    """One that fails would take every Python source away from the session."""
    import subprocess
    import sys

    lines = subprocess.run(
        [sys.executable, "-c", BROKEN],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": TREE},
    ).stdout  # fmt: skip
    assert "pulsarx[spark]" in lines
