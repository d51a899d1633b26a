"""map_topic, plan_frame with read_partitions, topic_rdd: functions of the user over a topic."""

from __future__ import annotations

import gc
import os

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pyspark.sql.types import LongType, StringType, StructField, StructType
from topic_contents import numbers

import pulsarx
from pulsarx.spark import map_topic, plan_frame, plan_topic, read_partitions, topic_rdd
from pulsarx.spark.mapped_batches import checked_batches
from pulsarx.spark.worker_heap import freeze_heap


def sum_numbers(batches):
    """One row a Spark partition: how many messages it had, and the sum of them."""
    count = total = 0
    for batch in batches:
        count += batch.num_rows
        total += pc.sum(pc.cast(pc.cast(batch["value"], pa.string()), pa.int64())).as_py()
    yield pa.RecordBatch.from_pydict({"count": [count], "total": [total]})


def test_function_runs_where_the_messages_are_read(spark, folder, publish):
    publish("numbers", 1000)

    def pids(batches):
        here = os.getpid()
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"pid": [here], "columns": [batch.schema.names]})

    frame = map_topic(
        spark, "numbers", pids, "pid long, columns array<string>", root=folder, columns="__key"
    )
    rows = frame.collect()
    assert {tuple(row["columns"]) for row in rows} == {("__key",)}
    assert os.getpid() not in {row["pid"] for row in rows}
    frame = map_topic(spark, "numbers", sum_numbers, "count long, total long", root=folder)
    assert [tuple(row) for row in frame.collect()] == [(1000, sum(range(1000)))]


def test_the_heap_of_a_worker_is_frozen_once_and_not_looked_through_for_each_task(
    spark, folder, publish
):
    """To ask how much is frozen takes as long as a task of ten megabytes."""
    publish("numbers", 10)

    def frozen(batches):
        for _ in batches:
            pass
        before = gc.get_freeze_count()
        asked = []
        gc.get_freeze_count, kept = (lambda: asked.append(1) or 1), gc.get_freeze_count
        made = [[] for _ in range(1000)]
        freeze_heap()
        gc.get_freeze_count = kept
        yield pa.RecordBatch.from_pydict(
            {"before": [before], "after": [gc.get_freeze_count()], "asked": [len(asked)]}
        )
        assert made

    for _ in range(2):
        ((before, after, asked),) = map_topic(
            spark, "numbers", frozen, "before long, after long, asked long", root=folder
        ).collect()
        assert before > 10_000 and abs(after - before) < 1000 and asked == 0


def test_a_topic_is_cut_and_comes_in_order(spark, folder, publish):
    publish("numbers", 2000)

    def unchanged(batches):
        return batches

    frame = map_topic(
        spark,
        "numbers",
        unchanged,
        "value binary",
        root=folder,
        columns=["value"],
        max_records_per_partition=300,
    )
    assert frame.rdd.getNumPartitions() >= 7
    assert numbers(frame.collect()) == list(range(2000))


def test_a_failing_task_is_tried_again_and_counts_once(spark, folder, publish):
    publish("numbers", 1000)

    def fail_first(batches):
        from pyspark import TaskContext

        yield next(batches)
        if TaskContext.get().attemptNumber() < 2:
            raise RuntimeError("planted")
        yield from batches

    frame = map_topic(
        spark,
        "numbers",
        fail_first,
        "value binary",
        root=folder,
        columns="value",
        max_records_per_partition=400,
    )
    assert numbers(frame.collect()) == list(range(1000))


def test_a_function_may_give_nothing_or_stop_early(spark, folder, publish):
    publish("numbers", 30)

    def nothing(batches):
        return iter(())

    def first(batches):
        yield next(batches)

    for function, count in ((nothing, 0), (first, 30)):
        frame = map_topic(
            spark, "numbers", function, "value binary",
            root=folder, columns="value", max_records_per_partition=7, min_partitions=1,
        )  # fmt: skip
        assert frame.count() == count


def test_columns_in_another_order_are_refused_and_a_failure_is_told(spark, folder, publish):
    """Spark goes by their places: keys came as values, without a word."""
    publish("numbers", 10)

    def swapped(batches):
        for batch in batches:
            yield batch.select(["__key", "value"])

    def failing(batches):
        next(batches)
        raise RuntimeError("planted")
        yield

    for function, text in ((swapped, "value, __key, in this order"), (failing, "planted")):
        frame = map_topic(spark, "numbers", function, "value binary, __key binary", root=folder)
        with pytest.raises(Exception, match=text):
            frame.collect()
    with pytest.raises(TypeError, match="must be callable"):
        map_topic(spark, "numbers", 5, "value binary", root=folder)
    with pytest.raises(ValueError, match="min_partitions is -1"):
        map_topic(spark, "numbers", swapped, "value binary", root=folder, min_partitions=-1)


COUNTS = StructType([StructField("count", LongType()), StructField("name", StringType())])


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "gave NoneType; it must give an iterator"),
        ([pa.table({"count": [1], "name": ["a"]})], "gave Table, not pyarrow.RecordBatch"),
        ([pa.record_batch({"count": [1]})], "columns count; its schema says count, name"),
        ([pa.record_batch({"count": [1.5], "name": ["a"]})], "count as Arrow double; .* bigint"),
        ([pa.record_batch({"count": [1], "name": [b"a"]})], "name as Arrow binary; .* string"),
    ],
)
def test_what_is_not_the_schema_is_named(found, text):
    with pytest.raises(TypeError, match=text):
        list(checked_batches(found, COUNTS))


def test_batches_of_the_schema_pass_also_with_nulls_alone():
    given = [
        pa.record_batch({"count": [1], "name": ["a"]}),
        pa.record_batch({"count": pa.nulls(2), "name": pa.array(["a", "b"], pa.large_string())}),
    ]
    assert list(checked_batches(iter(given), COUNTS)) == given


def test_an_executor_without_the_folder_says_host_and_path(spark, folder, publish):
    publish("numbers", 100)
    frame = map_topic(spark, "numbers", sum_numbers, "count long, total long", root=folder)
    os.rename(folder, folder.with_name("elsewhere"))
    with pytest.raises(Exception, match="FolderError") as caught:
        frame.collect()
    text = str(caught.value)
    assert f"on {os.uname().nodename}: there is no folder {folder}" in text
    assert "Mount the same path wherever ranges are planned and read" in text


def test_a_frame_of_the_plan_may_be_mapped_by_hand(spark, folder, publish):
    publish("numbers", 900, partitions=3)
    groups = plan_topic(folder, "numbers", columns=["value"], min_partitions=3)
    frame = plan_frame(spark, groups)
    assert frame.count() == len(groups) == 3

    def read(batches):
        return read_partitions(batches, max_rows=50)

    assert sorted(numbers(frame.mapInArrow(read, "value binary").collect())) == list(range(900))
    ranges = [each for group in groups for each in group]
    found = spark.sparkContext.parallelize(ranges, 2).mapPartitions(read_partitions)
    assert sum(found.map(lambda batch: batch.num_rows).collect()) == 900


def test_an_rdd_has_rows_or_batches(spark, folder, publish):
    publish("numbers", 300)
    rows = topic_rdd(spark, "numbers", root=folder, columns="value, __messageProperties").collect()
    assert numbers(rows) == list(range(300))
    assert rows[7]["__messageProperties"] == {"number": "7"}
    batches = topic_rdd(spark, "numbers", root=folder, columns="value", batches=True).collect()
    assert pa.Table.from_batches(batches).num_rows == 300
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_non_partitioned_topic("empty")
    assert topic_rdd(spark, "empty", root=folder).collect() == []
