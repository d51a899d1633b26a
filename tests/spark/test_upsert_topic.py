"""upsert_topic: output modes update and complete, in foreachBatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_steps import make_topics, messages
from topic_contents import messages_of, staged

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pulsarx.spark import upsert_topic


def table(folder: Path, topic: str = "totals") -> dict[str, bytes]:
    """What a table view sees."""
    with pulsarx.Client(folder, durability="os") as client:
        return dict(client.create_table_view(topic).items())


def send(folder: Path, *names: str) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.create_producer("clicks").send_many([name.encode() for name in names])


def run(spark: Any, folder: Path, checkpoint: Path, mode: str) -> None:
    """What is new in the topic, one message a batch, counted by its value."""

    def write(frame: Any, batch: int) -> None:
        for _ in range(2):  # Spark repeats a batch after a failure
            upsert_topic(
                frame, "totals", root=folder, application="counts", version=batch,
                complete=mode == "complete", create_topic=True,
            )  # fmt: skip

    options = {"root": str(folder), "topic": "clicks", "startingOffsets": "earliest"}
    clicks = spark.readStream.format("pulsarx").options(**options).load()
    counts = clicks.groupBy("value").count()
    rows = counts.selectExpr("value AS __key", "string(count) AS value")
    query = (
        rows.writeStream.outputMode(mode)
        .foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_stream_of_changed_totals_is_a_table(
    spark: Any, folder: Path, tmp_path: Path, mode: str
) -> None:
    checkpoint = tmp_path / "checkpoint"
    send(folder, "a", "b", "a")
    run(spark, folder, checkpoint, mode)
    send(folder, "b", "b", "c")
    run(spark, folder, checkpoint, mode)
    assert table(folder) == {"a": b"2", "b": b"3", "c": b"1"}
    # Each batch is there once; of a complete table all keys, of an updated one those that changed.
    assert len(messages_of(folder, "totals")) == (2 + 2 if mode == "update" else 2 + 3)


def test_keys_that_are_not_in_a_complete_table_are_deleted_also_after_compaction(
    spark: Any, folder: Path
) -> None:
    def write(version: int, complete: bool, *rows: tuple[str, str | None]) -> None:
        frame = spark.createDataFrame(list(rows), "__key string, value string")
        named: dict[str, Any] = {"application": "job", "version": version, "complete": complete}
        upsert_topic(frame, "totals", root=folder, **named)

    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.create_partitioned_topic("totals", 2)
        write(0, True, ("a", "1"), ("b", "2"), ("c", "3"))
        write(1, True, ("a", "1"), ("d", "4"))
        assert table(folder) == {"a": b"1", "d": b"4"}
        write(2, False, ("e", "5"), ("d", None))
        with pytest.raises(pulsarx.NotAllowedError, match="must ascend"):
            write(1, True, ("z", "1"))
        assert table(folder) == {"a": b"1", "e": b"5"}
        for part in client.get_topic_partitions("totals"):
            client.admin.topics.trigger_compaction(part)
        write(3, True, ("f", "6"))
        assert table(folder) == {"f": b"6"}
        before = sum(len(messages_of(folder, f"totals-partition-{index}")) for index in range(2))
        write(4, True, ("f", "6"))  # what is deleted is not deleted again and again
        after = sum(len(messages_of(folder, f"totals-partition-{index}")) for index in range(2))
        assert after == before + 1


@pytest.mark.parametrize("complete", [False, True])
def test_the_same_rows_again_are_one_write_and_other_rows_are_refused(
    spark: Any, folder: Path, complete: bool
) -> None:
    """Other rows were answered as if they were written, and were nowhere: so was the batch of a
    checkpoint that was put back from an older copy."""

    def write(version: int, *rows: tuple[str, str | None], **options: Any) -> Any:
        frame = spark.createDataFrame(list(rows), "__key string, value string")
        named: dict[str, Any] = {"application": "job", "version": version, "complete": complete}
        return upsert_topic(frame, "totals", root=folder, **named, **options)

    make_topics(folder, "totals")
    write(0, ("a", "1"), ("b", "2"))
    assert not write(1, ("b", "3"), ("c", "4")).already  # if complete, it deletes a
    before = [message.data() for message in messages_of(folder, "totals")]
    assert write(1, ("c", "4"), ("b", "3")).already
    with pytest.raises(pulsarx.NotAllowedError, match=r"not the same.*Nothing was written"):
        write(1, ("b", "3"), ("d", "5"))
    with pytest.raises(pulsarx.NotAllowedError, match="not the same"):
        write(1, ("b", "3"))
    assert write(1, ("d", "5"), on_conflict="ignore").already
    assert [message.data() for message in messages_of(folder, "totals")] == before
    others = {} if complete else {"a": b"1"}
    assert table(folder) == {**others, "b": b"3", "c": b"4"} and not staged(folder)


@pytest.mark.parametrize("partitions", [0, 2])
def test_keys_that_are_no_text_are_deleted_from_a_complete_table(
    spark: Any, folder: Path, partitions: int
) -> None:
    """Another key was deleted in their stead, again with each batch; they stayed."""

    def write(version: int, **rows: bytes) -> None:
        found = [(name.encode("utf-8", "surrogateescape"), rows[name]) for name in rows]
        frame = spark.createDataFrame(found, "__key binary, value binary")
        named: dict[str, Any] = {"application": "job", "version": version, "complete": True}
        upsert_topic(frame, "totals", root=folder, **named)

    def count() -> int:
        return len(messages(folder, "totals", partitions))

    make_topics(folder, "totals", partitions=partitions)
    bytes_only, cut_short, accent = "\udcff\udcfe", "a\udcc3", "\u00e9"
    write(0, **{bytes_only: b"1", cut_short: b"2", accent: b"3", "a": b"4", "\ufffd": b"5"})
    assert table(folder).keys() == {bytes_only, cut_short, accent, "a", "\ufffd"}
    write(1, **{cut_short: b"6", "a": b"7", "\ufffd": b"8"})
    assert table(folder) == {cut_short: b"6", "a": b"7", "\ufffd": b"8"}
    write(2, a=b"9")
    assert table(folder) == {"a": b"9"}
    before = count()
    write(3, a=b"10")
    assert count() == before + 1


def test_a_key_of_a_complete_table_is_deleted_in_the_partition_that_has_it(
    spark: Any, folder: Path
) -> None:
    """With more partitions than it was written to it belongs elsewhere: there it was deleted, again
    with each batch, and stayed where it was."""
    names = [f"key {number}" for number in range(20)]

    def write(version: int, *names: str) -> None:
        frame = spark.createDataFrame([(name, "1") for name in names], "__key string, value string")
        named: dict[str, Any] = {"application": "job", "version": version, "complete": True}
        upsert_topic(frame, "totals", root=folder, **named)

    make_topics(folder, "totals", partitions=1)
    write(0, *names)
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.update_partitioned_topic("totals", 3)
    write(1, "another")
    assert len(messages(folder, "totals", 1)) >= 2 * len(names)
    before = len(messages(folder, "totals", 3))
    write(2, "another")
    assert len(messages(folder, "totals", 3)) == before + 1


@pytest.mark.parametrize(("key", "told"), [(None, "null"), ("", "empty"), (b"", "empty")])
@pytest.mark.parametrize("complete", [False, True])
def test_rows_without_a_key_are_refused_by_their_number(
    spark: Any, folder: Path, key: str | bytes | None, told: str, complete: bool
) -> None:
    """With an empty key a row was written as a message without one, which no table has."""
    named: dict[str, Any] = {"root": folder, "application": "job", "version": 0}
    make_topics(folder, "totals")
    kind, other = ("binary", b"a") if isinstance(key, bytes) else ("string", "a")
    rows = [(other, "1"), (other, "2"), (key, "3")]
    frame = spark.createDataFrame(rows, f"__key {kind}, value string").coalesce(1)
    with pytest.raises(ValueError, match="no column '__key'"):
        upsert_topic(frame.select("value"), "totals", **named)
    with pytest.raises(Exception, match=rf"row 2 of Spark partition 0: __key is {told}"):
        upsert_topic(frame, "totals", complete=complete, **named)
    assert messages_of(folder, "totals") == [] and not list(folder.glob("staging/*"))
    upsert_topic(frame.where("value < 3"), "totals", complete=complete, **named)
    assert table(folder) == {"a": b"2"}


def test_a_table_is_not_called_complete_by_a_text(spark: Any, folder: Path) -> None:
    """Each but the empty one was taken for True, and all other keys were deleted."""
    make_topics(folder, "totals")
    frame = spark.createDataFrame([("a", "1")], "__key string, value string")
    with pytest.raises(TypeError, match="complete is 'false'; it must be True or False"):
        complete: Any = "false"
        upsert_topic(frame, "totals", root=folder, application="job", version=0, complete=complete)
