"""Runs format("pulsarx") as Spark does, without Java: queries in micro-batches, and batch jobs.

What Spark's JVM does between the calls of a Python data source is done here, by MicroBatchExecution
of Spark 4.3: the logs of offsets and of commits in the checkpoint, which batch a start repeats,
limits, attempts of tasks, what is pickled on its way, the context of a task, commit and abort.
test_micro_batches compares it with Spark, call by call.

    a query (trigger availableNow)          where
    1. streamReader, the sink's writer      driver
    2. latestOffset                         driver
    3. offsets/N                            checkpoint
    4. commit of the source, up to N - 1    driver
    5. partitions                           driver
    6. read, write                          a process for each attempt of a task
    7. commit of the sink, or abort         a process of its own
    8. commits/N                            checkpoint

What is done for a task, or for the commit of a sink, is run by `Here` in this process, one after
the other, and by `Forks` of killed_queries in processes of their own.
"""

from __future__ import annotations

import functools
import json
import os
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition, WriterCommitMessage
from pyspark.sql.datasource_internal import ReadLimitRegistry
from pyspark.sql.pandas.types import to_arrow_schema

from pulsarx.spark.data_source import PulsarxDataSource

ATTEMPTS = 3  # as local[2,3]
_LIMITS = ReadLimitRegistry()
_PICKLES = CloudPickleSerializer()


class QueryFailed(Exception):
    """The query ended with an error, whose text it has; it can be started again."""


class Dead(Exception):
    """A process ended without an answer."""


def text_of(error: BaseException) -> str:
    """With its notes."""
    return "".join(traceback.format_exception_only(error))


def travelled(thing: Any) -> Any:
    """As it is on the other side of a socket of Spark."""
    return _PICKLES.loads(_PICKLES.dumps(thing))


class Here:
    """Does the work of other processes in this one."""

    def at(self, step: str) -> None:
        """The driver is at a step. Tests that kill it do it here."""

    def start(self, role: str, work: Callable[[], Any]) -> Callable[[], Any]:
        """Begin some work; the answer waits for its result, or raises what failed."""
        try:
            found = travelled(work())
        except Exception as error:
            failed = error
            return lambda: _raise(failed)
        return lambda: found


def _raise(error: Exception) -> Any:
    raise error


class Checkpoint:
    """The logs of a query, as files that are there as a whole or not at all."""

    def __init__(self, place: Path, at: Callable[[str], None]) -> None:
        self._place = place
        self._at = at
        for each in ("offsets", "commits"):
            (place / each).mkdir(parents=True, exist_ok=True)

    def query_id(self) -> str:
        """Made with the checkpoint."""
        path = self._place / "metadata"
        if not path.exists():
            if self.last("offsets") is not None or self.last("commits") is not None:
                raise QueryFailed("the checkpoint has logs, and no metadata")
            self._add(path, json.dumps({"id": str(uuid.uuid4())}))
        return str(json.loads(path.read_text())["id"])

    def last(self, log: str) -> int | None:
        numbers = [int(each) for each in os.listdir(self._place / log) if each.isdigit()]
        return max(numbers, default=None)

    def offset(self, number: int) -> str:
        lines = self._lines("offsets", number)
        if len(lines) < 3:
            raise QueryFailed(f"offsets/{number}: next on empty iterator")
        return lines[2]

    def add_offset(self, number: int, offset: str) -> None:
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}})
        self._add(self._place / "offsets" / str(number), f"v1\n{head}\n{offset}")

    def check_commit(self, number: int) -> None:
        self._lines("commits", number)

    def add_commit(self, number: int) -> None:
        text = 'v1\n{"nextBatchWatermarkMs":0}'
        self._add(self._place / "commits" / str(number), text)

    def _lines(self, log: str, number: int) -> list[str]:
        path = self._place / log / str(number)
        if not path.exists():
            raise QueryFailed(f"{log}/{number} is not there")
        found = path.read_text().splitlines()
        if not found:
            raise QueryFailed(f"{log}/{number}: Incomplete log file")
        return found

    def _add(self, path: Path, text: str) -> None:
        fresh = path.parent / f".{path.name}.{uuid.uuid4()}.tmp"
        fresh.write_text(text)
        self._at(f"{path.parent.name} written")
        try:
            os.link(fresh, path)  # two drivers cannot both
        except FileExistsError:
            raise QueryFailed(f"{path} is there: another query uses this checkpoint") from None
        finally:
            fresh.unlink()
        self._at(f"{path.parent.name} added")


