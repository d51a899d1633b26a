"""Facts about transactions of messages and acknowledgements, and about kills of their owner."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clients import OpenClient
from transaction_steps import backlog, seen, taken

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId, errors
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
from pulsarx.transaction import TransactionState

TYPES = [
    ConsumerType.Exclusive,
    ConsumerType.Failover,
    ConsumerType.Shared,
    ConsumerType.KeyShared,
]


def consumer_of(client: pulsarx.Client, topic: str = "in", **options: Any) -> Any:
    return client.subscribe(topic, "s", initial_position=InitialPosition.Earliest, **options)


@pytest.mark.parametrize("consumer_type", TYPES)
def test_what_is_taken_and_what_comes_of_it_count_together(
    open_client: OpenClient, consumer_type: ConsumerType
) -> None:
    client = open_client()
    source, target = client.create_producer("in"), client.create_producer("out")
    source.send_many([b"0", b"1", b"2"])
    consumer = consumer_of(client, consumer_type=consumer_type)
    messages = consumer.receive_many(3, 0)
    transaction = client.new_transaction()
    for each in messages[:2]:
        target.send(each.data(), transaction=transaction)
        consumer.acknowledge(each, transaction=transaction)
    assert (seen(client, "out"), backlog(client, "in")) == ([], 3)
    transaction.commit()
    assert (seen(client, "out"), backlog(client, "in")) == ([b"0", b"1"], 1)
    transaction = client.new_transaction()
    target.send(b"never", transaction=transaction)
    consumer.acknowledge(messages[2], transaction=transaction)
    transaction.abort()
    assert (seen(client, "out"), backlog(client, "in")) == ([b"0", b"1"], 1)
    assert taken(consumer) == [b"2"]


def test_a_collision_makes_the_commit_abort(open_client: OpenClient) -> None:
    client = open_client()
    source, target = client.create_producer("in"), client.create_producer("out")
    source.send(b"0")
    consumer = consumer_of(client)
    message = consumer.receive(0)
    consumer.acknowledge(message)
    transaction = client.new_transaction()
    target.send(b"x", transaction=transaction)
    with pytest.raises(errors.TransactionConflict, match="acknowledged already"):
        consumer.acknowledge(message, transaction=transaction)
    with pytest.raises(errors.TransactionHasOperationFailed, match="acknowledged already"):
        transaction.commit()
    assert transaction.state() is TransactionState.ABORTED
    assert seen(client, "out") == []


@pytest.mark.parametrize("consumer_type", TYPES)
def test_one_that_takes_too_long_gives_back_what_it_acknowledged(
    open_client: OpenClient, consumer_type: ConsumerType
) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    source, target = client.create_producer("in"), client.create_producer("out")
    source.send_many([b"0", b"1"])
    consumer = consumer_of(client, consumer_type=consumer_type)
    messages = consumer.receive_many(2, 0)
    transaction = client.new_transaction(timeout_millis=1000)
    target.send(b"never", transaction=transaction)
    consumer.acknowledge(messages[0], transaction=transaction)
    clock.advance(0.9)
    assert (transaction.state(), taken(consumer)) == (TransactionState.OPEN, [])
    clock.advance(0.2)
    assert transaction.state() is TransactionState.TIME_OUT
    late = "has ended: aborted, as its timeout of 1000 ms was over"
    with pytest.raises(errors.InvalidTxnStatusError, match=late):
        consumer.acknowledge(messages[1], transaction=transaction)
    with pytest.raises(errors.InvalidTxnStatusError, match="it is TIME_OUT"):
        transaction.commit()
    assert taken(consumer) == [b"0"]
    assert seen(client, "out") == []


@pytest.mark.parametrize("consumer_type", TYPES[:2])
def test_a_single_acknowledgement_beside_a_cumulative_one_of_another_is_committed(
    open_client: OpenClient, consumer_type: ConsumerType
) -> None:
    """Pulsar answers that it was committed, and does nothing."""
    client = open_client()
    client.create_producer("in").send_many([b"%d" % at for at in range(8)])
    consumer = consumer_of(client, consumer_type=consumer_type)
    messages = consumer.receive_many(8, 0)
    one, other, third = (client.new_transaction() for _ in range(3))
    consumer.acknowledge_cumulative(messages[3], transaction=one)
    consumer.acknowledge(messages[5], transaction=other)
    other.commit()
    assert backlog(client, "in") == 7
    with pytest.raises(errors.TransactionConflict, match="acknowledged already"):
        consumer.acknowledge(messages[5], transaction=third)
    one.abort()
    assert taken(consumer) == [b"0", b"1", b"2", b"3"]
    consumer.redeliver_unacknowledged_messages()
    assert taken(consumer) == [b"4", b"6", b"7"]


def test_an_ended_one_acknowledges_nothing(open_client: OpenClient) -> None:
    client = open_client(clock=pulsarx.ManualClock(1_000_000_000_000))
    client.create_producer("in").send(b"0")
    consumer = consumer_of(client)
    message = consumer.receive(0)
    producer = client.create_producer("out")
    at = "at 2001-09-09T01:46:40.000"
    for end, how in (("commit", "committed"), ("abort", "aborted")):
        transaction = client.new_transaction()
        getattr(transaction, end)()
        with pytest.raises(errors.InvalidTxnStatusError, match=f"has ended: {how} {at}"):
            consumer.acknowledge(message, transaction=transaction)
        with pytest.raises(errors.InvalidTxnStatusError, match=f"has ended.*: {how} {at}"):
            producer.send(b"late", transaction=transaction)
    assert backlog(client, "in") == 1
    with pulsarx.Client("memory:") as other:
        transaction = other.new_transaction()
        with pytest.raises(errors.NotAllowedError, match="another folder"):
            consumer.acknowledge(message, transaction=transaction)


def test_a_subscription_goes_with_what_is_pending_on_it(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("in").send(b"0")
    consumer = consumer_of(client)
    transaction = client.new_transaction()
    consumer.acknowledge(consumer.receive(0), transaction=transaction)
    consumer.unsubscribe()
    transaction.commit()
    assert taken(consumer_of(client)) == [b"0"]


def test_a_topic_is_not_unloaded_under_what_is_pending(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("in").send(b"0")
    consumer = consumer_of(client)
    transaction = client.new_transaction()
    consumer.acknowledge(consumer.receive(0), transaction=transaction)
    consumer.close()
    client.admin.topics.unload("in")
    consumer = consumer_of(client)
    assert taken(consumer) == []
    transaction.abort()
    assert taken(consumer) == [b"0"]


# Kills --------------------------------------------------------------------------------------------


def in_child(work: Callable[[], object]) -> None:
    """Do it in a process that is killed then, whatever it holds."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def begin(folder: Path, durability: str) -> tuple[pulsarx.Client, Any, Any]:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=3)
    client = pulsarx.Client(folder, durability=durability, broker_options=options)
    source, target = client.create_producer("in"), client.create_producer("out")
    source.send_many([b"%d" % number for number in range(4)])
    consumer = consumer_of(client)
    transaction = client.new_transaction()
    for each in consumer.receive_many(3, 0):
        target.send(each.data(), transaction=transaction)
        target.send(b"plain")
        consumer.acknowledge(each, transaction=transaction)
    return client, transaction, consumer


