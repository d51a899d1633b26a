"""The history of topics as a root: what was offloaded to an object store, read by Spark's tasks
without the folder."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import BrokerOptions, ManualClock, errors
from pulsarx.testing import inspect

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pyspark.errors import PythonException
from pyspark.sql.types import BinaryType, StructField, StructType

import pulsarx.spark
from pulsarx.spark import root_view
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import BATCH, SINK, STREAM, STREAM_SINK, read_options

LOOK_SECONDS = 60
STORED = 30


class Place:
    """A store with the history of a topic, and of one with partitions, beside the folder."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder, self.place, self.clock = folder, place, ManualClock()
        self.url = place.as_uri()
        with self.open() as client:
            self.publish(client, "t", 35)
            client.admin.topics.create_partitioned_topic("p", 2)
            self.publish(client, "p-partition-1", 15)
            self.offload(client, "t", "p-partition-1")

    def open(self) -> pulsarx.Client:
        options = BrokerOptions(
            offload_url=self.url,
            managed_ledger_max_entries_per_ledger=10,
            managed_ledger_offload_deletion_lag_ms=0,
        )
        return pulsarx.Client(
            self.folder, broker_options=options, clock=self.clock, durability="os"
        )

    def publish(self, client: pulsarx.Client, topic: str, count: int) -> None:
        producer = client.create_producer(topic)
        for number in range(count):
            producer.send(b"%d" % number, partition_key=f"k{number % 5}")
        producer.close()

    def offload(self, client: pulsarx.Client, *topics: str) -> None:
        for topic in topics:
            client.admin.topics.offload(topic, 0)
            inspect(client).settle()
        self.clock.advance(LOOK_SECONDS)

    def objects(self) -> list[Path]:
        return sorted(self.place.rglob("*.ledger"), key=lambda path: int(path.stem.split("-")[0]))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    root_view._told.clear()
    yield Place(tmp_path / "data", tmp_path / "a store")


