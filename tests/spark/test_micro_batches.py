"""The micro-batches of tests without Java are those of Spark: the same script asks the source and
the sink the same, call by call, and leaves the same checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from micro_batches import Query, QueryFailed
from pyspark.errors.exceptions.captured import CapturedException
from recorded_source import DRIVER, TASKS, RecordedSource, notes_of
from spark_steps import make_topics, values
from stream_steps import fill, numbers

Run = Callable[[dict[str, str], dict[str, str], Path], bool]


def by_hand(source: dict[str, str], sink: dict[str, str], checkpoint: Path) -> bool:
    try:
        Query(checkpoint, source, sink, kind=RecordedSource).run()
    except QueryFailed:
        return False
    return True


def by_spark(spark: Any) -> Run:
    def run(source: dict[str, str], sink: dict[str, str], checkpoint: Path) -> bool:
        frame = spark.readStream.format("pulsarx-recorded").options(**source).load()
        writer = frame.writeStream.format("pulsarx-recorded").options(**sink)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        try:
            assert writer.start().awaitTermination(200)
        except CapturedException:
            return False
        return True

    return run


def last(checkpoint: Path, log: str) -> Path:
    found = [each for each in (checkpoint / log).iterdir() if each.name.isdigit()]
    return max(found, key=lambda each: int(each.name))


def take_away(path: Path) -> None:
    """With what Hadoop has written beside it."""
    path.unlink()
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def empty(path: Path) -> None:
    path.write_text("")
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


class Script:
    """Does the same by each way of running it; what it has seen."""

    def __init__(self, run: Run, place: Path) -> None:
        place.mkdir()
        self._run = run
        self.folder, self.notes, self.checkpoint = (place / each for each in ("data", "n", "c"))
        self.notes.mkdir()
        self.seen: list[Any] = []
        make_topics(self.folder, "in", "out")

    def query(self, fails_at: str = "") -> None:
        notes = {"notes": str(self.notes)}
        source = {
            "root": str(self.folder), "topic": "in", "columns": "value",
            "startingOffsets": "earliest", "maxEntriesPerTrigger": "2", "minPartitions": "2",
        }  # fmt: skip
        sink = {"root": str(self.folder), "topic": "out", "failAt": fails_at}
        went_well = self._run(source | notes, sink | notes, self.checkpoint)
        tasks = sorted(map(json.dumps, notes_of(self.notes, TASKS)))
        self.seen.append([went_well, notes_of(self.notes, DRIVER), tasks, self.logs()])
        for path in self.notes.iterdir():
            path.unlink()

    def logs(self) -> list[Any]:
        found: list[Any] = []
        for log in ("offsets", "commits"):
            paths = [each for each in (self.checkpoint / log).iterdir() if each.name.isdigit()]
            for path in sorted(paths, key=lambda each: int(each.name)):
                found.append([log, int(path.name), *path.read_text().split("\n")[2:]])
        return found

    def told(self) -> str:
        """Without what is another in each folder."""
        text = json.dumps(self.seen)
        for _, calls, _, _ in self.seen:
            for _, *arguments in calls:
                for each in arguments:
                    if isinstance(each, dict):
                        text = text.replace(each["stream/folder"], "FOLDER")
        return text


def play(run: Run, place: Path) -> list[Any]:
    script = Script(run, place)
    script.query()  # Spark makes a first batch, though there is nothing
    fill(script.folder, "in", numbers(40))
    script.query()
    script.query()  # nothing is new
    take_away(last(script.checkpoint, "commits"))  # a kill in front of it
    fill(script.folder, "in", numbers(40, 50))
    script.query()
    fill(script.folder, "in", numbers(50, 60))
    script.query("task")
    fill(script.folder, "in", numbers(60, 70))
    script.query("commit")  # it has attached by then; Spark aborts, and repeats
    script.query()
    assert values(script.folder, "out") == numbers(70)
    for log in ("offsets", "commits"):
        whole = last(script.checkpoint, log).read_text()
        empty(last(script.checkpoint, log))
        script.query()
        last(script.checkpoint, log).write_text(whole)
    for _ in range(2):
        take_away(last(script.checkpoint, "commits"))
    script.query()  # the last one only is repeated
    take_away(last(script.checkpoint, "offsets"))
    script.query()  # more commits than offsets
    take_away(script.checkpoint / "metadata")
    script.query()
    assert values(script.folder, "out") == numbers(70)
    return json.loads(script.told())


def test_the_source_and_the_sink_are_asked_as_spark_asks_them(spark: Any, tmp_path: Path) -> None:
    spark.dataSource.register(RecordedSource)
    ours, sparks = play(by_hand, tmp_path / "ours"), play(by_spark(spark), tmp_path / "sparks")
    for mine, its in zip(ours, sparks, strict=True):
        assert mine == its
