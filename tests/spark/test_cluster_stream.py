"""Streams of format("pulsarx") from a cluster and to one: checkpoints, repeated batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
pytest.importorskip("_pulsar", reason="no official client: pip install 'pulsarx[pulsar]'")

from cluster_steps import PREFIX, ServedCluster, served_cluster
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pulsarx import errors
from pulsarx.spark.cluster_reader import ClusterStreamReader
from pulsarx.spark.cluster_topics import ClusterTopics
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.stream_offsets import FOLDER, STATUS
from pulsarx.spark.stream_progress import StreamProgress, progress

pytestmark = pytest.mark.standard
cluster = pytest.fixture(served_cluster)


def _run(
    spark: Any, cluster: ServedCluster, checkpoint: Path, sink: dict[str, str], **options: str
) -> Any:
    """One run from topic "in" to topic "out", until all is read; the query."""
    frame = spark.readStream.format("pulsarx").options(**cluster.options, topic="in", **options)
    query = (
        frame.load()
        .select("value", "__key")
        .coalesce(1)
        .writeStream.format("pulsarx")
        .options(**cluster.options, topic="out", checkpointLocation=str(checkpoint), **sink)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_stream_goes_on_from_its_checkpoint_and_repeats_nothing(
    spark: Any, cluster: ServedCluster, tmp_path: Path
) -> None:
    cluster.admin.topics.create_non_partitioned_topic("out")
    cluster.deduplicate("out")
    checkpoint, sink = tmp_path / "checkpoint", {"deduplicate": "true"}
    cluster.publish("in", 40, batch=4)
    options = {"startingOffsets": "earliest", "maxEntriesPerTrigger": "6"}
    _run(spark, cluster, checkpoint, sink, **options)
    written = [int(each) for each in cluster.contents("out")]
    assert written == list(range(40))
    batches = sorted(int(each.name) for each in (checkpoint / "commits").glob("[0-9]*"))
    assert len(batches) >= 2
    # The driver died behind the last batch, before it had noted that.
    for each in (checkpoint / "commits").glob(f"*{batches[-1]}*"):
        each.unlink()
    cluster.new_ledger("in")
    cluster.publish("in", 10, first=40)
    _run(spark, cluster, checkpoint, sink, **options)
    assert [int(each) for each in cluster.contents("out")] == list(range(50))
    last = (checkpoint / "offsets").glob("[0-9]*")
    text = max(last, key=lambda path: int(path.name)).read_text(encoding="utf-8")
    offset = json.loads(text.splitlines()[-1])
    assert set(offset) == {PREFIX + "in", "stream/folder"}


def test_a_query_tells_how_far_it_is(spark: Any, cluster: ServedCluster, tmp_path: Path) -> None:
    """progress was empty on clusters."""
    cluster.admin.topics.create_non_partitioned_topic("out")
    cluster.publish("in", 40, batch=4)
    cluster.new_ledger("in")
    cluster.publish("in", 20, first=40, batch=4)
    options = {"startingOffsets": "earliest", "maxEntriesPerTrigger": "6"}
    query = _run(spark, cluster, tmp_path / "checkpoint", {}, **options)
    batches = [
        found for each in query.recentProgress for found in progress(each) if found.input_rows
    ]
    assert [each.backlog_entries for each in batches] == [9, 3, 0]
    assert [each.backlog_messages for each in batches] == [None, None, 0]
    assert [each.ledgers_left for each in batches] == [2, 1, 0]
    first, _, last = batches
    assert first.root == cluster.options["root"] and first.topics == 1
    assert first.backlog_bytes > last.backlog_bytes == 0
    assert first.backlog_seconds is not None and 0 < first.backlog_seconds < 3600
    assert last.backlog_seconds == 0 and first.processed_rows_per_second > 0
    assert first.lease is None and first.subscription is None
    assert "left 9 entries, " in first.line() and ", 2 ledgers of 1 topics" in first.line()
    assert "left 0 messages, 0 entries, 0 bytes, 0 s, 0 ledgers" in last.line()


def test_what_a_cluster_does_not_tell_cheaply_is_none(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.admin.topics.create_partitioned_topic("in", 3)
    cluster.publish("in", 60)
    reader = _reader(cluster, monkeypatch, startingOffsets="earliest", maxEntriesPerTrigger="1")
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    reader.latestOffset(start, reader.getDefaultReadLimit())
    found = reader.reportLatestOffset()[STATUS]
    assert found["seconds"] > 0 and found["topics"] == 3
    monkeypatch.setattr("pulsarx.spark.cluster_topics._DATED_MAX", 1)
    assert reader.reportLatestOffset()[STATUS] == {**found, "seconds": None}
    assert (
        "left 9 entries, 5 bytes, 1 ledgers"
        in StreamProgress(
            {"name": "q", "id": "1", "batchId": 0, "timestamp": ""},
            {"numInputRows": 1, "inputRowsPerSecond": 1, "processedRowsPerSecond": 1},
            {**found, "seconds": None, "entries": 9, "bytes": 5, "ledgers": 1},
        ).line()
    )


def test_a_stream_whose_next_messages_are_gone_fails_or_goes_on(
    spark: Any, cluster: ServedCluster, tmp_path: Path
) -> None:
    cluster.admin.topics.create_non_partitioned_topic("out")
    cluster.publish("in", 5)
    checkpoint = tmp_path / "checkpoint"
    _run(spark, cluster, checkpoint, {}, startingOffsets="earliest")
    cluster.publish("in", 5, first=5)
    cluster.remove_messages("in")
    cluster.publish("in", 5, first=10)
    with pytest.raises(Exception, match="failOnDataLoss false goes on with what is left"):
        _run(spark, cluster, checkpoint, {}, startingOffsets="earliest")
    _run(spark, cluster, checkpoint, {}, startingOffsets="earliest", failOnDataLoss="false")
    found = [int(each) for each in cluster.contents("out")]
    assert found == [*range(5), *range(10, 15)]


def test_an_idle_stream_asks_the_cluster_now_and_then(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.publish("in", 3)
    source = PulsarxDataSource({**cluster.options, "topic": "in", "minEntriesPerTrigger": "1"})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, ClusterStreamReader)
    asked = []
    monkeypatch.setattr(ClusterTopics, "look", lambda topics: asked.append(topics))
    monkeypatch.setattr("pulsarx.spark.cluster_reader._LOOK_MS", 3_600_000)
    start = reader.initialOffset()
    for _ in range(100):
        assert start[FOLDER] == reader.latestOffset(start, ReadAllAvailable())[FOLDER]
    assert len(asked) == 1


def _reader(cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch, **options: str) -> Any:
    """Of topic "in", which looks each time it is asked."""
    monkeypatch.setattr("pulsarx.spark.cluster_reader._LOOK_MS", 0)
    source = PulsarxDataSource({**cluster.options, "topic": "in", **options})
    return source.streamReader(source.schema())


def test_a_trigger_waits_for_entries_and_takes_no_more_bytes_than_it_may(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.publish("in", 4, batch=2)
    least = {"minEntriesPerTrigger": "3", "maxTriggerDelay": "1h"}
    reader = _reader(cluster, monkeypatch, startingOffsets="earliest", **least)
    start = reader.initialOffset()
    place = start[PREFIX + "in"]
    assert reader.latestOffset(start, ReadAllAvailable())[PREFIX + "in"] == place
    cluster.publish("in", 4, first=4, batch=2)
    assert reader.latestOffset(start, ReadAllAvailable())[PREFIX + "in"] == [place[0], 4]
    bounded = _reader(cluster, monkeypatch, startingOffsets="earliest", maxBytesPerTrigger="1")
    start = bounded.initialOffset()
    end = bounded.latestOffset(start, bounded.getDefaultReadLimit())
    assert end[PREFIX + "in"] == [place[0], 1]


def test_a_stream_waits_for_topics_and_knows_its_cluster(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = _reader(cluster, monkeypatch, waitForTopic="true")
    start = reader.initialOffset()
    assert set(start) == {FOLDER}
    cluster.publish("in", 3)
    end = reader.latestOffset(start, ReadAllAvailable())
    rows = [
        row["value"]
        for task in reader.partitions(start, end)
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]
    assert rows == [b"0", b"1", b"2"]
    with pytest.raises(errors.NotAllowedError, match="the checkpoint is of cluster other"):
        reader.latestOffset({**end, FOLDER: "cluster other"}, ReadAllAvailable())
