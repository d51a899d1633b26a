"""The stream reader: how far it goes at once, one form of offsets.

Most of it asks the reader as Spark does, without a session.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from spark_steps import PREFIX, make_topics, send, values
from stream_steps import EARLIEST, Steps, backlog, fill, joined, numbers

import pulsarx.spark
from pulsarx.spark.stream_offsets import FOLDER, START, of_spark, to_spark
from pulsarx.testing import inspect


@contextmanager
def trimming(folder: Path, count: int = 5) -> Iterator[Callable[[int], None]]:
    """Have retention remove messages of a topic `t` of five, two a ledger; its owner lives."""
    two_a_ledger = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(folder, broker_options=two_a_ledger) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        for number in range(count):
            producer.send(b"%d" % number)

        def acknowledge(count: int) -> None:
            """And wait until retention has removed what it may."""
            for _ in range(count):
                consumer.acknowledge(consumer.receive(60_000))
            inspect(client).settle()

        yield acknowledge


# How far at once ----------------------------------------------------------------------------------


def test_a_stream_starts_at_the_end_or_where_it_is_told(folder: Path) -> None:
    fill(folder, "t", numbers(30))
    latest, earliest = Steps(folder, topic="t"), Steps(folder, topic="t", **EARLIEST)
    fill(folder, "t", numbers(30, 35))
    assert latest.batch() == numbers(30, 35)
    assert earliest.batch() == numbers(35)
    assert latest.batch() == earliest.batch() == []
    assert latest.place() == earliest.place()


def test_messages_are_limited_and_batches_left_whole_where_they_can_be(folder: Path) -> None:
    fill(folder, "t", numbers(50))
    steps = Steps(folder, topic="t", maxMessagesPerTrigger="12", **EARLIEST)
    assert isinstance(steps.limit, ReadMaxRows)
    found = steps.batches()
    assert [len(each) for each in found] == [7] * 6 + [8]
    assert joined(found) == numbers(50)
    inside = Steps(folder, topic="t", maxMessagesPerTrigger="3", **EARLIEST).batches()
    assert max(map(len, inside)) == 3 and joined(inside) == numbers(50)
    assert Steps(folder, topic="t", **EARLIEST).batch(ReadAllAvailable()) == numbers(50)


def test_entries_are_limited(folder: Path) -> None:
    fill(folder, "t", numbers(50))  # seven messages an entry
    steps = Steps(folder, topic="t", maxEntriesPerTrigger="2", **EARLIEST)
    found = steps.batches()
    assert [len(each) for each in found] == [14, 14, 14, 8]
    assert joined(found) == numbers(50)


def test_bytes_are_limited_about_and_something_always_comes(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        for number in range(100):
            producer.send(b"%04d" % number * 5000)  # 20 kB each
    steps = Steps(folder, topic="t", maxBytesPerTrigger="500k", **EARLIEST)
    assert isinstance(steps.limit, ReadMaxBytes)
    sizes = [sum(map(len, each)) for each in steps.batches()]
    assert sum(sizes) == 100 * 20_000
    assert max(sizes) <= 600_000 and min(sizes[:-1]) >= 200_000
    tiny = Steps(folder, topic="t", maxBytesPerTrigger="1", **EARLIEST)
    assert tiny.batch() == [b"0000" * 5000]


def test_topics_share_a_limit_by_what_waits(folder: Path) -> None:
    make_topics(folder, "p", partitions=2)
    fill(folder, "p-partition-0", numbers(300))
    fill(folder, "p-partition-1", numbers(1000, 1100))
    steps = Steps(folder, topic="p", maxMessagesPerTrigger="40", **EARLIEST)
    first = steps.batch()
    assert len(first) <= 40
    assert first == numbers(28) + numbers(1000, 1007)
    assert sorted(first + joined(steps.batches()), key=int) == numbers(300) + numbers(1000, 1100)


def test_few_messages_are_waited_for_until_the_delay_is_over(folder: Path) -> None:
    fill(folder, "t", numbers(5))
    waiting = {"minMessagesPerTrigger": "8", "maxTriggerDelay": "1h"}
    steps = Steps(folder, topic="t", **EARLIEST, **waiting)
    assert isinstance(steps.limit, ReadMinRows)
    assert steps.batch() == []
    fill(folder, "t", numbers(5, 9))
    assert steps.batch() == numbers(9)
    fill(folder, "t", numbers(9, 10))
    assert steps.batch() == []
    steps.reader.prepareForTriggerAvailableNow()
    assert steps.batch() == numbers(9, 10)
    hasty = Steps(folder, topic="t", **EARLIEST, **{**waiting, "maxTriggerDelay": "0"})
    hasty.offset = steps.offset
    fill(folder, "t", numbers(10, 11))
    assert hasty.batch() == numbers(10, 11)


def test_few_entries_are_waited_for_too(folder: Path) -> None:
    fill(folder, "t", numbers(13))  # seven messages an entry
    steps = Steps(folder, topic="t", minEntriesPerTrigger="3", **EARLIEST)
    assert isinstance(steps.limit, ReadMinRows)
    assert steps.batch() == steps.batch() == []
    fill(folder, "t", numbers(13, 14))
    assert steps.batch() == numbers(14)
    with pytest.raises(ValueError, match="minEntriesPerTrigger 3 is over maxEntriesPerTrigger 2"):
        Steps(folder, topic="t", minEntriesPerTrigger="3", maxEntriesPerTrigger="2")


def leases(folder: Path) -> int:
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    broker = ReadOnlyBroker(str(folder))
    broker.close()
    return len(broker.catalogue.state.leases)


def test_available_now_ends_where_it_was_prepared(folder: Path) -> None:
    fill(folder, "t", numbers(20))
    steps = Steps(folder, topic="t", maxMessagesPerTrigger="15", **EARLIEST)
    steps.reader.prepareForTriggerAvailableNow()
    fill(folder, "t", numbers(20, 30))
    assert steps.batch() == numbers(14) and leases(folder) == 1
    assert steps.batches() == [numbers(14, 20)] and leases(folder) == 0
    assert steps.reader.reportLatestOffset() != steps.offset


# Offsets ------------------------------------------------------------------------------------------


def test_one_place_has_one_text(folder: Path) -> None:
    make_topics(folder, "p", partitions=3)
    fill(folder, "p", numbers(20))
    steps = Steps(folder, topic="p", **EARLIEST)
    steps.batch()
    assert list(steps.offset) == sorted(steps.offset)
    before = json.dumps(steps.offset)
    fill(folder, "t", numbers(1))  # another owner, another topic: ledgers of p are sealed anew
    assert json.dumps(steps.reader.latestOffset(steps.offset, steps.limit)) == before
    again = Steps(folder, topic="p", startingOffsets=before)
    assert again.place() == steps.place()


@pytest.mark.parametrize("start", ["latest", "now"])
def test_a_first_batch_is_repeated_from_where_it_began(folder: Path, start: str) -> None:
    """Spark notes where it ends alone, and asks for the initial offset anew."""
    options = {"startingTimestamp": "4000000000000"} if start == "now" else {}
    fill(folder, "t", numbers(10))
    steps = Steps(folder, topic="t", subscription="job", **options)
    fill(folder, "t", numbers(10, 14))
    end = json.loads(json.dumps(steps.reader.latestOffset(steps.offset, steps.limit)))
    fill(folder, "t", numbers(14, 17))
    again = Steps(folder, topic="t", subscription="job", **options)
    assert again.read(again.offset, end) == numbers(10, 14)
    assert backlog(folder, "t", "job") == 7
    again.offset = end
    assert again.batch() == numbers(14, 17)
    assert START not in again.offset


def test_a_first_batch_that_was_trimmed_meanwhile_is_not_skipped(folder: Path) -> None:
    with trimming(folder) as acknowledge:
        steps = Steps(folder, topic="t", leaseSeconds="0", **EARLIEST)
        end = steps.reader.latestOffset(steps.offset, steps.limit)
        acknowledge(4)
        again = Steps(folder, topic="t", **EARLIEST)
        with pytest.raises(errors.DataLossError, match="failOnDataLoss"):
            again.read(again.offset, end)


def test_a_living_owner_is_followed_and_new_topics_match_the_pattern(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "in-a", numbers(3))
        steps = Steps(folder, topicsPattern="in-.*", **EARLIEST)
        assert steps.batch() == numbers(3)
        send(client, "in-b", numbers(3, 6))
        send(client, "in-a", numbers(6, 7))
        assert sorted(steps.batch()) == numbers(3, 7)
        assert steps.batch() == []
    empty = Steps(folder, topicsPattern="later-.*", **EARLIEST)
    assert empty.batch() == []
    fill(folder, "later-1", numbers(2))
    assert empty.batch() == numbers(2)


def test_partitions_that_are_added_are_read_from_their_first_message(folder: Path) -> None:
    make_topics(folder, "p", partitions=1)
    steps = Steps(folder, topic="p")
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.update_partitioned_topic("p", 2)
        send(client, "p-partition-1", numbers(4))
    assert steps.batch() == numbers(4)


def test_offsets_of_other_topics_or_beyond_retention_stop_the_stream(folder: Path) -> None:
    two_a_ledger = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(folder, broker_options=two_a_ledger) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        producer.send(b"0")
        steps = Steps(folder, topic="t", leaseSeconds="0", **EARLIEST)
        lenient = Steps(folder, topic="t", failOnDataLoss="false", **EARLIEST)
        for number in range(1, 5):
            producer.send(b"%d" % number)
        for _ in range(4):
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).settle()
    first = next(iter(steps.offset))
    of_folder = {FOLDER: steps.offset[FOLDER]}
    steps.offset = {first: [1 << 40, 1], **of_folder}
    with pytest.raises((errors.DataLossError, ValueError), match="ledger"):
        steps.batch()
    steps.offset = lenient.offset
    with pytest.raises(errors.DataLossError, match="failOnDataLoss"):
        steps.batch()
    assert lenient.batch() == [b"4"]
    lenient.offset = {PREFIX + "u": [3, 1], **of_folder}
    steps.offset = {PREFIX + "u": [3, 1], **of_folder}
    with pytest.raises(ValueError, match="other topics"):
        steps.batch()


def test_what_is_lost_is_told_to_the_log(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with trimming(folder) as acknowledge:
        options = {"topic": "t", "leaseSeconds": "0", "failOnDataLoss": "false", **EARLIEST}
        steps = Steps(folder, **options)
        steps.offset = to_spark(of_spark(steps.offset), steps.offset[FOLDER])
        again = Steps(folder, **options)
        again.offset = steps.offset
        acknowledge(4)
        with caplog.at_level(logging.WARNING, "pulsarx"):
            found = steps.batch()
    assert found == numbers(5)[-len(found) :] and len(found) < 5
    assert len(caplog.messages) == 1
    assert "messages are lost" in caplog.messages[0] and PREFIX + "t" in caplog.messages[0]


def test_a_checkpoint_is_of_one_data_directory(folder: Path, tmp_path: Path) -> None:
    for place in (folder, tmp_path / "other"):
        fill(place, "t", numbers(5))
    steps = Steps(folder, topic="t", **EARLIEST)
    assert steps.batch() == numbers(5)
    folder.rename(tmp_path / "old")
    (tmp_path / "other").rename(folder)
    again = Steps(folder, topic="t", **EARLIEST)
    with pytest.raises(errors.FolderError, match="its checkpoint is of data directory"):
        again.reader.latestOffset(steps.offset, again.limit)
    with pytest.raises(errors.FolderError, match="begin with a new checkpoint"):
        again.reader.partitions(steps.offset, steps.offset)


def test_topics_that_are_all_gone_are_told(folder: Path) -> None:
    fill(folder, "t", numbers(5))
    gone = {PREFIX + "u": [1, 1]}
    lenient = Steps(folder, topicsPattern="u", failOnDataLoss="false")
    lenient.offset = gone
    assert lenient.batch() == [] and lenient.offset == gone
    strict = Steps(folder, topicsPattern="u")
    strict.offset = gone
    with pytest.raises(errors.TopicNotFound, match="no topic in"):
        strict.batch()


def test_what_a_batch_reads_is_not_trimmed(folder: Path) -> None:
    """A lease holds the ledgers of the batch, and goes when the stream ends."""
    two_a_ledger = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(folder, broker_options=two_a_ledger) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        for number in range(6):
            producer.send(b"%d" % number)
        steps = Steps(folder, topic="t", **EARLIEST)
        end = steps.reader.latestOffset(steps.offset, steps.limit)
        parts = steps.reader.partitions(steps.offset, end)
        for _ in range(6):
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).settle()
        found = [b.column(0).to_pylist() for part in parts for b in steps.reader.read(part)]
        assert joined(found) == numbers(6)
        steps.reader.stop()
        inspect(client).settle()
        assert len(values(folder, "t")) < 6
