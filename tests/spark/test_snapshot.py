"""What a DataFrame of format("pulsarx") is of: settled when it is made, whatever happens to the
topic, the folder and the ledgers afterwards."""

from __future__ import annotations

import datetime
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

import pyspark_pulsarx
from pyspark.sql.types import BinaryType, StructField, StructType
from spark_steps import PREFIX, make_topics, read, send

from pulsarx.spark import plan_topic, read_partitions
from pulsarx.spark.batch_reader import LedgerPartition
from pulsarx.testing import inspect

# What Spark tells a reader of filters, where it keeps the plans of queries apart.
APART = "pulsarx.spark.data_source.PUSHED_STAY_APART"

VALUE = StructType([StructField("value", BinaryType(), True)])
TWO_A_LEDGER = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)


def source(folder: Path, topic: str = "t", **options: str) -> Any:
    return pyspark_pulsarx.DefaultSource({"root": str(folder), "topic": topic, **options})


def values_of(made: Any) -> list[int]:
    reader = made.reader(VALUE)
    found = []
    for part in reader.partitions():
        assert isinstance(part, LedgerPartition)
        for batch in reader.read(pickle.loads(pickle.dumps(part))):
            found += [int(each) for each in batch.column(0).to_pylist()]
    return found


def publish(folder: Path, first: int, count: int, topic: str = "t") -> None:
    with pulsarx.Client(folder, durability="os") as client:
        send(client, topic, [b"%d" % number for number in range(first, first + count)])


def trim(folder: Path, count: int) -> None:
    """Acknowledge so many messages of topic t by its only subscription, and have them removed."""
    with pulsarx.Client(folder, broker_options=TWO_A_LEDGER) as client:
        consumer = client.subscribe("t", "s")
        for _ in range(count):
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).settle()


@pytest.fixture
def ledgers(folder: Path) -> Path:
    """Topic t with messages 0 to 9, two a ledger, unacknowledged by subscription s."""
    with pulsarx.Client(folder, broker_options=TWO_A_LEDGER) as client:
        client.subscribe("t", "s")
        producer = client.create_producer("t")
        for number in range(10):
            producer.send(b"%d" % number)
    return folder


@pytest.mark.parametrize(
    "options",
    [{}, {"endingOffsets": "latest"}, {"endingOffsets": '{"t": -1}'}, {"columns": "value"}],
)
def test_the_end_is_where_it_was_when_the_frame_was_made(
    folder: Path, options: dict[str, str]
) -> None:
    publish(folder, 0, 3)
    made = source(folder, **options)
    made.schema()
    made = pickle.loads(pickle.dumps(made))  # as Spark keeps it
    publish(folder, 3, 3)
    assert values_of(made) == [0, 1, 2]


def test_a_frame_with_a_given_schema_is_settled_by_its_first_query(
    spark: Any, folder: Path
) -> None:
    """Spark does not make the source before. With filters it plans again, and each of its queries
    used to end elsewhere."""
    publish(folder, 0, 3)
    reading = spark.read.format("pulsarx").options(
        root=str(folder), topic="t", filterPushdown="true"
    )
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = reading.schema("__topic string, value binary").load()
        assert frame.columns == ["__topic", "value"]
        assert frame.count() == 3
        publish(folder, 3, 3)
        assert frame.filter(frame["__topic"] == PREFIX + "t").count() == 3
        assert frame.count() == 3
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_one_frame_is_the_same_in_all_its_queries(spark: Any, folder: Path) -> None:
    """Also where Spark plans it again for each filter, with cache and joined with itself."""
    publish(folder, 0, 20)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read(spark, folder, "t", columns="value, __topic", filterPushdown="true")
        assert frame.count() == 20
        publish(folder, 20, 20)
        here = frame.filter(frame["__topic"] == PREFIX + "t")
        assert here.count() == 20
        other = frame.selectExpr("value AS other")
        assert frame.join(other, frame["value"] == other["other"]).count() == 20
        cached = here.cache()
        assert cached.count() == 20
        publish(folder, 40, 20)
        assert cached.count() == here.filter("value IS NOT NULL").count() == 20
        cached.unpersist()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_a_start_that_retention_overtook_is_not_passed_over_in_silence(ledgers: Path) -> None:
    """The earliest message was looked for again by the first action: rows were missing then."""
    made, lenient = source(ledgers), source(ledgers, failOnDataLoss="false")
    made.schema()
    lenient.schema()
    trim(ledgers, 5)
    with pytest.raises(errors.DataLossError, match="failOnDataLoss"):
        values_of(made)
    found = values_of(lenient)
    assert 0 < len(found) < 10 and found == list(range(10 - len(found), 10))