class Query:
    """A stream from topics to topics. One run at a time."""

    def __init__(
        self,
        checkpoint: Path,
        source: Mapping[str, str],
        sink: Mapping[str, str],
        *,
        kind: type[Any] = PulsarxDataSource,
        processes: Here | None = None,
    ) -> None:
        self._processes = processes or Here()
        self._at = self._processes.at
        self._place = checkpoint
        self._kind = kind
        self._given = source, {**sink, "checkpointLocation": str(checkpoint)}

    def run(self) -> int:
        """Start it, and wait until it has done what is there; the number of its batches.
        QueryFailed."""
        try:
            return self._run()
        except QueryFailed:
            raise
        except Exception as error:
            raise QueryFailed(text_of(error)) from error

    def _run(self) -> int:
        self._load()
        last = self._checkpoint.last("offsets")
        if last is not None:
            self._checkpoint.offset(last)  # Spark reads its settings there
        self._reader.prepareForTriggerAvailableNow()
        limit = self._reader.getDefaultReadLimit()
        self._limit = _LIMITS.get({**vars(limit), "_type": type(limit).__name__})
        self._recover(last)
        count = 0
        while self._end is not None or self._construct():
            self._run_batch()
            count += 1
        return count

    def _load(self) -> None:
        """load() and start()."""
        source, sink = self._given
        made = self._kind(options=CaseInsensitiveDict(source))
        self._schema = made.schema()
        self._source = travelled(made)
        self._reader = self._source.streamReader(schema=self._schema)
        self._run_id = str(uuid.uuid4())
        self._checkpoint = Checkpoint(self._place, self._at)
        self._query_id = self._checkpoint.query_id()
        self._sink_options = CaseInsensitiveDict(sink)
        self._sink = travelled(self._kind(options=self._sink_options))
        self._at("loaded")

    def _recover(self, last: int | None) -> None:
        """Which batch comes next, and where it begins. last: in the log of offsets."""
        self._begin: str | None = None  # behind the last batch that is done
        self._end: str | None = None  # of the batch that is constructed
        self._number = 0
        if last is None:
            return
        end = self._checkpoint.offset(last)
        done = self._checkpoint.last("commits")
        if done is not None:
            self._checkpoint.check_commit(done)
        if done == last:
            self._begin, self._number = end, last + 1
            return
        self._end, self._number = end, last
        if last:
            self._begin = self._checkpoint.offset(last - 1)

    def _start(self) -> Any:
        if self._begin is None:
            return json.loads(json.dumps(self._reader.initialOffset()))
        return json.loads(self._begin)

    def _construct(self) -> bool:
        """Whether there is another batch; its offsets are in the log then."""
        end = json.dumps(self._reader.latestOffset(self._start(), self._limit))
        self._reader.reportLatestOffset()
        self._at("latest offset")
        if end == self._begin:
            return False
        self._checkpoint.add_offset(self._number, end)
        if self._number:
            self._reader.commit(json.loads(self._checkpoint.offset(self._number - 1)))
            self._at("source committed")
        self._end = end
        return True

    def _run_batch(self) -> None:
        assert self._end is not None
        parts = self._reader.partitions(self._start(), json.loads(self._end))
        self._at("planned")
        assert isinstance(parts, list) and all(isinstance(each, InputPartition) for each in parts)
        write = travelled(self._writer(self._kind(options=self._sink_options)))
        messages = self._tasks(write, travelled(parts) or [None])
        self._at("tasks done")
        if None in messages:
            self._finish(messages, abort=True)
            raise QueryFailed(f"a task of batch {self._number} failed {ATTEMPTS} times")
        try:
            self._finish(messages, abort=False)
        except Exception:
            self._finish(messages, abort=True)
            raise
        self._at("sink committed")
        self._checkpoint.add_commit(self._number)
        self._begin, self._end = self._end, None
        self._number += 1

    def _writer(self, source: Any) -> Any:
        return source.streamWriter(schema=self._schema, overwrite=False)

    def _tasks(self, writer: Any, parts: list[Any]) -> list[Any]:
        """The message of each; None: it failed too often."""
        properties = {
            "sql.streaming.queryId": self._query_id,
            "streaming.sql.batchId": str(self._number),
            "spark.jobGroup.id": self._run_id,
            "callSite.short": "start at NativeMethodAccessorImpl.java:0",
        }

        def work(index: int, attempt: int) -> Any:
            with_context(index, attempt, properties)
            rows = iter([])
            if parts[index] is not None:
                rows = checked(travelled(self._reader).read(parts[index]), self._schema)
            return told(travelled(writer).write(rows))

        return run_tasks(self._processes, len(parts), work)

    def _finish(self, messages: list[Any], *, abort: bool) -> None:
        """In a process of its own, with a writer of its own."""
        messages = travelled(messages)

        def work() -> None:
            writer = self._writer(travelled(self._sink))
            (writer.abort if abort else writer.commit)(messages, self._number)

        wait = self._processes.start("abort" if abort else "commit", work)
        self._at("finishing")
        wait()