@pytest.mark.parametrize("durability", ["sync", "os"])
@pytest.mark.parametrize("at", ["open", "told", "applied", "aborted"])
def test_a_kill_leaves_all_of_it_or_nothing(folder: Path, durability: str, at: str) -> None:
    def work() -> None:
        _, transaction, _ = begin(folder, durability)
        if at == "told":
            TransactionCoordinator._apply = lambda *_: os.kill(  # type: ignore[method-assign]
                os.getpid(), signal.SIGKILL
            )
        if at in ("told", "applied"):
            transaction.commit()
        elif at == "aborted":
            transaction.abort()

    in_child(work)
    committed = at in ("told", "applied")
    plain = [b"plain"] * 3
    wanted = [b"0", b"plain", b"1", b"plain", b"2", b"plain"] if committed else plain
    with pulsarx.Client(folder, read_only=True) as beside:
        assert seen(beside, "out") == wanted
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            assert seen(client, "out") == wanted
            assert backlog(client, "in") == (1 if committed else 4)
    with pulsarx.Client(folder) as client:
        assert taken(consumer_of(client, "out")) == wanted
        left = [b"3"] if committed else [b"0", b"1", b"2", b"3"]
        assert taken(consumer_of(client)) == left


TOPICS = ("p", "t", "u")  # the first one has partitions


@pytest.mark.parametrize("at", ["open", "told", "applied"])
def test_a_kill_leaves_all_topics_and_partitions_or_none(folder: Path, at: str) -> None:
    def work() -> None:
        client = pulsarx.Client(folder)
        client.admin.topics.create_partitioned_topic("p", 3)
        producers = [client.create_producer(each) for each in TOPICS]
        transaction = client.new_transaction()
        for number in range(6):
            for each in producers:
                each.send(b"%d" % number, partition_key=f"k{number}", transaction=transaction)
        if at == "told":
            TransactionCoordinator._apply = lambda *_: os.kill(  # type: ignore[method-assign]
                os.getpid(), signal.SIGKILL
            )
        if at != "open":
            transaction.commit()

    in_child(work)
    wanted = [b"%d" % number for number in range(6)] if at != "open" else []
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            parts = [seen(client, f"p-partition-{each}") for each in range(3)]
            assert sorted(each for part in parts for each in part) == wanted
            assert all(parts) == (at != "open")
            assert [seen(client, each) for each in TOPICS[1:]] == [wanted] * 2


def test_a_seek_is_not_undone_by_a_kill(folder: Path) -> None:
    """What a transaction acknowledged is kept beside the cursor until that is flushed."""

    def work() -> None:
        _, transaction, consumer = begin(folder, "os")
        transaction.commit()
        consumer.seek(MessageId.earliest)

    in_child(work)
    with pulsarx.Client(folder) as client:
        assert backlog(client, "in") == 4


def test_many_acknowledgements_are_kept_until_cursors_are_flushed(folder: Path) -> None:
    def work() -> None:
        client = pulsarx.Client(folder, durability="os")
        client.create_producer("in").send_many([b"%d" % number for number in range(200)])
        consumer = consumer_of(client)
        for _ in range(199):
            with client.new_transaction() as transaction:
                consumer.acknowledge(consumer.receive(0), transaction=transaction)

    in_child(work)
    with pulsarx.Client(folder) as client:
        assert taken(consumer_of(client)) == [b"199"]