def test_what_a_time_leaves_out_may_be_removed(folder: Path) -> None:
    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock, broker_options=TWO_A_LEDGER) as client:
        client.subscribe("t", "s")
        producer = client.create_producer("t")
        for number in range(10):
            producer.send(b"%d" % number)
            clock.advance(1)
        from_ms = str(clock.now_ms() - 3000)
    made = source(folder, startingTimestamp=from_ms, leaseSeconds="0")
    made.schema()
    assert values_of(made) == [7, 8, 9]
    trim(folder, 6)
    assert values_of(made) == [7, 8, 9]
    trim(folder, 4)
    with pytest.raises(errors.DataLossError):
        values_of(made)


def test_ledgers_removed_between_plan_and_task_are_an_error_unless_allowed(ledgers: Path) -> None:
    readers = [
        source(ledgers, leaseSeconds="0", failOnDataLoss=fail).reader(VALUE)
        for fail in ("true", "false")
    ]
    strict, lenient = ([reader, reader.partitions()] for reader in readers)
    groups = plan_topic(ledgers, "t", lease_ms=0)
    trim(ledgers, 6)
    with pytest.raises(errors.FolderError, match="removed by retention"):
        [list(strict[0].read(part)) for part in strict[1]]
    batches = [batch for part in lenient[1] for batch in lenient[0].read(part)]
    left = [int(each) for batch in batches for each in batch.column(0).to_pylist()]
    assert 0 < len(left) < 10 and left == list(range(10 - len(left), 10))
    with pytest.raises(errors.FolderError):
        list(read_partitions(groups))
    again = list(read_partitions(groups, ["value"], fail_on_data_loss=False))
    assert [batch.to_pydict() for batch in again] == [batch.to_pydict() for batch in batches]
    # Without the folder nothing was removed: it is only not here.
    ledgers.rename(ledgers.with_name("elsewhere"))
    with pytest.raises(errors.FolderError, match="there is no folder"):
        list(read_partitions(groups, fail_on_data_loss=False))
    make_topics(ledgers, "t")
    with pytest.raises(errors.FolderError):
        list(read_partitions(groups, fail_on_data_loss=False))


def test_tasks_go_the_way_that_was_named(folder: Path, tmp_path: Path) -> None:
    """Where a symbolic link leads is another thing on each host."""
    publish(folder, 0, 3)
    link = tmp_path / "link"
    link.symlink_to(folder)
    (part,) = source(link).reader(VALUE).partitions()
    ((planned,),) = plan_topic(link, "t")
    planned.columns = ("value",)
    assert part.ranges == [planned]
    assert planned.path.startswith(f"{link}/")
    assert values_of(source(link)) == [0, 1, 2]


def test_another_folder_at_the_same_path_is_refused_when_planned(folder: Path) -> None:
    """Its ledgers have the same numbers, so the offsets fit."""
    publish(folder, 0, 3)
    made = source(folder)
    made.schema()
    shutil.rmtree(folder)
    publish(folder, 100, 3)
    with pytest.raises(errors.FolderError, match="Make the DataFrame again"):
        made.reader(VALUE).partitions()


def test_topics_that_came_since_are_not_part_of_a_frame(folder: Path) -> None:
    publish(folder, 0, 3, "in-a")
    made = pyspark_pulsarx.DefaultSource({"root": str(folder), "topicsPattern": "in-.*"})
    made.schema()
    publish(folder, 3, 3, "in-b")
    assert values_of(made) == [0, 1, 2]


def test_partitions_that_came_since_are_not_part_of_a_frame(folder: Path) -> None:
    make_topics(folder, "p", partitions=2)
    publish(folder, 0, 20, "p")
    made = source(folder, "p")
    made.schema()
    with pulsarx.Client(folder) as client:
        client.admin.topics.update_partitioned_topic("p", 4)
    publish(folder, 20, 40, "p")
    assert sorted(values_of(made)) == list(range(20))
    assert len(values_of(source(folder, "p"))) == 60


def test_places_by_partition(folder: Path) -> None:
    make_topics(folder, "p", partitions=2)
    publish(folder, 0, 20, "p-partition-0")
    publish(folder, 100, 20, "p-partition-1")
    (group,) = plan_topic(folder, "p")
    ids = [each.ledger_id for each in sorted(group, key=lambda each: each.partition)]
    start = json.dumps({"p": {"0": [ids[0], 5], "1": -1}})
    assert values_of(source(folder, "p", startingOffsets=start)) == list(range(5, 20))
    # What is not named starts at its beginning.
    start = json.dumps({"p": {"1": [ids[1], 18]}})
    assert values_of(source(folder, "p", startingOffsets=start)) == [*range(20), 118, 119]
    end = json.dumps({"p": "latest", "p-partition-0": [ids[0], 3]})
    found = values_of(source(folder, "p", endingOffsets=end))
    assert found == [*range(3), *range(100, 120)]


