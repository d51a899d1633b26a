"""Facts about receive_many and receive_arrow where several consumers share a subscription."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from flow_steps import flow, join, publish, sharing, statistics
from given_up import GivenUp
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, ManualClock

batched_or_not = pytest.mark.parametrize("batch", [0, 7], ids=["plain", "batched"])


def values(columns: Any) -> list[bytes]:
    found: list[bytes] = pyarrow.table(columns)["value"].to_pylist()
    return found


@pytest.mark.guest(left_out="messages come later")
@sharing
@batched_or_not
def test_columns_hold_what_messages_hold(
    clocked_client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind)
    with clocked_client.create_producer(
        "t", batching_enabled=bool(batch), batching_max_messages=batch or 1000
    ) as producer:
        for number in range(20):
            producer.send_async(
                b"%d" % number, None, partition_key=f"k{number % 3}", properties={"n": str(number)}
            )
    table = pyarrow.table(consumer.receive_arrow(100))
    consumer.redeliver_unacknowledged_messages()
    messages = drain(consumer)
    by_value = {row["value"]: row for row in table.to_pylist()}
    assert len(by_value) == len(messages) == 20
    for message in messages:
        row = by_value[message.data()]
        assert row["key"] == message.partition_key()
        assert dict(row["properties"]) == message.properties()


@sharing
@batched_or_not
def test_columns_come_in_parts_of_any_size(
    clocked_client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=16, consumer_name="c")
    publish(clocked_client, 50, batch)
    found: list[bytes] = []
    for size in (1, 3, 7, 20, 100):
        part = consumer.receive_arrow(size, 0)
        assert len(part) <= size
        found += values(part)
    assert found == numbers(len(found))
    while part := values(consumer.receive_arrow(5, 0)):
        found += part
    assert found == numbers(50)


@sharing
@batched_or_not
def test_columns_are_acknowledged_with_acknowledge_many(
    open_client: OpenClient, kind: ConsumerType, batch: int
) -> None:
    client = open_client()
    consumer = join(client, kind, consumer_name="c")
    publish(client, 30, batch)
    first = consumer.receive_arrow(11)
    second = consumer.receive_arrow(11)
    assert len(first) == len(second) == 11
    consumer.acknowledge_many(second)
    assert flow(client)[2] == 19
    consumer.acknowledge_many(second)
    assert statistics(client)["msg_backlog"] == 19
    client.close()
    assert payloads(join(open_client(), kind)) == numbers(11) + numbers(8, 22)


@sharing
def test_columns_hold_picked_messages_of_a_batch(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Delivered again, with others of the batch acknowledged."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, 20, batch=10)
    messages = drain(consumer)
    consumer.acknowledge_many(messages[3:9])
    for number in (1, 9, 12, 17):
        consumer.negative_acknowledge(messages[number])
    manual_clock.advance(60)
    columns = consumer.receive_arrow(100)
    assert values(columns) == [b"1", b"9", b"12", b"17"]
    consumer.acknowledge_many(columns)
    consumer.redeliver_unacknowledged_messages()
    gone = {*range(3, 10), 1, 12, 17}
    assert payloads(consumer) == [b"%d" % number for number in range(20) if number not in gone]


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@sharing
def test_columns_skip_what_was_acknowledged_in_the_queue(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, consumer_name="c")
    sent = publish(clocked_client, 12, batch=6)
    assert consumer.has_message()
    consumer.acknowledge_many([sent[0], sent[4], sent[5], sent[8]])
    assert flow(clocked_client)[1:] == (8, 8)
    assert values(consumer.receive_arrow(3)) == [b"1", b"2", b"3"]
    assert values(consumer.receive_arrow(100)) == [b"6", b"7", b"9", b"10", b"11"]
    assert flow(clocked_client)[1:] == (0, 8)


def test_columns_of_mixed_keys_go_to_their_consumers(clocked_client: pulsarx.Client) -> None:
    consumers = [
        join(clocked_client, ConsumerType.KeyShared, consumer_name=name) for name in ("c", "d")
    ]
    with clocked_client.create_producer(
        "t", batching_enabled=True, batching_max_messages=50
    ) as producer:
        for number in range(200):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % 10}")
    tables = [pyarrow.table(each.receive_arrow(1000)) for each in consumers]
    keys = [set(table["key"].to_pylist()) for table in tables]
    assert not keys[0] & keys[1]
    assert all(keys)
    for table in tables:
        found = [int(value) for value in table["value"].to_pylist()]
        assert found == sorted(found)
    assert sum(len(table) for table in tables) == 200


@sharing
@batched_or_not
def test_lists_are_no_longer_than_asked_for(
    clocked_client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=16)
    publish(clocked_client, 50, batch)
    found: list[bytes] = []
    for size in (1, 2, 30, 7, 100):
        part = consumer.receive_many(size, 0)
        assert len(part) <= size
        found += [message.data() for message in part]
    assert found + payloads(consumer) == numbers(50)


@sharing
@pytest.mark.parametrize("wrong", [0, -1])
def test_lists_of_nothing_are_refused(
    clocked_client: pulsarx.Client, kind: ConsumerType, wrong: int
) -> None:
    consumer = join(clocked_client, kind)
    with pytest.raises(ValueError, match="max_messages"):
        consumer.receive_many(wrong)
    with pytest.raises(ValueError, match="max_messages"):
        consumer.receive_arrow(wrong)


@sharing
def test_all_ways_of_receiving_go_on_where_the_last_one_stopped(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 30, batch=9)
    found = [consumer.receive().data()]
    found += values(consumer.receive_arrow(4))
    found += [message.data() for message in consumer.receive_many(6)]
    found.append(consumer.take_now().data())
    found += values(consumer.receive_arrow(9))
    found += [message.data() for message in consumer.receive_many(100)]
    assert found == numbers(30)


@pytest.mark.guest(left_out="queues keep what was acknowledged", of="take_now-*")
@sharing
@pytest.mark.parametrize("receive", ["take_now", "receive_many", "receive_arrow"])
def test_dead_ones_are_handed_over_by_every_way_of_receiving(
    clocked_client: pulsarx.Client, kind: ConsumerType, receive: str
) -> None:
    """receive_arrow used to keep them until the next other call."""
    given_up = GivenUp()
    consumer = join(clocked_client, kind)
    publish(clocked_client, 2)
    for _ in range(2):
        drain(consumer)
        consumer.redeliver_unacknowledged_messages()
    consumer.set_dead_letters(1, given_up)
    call = getattr(consumer, receive)
    assert not (call() if receive == "take_now" else len(call(10, 0)))
    assert given_up.payloads() == numbers(2)
