"""What is read is in the sink once, whatever becomes of the checkpoint and of the topics between
two runs of a query, and in the middle of one. By micro-batches without Java."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from micro_batches import Here, Query, QueryFailed
from spark_steps import make_topics, send, values
from stream_steps import fill, numbers

from pulsarx.testing import inspect

LOGS = ("offsets", "commits")
STEPS = (
    "offsets written", "offsets added", "planned", "tasks done", "sink committed",
    "commits written", "commits added",
)  # fmt: skip


class Stopped(Exception):
    """A driver that ends there, as if it had been killed."""


class StopsAt(Here):
    def __init__(self, step: str, turn: int = 1) -> None:
        self._left = {step: turn}

    def at(self, step: str) -> None:
        if step in self._left:
            self._left[step] -= 1
            if not self._left[step]:
                raise Stopped(step)


class Stream:
    """A query from `in` to `out`, two entries of seven messages a batch."""

    def __init__(self, folder: Path, checkpoint: Path, **source: str) -> None:
        self.folder = folder
        self.checkpoint = checkpoint
        self.sink = {"root": str(folder), "topic": "out"}
        self.source = {
            "root": str(folder), "topic": "in", "columns": "value,__key",
            "startingOffsets": "earliest", "maxEntriesPerTrigger": "2", **source,
        }  # fmt: skip

    def run(self, processes: Here | None = None) -> int:
        return Query(self.checkpoint, self.source, self.sink, processes=processes).run()

    def stop_at(self, step: str, turn: int = 1) -> None:
        with pytest.raises(QueryFailed, match="Stopped"):
            self.run(StopsAt(step, turn))

    def copied(self, name: str) -> Stream:
        to = self.checkpoint.with_name(name)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.checkpoint, to)
        made = Stream(self.folder, to)
        made.source, made.sink = self.source, self.sink
        return made

    def logs(self, log: str) -> list[Path]:
        found = (self.checkpoint / log).iterdir()
        return sorted(found, key=lambda each: int(each.name))


@pytest.fixture
def stream(folder: Path, tmp_path: Path) -> Stream:
    make_topics(folder, "in", "out")
    return Stream(folder, tmp_path / "checkpoint")


def sunk(stream: Stream, partitions: int = 0) -> list[int]:
    return [int(each) for each in values(stream.folder, "out", partitions)]


# The checkpoint -----------------------------------------------------------------------------------


def test_a_copy_of_a_checkpoint_into_the_same_topic_doubles_nothing(stream: Stream) -> None:
    """It finds its batches written, or is refused; the one that goes on is not disturbed."""
    fill(stream.folder, "in", numbers(20))
    stream.run()
    copy = stream.copied("copy")
    fill(stream.folder, "in", numbers(20, 30))
    stream.run()
    copy.run()  # one batch, the same one
    assert sunk(stream) == [*range(30)]
    late = copy.copied("late")
    fill(stream.folder, "in", numbers(30, 60))
    assert stream.run() == 3
    with pytest.raises(QueryFailed, match=r"batch 3 of the query .* before"):
        late.run()
    assert sunk(stream) == [*range(60)]
    fill(stream.folder, "in", numbers(60, 65))
    stream.run()
    assert sunk(stream) == [*range(65)]


@pytest.mark.parametrize("offsets, commits", [*itertools.product(range(4), repeat=2)])
def test_logs_that_are_cut_lose_and_double_nothing(
    stream: Stream, offsets: int, commits: int
) -> None:
    """As by a copy that was taken while the query ran. What cannot go on says so."""
    fill(stream.folder, "in", numbers(40))
    stream.run()
    whole = stream.copied("whole")
    for log, count in (("offsets", offsets), ("commits", commits)):
        for path in stream.logs(log)[len(stream.logs(log)) - count :]:
            path.unlink()
    try:
        stream.run()
    except QueryFailed:
        pass
    assert sunk(stream) == [*range(40)]
    fill(stream.folder, "in", numbers(40, 50))
    try:
        stream.run()
    except QueryFailed as error:
        assert "A stream meets this when its checkpoint was put back" in str(error)
        assert sunk(stream) == [*range(40)]
        whole.run()
    assert sunk(stream) == [*range(50)]


@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_ends_anywhere_stops_the_query(stream: Stream, log: str) -> None:
    """As by a file system that lost the end of the file."""
    fill(stream.folder, "in", numbers(20))
    stream.run()
    path = stream.logs(log)[-1]
    whole = path.read_text()
    for size in range(0, len(whole), 3):
        path.write_text(whole[:size])
        try:
            stream.run()
        except QueryFailed:
            pass
        assert sunk(stream) == [*range(20)]
    path.write_text(whole)
    fill(stream.folder, "in", numbers(20, 25))
    stream.run()
    assert sunk(stream) == [*range(25)]


@pytest.mark.parametrize("emptied", ["offsets", "commits", "offsets commits"])
def test_logs_that_are_emptied_double_nothing(stream: Stream, emptied: str) -> None:
    fill(stream.folder, "in", numbers(40))
    stream.run()
    for log in emptied.split():
        for path in stream.logs(log):
            path.unlink()
    if emptied == "commits":
        stream.run()  # repeats the last batch
    else:
        with pytest.raises(QueryFailed, match=r"batch 0 .* before"):
            stream.run()  # from the first
    assert sunk(stream) == [*range(40)]


def test_a_checkpoint_that_is_gone_is_a_new_query_that_writes_again(stream: Stream) -> None:
    fill(stream.folder, "in", numbers(20))
    stream.run()
    shutil.rmtree(stream.checkpoint)
    stream.run()
    assert sunk(stream) == [*range(20)] * 2
    (stream.checkpoint / "metadata").unlink()
    with pytest.raises(QueryFailed, match="no metadata"):
        stream.run()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("turn", [1, 2])
def test_more_messages_come_between_a_death_and_the_next_run(
    stream: Stream, step: str, turn: int
) -> None:
    """The batch that is repeated is the same, and they are in the next one."""
    fill(stream.folder, "in", numbers(24))
    stream.stop_at(step, turn)
    fill(stream.folder, "in", numbers(24, 40))
    stream.run()
    assert sunk(stream) == [*range(40)]


# The topics ---------------------------------------------------------------------------------------


@pytest.fixture
def wide(folder: Path, tmp_path: Path) -> Stream:
    """Of a topic of one partition into one of one."""
    make_topics(folder, "in", "out", partitions=1)
    return Stream(folder, tmp_path / "checkpoint")


def grow(folder: Path, topic: str, partitions: int) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.update_partitioned_topic(topic, partitions)


def fill_keys(folder: Path, begin: int, end: int) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        for key in range(3):
            send(client, "in", (b"%d" % each for each in range(begin + key, end, 3)), f"k{key}")


@pytest.mark.parametrize("step", ["offsets added", "planned", "tasks done", "sink committed"])
def test_topics_grow_in_the_middle_of_a_batch(wide: Stream, step: str) -> None:
    """The source and the sink get partitions; the repeated batch is the same."""
    fill_keys(wide.folder, 0, 30)
    wide.stop_at(step, 2)
    grow(wide.folder, "in", 3)
    fill_keys(wide.folder, 30, 60)
    grow(wide.folder, "out", 4)
    wide.run()
    assert sorted(sunk(wide, 4)) == [*range(60)]
    fill_keys(wide.folder, 60, 70)
    wide.run()
    assert sorted(sunk(wide, 4)) == [*range(70)]


def admin(folder: Path, work: Callable[[Any], Any]) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        work(client.admin.topics)


@pytest.mark.parametrize("step", ["offsets added", "tasks done", "sink committed"])
def test_a_source_that_is_terminated_is_read_to_its_end(stream: Stream, step: str) -> None:
    fill(stream.folder, "in", numbers(30))
    stream.stop_at(step, 2)
    admin(stream.folder, lambda topics: topics.terminate("in"))
    stream.run()
    stream.run()
    assert sunk(stream) == [*range(30)]


@pytest.mark.parametrize("step", ["offsets added", "planned", "tasks done", "sink committed"])
def test_a_sink_that_is_terminated_stops_the_query(stream: Stream, step: str) -> None:
    """And what was written by then stays, once."""
    fill(stream.folder, "in", numbers(30))
    stream.stop_at(step, 2)
    done = len(sunk(stream))
    admin(stream.folder, lambda topics: topics.terminate("out"))
    for _ in range(2):
        with pytest.raises(QueryFailed, match="terminated"):
            stream.run()
        assert sunk(stream) == [*range(done)]


@pytest.mark.parametrize("step", ["offsets added", "planned", "tasks done", "sink committed"])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_source_that_is_made_again_is_read_from_its_first_message(
    stream: Stream, step: str, lenient: bool
) -> None:
    """As a loss of messages: an error, or with failOnDataLoss false a warning. Nothing of the new
    topic is missed or doubled."""
    fill(stream.folder, "in", numbers(30))
    stream.stop_at(step, 2)
    before = sunk(stream)
    admin(stream.folder, lambda topics: topics.delete("in", force=True))
    fill(stream.folder, "in", numbers(100, 130))
    if not lenient:
        with pytest.raises(QueryFailed, match="failOnDataLoss"):
            stream.run()
        assert sunk(stream) == before
    stream.source["failOnDataLoss"] = "false"
    try:
        stream.run()
    except QueryFailed as error:
        # A batch that was written has other rows now.
        assert step == "sink committed" and "not the same" in str(error)
        stream.sink["txnConflict"] = "ignore"
        stream.run()
    assert sunk(stream) == [*before, *range(100, 130)]


def test_a_sink_that_is_made_again_gets_what_comes_then(stream: Stream) -> None:
    fill(stream.folder, "in", numbers(30))
    stream.run()
    admin(stream.folder, lambda topics: topics.delete("out", force=True))
    with pytest.raises(QueryFailed, match="TopicNotFound"):
        fill(stream.folder, "in", numbers(30, 40))
        stream.run()
    make_topics(stream.folder, "out")
    stream.run()
    assert sunk(stream) == [*range(30, 40)]


# Retention ----------------------------------------------------------------------------------------


@contextmanager
def trimming(stream: Stream, count: int) -> Iterator[Callable[[int], None]]:
    """Messages, two a ledger and each an entry; what is called removes so many in front."""
    two_a_ledger = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(stream.folder, broker_options=two_a_ledger) as client:
        consumer = client.subscribe("in", "s")
        producer = client.create_producer("in")
        for number in range(count):
            producer.send(b"%d" % number)

        def remove(count: int) -> None:
            for _ in range(count):
                consumer.acknowledge(consumer.receive(60_000))
            inspect(client).settle()

        yield remove


@pytest.mark.parametrize("step", ["", "offsets added", "planned", "tasks done", "sink committed"])
def test_retention_that_overtakes_a_query_stops_it_or_is_told(
    stream: Stream, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Between two runs, or between the logs of a batch: what is removed is told, what is left is
    written once."""
    stream.source["leaseSeconds"] = "0"
    with trimming(stream, 12) as remove:
        if step:
            stream.stop_at(step, 2)
        else:
            stream.stop_at("commits added", 2)
        before = sunk(stream)
        remove(8)
        with pytest.raises(QueryFailed, match="failOnDataLoss"):
            stream.run()
        assert sunk(stream) == before
        stream.source["failOnDataLoss"] = "false"
        with caplog.at_level(logging.WARNING, "pulsarx"):
            try:
                stream.run()
            except QueryFailed as error:
                assert step == "sink committed" and "txnConflict" in str(error)
                stream.sink["txnConflict"] = "ignore"
                stream.run()
        assert "messages are lost" in caplog.text
        found = sunk(stream)
        assert found[: len(before)] == before and found[-4:] == [8, 9, 10, 11]
        assert len(found) == len(set(found))
        assert {*range(12)} - set(found) <= {*range(8)} - set(before)


def test_what_a_batch_was_planned_to_read_is_there_when_it_is_repeated(stream: Stream) -> None:
    """Its lease holds it, for as long as leaseSeconds says, though its query is dead."""
    with trimming(stream, 12) as remove:
        stream.stop_at("planned", 2)
        remove(8)
        stream.run()
        assert sunk(stream) == [*range(12)]
