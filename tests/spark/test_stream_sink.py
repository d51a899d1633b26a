"""The stream sink, as Spark calls it, without a session: a batch is there once, in its order,
whichever of its runs commits and whoever aborts behind it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from spark_steps import catalogue_number, ledger_count, make_topics, messages, staged, values

from pulsarx.broker.staging.staging import make_staging
from pulsarx.spark import write_commit
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.stream_writer import _check_mounted

ROWS = StructType([StructField("value", BinaryType()), StructField("__key", StringType())])
Rows = list[tuple[str, bytes]]


class Task:
    """What Spark tells a task."""

    def __init__(self, run: Run, batch: int, partition: int, attempt: int) -> None:
        self.properties = {
            "sql.streaming.queryId": run.query,
            "streaming.sql.batchId": str(batch),
            "spark.jobGroup.id": run.name,
        }
        self.partition, self.attempt = partition, attempt

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties.get(name)

    def partitionId(self) -> int:
        return self.partition

    def stageId(self) -> int:
        return 1

    def taskAttemptId(self) -> int:
        return self.attempt


class Run:
    """One start of a query."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.folder, self.monkeypatch, self.name = folder, monkeypatch, name
        self.query = "query"
        self._attempt = 0

    def writer(self, **options: str) -> Any:
        """Spark makes a new one for each commit and abort."""
        given = {"root": str(self.folder), "topic": "out"} | options
        return PulsarxDataSource(given).streamWriter(ROWS, False)

    def task(self, batch: int, partition: int, rows: Rows, **options: str) -> Any:
        import pyarrow as pa
        from pyspark import TaskContext

        self._attempt += 1
        told = Task(self, batch, partition, self._attempt)
        with self.monkeypatch.context() as patch:
            patch.setattr(TaskContext, "get", lambda: told)
            writer = pickle.loads(pickle.dumps(self.writer(**options)))
            columns = [
                pa.array([value for _, value in rows], pa.binary()),
                pa.array([key for key, _ in rows], pa.string()),
            ]
            batches = [pa.record_batch(columns, ["value", "__key"])]
            return pickle.loads(pickle.dumps(writer.write(iter(batches))))

    def tasks(self, batch: int, *parts: Rows, **options: str) -> list[Any]:
        return [self.task(batch, place, rows, **options) for place, rows in enumerate(parts)]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Run]:
    make_topics(folder, "out")
    return lambda name: Run(folder, monkeypatch, name)


def rows(*bounds: int) -> Rows:
    return [(str(number % 2), b"%d" % number) for number in range(*bounds)]


def test_a_stream_creates_its_topic_with_its_first_batch(
    folder: Path, run: Callable[[str], Run]
) -> None:
    first = run("first")
    for batch in (0, 0, 1):  # the first is repeated
        named = {"topic": "made", "createTopic": "true"}
        told = first.tasks(batch, rows(batch, batch + 1), **named)
        if batch == 0 and first.name == "first":
            with pytest.raises(pulsarx.TopicNotFound):
                values(folder, "made")
        first.writer(**named).commit(told, batch)
        first = run("second")
    assert values(folder, "made") == [b"0", b"1"]


def test_an_abort_behind_the_commit_takes_nothing_away(
    folder: Path, run: Callable[[str], Run]
) -> None:
    first = run("first")
    told = first.tasks(0, rows(5), rows(5, 9))
    first.writer().commit(told, 0)
    first.writer().abort(told, 0)
    first.writer().abort([None, *told], 0)
    assert messages(folder, "out") == rows(9)
    assert ledger_count(folder, "out") == 2 and not staged(folder)


def test_an_abort_takes_the_files_of_its_own_run_only(
    folder: Path, run: Callable[[str], Run]
) -> None:
    """One that was thought dead aborts, or commits, while the next one is at the same batch."""
    first, second = run("first"), run("second")
    late, told = first.tasks(0, rows(5)), second.tasks(0, rows(5))
    first.writer().abort(late, 0)
    assert len(staged(folder)) == 1
    second.writer().commit(told, 0)
    assert messages(folder, "out") == rows(5)


@pytest.mark.parametrize("option", ["true", "false"])
def test_small_ledgers_are_merged_after_every_hundredth_batch(
    folder: Path, run: Callable[[str], Run], option: str
) -> None:
    first = run("first")
    for batch in range(97, 101):
        parts = rows(2 * batch, 2 * batch + 1), rows(2 * batch + 1, 2 * batch + 2)
        told = first.tasks(batch, *parts, mergeSmallLedgers=option)
        first.writer(mergeSmallLedgers=option).commit(told, batch)
        count = 2 * (batch - 96)
        files = list((folder / "ledgers").rglob("*.ledger"))
        if option == "true" and batch >= 99:
            count = 1 + 2 * (batch - 99)
        assert len(files) == count
    assert messages(folder, "out") == rows(2 * 97, 2 * 101)
    assert ledger_count(folder, "out") == 8