def test_functions_take_places_as_options_do(folder: Path) -> None:
    make_topics(folder, "p", partitions=2)
    publish(folder, 0, 20, "p-partition-0")
    publish(folder, 100, 20, "p-partition-1")

    def found(**places: Any) -> list[int]:
        groups = plan_topic(folder, "p", columns="value", lease_ms=0, **places)
        values = [batch.column(0).to_pylist() for batch in read_partitions(groups)]
        return [int(each) for batch in values for each in batch]

    ((first, *_), *_) = plan_topic(folder, "p", lease_ms=0)
    start = {"p-partition-0": (first.ledger_id, 5), "p-partition-1": "latest"}
    assert found(start=start) == list(range(5, 20))
    assert found(start=f'{{"p": {{"0": [{first.ledger_id}, 5], "1": -1}}}}') == list(range(5, 20))
    assert found(start={"p": {0: (first.ledger_id, 5), "1": -1}}) == list(range(5, 20))
    assert found(start={**start, "p-partition-0": [first.ledger_id, 5]}) == list(range(5, 20))
    ended = {"p-partition-0": [first.ledger_id, 5], "stream/folder": "5f", "stream/start": {}}
    for progress in (ended, json.dumps(ended)):
        assert len(found(start=progress)) == 35
    with pytest.raises(ValueError, match="it must be"):
        found(start={"p-partition-0": 1234})
    noon = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    assert found(end=noon) == [] and len(found(start=noon)) == 40
    with pytest.raises(ValueError, match="no zone"):
        found(start=datetime.datetime(2020, 1, 1))
    with pytest.raises(ValueError, match="JSON by topic"):
        found(start="yesterday")
    with pytest.raises(TypeError, match="no place in a topic"):
        found(end=["latest"])


def test_times_by_partition(folder: Path) -> None:
    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock, durability="os") as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        began_ms = clock.now_ms()
        for number in range(5):
            send(client, "p-partition-0", [b"%d" % number])
            send(client, "p-partition-1", [b"%d" % (100 + number)])
            clock.advance(1)
    third = f"{began_ms + 2000}"
    found = values_of(source(folder, "p", startingOffsetsByTimestamp=f'{{"p": {third}}}'))
    assert found == [2, 3, 4, 102, 103, 104]
    found = values_of(
        source(
            folder,
            "p",
            startingOffsetsByTimestamp=f'{{"p": {{"1": {third}}}}}',
            endingOffsetsByTimestamp=f'{{"p": {{"0": "{third}", "1": {began_ms + 9999}}}}}',
        )
    )
    assert found == [0, 1, 102, 103, 104]


def test_a_pushed_filter_never_loses_a_row(folder: Path, monkeypatch: Any) -> None:
    """A producer that batches publishes under the time its batch began: behind messages of others
    that are later. Filters used to cut ledgers by time as if they were in order."""
    monkeypatch.setattr(APART, True)
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock, durability="os") as client:
        began_ms = clock.now_ms()
        slow = client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        slow.send_async(b"0", None)
        clock.advance(1)
        quick = client.create_producer("t", batching_enabled=False)
        quick.send(b"1")
        slow.flush()  # published at 0 s, behind the one of 1 s
        clock.advance(1)
        quick.send(b"2")

    def pushed(*filters: Any) -> list[int]:
        reader = source(folder, filterPushdown="true").reader(VALUE)
        # What is not of a whole range cannot be applied here, for its column is not read.
        left = [each for each in filters if type(each) is In or each.attribute != ("__topic",)]
        assert list(reader.pushFilters(list(filters))) == left
        parts = reader.partitions()
        found = [batch.column(0).to_pylist() for part in parts for batch in reader.read(part)]
        return sorted(int(each) for batch in found for each in batch)

    def at(seconds: float) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(began_ms / 1000 + seconds, datetime.UTC)

    assert pushed(LessThan(("__publishTime",), at(0.5))) == [0]
    assert pushed(GreaterThanOrEqual(("__publishTime",), at(0.5))) == [1, 2]
    assert pushed(GreaterThanOrEqual(("__publishTime",), at(2.5))) == []
    assert pushed(EqualTo(("__publishTime",), at(0))) == [0]
    assert pushed(EqualTo(("__topic",), PREFIX + "u")) == []
    assert pushed(In(("__topic",), (None, PREFIX + "t"))) == [0, 1, 2]
    ledger_id = plan_topic(folder, "t")[0][0].ledger_id
    here, there = (pulsarx.MessageId(-1, each, 0, -1).serialize() for each in (ledger_id, 999))
    assert pushed(EqualTo(("__messageId",), here)) == [0, 1, 2]
    assert pushed(In(("__messageId",), (there, b"no id"))) == []
    assert pushed(EqualTo(("__key",), b"x"), EqualTo(("__topic", "deeper"), "x")) == [0, 1, 2]


