"""A data source that notes what is asked of it, in the order of the calls: by Spark, and by
micro_batches, which must ask the same. Imported by Spark's workers.

A note is JSON, [call, arguments...]; those of drivers and those of tasks are in files of their own.
Nothing is noted of stop: Spark calls it or not, as its processes end sooner or later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import STREAM, STREAM_SINK, read_options
from pulsarx.spark.stream_reader import StreamReader
from pulsarx.spark.stream_writer import StreamWriter

OWN = ("notes", "failat")
DRIVER, TASKS = "driver", "tasks"


def note(place: str, of: str, *said: Any) -> None:
    """In one write, so that processes may share the file."""
    line = json.dumps(said) + "\n"
    file = os.open(Path(place) / of, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def notes_of(place: Path, of: str) -> list[Any]:
    path = place / of
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def note_task(place: str, call: str) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    query = bool(context.getLocalProperty("sql.streaming.queryId"))
    run = bool(context.getLocalProperty("spark.jobGroup.id"))
    said = [int(batch or -1), context.partitionId(), context.attemptNumber(), query, run]
    note(place, TASKS, call, *said)


class RecordedReader(StreamReader):
    notes: str

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "notes": self.notes}

    def initialOffset(self) -> Any:
        found = super().initialOffset()
        note(self.notes, DRIVER, "initialOffset", found)
        return found

    def getDefaultReadLimit(self) -> Any:
        found = super().getDefaultReadLimit()
        note(self.notes, DRIVER, "getDefaultReadLimit", repr(found))
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        note(self.notes, DRIVER, "prepareForTriggerAvailableNow")
        super().prepareForTriggerAvailableNow()

    def latestOffset(self, start: Any, limit: Any) -> Any:
        found = super().latestOffset(start, limit)
        note(self.notes, DRIVER, "latestOffset", start, repr(limit), found)
        return found

    def reportLatestOffset(self) -> Any:
        note(self.notes, DRIVER, "reportLatestOffset")
        return super().reportLatestOffset()

    def partitions(self, start: Any, end: Any) -> Any:
        found = super().partitions(start, end)
        note(self.notes, DRIVER, "partitions", start, end, len(found))
        return found

    def commit(self, end: Any) -> None:
        note(self.notes, DRIVER, "commit", end)
        super().commit(end)

    def read(self, partition: Any) -> Iterator[Any]:
        note_task(self.notes, "read")
        return super().read(partition)


class RecordedWriter(StreamWriter):
    notes: str
    fails_at: str

    def write(self, iterator: Iterator[Any]) -> Any:
        note_task(self.notes, "write")
        found = super().write(iterator)
        if self._is_first() and self._fails("task"):
            raise RuntimeError("fails behind its last row")
        return found

    def commit(self, messages: list[Any], batchId: int) -> None:
        counts = [None if each.message is None else each.message.message_count for each in messages]
        note(self.notes, DRIVER, "sink commit", batchId, counts)
        super().commit(messages, batchId)
        if self._fails("commit"):
            raise RuntimeError("fails behind its commit")

    def abort(self, messages: list[Any], batchId: int) -> None:
        note(self.notes, DRIVER, "sink abort", batchId, [each is None for each in messages])
        super().abort(messages, batchId)

    def _is_first(self) -> bool:
        from pyspark import TaskContext

        context = TaskContext.get()
        return context is not None and context.partitionId() == 0

    def _fails(self, place: str) -> bool:
        """Once."""
        if place != self.fails_at:
            return False
        try:
            os.close(os.open(Path(self.notes) / f"failed-{place}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


class RecordedSource(PulsarxDataSource):
    @classmethod
    def name(cls) -> str:
        return "pulsarx-recorded"

    def _given(self) -> dict[str, str]:
        return {name: self.options[name] for name in self.options if name not in OWN}

    def schema(self) -> Any:
        return PulsarxDataSource(self._given()).schema()

    def streamReader(self, schema: Any) -> RecordedReader:
        options = read_options(self._given(), STREAM)
        made = RecordedReader(options, tuple(schema.names), None)
        made.notes = self.options["notes"]
        return made

    def streamWriter(self, schema: Any, overwrite: bool) -> RecordedWriter:
        options = read_options(self._given(), STREAM_SINK)
        made = RecordedWriter(options, schema, overwrite)
        made.notes, made.fails_at = self.options["notes"], self.options.get("failat", "")
        return made
