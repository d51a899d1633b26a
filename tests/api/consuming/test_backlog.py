"""Facts about the backlog that `admin.topics.stats` tells."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from seeds import seeds
from subscription_steps import earliest
from topic_reading import OpenClient, drain, numbers

import pulsarx
from pulsarx import BrokerOptions
from pulsarx.testing import inspect


def backlog(client: pulsarx.Client, name: str = "s") -> tuple[int, int]:
    found = client.admin.topics.stats("t")["subscriptions"][name]
    return found["backlog_entries"], found["msg_backlog"]


def entries_of(messages: list[Any]) -> int:
    ids = [message.message_id() for message in messages]
    return len({(each.ledger_id(), each.entry_id()) for each in ids})


def test_it_is_told_in_entries_and_in_messages(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    assert backlog(memory_client) == (0, 0)
    memory_client.create_producer("t", batching_max_messages=10).send_many(numbers(30))
    memory_client.create_producer("t").send(b"alone")
    assert backlog(memory_client) == (4, 31)
    messages = drain(consumer)
    consumer.acknowledge(messages[0])
    assert backlog(memory_client) == (4, 30)
    consumer.acknowledge_many(messages[10:20])
    assert backlog(memory_client) == (3, 20)
    consumer.acknowledge(messages[30])
    assert backlog(memory_client) == (2, 19)
    consumer.acknowledge_cumulative(messages[25])
    assert backlog(memory_client) == (1, 4)
    consumer.acknowledge_cumulative(messages[30])
    assert backlog(memory_client) == (0, 0)


@pytest.mark.parametrize("seed", seeds(5))
def test_whatever_is_acknowledged_it_is_what_is_left(open_client: OpenClient, seed: int) -> None:
    chance = random.Random(seed)
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=20)
    client = open_client(broker_options=options)
    consumer = earliest(client)
    for _ in range(40):
        size = chance.choice([2, 3, 9])
        with client.create_producer("t", batching_max_messages=size) as producer:
            producer.send_many(numbers(chance.randrange(1, 20)))
    left = drain(consumer)
    while left:
        assert backlog(client) == (entries_of(left), len(left))
        gone = chance.sample(left, min(len(left), 40))
        consumer.acknowledge_many(gone)
        left = [each for each in left if each not in gone]
    assert backlog(client) == (0, 0)


def test_partitions_are_added_up(memory_client: pulsarx.Client) -> None:
    topics = memory_client.admin.topics
    topics.create_partitioned_topic("t", 2)
    memory_client.subscribe("t", "s")
    memory_client.create_producer("t", batching_max_messages=5).send_many(numbers(20))
    found = topics.partitioned_stats("t")["subscriptions"]["s"]
    assert (found["backlog_entries"], found["msg_backlog"]) == (4, 20)


def test_a_ledger_that_is_sealed_meanwhile_still_counts(open_client: OpenClient) -> None:
    """Whoever had its record from before took it for empty: a backlog too small, a subscription
    that began before its messages, an acknowledgement by id that was taken for nothing."""
    client = open_client()
    client.create_producer("t").send_many(numbers(3))
    ledger = inspect(client).ledger("t")
    [record] = ledger.ledgers()
    ledger.roll_over(ledger.tail.writer)
    inspect(client).settle()
    assert record.state == "open"
    assert ledger.published_counts(record) == (1, 3)


def test_a_full_ledger_that_waits_to_be_sealed_counts_as_acknowledged(
    open_client: OpenClient,
) -> None:
    """A position behind it left all its messages in the backlog until it was sealed."""
    client = open_client(broker_options=BrokerOptions(managed_ledger_max_entries_per_ledger=2))
    consumer = earliest(client)
    release = threading.Event()
    inspect(client).post(release.wait)
    producer = client.create_producer("t")
    try:
        for number in range(5):
            producer.send(b"%d" % number)
        messages = drain(consumer)
        consumer.acknowledge_cumulative(messages[-1])
        assert len(messages) == 5 and backlog(client) == (0, 0)
    finally:
        release.set()
    inspect(client).settle()
    assert backlog(client) == (0, 0)