def test_a_filter_that_is_applied_exactly_is_not_applied_again(
    folder: Path, publish: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(APART, True)
    from pyspark.sql.datasource import (
        EqualTo,
        GreaterThan,
        In,
        IsNotNull,
        IsNull,
        LessThanOrEqual,
        StringContains,
    )

    publish("p", 40, partitions=2)
    made = source(
        folder, "p", filterPushdown="true", columns="value, __key, __eventTime, __partition"
    )

    def pushed(*filters: Any) -> list[int]:
        reader = made.reader(made.schema())
        assert list(reader.pushFilters([*filters, StringContains(("__key",), "x")])) == [
            StringContains(("__key",), "x")
        ]
        parts = pickle.loads(pickle.dumps(reader.partitions()))
        found = [batch.column(0).to_pylist() for part in parts for batch in reader.read(part)]
        return sorted(int(each) for batch in found for each in batch)

    def at(number: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(1_700_000_000 + number / 1000, datetime.UTC)

    # The key is the number modulo 5, the event time goes up with it.
    assert pushed(EqualTo(("__key",), bytearray(b"k3"))) == list(range(3, 40, 5))
    assert pushed(In(("__key",), (b"k1", b"k2")), LessThanOrEqual(("__eventTime",), at(11))) == [
        1, 2, 6, 7, 11,
    ]  # fmt: skip
    assert pushed(GreaterThan(("__eventTime",), at(39))) == []
    both = [pushed(EqualTo(("__partition",), partition)) for partition in (0, 1)]
    assert all(both) and sorted(both[0] + both[1]) == list(range(40))
    kept = [IsNotNull(("__key",)), IsNotNull(("__partition",))]
    assert pushed(*kept, GreaterThan(("__eventTime",), at(37))) == [38, 39]
    assert pushed(IsNull(("__key",))) == pushed(IsNull(("__partition",))) == []
    reader = made.reader(made.schema())
    others = [IsNotNull(("__topic", "deeper")), IsNull(("__producerName",))]
    assert list(reader.pushFilters(others)) == others
    inexact = [EqualTo(("__key",), "text"), GreaterThan(("__key",), b"k"), In(("__key",), (None,))]
    assert list(reader.pushFilters(inexact)) == inexact


def test_as_many_partitions_as_asked_also_of_skewed_ledgers(folder: Path) -> None:
    """One large ledger and many small ones: the small ones were put together until too few parts
    were left, and the large one was read by a single task."""
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "t", [b"%06d" % number + bytes(1000) for number in range(20_000)])
    for first in range(20_000, 20_005):
        publish(folder, first, 1)
    parts = source(folder, minPartitions="4").reader(VALUE).partitions()
    counts = [sum(each.message_count for each in part.ranges) for part in parts]
    assert sum(counts) == 20_005
    assert len(parts) >= 4 and max(counts) < 11_000
    limited = source(folder, maxRecordsPerPartition="6000").reader(VALUE).partitions()
    counts = [sum(each.message_count for each in part.ranges) for part in limited]
    assert max(counts) <= 6000 and sum(counts) == 20_005
    assert len(plan_topic(folder, "t", min_partitions=7)) >= 7
    # Small ledgers share a task when only records are limited.
    assert len(source(folder, maxRecordsPerPartition="1000000").reader(VALUE).partitions()) == 1


def test_a_subscription_ahead_of_its_stream_does_not_hold_what_is_read(ledgers: Path) -> None:
    """Retention took ledgers from under a batch: one with a subscription had no lease."""
    with pulsarx.Client(ledgers, broker_options=TWO_A_LEDGER) as client:
        client.subscribe("t", "ahead").close()
        made = source(ledgers, startingOffsets="earliest", subscription="ahead")
        reader = made.streamReader(VALUE)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        parts = reader.partitions(start, end)
        consumer = client.subscribe("t", "s")
        for _ in range(10):
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).settle()
        assert sum(len(batch) for part in parts for batch in reader.read(part)) == 10
        # From where it follows the stream, it is what holds.
        client.create_producer("t").send(b"10")
        reader.commit(end)
        start, end = end, reader.latestOffset(end, reader.getDefaultReadLimit())
        reader.partitions(start, end)
        reader.commit(end)
        client.create_producer("t").send(b"11")
        reader.partitions(end, reader.latestOffset(end, reader.getDefaultReadLimit()))
        assert not inspect(client).catalogue.state.leases
        reader.stop()