def _numbers(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def _rows(options: dict[str, str]) -> list[bytes]:
    """Planned here, and read as if elsewhere."""
    source = PulsarxDataSource({"topic": "t", "columns": "value", **options})
    reader = source.reader(source.schema())
    sent = [pickle.dumps(each) for each in reader.partitions()]
    batches = [batch for each in sent for batch in reader.read(pickle.loads(each))]
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_a_session_reads_the_history_without_the_folder(
    spark: Any, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(place.folder)
    with caplog.at_level(logging.WARNING, "pulsarx.spark"):
        frame = pulsarx.spark.read_topic(
            spark, "t", root=place.url, columns="value, __key", min_partitions=3
        )
    assert "t in file://" in caplog.text and "its history ends with ledger" in caplog.text
    found = [(bytes(row["value"]), bytes(row["__key"])) for row in frame.collect()]
    assert found == [(b"%d" % number, b"k%d" % (number % 5)) for number in range(STORED)]
    assert frame.count() == STORED
    rows = spark.read.format("pulsarx").options(
        root=place.url, topics="t, p", where="__key = 'k3'", columns="value"
    )
    assert sorted(bytes(row["value"]) for row in rows.load().collect()) == sorted(
        _numbers(*range(3, STORED, 5), *range(3, 10, 5))
    )
    version = pulsarx.spark.tables_version(place.url)
    names = pulsarx.spark.tables(spark, place.url, prefix="far_", as_of=version, columns="value")
    assert names == ["far_p", "far_t"] and spark.table("far_t").count() == STORED
    for name in names:
        spark.catalog.dropTempView(name)
    counted = pulsarx.spark.map_topic(spark, "p", lambda batches: batches, "value binary",
                                      root=str(place.place), columns="value")  # fmt: skip
    assert counted.count() == 10


def test_a_count_of_the_history_reads_footers_alone(spark: Any, place: Place) -> None:
    shutil.rmtree(place.folder)
    frame = pulsarx.spark.read_topic(spark, "t", root=place.url, columns="value")
    for each in place.objects():
        data = bytearray(each.read_bytes())
        data[4096 : 4096 + 64] = bytes(64)  # the frame of its first entry
        each.write_bytes(data)
    assert frame.count() == STORED
    with pytest.raises(PythonException, match="CorruptDataError"):
        frame.collect()


def test_what_is_published_later_is_there_when_it_was_offloaded(place: Place) -> None:
    options = {"root": place.url}
    assert _rows(options) == _numbers(*range(STORED))
    with place.open() as client:
        place.publish(client, "t", 25)
        assert _rows(options) == _numbers(*range(STORED))
        place.offload(client, "t")
    assert _rows(options) == _numbers(*range(35), *range(20))


def test_offsets_patterns_and_a_url_with_the_folder_name_the_same(place: Place) -> None:
    folder_id = place.objects()[0].parent.name
    for root in (place.url, f"{place.url}/{folder_id}", str(place.place)):
        assert _rows({"root": root}) == _numbers(*range(STORED))
    source = PulsarxDataSource({"root": place.url, "topicsPattern": ".*"})
    assert source.schema()
    reader = source.reader(source.schema())
    topics = {each.topic for part in reader.partitions() for each in part.ranges}
    assert {name.rpartition("/")[2] for name in topics} == {"t", "p-partition-1"}
    ledger = int(place.objects()[0].stem.split("-")[0])
    start = f'{{"t": [{ledger}, 7]}}'
    assert _rows({"root": place.url, "startingOffsets": start}) == _numbers(*range(7, STORED))
    with pytest.raises(errors.TopicNotFound, match=r"tt is not in .*did you mean \S*t\?"):
        _rows({"root": place.url, "topic": "tt"})


def test_objects_that_are_gone_cut_or_others_are_told_with_their_urls(place: Place) -> None:
    first, second, third = place.objects()[:3]
    kept = first.read_bytes()
    first.unlink()
    with pytest.raises(errors.FolderError, match=rf"{first.name} on .*plan again"):
        _rows({"root": place.url})
    lost = {"root": place.url, "failOnDataLoss": "false"}
    assert _rows(lost) == _numbers(*range(10, STORED))
    first.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(errors.CorruptDataError, match=first.name):
        _rows({"root": place.url})
    first.write_bytes(kept)
    second.write_bytes(third.read_bytes())
    with pytest.raises(errors.CorruptDataError, match=second.name):
        _rows({"root": place.url})
    place.place.rename(place.place.with_name("away"))
    with pytest.raises(errors.FolderError, match="a store does not exist"):
        _rows({"root": place.url})


@pytest.mark.parametrize(
    ("use", "options", "text"),
    [
        (STREAM, {}, "root is an object store: .*let streams read the folder or a cluster"),
        (SINK, {}, "root is an object store: .*Write to the folder"),
        (STREAM_SINK, {}, "root is an object store"),
        (BATCH, {"leaseSeconds": "5"}, "leaseSeconds does not work on an object store"),
        (BATCH, {"sealedOnly": "true"}, "sealedOnly does not work on an object store"),
        (BATCH, {"token": "s3cret"}, "token is for a cluster, and root is an object store"),
        (BATCH, {"root": "s3a://key:s3cret@bucket/prefix"}, "must not hold credentials"),
    ],
)
def test_what_a_history_cannot_do_is_refused(use: str, options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text) as found:
        read_options({"root": "s3://bucket/prefix", "topic": "t", **options}, use)
    if options.get("token"):
        assert "s3cret" not in str(found.value)


def test_functions_that_write_refuse_an_object_store(place: Place) -> None:
    for root in ("gs://bucket/prefix", place.url):
        with pytest.raises(errors.OperationNotSupported, match="is read alone"):
            pulsarx.spark.plan_write(root, "t")
    schema = StructType([StructField("value", BinaryType())])
    with pytest.raises(ValueError, match="is read alone"):
        PulsarxDataSource({"root": place.url, "topic": "t"}).streamReader(schema)


def test_the_names_of_hadoop_are_those_of_the_store() -> None:
    assert read_options({"root": "s3a://bucket/prefix", "topic": "t"}, BATCH).root == (
        "s3://bucket/prefix"
    )
