"""The named subscription of a stream: where both begin, and how it follows.

Most of it asks the reader as Spark does, without a session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import PREFIX, make_topics, messages, run_stream, send, values
from stream_steps import EARLIEST, Steps, backlog, fill, numbers

import pulsarx.spark
from pulsarx.testing import inspect


def test_a_subscription_follows_what_is_committed_into_a_batch(folder: Path) -> None:
    fill(folder, "t", numbers(20))
    steps = Steps(
        folder, topic="t", maxMessagesPerTrigger="7", predefinedSubscription="job", **EARLIEST
    )
    assert backlog(folder, "t", "job") == 20
    steps.batch()
    steps.batch()
    assert backlog(folder, "t", "job") == 13  # Spark told of the first batch only
    steps.reader.commit(steps.offset)
    assert backlog(folder, "t", "job") == 6
    steps.reader.commit({PREFIX + "t": [steps.offset[PREFIX + "t"][0], 1]})
    assert backlog(folder, "t", "job") == 6  # never back
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "job")
        assert consumer.receive(60_000).data() == b"14"


def test_a_subscription_begins_where_the_stream_does_and_moves_beside_an_owner(
    folder: Path,
) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "t", numbers(10))
        steps = Steps(folder, topic="t", subscription="job")
        send(client, "t", numbers(10, 13))

        def waiting() -> int:
            found = client.admin.topics.stats("t")["subscriptions"]["job"]["msg_backlog"]
            return int(found)

        assert waiting() == 3
        assert steps.batch() == numbers(10, 13)
        assert waiting() == 3
        steps.reader.commit(steps.offset)
        assert waiting() == 0


def test_a_stream_begins_where_its_subscription_is_told_to(folder: Path) -> None:
    fill(folder, "t", numbers(5))
    options = {"topic": "t", "subscription": "job"}
    earliest = Steps(folder, **options, subscriptionInitialPosition="Earliest")
    assert earliest.batch() == numbers(5)
    options["subscription"] = "another"
    latest = Steps(folder, **options, subscriptionInitialPosition="Latest")
    assert latest.batch() == []
    Steps(folder, **options, subscriptionInitialPosition="Latest", startingOffsets="latest")
    for wrong in (EARLIEST, {"startingTimestamp": "5"}, {"startingOffsets": '{"t": [0, 0]}'}):
        with pytest.raises(ValueError, match="subscriptionInitialPosition latest contradicts"):
            Steps(folder, **options, subscriptionInitialPosition="Latest", **wrong)
    with pytest.raises(ValueError, match="needs option subscription"):
        Steps(folder, topic="t", subscriptionInitialPosition="Latest")


@pytest.mark.parametrize("position", [{}, {"subscriptionInitialPosition": "Latest"}])
def test_a_stream_goes_on_where_a_subscription_that_was_there_stands(
    folder: Path, position: dict[str, str]
) -> None:
    """What it has not acknowledged is not let go unread, unless a start was given."""
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "job")
        send(client, "t", numbers(10))
        for _ in range(4):
            consumer.acknowledge(consumer.receive(60_000))
        send(client, "u", numbers(20, 23))
    options = {"topics": "t,u", "subscription": "job", **position}
    assert sorted(Steps(folder, **options).batch()) == numbers(4, 10)
    assert backlog(folder, "t", "job") == 6
    assert Steps(folder, **options, startingOffsets="latest").batch() == []
    assert backlog(folder, "t", "job") == 0


def test_consumers_of_the_subscription_stop_the_stream(folder: Path) -> None:
    fill(folder, "t", numbers(5))
    steps = Steps(folder, topic="t", subscription="job", **EARLIEST)
    steps.batch()
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "job")
        with pytest.raises(errors.NotAllowedError, match="consumers are attached"):
            steps.reader.commit(steps.offset)
        consumer.close()
    steps.reader.commit(steps.offset)
    assert backlog(folder, "t", "job") == 0


def test_a_subscription_that_somebody_removed_is_made_again(folder: Path) -> None:
    fill(folder, "t", numbers(5))
    steps = Steps(folder, topic="t", subscription="job", **EARLIEST)
    assert steps.batch() == numbers(5)
    with pulsarx.Client(folder) as client:
        client.subscribe("t", "job").unsubscribe()
    steps.reader.commit(steps.offset)
    assert steps.batch() == []
    assert backlog(folder, "t", "job") == 5  # it holds what there is until the next commit
    steps.reader.commit(steps.offset)
    assert backlog(folder, "t", "job") == 0


def test_a_subscription_of_a_topic_that_is_empty_by_now_stays_where_it_is(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s")
        send(client, "t", numbers(3))
        for _ in range(3):
            consumer.acknowledge(consumer.receive(60_000))
    with pulsarx.Client(folder, durability="os") as client:
        inspect(client).settle()
        send(client, "u", numbers(2))
    steps = Steps(folder, topics="t,u", subscription="job")
    steps.reader.commit(steps.offset)
    fill(folder, "t", numbers(3, 5))
    assert steps.batch() == numbers(3, 5)
    steps.reader.commit(steps.offset)
    assert backlog(folder, "t", "job") == backlog(folder, "u", "job") == 0


def test_the_last_batch_of_a_query_is_synchronised_from_its_checkpoint(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    make_topics(folder, "p", partitions=2)
    make_topics(folder, "out")
    with pulsarx.Client(folder, durability="os") as client:
        for number in range(60):
            send(client, "p", [b"%d" % number], key=f"k{number % 5}")
    progress = run_stream(
        spark, folder, "p", "out", tmp_path / "c", maxMessagesPerTrigger="25", subscription="job"
    )
    assert [each.numInputRows for each in progress if each.numInputRows] == [25, 25, 10]
    assert sorted(values(folder, "out"), key=int) == numbers(60)
    for key in range(5):
        mine = [int(value) for each, value in messages(folder, "out") if each == f"k{key}"]
        assert mine == list(range(key, 60, 5))
    left = sum(backlog(folder, f"p-partition-{index}", "job") for index in range(2))
    assert left == 10
    moved = pulsarx.spark.sync_subscription(tmp_path / "c", folder, "job")
    assert len(moved) >= 1
    assert sum(backlog(folder, f"p-partition-{index}", "job") for index in range(2)) == 0
    assert pulsarx.spark.sync_subscription(tmp_path / "c", folder, "job") == []