def test_a_batch_of_many_files_is_merged_at_once(
    folder: Path, run: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_commit, "_MERGED_FILES", 3)
    first = run("first")
    first.writer().commit(first.tasks(0, rows(2), rows(2, 3), rows(3, 4)), 0)
    assert len(list((folder / "ledgers").rglob("*.ledger"))) == 1
    assert messages(folder, "out") == rows(4)


@pytest.mark.parametrize("error", [errors.StorageFullError(detail="no room"), OSError("no room")])
def test_a_batch_is_written_though_its_ledgers_cannot_be_merged(
    folder: Path, run: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What was no error of PulsarX failed the query behind a batch that was attached."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(write_commit, "merge_small_ledgers", refuse)
    first = run("first")
    told = first.tasks(99, rows(2), rows(2, 3))
    flaw = r"not merged behind version 99 of 'spark-query-\S+ > \S+/out', which is written: no room"
    with pytest.warns(UserWarning, match=flaw):
        first.writer().commit(told, 99)
    assert messages(folder, "out") == rows(3)


@pytest.mark.parametrize("alive", [False, True])
def test_a_batch_that_is_repeated_is_attached_once(
    folder: Path, run: Callable[[str], Run], alive: bool
) -> None:
    owner = pulsarx.Client(folder, durability="os") if alive else None
    first, second, third = run("first"), run("second"), run("third")
    zombie = first.tasks(1, rows(5, 9))
    first.writer().commit(first.tasks(0, rows(5)), 0)
    second.writer().commit(second.tasks(0, rows(5)), 0)
    for again in (second, third):
        again.writer().commit(again.tasks(1, rows(5, 9)), 1)
    first.writer().commit(zombie, 1)
    second.writer().commit(second.tasks(2, rows(9, 12)), 2)
    with pytest.raises(pulsarx.NotAllowedError, match="version 2 was before"):
        first.writer().commit(zombie, 1)
    if owner is not None:
        owner.close()
    assert messages(folder, "out") == rows(12)
    assert not staged(folder)


def test_a_batch_with_other_rows_is_refused_unless_asked_for(
    folder: Path, run: Callable[[str], Run]
) -> None:
    """A checkpoint that was put back used to lose what its batches had taken up, with a warning."""
    first = run("first")
    for batch in range(2):
        told = first.tasks(batch, rows(batch, batch + 1))
        first.writer().commit(told, batch)
    with pytest.raises(pulsarx.NotAllowedError, match="put back from an older copy"):
        first.writer().commit(first.tasks(1, rows(1, 3)), 1)
    with pytest.raises(pulsarx.NotAllowedError, match=r"must ascend.*put back from an older copy"):
        first.writer().commit(first.tasks(0, rows(1)), 0)
    named = {"txnConflict": "ignore"}
    first.writer(**named).commit(first.tasks(1, rows(1, 3), **named), 1)
    first.writer().commit(first.tasks(2, rows(2, 3)), 2)
    assert messages(folder, "out") == rows(3)
    assert not staged(folder)


def test_queries_do_not_know_of_each_other(folder: Path, run: Callable[[str], Run]) -> None:
    first, second = run("first"), run("second")
    second.query = "another query"
    for each in (first, second):
        each.writer().commit(each.tasks(0, rows(3)), 0)
    assert messages(folder, "out") == rows(3) + rows(3)


@pytest.mark.parametrize("alive", [False, True])
def test_a_copied_checkpoint_that_goes_on_into_another_topic_writes_there(
    folder: Path, run: Callable[[str], Run], alive: bool
) -> None:
    """Its batches used to count as written, because the query had written them to the first topic:
    every one of them was lost, without a word."""
    make_topics(folder, "copy", partitions=2)
    owner = pulsarx.Client(folder, durability="os") if alive else None
    first, second = run("first"), run("second")
    for batch in range(3):
        told = first.tasks(batch, rows(batch, batch + 1))
        first.writer().commit(told, batch)
    for batch in (1, 2, 2, 3):
        told = second.tasks(batch, rows(batch, batch + 1), topic="copy")
        second.writer(topic="copy").commit(told, batch)
    # The first one is not disturbed by how far the copy is.
    told = first.tasks(3, rows(3, 4))
    first.writer().commit(told, 3)
    if owner is not None:
        owner.close()
    assert messages(folder, "out") == rows(4)
    assert sorted(messages(folder, "copy", 2)) == sorted(rows(1, 4))
    assert not staged(folder)


def test_with_topics_by_column_a_batch_is_one_for_all_of_them(
    folder: Path, run: Callable[[str], Run]
) -> None:
    import pyarrow as pa

    make_topics(folder, "other")
    first = run("first")

    def task(batch: int, topics: list[str]) -> list[Any]:
        from pyspark import TaskContext

        columns = [pa.array(topics), pa.array([str(batch)] * len(topics))]
        batches = [pa.record_batch(columns, ["__topic", "value"])]
        with first.monkeypatch.context() as patch:
            patch.setattr(TaskContext, "get", lambda: Task(first, batch, 0, 0))
            return [by_topic().write(iter(batches))]

    def by_topic() -> Any:
        fields = [StructField(name, StringType()) for name in ("__topic", "value")]
        made = PulsarxDataSource({"root": str(folder)})
        return made.streamWriter(StructType(fields), False)

    by_topic().commit(task(0, ["out"]), 0)
    with pytest.raises(pulsarx.NotAllowedError, match="with 1 messages, and these 2 are not"):
        by_topic().commit(task(0, ["out", "other"]), 0)
    by_topic().commit(task(0, ["out"]), 0)
    by_topic().commit(task(1, ["out", "other"]), 1)
    assert values(folder, "out") == [b"0", b"1"] and values(folder, "other") == [b"1"]


def test_order_is_that_of_the_partitions_whichever_ends_first(
    folder: Path, run: Callable[[str], Run]
) -> None:
    first = run("first")
    told = [
        first.task(0, place, rows(place * 10, place * 10 + 10), maxLedgerBytes="1")
        for place in (2, 0, 1)
    ]
    first.writer().commit(told, 0)
    assert messages(folder, "out") == rows(30)


def test_an_attempt_that_lost_leaves_nothing_that_counts(
    folder: Path, run: Callable[[str], Run]
) -> None:
    first = run("first")
    first.task(0, 0, rows(5))  # finished, and its answer never came
    told = first.tasks(0, rows(5), rows(5, 9))
    first.writer().commit(told, 0)
    first.task(0, 1, rows(5, 9))  # still at work then
    assert messages(folder, "out") == rows(9)
    second = run("second")
    second.writer().commit(second.tasks(1, rows(9, 12)), 1)
    assert messages(folder, "out") == rows(12)


def test_a_batch_without_rows_writes_nothing(folder: Path, run: Callable[[str], Run]) -> None:
    first = run("first")
    before = catalogue_number(folder)
    first.writer().commit(first.tasks(0, [], []), 0)
    first.writer().commit([], 1)
    assert catalogue_number(folder) == before and not list(folder.glob("staging/*"))


def test_a_query_takes_away_what_others_abandoned(folder: Path, run: Callable[[str], Run]) -> None:
    query = run("query")
    area = Path(make_staging(folder, "dead"))
    os.utime(area, (1, 1))
    query.writer().commit(query.tasks(999, rows(3)), 999)
    assert area.exists()
    query.writer().commit(query.tasks(1000, rows(3, 5)), 1000)
    assert not area.exists()
    assert messages(folder, "out") == rows(5)


def test_a_host_without_the_folder_says_so(folder: Path, tmp_path: Path) -> None:
    make_topics(folder, "out")
    make_topics(tmp_path / "other", "out")
    made = PulsarxDataSource({"root": str(folder), "topic": "out"}).streamWriter(ROWS, False)
    folder.rename(tmp_path / "away")
    with pytest.raises(errors.FolderError, match=r"on host.*does not exist.*Mount the same path"):
        _check_mounted(made._job)
    (tmp_path / "other").rename(folder)
    with pytest.raises(errors.FolderError, match=r"on host.*it is data directory.*Mount the same"):
        _check_mounted(made._job)


def test_each_batch_sees_the_topics_there_are(
    folder: Path, run: Callable[[str], Run], tmp_path: Path
) -> None:
    """Although the process that plans them keeps what it has read of the folder."""
    first = run("first")
    with pytest.raises(errors.TopicNotFound):
        first.writer(topic="later")
    make_topics(folder, "later", partitions=2)
    told = first.tasks(0, rows(10), topic="later")
    first.writer().commit(told, 0)
    assert sorted(messages(folder, "later", 2)) == sorted(rows(10))
    folder.rename(tmp_path / "away")
    make_topics(folder, "out")
    told = first.tasks(1, rows(3))
    first.writer().commit(told, 1)
    assert messages(folder, "out") == rows(3)


def test_a_spark_that_does_not_tell_the_batch_is_refused(
    folder: Path, run: Callable[[str], Run]
) -> None:
    first = run("first")
    first.query = ""
    with pytest.raises(errors.OperationNotSupported, match="foreachBatch"):
        first.tasks(0, rows(1))
    assert values(folder, "out") == []
