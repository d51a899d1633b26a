"""Facts about acknowledgements in transactions of a process beside the owner; what does not kill is
tried in the owner's, too, which says what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from support.waiting import wait_until
from test_guest_transactions import (
    DIES_BEFORE_THE_ANSWER,
    DIES_BEFORE_THE_RECORD,
    DIES_BEHIND_THE_RECORD,
    contents,
)

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.transaction import TransactionState

Consumer = Any
ALL = (
    ConsumerType.Exclusive,
    ConsumerType.Failover,
    ConsumerType.Shared,
    ConsumerType.KeyShared,
)


def subscribed(client: pulsarx.Client, kind: ConsumerType = ConsumerType.Exclusive) -> Consumer:
    return client.subscribe("t", "s", kind, initial_position=InitialPosition.Earliest)


def fill(client: pulsarx.Client, count: int) -> None:
    producer = client.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number)
    producer.close()


def received(consumer: Consumer, count: int) -> list[Any]:
    return [consumer.receive(60000) for _ in range(count)]


def data(messages: list[Any]) -> list[bytes]:
    return [each.data() for each in messages]


def backlog(client: pulsarx.Client) -> int:
    found: int = client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]
    return found


@pytest.mark.parametrize("kind", ALL)
def test_a_commit_acknowledges(client: pulsarx.Client, kind: ConsumerType) -> None:
    fill(client, 3)
    consumer = subscribed(client, kind)
    messages = received(consumer, 3)
    with client.new_transaction() as txn:
        consumer.acknowledge(messages[0], transaction=txn)
        consumer.acknowledge_many(messages[1:], transaction=txn)
        assert backlog(client) == 3
    assert backlog(client) == 0
    consumer.close()
    with pytest.raises(errors.Timeout):
        subscribed(client, kind).receive(0)


@pytest.mark.parametrize("kind", ALL)
def test_after_an_abort_they_come_again(client: pulsarx.Client, kind: ConsumerType) -> None:
    fill(client, 3)
    consumer = subscribed(client, kind)
    messages = received(consumer, 3)
    txn = client.new_transaction()
    for each in messages[1:]:
        consumer.acknowledge(each, transaction=txn)
    consumer.acknowledge(messages[0])
    txn.abort()
    again = received(consumer, 2)
    assert data(again) == [b"1", b"2"]
    if kind in (ConsumerType.Shared, ConsumerType.KeyShared):
        assert [each.redelivery_count() for each in again] == [1, 1]
    consumer.acknowledge_many(again)
    consumer.close()
    wait_until(lambda: backlog(client) == 0)


@pytest.mark.parametrize("kind", ALL)
def test_what_is_pending_comes_to_nobody(client: pulsarx.Client, kind: ConsumerType) -> None:
    fill(client, 3)
    consumer = subscribed(client, kind)
    messages = received(consumer, 3)
    txn = client.new_transaction()
    consumer.acknowledge(messages[1], transaction=txn)
    consumer.redeliver_unacknowledged_messages()
    assert sorted(data(received(consumer, 2))) == [b"0", b"2"]
    consumer.close()
    other = subscribed(client, kind)
    assert sorted(data(received(other, 2))) == [b"0", b"2"]
    with pytest.raises(errors.Timeout):
        other.receive(0)
    txn.abort()
    assert other.receive(60000).data() in (b"1", b"0")


def test_a_cumulative_one_counts_with_the_commit(client: pulsarx.Client) -> None:
    fill(client, 4)
    consumer = subscribed(client)
    messages = received(consumer, 3)
    txn = client.new_transaction()
    consumer.acknowledge_cumulative(messages[1], transaction=txn)
    txn.abort()
    assert data(received(consumer, 1)) == [b"0"]
    consumer.close()
    consumer = subscribed(client)
    messages = received(consumer, 3)
    with client.new_transaction() as txn:
        consumer.acknowledge_cumulative(messages[2], transaction=txn)
    consumer.close()
    assert data(received(subscribed(client), 1)) == [b"3"]


def test_a_collision_is_raised_by_the_call(client: pulsarx.Client) -> None:
    fill(client, 3)
    consumer = subscribed(client, ConsumerType.Shared)
    messages = received(consumer, 3)
    first, second = client.new_transaction(), client.new_transaction()
    consumer.acknowledge(messages[0], transaction=first)
    with pytest.raises(errors.TransactionConflict, match="which has not ended"):
        consumer.acknowledge(messages[0], transaction=second)
    with pytest.raises(errors.TransactionConflict):
        consumer.acknowledge_many(messages, transaction=second)
    consumer.acknowledge(messages[1])
    with pytest.raises(errors.TransactionConflict):
        consumer.acknowledge(messages[1], transaction=second)
    with pytest.raises(errors.TransactionHasOperationFailed):
        second.commit()
    assert second.state() is TransactionState.ABORTED
    first.commit()
    with pytest.raises(errors.InvalidTxnStatusError):
        consumer.acknowledge(messages[2], transaction=first)
    with pytest.raises(errors.InvalidConfiguration):
        consumer.acknowledge_cumulative(messages[2], transaction=client.new_transaction())
    assert backlog(client) == 1


def test_topics_of_other_folders_take_no_part(client: pulsarx.Client, tmp_path: Path) -> None:
    fill(client, 1)
    consumer = subscribed(client)
    (message,) = received(consumer, 1)
    with (
        pulsarx.Client(tmp_path / "other") as elsewhere,
        pytest.raises(errors.NotAllowedError, match="another folder"),
    ):
        consumer.acknowledge(message, transaction=elsewhere.new_transaction())


def test_partitions_and_topics_take_part(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 3)
    fill(client, 9)
    consumer = subscribed(client)
    messages = received(consumer, 9)
    with client.new_transaction() as txn:
        consumer.acknowledge_many(messages, transaction=txn)
    consumer.close()
    with pytest.raises(errors.Timeout):
        subscribed(client).receive(0)


def test_messages_in_chunks_take_part(client: pulsarx.Client) -> None:
    content = bytes(12_000_000)  # three chunks
    producer = client.create_producer("t", chunking_enabled=True)
    consumer = subscribed(client, ConsumerType.Shared)
    with client.new_transaction() as txn:
        producer.send(content, transaction=txn)
        producer.send(b"behind", transaction=txn)
        with pytest.raises(errors.Timeout):
            consumer.receive(0)
    large, small = received(consumer, 2)
    assert (large.data() == content, small.data()) == (True, b"behind")
    txn = client.new_transaction()
    consumer.acknowledge(large, transaction=txn)
    consumer.acknowledge(small)
    txn.abort()
    (again,) = received(consumer, 1)
    assert (again.data() == content, again.redelivery_count()) == (True, 1)
    with client.new_transaction() as txn:
        consumer.acknowledge(again, transaction=txn)
    assert backlog(client) == 0


def test_what_a_killed_process_had_acknowledged_comes_again(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    guest = SharingProcess(folder)
    processes.append(guest)
    with pulsarx.Client(folder) as client:
        fill(client, 2)
        guest.run("consumer = client.subscribe('t', 's', pulsarx.ConsumerType.Shared, "
                  "initial_position=pulsarx.InitialPosition.Earliest)")  # fmt: skip
        guest.run("messages = [consumer.receive(60000), consumer.receive(60000)]")
        guest.run("txn = client.new_transaction()")
        guest.run("consumer.acknowledge_many(messages, transaction=txn)")
        consumer = subscribed(client, ConsumerType.Shared)
        guest.kill()
        assert sorted(data(received(consumer, 2))) == [b"0", b"1"]


@pytest.mark.parametrize(
    "dies", [DIES_BEFORE_THE_RECORD, DIES_BEHIND_THE_RECORD, DIES_BEFORE_THE_ANSWER]
)
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_what_is_consumed_and_published_counts_together_whenever_the_owner_dies(
    folder: Path, owner: SharingProcess, kind: ConsumerType, dies: str
) -> None:
    with pulsarx.Client(folder) as client:
        fill(client, 2)
        consumer = subscribed(client, kind)
        results = client.create_producer("results")
        first, _ = received(consumer, 2)
        txn = client.new_transaction()
        results.send(first.data(), transaction=txn)
        consumer.acknowledge(first, transaction=txn)
        owner.run(dies)
        try:
            txn.commit()
        except errors.InvalidTxnStatusError:
            assert dies == DIES_BEFORE_THE_RECORD
        else:
            assert dies != DIES_BEFORE_THE_RECORD
            assert txn.state() is TransactionState.COMMITTED
        was_committed = txn.state() is TransactionState.COMMITTED
        consumer.close()
        assert contents(client, "results") == ([b"0"] if was_committed else [])
        consumer = subscribed(client, kind)
        left = [b"1"] if was_committed else [b"0", b"1"]
        assert sorted(data(received(consumer, len(left)))) == left
        assert backlog(client) == len(left)
