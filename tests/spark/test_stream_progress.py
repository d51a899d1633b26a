"""progress and ProgressListener: what a query that reads topics has still to do."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from stream_steps import EARLIEST, Steps, fill, numbers

from pulsarx.spark import ProgressListener, StreamProgress, progress
from pulsarx.spark.given_offsets import offsets_by_topic
from pulsarx.spark.stream_offsets import STATUS


def status(steps: Steps) -> dict[str, Any]:
    found: dict[str, Any] = steps.reader.reportLatestOffset()[STATUS]
    return found


def test_the_reader_tells_what_is_left_behind_a_batch(folder: Path) -> None:
    for first in (0, 14):
        fill(folder, "t", numbers(first, first + 14))
    steps = Steps(folder, topic="t", maxMessagesPerTrigger="21", **EARLIEST)
    assert steps.batch() == numbers(21)
    found = status(steps)
    assert (found["messages"], found["ledgers"], found["topics"]) == (7, 1, 1)
    assert found["bytes"] > 7 and found["seconds"] >= 0
    assert found["root"] == str(folder) and found["subscription"] is None
    assert found["lease"].startswith("spark-stream-") and found["lease_expires_ms"] > 0
    assert steps.batch() == numbers(21, 28)
    found = status(steps)
    assert [found[name] for name in ("messages", "bytes", "ledgers", "seconds")] == [0, 0, 0, 0]
    steps.reader.stop()


def test_a_batch_that_is_repeated_after_a_restart_counts_as_read(folder: Path) -> None:
    fill(folder, "t", numbers(14))
    steps = Steps(folder, topic="t", maxMessagesPerTrigger="7", **EARLIEST)
    start = steps.reader.initialOffset()
    end = steps.reader.latestOffset(start, steps.limit)
    again = Steps(folder, topic="t", **EARLIEST)
    again.reader.partitions(start, end)
    assert status(again)["messages"] == 7


def test_a_subscription_is_told_and_what_cannot_be_told_is_no_error(folder: Path) -> None:
    fill(folder, "t", numbers(7))
    steps = Steps(folder, topic="t", subscription="s", subscriptionInitialPosition="Earliest")
    assert steps.batch() == numbers(7)
    assert status(steps)["subscription"] == "s"
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.delete("t", force=True)
    assert steps.reader.reportLatestOffset() is None


def test_a_query_and_a_listener_tell_backlog_rates_and_lease(
    spark: Any, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(folder, "t", numbers(21))
    told: list[StreamProgress] = []
    complete = threading.Event()

    def report(found: StreamProgress) -> None:
        told.append(found)
        if found.backlog_messages == 0:
            complete.set()

    listener = ProgressListener(report)
    spark.streams.addListener(listener)
    try:
        options = {"root": str(folder), "topic": "t", "maxMessagesPerTrigger": "7", **EARLIEST}
        query = (
            spark.readStream.format("pulsarx")
            .options(**options)
            .load()
            .writeStream.format("noop")
            .queryName("counted")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(200)
        assert complete.wait(100)
    finally:
        spark.streams.removeListener(listener)
    batches = [found for each in query.recentProgress for found in progress(each)]
    assert [each.backlog_messages for each in batches if each.input_rows] == [14, 7, 0]
    assert [each.backlog_messages for each in told if each.input_rows] == [14, 7, 0]
    first, last = batches[0], progress(query)[0]
    assert first.query == "counted" and first.query_id == str(query.id)
    assert batches[1].lease is not None and first.processed_rows_per_second > 0
    assert first.backlog_bytes > 0 and first.ledgers_left == 1
    assert last.backlog_messages == last.ledgers_left == 0
    assert "left 14 messages" in first.line() and "1 topics" in first.line()
    # The text that is shown may be given as a place, as before.
    shown = query.recentProgress[0]["sources"][0]["latestOffset"]
    assert STATUS in shown and list(offsets_by_topic(shown)) == ["persistent://public/default/t"]
    with caplog.at_level(logging.INFO, "pulsarx.spark"):
        event: Any = SimpleNamespace(progress=query.recentProgress[0])
        ProgressListener().onQueryProgress(event)
    assert "query counted batch 0" in caplog.text


def test_other_sources_and_queries_without_a_batch_have_no_progress() -> None:
    source = {"latestOffset": json.dumps({"t": 1}), "numInputRows": 1}
    assert progress({"sources": [source, {"latestOffset": None}, {"latestOffset": "7"}]}) == []
    assert progress(SimpleNamespace(lastProgress=None)) == []
