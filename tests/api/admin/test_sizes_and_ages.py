"""Facts about statistics: backlogs in bytes, ages of messages, the size of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
AGE = "oldest_backlog_message_age_seconds"


def figures(client: pulsarx.Client, name: str = "s") -> tuple[int, int]:
    found: dict[str, Any] = client.admin.topics.stats("t")["subscriptions"][name]
    return found["backlog_size"], found[AGE]


def test_a_backlog_has_bytes_and_an_age(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=SMALL) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        assert figures(client) == (0, -1)
        producer = client.create_producer("t")
        for _ in range(7):
            producer.send(bytes(1000))
            manual_clock.advance(10)
        size, age = figures(client)
        assert 7000 < size < 8500
        assert age == 70
        stats = client.admin.topics.stats("t")
        assert (stats["backlog_size"], stats[AGE]) == (size, 70)
        messages = consumer.receive_many(7)
        consumer.acknowledge(messages[1])  # behind the first, it changes nothing
        assert figures(client) == (size, 70)
        for message in messages[:5]:
            if message is not messages[1]:
                consumer.acknowledge(message)
        size, age = figures(client)
        assert 2000 < size < 2500
        assert age == 20
        consumer.acknowledge(messages[5])
        consumer.acknowledge(messages[6])
        assert figures(client) == (0, -1)


def test_a_batch_counts_as_a_whole(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.create_producer("t", batching_enabled=True).send_many([bytes(1000)] * 5)
        whole = figures(client)[0]
        assert whole > 5000
        consumer.acknowledge(consumer.receive(60_000))
        assert figures(client)[0] == whole


def test_partitions_are_added_up(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        client.subscribe("p", "s").close()
        producer = client.create_producer("p")
        producer.send(bytes(1000))
        manual_clock.advance(5)
        producer.send(bytes(1000))
        manual_clock.advance(5)
        stats = client.admin.topics.partitioned_stats("p")
        assert 2000 < stats["backlog_size"] < 2500
        assert stats["subscriptions"]["s"]["backlog_size"] == stats["backlog_size"]
        assert stats[AGE] == stats["subscriptions"]["s"][AGE] == 10


@pytest.mark.parametrize("beside_owner", [True, False])
def test_a_read_only_client_sees_the_same(
    open_client: OpenClient, folder: Path, beside_owner: bool
) -> None:
    owner = open_client(broker_options=SMALL)
    consumer = owner.subscribe("t", "s")
    producer = owner.create_producer("t")
    for _ in range(5):
        producer.send(bytes(1000))
    consumer.acknowledge(consumer.receive(60_000))
    expected = figures(owner)[0]
    if not beside_owner:
        owner.close()
    program = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    found = client.admin.topics.stats("t")["subscriptions"]["s"]
    print(found["backlog_size"], 0 <= found["oldest_backlog_message_age_seconds"] < 60)
    print(client.admin.brokers.get_storage_size()["ledgers"] > 4000)
"""
    with ChildProcess(program, folder) as child:
        assert child.end() == [f"{expected} True", "True"]


def test_a_folder_says_what_it_takes(open_client: OpenClient) -> None:
    client = open_client()
    before = client.admin.brokers.get_storage_size()
    assert set(before) == {"ledgers", "cursors", "catalogue", "staging", "orphans", "total"}
    client.subscribe("t", "s").close()
    with client.create_producer("t") as producer:
        producer.send(bytes(1_000_000))
    after = client.admin.brokers.get_storage_size()
    assert after["ledgers"] >= 1_000_000
    assert after["total"] == sum(after.values()) - after["total"]
    client.admin.topics.delete("t")
    client.close()
    assert open_client().admin.brokers.get_storage_size()["ledgers"] == 0


def test_memory_takes_no_space(memory_client: pulsarx.Client) -> None:
    assert memory_client.admin.brokers.get_storage_size()["total"] == 0


def test_a_terminated_topic_is_told(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").close()
    assert memory_client.admin.topics.stats("t")["terminated"] is False
    memory_client.admin.topics.terminate("t")
    assert memory_client.admin.topics.stats("t")["terminated"] is True
