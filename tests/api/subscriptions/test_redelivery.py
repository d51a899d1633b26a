"""Facts about redeliver_unacknowledged_messages."""

from __future__ import annotations

import pytest
from flow_steps import (
    alone,
    counted,
    every_kind,
    flow,
    join,
    publish,
    sharing,
    statistics,
)
from topic_reading import drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, ManualClock


@pytest.mark.border(left_out="counts of what was sent")
@every_kind
@pytest.mark.parametrize("batch", [0, 5], ids=["plain", "batched"])
def test_everything_that_was_received_comes_again_in_order_and_counted(
    clocked_client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 12, batch)
    messages = consumer.receive_many(8)
    consumer.acknowledge_many(messages[2:4])
    consumer.redeliver_unacknowledged_messages()
    expected = [(b"%d" % number, 1) for number in (0, 1, 4, 5, 6, 7)]
    expected += [(b"%d" % number, 0) for number in range(8, 12)]
    assert counted(drain(consumer)) == expected


@pytest.mark.border(left_out="counts of what was sent")
@every_kind
def test_with_nothing_received_it_changes_nothing(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    consumer.redeliver_unacknowledged_messages()
    publish(clocked_client, 3)
    consumer.redeliver_unacknowledged_messages()
    assert consumer.has_message()
    consumer.redeliver_unacknowledged_messages()
    assert counted(drain(consumer)) == [(b"%d" % number, 0) for number in range(3)]


@pytest.mark.border(left_out="counts of what was sent")
@every_kind
def test_what_is_negatively_acknowledged_comes_at_once_and_once(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    consumer.negative_acknowledge(drain(consumer)[1])
    consumer.redeliver_unacknowledged_messages()
    assert counted(drain(consumer)) == [(b"%d" % number, 1) for number in range(3)]
    assert manual_clock.next_due_ms() is None
    manual_clock.advance(100)
    assert payloads(consumer) == []


@pytest.mark.border(left_out="counts of what was sent")
@sharing
def test_what_others_have_stays_with_them(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind, consumer_name="a", receiver_queue_size=4)
    second = join(clocked_client, kind, consumer_name="b", receiver_queue_size=4)
    with clocked_client.create_producer("t") as producer:
        for number in range(8):
            producer.send(b"%d" % number, partition_key=str(number))
    mine, others = first.receive_many(4), second.receive_many(4)
    assert mine and others
    first.redeliver_unacknowledged_messages()
    again = counted(drain(first)) + counted(drain(second))
    received = {message.data() for message in mine}
    assert {payload for payload, count in again if count} == received
    assert not {payload for payload, _ in again} & {message.data() for message in others}


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.border(left_out="counts of what was sent")
@sharing
def test_permits_are_whole_afterwards(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=10, consumer_name="c")
    publish(clocked_client, 6)
    messages = consumer.receive_many(3)
    assert flow(clocked_client) == (4, 3, 6)
    consumer.negative_acknowledge(messages[0])
    consumer.redeliver_unacknowledged_messages()
    # three received messages are not yet given back as permits
    assert flow(clocked_client) == (1, 6, 6)
    consumer.acknowledge_many(drain(consumer))
    assert flow(clocked_client) == (10 - 9 % 5, 0, 0)


def test_a_stand_by_has_nothing_to_deliver_again(clocked_client: pulsarx.Client) -> None:
    active = join(clocked_client, ConsumerType.Failover, consumer_name="a")
    stand_by = join(clocked_client, ConsumerType.Failover, consumer_name="b")
    publish(clocked_client, 3)
    assert payloads(active) == numbers(3)
    stand_by.redeliver_unacknowledged_messages()
    assert payloads(active) == payloads(stand_by) == []


@pytest.mark.border(left_out="sent before acknowledged")
@alone
def test_what_is_acknowledged_meanwhile_does_not_come(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 8, batch=4)
    messages = drain(consumer)
    consumer.redeliver_unacknowledged_messages()
    consumer.acknowledge_cumulative(messages[4])
    consumer.acknowledge(messages[6])
    assert counted(drain(consumer)) == [(b"5", 1), (b"7", 1)]


@pytest.mark.border(left_out="sent before acknowledged")
@sharing
def test_what_is_acknowledged_meanwhile_does_not_come_to_sharers(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 8, batch=4)
    messages = drain(consumer)
    consumer.redeliver_unacknowledged_messages()
    consumer.acknowledge_many(messages[:5])
    consumer.acknowledge(messages[6])
    assert counted(drain(consumer)) == [(b"5", 1), (b"7", 1)]
    assert statistics(clocked_client)["msg_backlog"] == 2


@every_kind
def test_a_leaver_counts_nothing(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    """Seed: "When a consumer disconnects, all the messages that were sent to it and not
    acknowledged will be rescheduled for sending to the remaining consumers." """
    leaver = join(clocked_client, kind)
    publish(clocked_client, 5)
    leaver.acknowledge(drain(leaver)[0])
    leaver.redeliver_unacknowledged_messages()
    drain(leaver)
    leaver.close()
    stayer = join(clocked_client, kind)
    assert counted(drain(stayer)) == [(b"%d" % number, 1) for number in range(1, 5)]