class Job:
    """Batch jobs: what `read` and `write` of format("pulsarx") do."""

    def __init__(
        self, *, kind: type[Any] = PulsarxDataSource, processes: Here | None = None
    ) -> None:
        self._kind = kind
        self._processes = processes or Here()

    def read(self, options: Mapping[str, str]) -> list[Any]:
        """Record batches, in the order of the partitions."""
        made = self._kind(options=CaseInsensitiveDict(options))
        schema = made.schema()
        reader = travelled(made).reader(schema=schema)
        parts = travelled(reader.partitions()) or [InputPartition(None)]
        self._processes.at("planned")

        def work(index: int, attempt: int) -> list[Any]:
            with_context(index, attempt, {})
            return list(checked(travelled(reader).read(parts[index]), schema))

        found = run_tasks(self._processes, len(parts), work)
        return [batch for each in found for batch in each]

    def write(self, options: Mapping[str, str], schema: Any, parts: list[list[Any]]) -> None:
        """Record batches by Spark partition. QueryFailed."""
        made = self._kind(options=CaseInsensitiveDict(options))
        writer = travelled(made.writer(schema, False))
        self._processes.at("planned")

        def work(index: int, attempt: int) -> Any:
            with_context(index, attempt, {})
            return told(travelled(writer).write(iter(parts[index])))

        messages = run_tasks(self._processes, len(parts), work)
        self._processes.at("tasks done")

        def finish(abort: bool) -> None:
            call = travelled(writer)
            wait = self._processes.start(
                "abort" if abort else "commit",
                lambda: (call.abort if abort else call.commit)(travelled(messages)),
            )
            self._processes.at("finishing")
            wait()

        try:
            if None in messages:
                raise QueryFailed(f"a task of the job failed {ATTEMPTS} times")
            finish(False)
        except Exception as error:
            finish(True)
            raise QueryFailed(text_of(error)) from error


def run_tasks(processes: Here, count: int, work: Callable[[int, int], Any]) -> list[Any]:
    """The answers of tasks, each tried a few times; None: of one that failed at all of them."""
    found: list[Any] = [None] * count
    left = list(range(count))
    for attempt in range(ATTEMPTS):
        waits = {
            index: processes.start("task", functools.partial(as_task, work, index, attempt))
            for index in left
        }
        processes.at("tasks begun")
        for index, wait in waits.items():
            try:
                found[index] = wait()
            except Exception as error:
                processes.at(f"task failed: {error}")
            else:
                left.remove(index)
        if not left:
            break
    return found


def as_task(work: Callable[[int, int], Any], index: int, attempt: int) -> Any:
    """The process may be the driver's own, which is in no task before and behind it."""
    try:
        return work(index, attempt)
    finally:
        TaskContext._setTaskContext(None)


def with_context(index: int, attempt: int, properties: Mapping[str, str]) -> None:
    """Make the context of a task that is of this process from now on."""
    made = object.__new__(TaskContext)
    made._partitionId, made._attemptNumber = index, attempt
    made._stageId, made._taskAttemptId = 0, uuid.uuid4().int >> 65
    made._localProperties = dict(properties)
    made._resources = {}
    TaskContext._setTaskContext(made)


def checked(batches: Any, schema: Any) -> Iterator[Any]:
    """As Spark insists on it: the first batch is exactly of the schema."""
    assert isinstance(batches, Iterator)
    wanted = to_arrow_schema(schema, timezone="UTC")
    for number, batch in enumerate(batches):
        assert number or batch.schema.equals(wanted), f"{batch.schema} is not {wanted}"
        yield batch


def told(message: Any) -> Any:
    assert isinstance(message, WriterCommitMessage)
    return message
