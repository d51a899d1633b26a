"""What statistics count since a topic was opened: messages published, and given to consumers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerType

VOLATILE = "non-persistent://public/default/t"


def stats(client: pulsarx.Client, topic: str = "t") -> dict[str, Any]:
    return client.admin.topics.stats(topic)


@pytest.mark.parametrize(
    "kind",
    [ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared, ConsumerType.KeyShared],
)
@pytest.mark.parametrize("topic", ["t", VOLATILE])
def test_what_a_consumer_is_given_is_counted(kind: ConsumerType, topic: str):
    with pulsarx.Client("memory:") as client:
        consumer = client.subscribe(topic, "s", kind)
        producer = client.create_producer(topic, batching_enabled=True)
        for number in range(10):
            producer.send_async(b"x", None, partition_key=str(number))
        producer.flush()
        for _ in range(10):
            consumer.receive(60_000)
        found = stats(client, topic)
        assert found["msg_in_counter"] == 10
        assert found["bytes_in_counter"] > 10
        subscription = found["subscriptions"]["s"]
        assert subscription["msg_out_counter"] == 10
        [figures] = subscription["consumers"]
        assert figures["msg_out_counter"] == 10
        assert figures["bytes_out_counter"] == subscription["bytes_out_counter"] > 10


def test_redeliveries_are_counted():
    with pulsarx.Client("memory:") as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.create_producer("t").send(b"x")
        consumer.receive(60_000)
        consumer.redeliver_unacknowledged_messages()
        consumer.receive(60_000)
        assert stats(client)["subscriptions"]["s"]["msg_out_counter"] == 2


def test_a_subscription_counts_what_consumers_got_that_have_left():
    with pulsarx.Client("memory:") as client:
        client.create_producer("t").send(b"x")
        client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
        for _ in range(2):
            consumer = client.subscribe("t", "s")
            consumer.receive(60_000)
            consumer.close()
        found = stats(client)["subscriptions"]["s"]
        assert (found["msg_out_counter"], found["consumers"]) == (2, [])


def test_counters_begin_when_the_topic_is_opened_and_outlive_its_ledgers(tmp_path: Path):
    with pulsarx.Client(tmp_path) as client:
        producer = client.create_producer("t")
        producer.send(b"x")
        client.admin.topics.truncate("t")
        producer.send(b"y")
        found = stats(client)
        assert (found["msg_in_counter"], found["messages"]) == (2, 1)
        size = found["bytes_in_counter"]
        assert size > 2
    with pulsarx.Client(tmp_path) as client:
        found = stats(client)
        assert (found["msg_in_counter"], found["bytes_in_counter"], found["messages"]) == (0, 0, 1)
        client.create_producer("t").send(b"z")
        assert stats(client)["msg_in_counter"] == 1
    with pulsarx.Client(tmp_path, read_only=True) as client:
        assert stats(client)["msg_in_counter"] is None  # the owner alone counts


def test_counters_of_partitions_are_added_up():
    with pulsarx.Client("memory:") as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        producer = client.create_producer("p")
        for number in range(4):
            producer.send(b"%d" % number)
        found = client.admin.topics.partitioned_stats("p")
        assert found["msg_in_counter"] == 4
