"""read_topic: a topic as a DataFrame."""

from __future__ import annotations

import datetime as dt

import pytest
from topic_contents import numbers

import pulsarx
from pulsarx._pycore.ranges.range_batch import COLUMNS
from pulsarx.broker.scan.lease import release_lease
from pulsarx.broker.scan.plan import Planner
from pulsarx.spark import partition_reader, plan_topic, read_partitions, read_topic
from pulsarx.spark.topic_columns import COLUMN_TYPES
from pulsarx.testing import inspect

UTC = dt.UTC


def test_the_columns_are_those_of_a_range():
    assert tuple(COLUMN_TYPES) == COLUMNS


def test_every_column_comes_as_it_was_sent(spark, folder, publish):
    publish("numbers", 50)
    rows = read_topic(spark, "numbers", root=folder).collect()
    assert numbers(rows) == list(range(50))
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("numbers", pulsarx.MessageId.earliest)
        for number, row in enumerate(rows):
            message = reader.read_next(timeout_millis=60_000)
            assert row["__key"] == message.partition_key().encode()
            assert row["__topic"] == message.topic_name()
            assert pulsarx.MessageId.deserialize(bytes(row["__messageId"])) == message.message_id()
            assert row["__messageProperties"] == {"number": str(number)}
            for name, wanted in (
                ("__publishTime", message.publish_timestamp()),
                ("__eventTime", 1_700_000_000_000 + number),
            ):
                assert row[name].astimezone(UTC) == dt.datetime.fromtimestamp(wanted / 1000, UTC)


def test_partitions_topics_and_columns_are_chosen(spark, folder, publish):
    publish("numbers", 500, partitions=3)
    publish("others", 500, first=500)
    frame = read_topic(spark, ["numbers", "others"], root=folder, columns="__key,value")
    assert frame.columns == ["__key", "value"]
    assert sorted(numbers(frame.collect())) == list(range(1000))
    assert frame.where("__key = 'k3'").count() == 200
    assert frame.select("value").limit(3).count() == 3


def test_a_count_reads_no_values_and_sends_no_columns(spark, folder, publish):
    """All columns of all rows went to Spark, to be counted there."""
    publish("numbers", 500, partitions=3)
    frame = read_topic(spark, "numbers", root=folder)
    chosen = read_topic(spark, "numbers", root=folder, where="__key = 'k3'", columns="value")
    some = read_topic(spark, "numbers", root=folder, selector="number > 450")
    publish("numbers", 10, first=500)
    counts = [frame.count(), chosen.count(), some.count(), frame.where("__key = 'k4'").count()]
    assert counts == [500, 100, 49, 100]
    assert frame.count.__doc__ == type(frame).count.__doc__
    plain = type(frame).count
    for each, wanted in ((frame, 500), (chosen, 100), (some, 49)):
        assert plain(each) == wanted

    def fail(each):
        raise AssertionError("Spark's own count was asked")

    many = read_topic(spark, "numbers", root=folder, min_partitions=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(frame), "count", fail)
        assert frame.count() == 500
        patch.setattr(partition_reader, "_last_ids", None)
        assert many.count() == 510
        tasks = spark.sparkContext.defaultParallelism  # more would wait for others
        assert list(partition_reader._last_ids[1]) == [tasks]
        frame.cache()
        with pytest.raises(AssertionError):
            frame.count()  # it fills the cache
    assert frame.count() == 500
    frame.unpersist()


def test_reads_share_what_they_are_made_from_and_nothing_else(spark, folder, publish, monkeypatch):
    """To have Java make the same numbers again took twice as long as the plan of a read."""
    publish("numbers", 50)
    publish("others", 50, first=25)
    made = []
    make = type(spark).range
    monkeypatch.setattr(partition_reader, "_last_ids", None)
    monkeypatch.setattr(type(spark), "range", lambda *given: made.append(1) or make(*given))

    def frame(*topics):
        found = read_topic(spark, topics, root=folder, columns="__messageProperties")
        return found.selectExpr("int(__messageProperties['number']) AS v")

    one, other, again = frame("numbers"), frame("others"), frame("numbers")
    assert len(made) == 1
    joined = one.join(other, one["v"] == other["v"]).select(one["v"])
    assert sorted(row["v"] for row in joined.collect()) == list(range(25, 50))
    joined = one.alias("a").join(again.alias("b"), "v").selectExpr("a.v + b.v AS v")
    assert sorted(row["v"] for row in joined.collect()) == list(range(0, 100, 2))
    assert one.union(other).union(again).count() == 150
    of_session = spark.newSession()
    found = read_topic(of_session, "numbers", root=folder, columns="value")
    assert len(made) == 2
    assert found.sparkSession is of_session and found.count() == 50


