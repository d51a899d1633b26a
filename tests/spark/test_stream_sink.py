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


@pytest.mark.parametrize("alive", [False, True])
def test_a_batch_that_is_repeated_is_attached_once(
    folder: Path, run: Callable[[str], Run], alive: bool
) -> None:
    owner = pulsarx.Client(folder, durability="os") if alive else None
    first, second, third = run("first"), run("second"), run("third")
    zombie = first.tasks(1, rows(5, 9))
    first.writer().commit(first.tasks(0, rows(5)), 0)
    for again in (second, third):
        again.writer().commit(again.tasks(0, rows(5)), 0)
        again.writer().commit(again.tasks(1, rows(5, 9)), 1)
    first.writer().commit(zombie, 1)
    second.writer().commit(second.tasks(2, rows(9, 12)), 2)
    first.writer().commit(zombie, 1)
    if owner is not None:
        owner.close()
    assert messages(folder, "out") == rows(12)
    assert not staged(folder)


def test_queries_do_not_know_of_each_other(folder: Path, run: Callable[[str], Run]) -> None:
    first, second = run("first"), run("second")
    second.query = "another query"
    for each in (first, second):
        each.writer().commit(each.tasks(0, rows(3)), 0)
    assert messages(folder, "out") == rows(3) + rows(3)


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
