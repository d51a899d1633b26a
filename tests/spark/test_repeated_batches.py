"""Spark repeats a batch whose end it has not noted. What foreachBatch has written by then is there
once, and the query goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import make_topics, messages

from pulsarx.spark import save_rdd, upsert_topic, write_topic


def save_rows(frame: Any, topic: str, **named: Any) -> None:
    save_rdd(frame.rdd, topic, on_conflict="ignore", **named)


WRITES: dict[str, Callable[..., Any]] = {
    "upsert": upsert_topic,
    "upsert complete": partial(upsert_topic, complete=True),
    "write ignore": partial(write_topic, on_conflict="ignore"),
    "save_rdd ignore": save_rows,
}


def publish(folder: Path, *names: str) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("in").send_many([b""] * len(names), keys=names)


def run(spark: Any, folder: Path, checkpoint: Path, kind: str) -> None:
    """Counts of the keys, one batch of what is new."""

    def write_batch(frame: Any, batch: int) -> None:
        WRITES[kind](frame, "out", root=folder, application="counts", version=batch)

    options = {"root": str(folder), "topic": "in", "startingOffsets": "earliest"}
    counts = spark.readStream.format("pulsarx").options(**options).load().groupBy("__key").count()
    query = (
        counts.selectExpr("__key", "string(count) AS value")
        .writeStream.outputMode("complete" if "complete" in kind else "update")
        .foreachBatch(write_batch)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)


def table(folder: Path) -> dict[str | None, bytes]:
    return dict(messages(folder, "out"))


@pytest.mark.parametrize("kind", WRITES)
def test_a_stateful_query_goes_on_behind_a_batch_that_was_written(
    spark: Any, folder: Path, tmp_path: Path, kind: str
) -> None:
    """Spark puts the state of a task away behind its last row. Rows of a batch that was written
    were not computed again, and Spark ended the query for the state that was missing."""
    make_topics(folder, "in", "out")
    publish(folder, "a", "b", "a")
    run(spark, folder, tmp_path / "c", kind)
    before = messages(folder, "out")
    for path in (tmp_path / "c" / "commits").glob("*0*"):
        path.unlink()  # as a kill behind the attach
    run(spark, folder, tmp_path / "c", kind)
    assert messages(folder, "out") == before
    publish(folder, "a", "c")
    run(spark, folder, tmp_path / "c", kind)
    assert table(folder) == {"a": b"3", "b": b"1", "c": b"1"}


def test_a_checkpoint_that_was_put_back_does_not_lose_rows_of_upsert_topic(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """One batch behind, it took up more rows under the number of a batch that was written, and they
    were dropped."""
    make_topics(folder, "in", "out")
    publish(folder, "a")
    run(spark, folder, tmp_path / "c", "upsert")
    shutil.copytree(tmp_path / "c", tmp_path / "old")
    publish(folder, "b")
    run(spark, folder, tmp_path / "c", "upsert")
    publish(folder, "c")
    with pytest.raises(Exception, match="not the same"):
        run(spark, folder, tmp_path / "old", "upsert")
    assert table(folder) == {"a": b"1", "b": b"1"}
    run(spark, folder, tmp_path / "c", "upsert")
    assert table(folder) == {"a": b"1", "b": b"1", "c": b"1"}