def test_tasks_read_ledgers_out_of_an_object_store(spark, folder, tmp_path):
    options = pulsarx.BrokerOptions(
        offload_url=(tmp_path / "store").as_uri(), managed_ledger_max_entries_per_ledger=40
    )
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        producer = client.create_producer("numbers")
        for number in range(100):
            producer.send(b"%d" % number, properties={"number": str(number)})
        client.admin.topics.offload("numbers")
        inspect(client).settle()
        objects = list((tmp_path / "store").rglob("*.ledger"))
        assert len(objects) == 2
        for each in objects:
            ledger_id = int(each.name.partition("-")[0])
            (folder / "ledgers" / f"{ledger_id % 256:02x}" / f"{ledger_id}.ledger").unlink()
        rows = read_topic(spark, "numbers", root=folder, min_partitions=4).collect()
        assert numbers(rows) == list(range(100))


def test_many_small_topics_are_few_tasks(spark, folder):
    """Each of 985 topics was a task, and what a task costs was nearly all of the time."""
    names = [f"topic-{index:02}" for index in range(40)]
    with pulsarx.Client(folder, durability="os") as client:
        for index, name in enumerate(names):
            client.create_producer(name).send_many([b"%d" % (3 * index + at) for at in range(3)])
    frames = [
        read_topic(spark, names, root=folder, columns="value, __topic"),
        spark.read.format("pulsarx")
        .options(root=str(folder), topicsPattern="topic-.*", columns="value, __topic")
        .load(),
    ]
    for frame in frames:
        rows = frame.collect()
        assert numbers(rows) == list(range(120))
        assert [row["__topic"].rpartition("/")[2] for row in rows[::3]] == names
        assert frame.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism


def test_small_ledgers_come_in_large_batches(folder, publish):
    """A batch for each ledger of a few rows was half of the time that reading them took."""
    for first in range(0, 60, 10):
        publish("numbers", 10, first=first)
    publish("large", 20)
    (group,) = plan_topic(folder, ["numbers", "large"], columns="value, __topic", lease_ms=0)
    assert len(group) == 7
    (batch,) = read_partitions([group])
    values = [int(value) for value in batch.column("value").to_pylist()]
    assert values == [*range(60), *range(20)]
    rows = [each.num_rows for each in read_partitions([group], max_rows=25)]
    assert max(rows) <= 25 and sum(rows) == 80 and len(rows) <= 5
    sizes = [each.column("value").nbytes for each in read_partitions([group], max_bytes=200)]
    assert max(sizes) <= 500 and len(sizes) > 5
    (both,) = read_partitions([group, group])
    assert both.num_rows == 160


def test_a_frame_is_of_the_moment_it_was_made(spark, folder, publish):
    publish("numbers", 100)
    frame = read_topic(spark, "numbers", root=folder, columns="value")
    publish("numbers", 100, first=100)
    assert frame.count() == frame.count() == 100
    with pulsarx.Client(folder, read_only=True) as client:
        seen = Planner(inspect(client).broker, "numbers").latest()
    publish("numbers", 100, first=200)
    later = read_topic(spark, "numbers", root=folder, columns="value", start=seen)
    assert numbers(later.collect()) == list(range(200, 300))
    before = read_topic(spark, "numbers", root=folder, columns="value", end=seen)
    assert numbers(before.collect()) == list(range(200))


def test_a_live_owner_produces_meanwhile(spark, folder, publish):
    """What was confirmed when the frame was made is in it, nothing twice, no gap."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("numbers", batching_enabled=True)
        sent = 0
        for _ in range(4):
            for number in range(sent, sent + 500):
                producer.send_async(b"%d" % number, None)
            producer.flush()
            sent += 500
            frame = read_topic(spark, "numbers", root=folder, columns="value")
            producer.send_async(b"%d" % sent, None)  # after the frame was made
            assert numbers(frame.collect()) == list(range(sent))
            producer.flush()
            sent += 1


def test_what_is_planned_is_leased(spark, folder, publish):
    publish("numbers", 100)
    read_topic(spark, "numbers", root=folder, lease_ms=60_000)
    read_topic(spark, "numbers", root=folder, lease_ms=0)
    with pulsarx.Client(folder, read_only=True) as client:
        leases = inspect(client).catalogue.state.leases
    assert [len(lease.ledgers) for lease in leases.values()] == [1]
    assert release_lease(folder, next(iter(leases)))


def test_bad_input_is_refused_when_the_frame_is_made(spark, folder, publish):
    publish("numbers", 10)
    with pytest.raises(ValueError, match="no column '__kee'; did you mean '__key'"):
        read_topic(spark, "numbers", root=folder, columns="value,__kee")
    with pytest.raises(pulsarx.TopicNotFound, match=r"did you mean .*numbers"):
        read_topic(spark, "number", root=folder)
    with pytest.raises(pulsarx.errors.FolderError):
        read_topic(spark, "numbers", root=folder.with_name("nothing"))
    with pytest.raises(TypeError, match="begin"):
        read_topic(spark, "numbers", root=folder, begin="earliest")


def test_an_empty_topic_is_an_empty_frame(spark, folder):
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_partitioned_topic("numbers", 2)
    frame = read_topic(spark, "numbers", root=folder)
    assert frame.columns == list(COLUMN_TYPES)
    assert frame.collect() == []
