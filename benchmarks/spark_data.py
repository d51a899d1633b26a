"""The same messages as Parquet files and as ledgers of a topic: so many files of each, one a task.

Made without Spark. A value is 100 bytes that nothing compresses.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = 8
VALUE_SIZE = 100
ROWS_AT_ONCE = 65_536
# What the messages of the rich topic have besides a value: a key, an event time, a property.
RICH = {"key": "key", "event_time": "event_time", "properties": "properties"}


@dataclass(frozen=True)
class SparkData:
    """Where they are, and how many messages each of them holds: a multiple of PARTS."""

    folder: Path
    messages: int

    @property
    def parquet(self) -> Path:
        return self.folder / "parquet"

    @property
    def root(self) -> Path:
        """The data directory, with the topics `plain`, `rich` and `trickle`."""
        return self.folder / "data"

    @property
    def share(self) -> int:
        return self.messages // PARTS

    def make(self, *, rich: bool, trickle: int = 0) -> None:
        """rich: also the topic with keys, event times and properties. trickle: messages of it."""
        self.parquet.mkdir(parents=True)
        make_root(self.root, "plain", "rich", "trickle")
        write_parquet(self)
        attach_parts(self.root, "plain", [plain_batches(self, part) for part in range(PARTS)])
        if rich:
            attach_parts(self.root, "rich", [rich_batches(self, part) for part in range(PARTS)])
        if trickle:
            attach_parts(self.root, "trickle", [plain_batches(SparkData(self.folder, trickle), -1)])
        os.sync()

    def delete(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class SmallData:
    """The same messages in one topic, in many topics, in few ledgers, in many, and in many that
    were merged."""

    root: Path
    messages: int  # a multiple of pieces
    pieces: int
    few: int = 10

    @property
    def topics(self) -> list[str]:
        return [f"small-{number:04}" for number in range(self.pieces)]

    def make(self) -> None:
        from pulsarx.admin import Admin

        share = self.messages // self.pieces
        make_root(self.root, "one", "few", "many", "merged", *self.topics)
        attach_pieces(self.root, "one", [("one", self.messages)])
        attach_pieces(self.root, "few", [("few", self.messages // self.few)] * self.few)
        attach_pieces(self.root, "many", [("many", share)] * self.pieces)
        attach_pieces(self.root, "merged", [("merged", share)] * self.pieces)
        Admin.at(self.root).topics.merge_ledgers("merged")
        attach_pieces(self.root, "topics", [(topic, share) for topic in self.topics])
        os.sync()


# Columns of the flights that left New York in 2013, as the examples publish them.
FLIGHT_DDL = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, "
    "origin string, dest string, air_time int, distance int, hour int, minute int, "
    "time_hour string"
)


FLIGHT_AVRO = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (column.split(" ") for column in FLIGHT_DDL.split(", "))
    ],
}


@dataclass(frozen=True)
class FlightData:
    """Flights as JSON: a topic, and Parquet files with the same texts; as Avro another topic."""

    folder: Path
    messages: int  # a multiple of PARTS

    @property
    def root(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        import pyarrow
        import pyarrow.parquet

        (self.folder / "parquet").mkdir(parents=True)
        make_root(self.root, "flights", "avro")
        share = self.messages // PARTS
        batches, records = [], []
        for part in range(PARTS):
            texts = [flight(part * share + number) for number in range(share)]
            table = pyarrow.table({"value": texts})
            path = self.folder / "parquet" / f"{part}.parquet"
            pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)
            batches.append(table.to_batches(max_chunksize=ROWS_AT_ONCE))
            encoded = pyarrow.table({"value": as_avro(texts)})
            records.append(encoded.to_batches(max_chunksize=ROWS_AT_ONCE))
        attach_parts(self.root, "flights", [iter(part) for part in batches])
        attach_parts(self.root, "avro", [iter(part) for part in records])
        os.sync()


def flight(number: int) -> str:
    """Of the length and the kinds of values that real ones have."""
    delay = "null" if number % 40 == 0 else str(number % 200 - 20)
    return (
        f'{{"year":2013,"month":{number % 12 + 1},"day":{number % 28 + 1},"dep_time":517,'
        f'"sched_dep_time":515,"dep_delay":{delay},"arr_time":830,"sched_arr_time":819,'
        f'"arr_delay":{delay},"carrier":"C{number % 16}","flight":{number % 8500},'
        f'"tailnum":"N{number % 4043}","origin":"EWR","dest":"D{number % 105}","air_time":227,'
        f'"distance":{number % 4983},"hour":5,"minute":15,'
        f'"time_hour":"2013-01-01T10:00:00Z"}}'
    )


def as_avro(texts: list[str]) -> list[bytes]:
    """The same records as JSON texts."""
    import json

    from pulsarx.schema import AvroSchema

    encode = AvroSchema(None, FLIGHT_AVRO).encode
    return [encode(json.loads(text)) for text in texts]


def make_root(root: Path, *topics: str) -> None:
    """A data directory that nobody owns, with empty topics."""
    import pulsarx

    with pulsarx.Client(root) as client:
        for topic in topics:
            client.admin.topics.create_non_partitioned_topic(topic)


def values(count: int, seed: int) -> Any:
    """count values as an Arrow column."""
    import numpy
    import pyarrow

    content = numpy.random.default_rng(seed).bytes(count * VALUE_SIZE)
    offsets = numpy.arange(count + 1, dtype=numpy.int32) * VALUE_SIZE
    buffers = [None, pyarrow.py_buffer(offsets.tobytes()), pyarrow.py_buffer(content)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), count, buffers)


def plain_batches(data: SparkData, part: int) -> Iterator[Any]:
    """The values of one part; part -1: of all of them."""
    import pyarrow

    left = data.messages if part < 0 else data.share
    while left > 0:
        count = min(left, ROWS_AT_ONCE)
        yield pyarrow.record_batch([values(count, (part + 1) * data.messages + left)], ["value"])
        left -= count


def rich_batches(data: SparkData, part: int) -> Iterator[Any]:
    import pyarrow

    for batch in plain_batches(data, part):
        columns = [batch.column(0), *rich_columns(batch.num_rows)]
        yield pyarrow.record_batch(columns, ["value", *RICH.values()])


@functools.cache
def rich_columns(count: int) -> list[Any]:
    """Key, event time and one property, in the order of RICH."""
    import pyarrow

    numbers = range(count)
    times = pyarrow.array([1_700_000_000_000_000 + number for number in numbers])
    properties = pyarrow.MapArray.from_arrays(
        pyarrow.array(range(count + 1), pyarrow.int32()),
        pyarrow.array(["number"] * count),
        pyarrow.array([str(number) for number in numbers]),
    )
    keys = pyarrow.array([b"key-%03d" % (number % 1000) for number in numbers])
    return [keys, times.cast(pyarrow.timestamp("us", "UTC")), properties]


def write_parquet(data: SparkData) -> None:
    """Neither compressed nor with a dictionary, as Spark is told to write it too."""
    import pyarrow
    import pyarrow.parquet

    for part in range(PARTS):
        table = pyarrow.Table.from_batches(plain_batches(data, part))
        path = data.parquet / f"{part}.parquet"
        pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)


def attach_parts(root: Path, topic: str, parts: list[Iterator[Any]]) -> None:
    """Each part a ledger of the topic, in one commit."""
    from pulsarx.broker.requests.attach import Transaction, attach
    from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
    from pulsarx.broker.staging.staged_file import StagedFile
    from pulsarx.broker.staging.staging import folder_id_of, make_staging

    area, folder_id = make_staging(root, f"making-{topic}"), folder_id_of(root)
    files = []
    for number, batches in enumerate(parts):
        with SealedLedgerWriter(f"{area}/{number}.ledger", folder_id) as writer:
            for batch in batches:
                columns = RICH if "key" in batch.schema.names else {}
                writer.append_arrow(batch, "value", **columns)
            sealed = writer.seal(flush=False)
        assert sealed is not None, topic
        files.append(StagedFile.of_sealed(topic, sealed))
    attach(root, Transaction(f"making-{topic}", 0), files)


def attach_pieces(root: Path, job: str, pieces: list[tuple[str, int]]) -> None:
    """Ledgers of so many messages, each for a topic, in one commit."""
    import pyarrow

    from pulsarx.broker.requests.attach import Transaction, attach
    from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
    from pulsarx.broker.staging.staged_file import StagedFile
    from pulsarx.broker.staging.staging import folder_id_of, make_staging

    area, folder_id = make_staging(root, job), folder_id_of(root)
    files = []
    for number, (topic, count) in enumerate(pieces):
        with SealedLedgerWriter(f"{area}/{number}.ledger", folder_id) as writer:
            writer.append_arrow(pyarrow.record_batch([values(count, number)], ["value"]), "value")
            sealed = writer.seal(flush=False)
        assert sealed is not None, topic
        files.append(StagedFile.of_sealed(topic, sealed))
    attach(root, Transaction(job, 0), files)
