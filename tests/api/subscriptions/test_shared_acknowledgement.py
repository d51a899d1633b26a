"""Facts about acknowledging where several consumers share a subscription."""

from __future__ import annotations

from typing import Any

import pytest
from flow_steps import counted, flow, join, publish, sharing, statistics
from subscription_steps import earliest
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, ManualClock, MessageId, errors


@sharing
@pytest.mark.parametrize("by_id", [False, True])
def test_cumulatively_is_refused_and_changes_nothing(
    clocked_client: pulsarx.Client, kind: ConsumerType, by_id: bool
) -> None:
    """Seed: "You cannot use cumulative acknowledgment with Shared type", nor with Key_Shared."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, 4)
    message = drain(consumer)[2]
    with pytest.raises(errors.CumulativeAcknowledgementNotAllowedError, match="one by one"):
        consumer.acknowledge_cumulative(message.message_id() if by_id else message)
    assert statistics(clocked_client)["msg_backlog"] == 4
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(4)


@sharing
@pytest.mark.parametrize("batch", [0, 4], ids=["plain", "batched"])
@pytest.mark.parametrize("restart", [False, True])
def test_exactly_what_is_not_acknowledged_comes_again(
    open_client: OpenClient, kind: ConsumerType, batch: int, restart: bool
) -> None:
    """Per message, inside batches too."""
    client = open_client()
    consumer = join(client, kind)
    publish(client, 50, batch)
    messages = drain(consumer)
    kept = [number for number in range(50) if number % 3 == 0 or 20 < number < 30]
    for number in reversed(range(50)):
        if number not in kept:
            consumer.acknowledge(messages[number])
    if restart:
        client.close()
        client = open_client()
    else:
        consumer.close()
    assert payloads(join(client, kind)) == [b"%d" % number for number in kept]


@sharing
def test_lists_of_messages_and_ids_in_any_order(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, consumer_name="c")
    publish(clocked_client, 40, batch=6)
    messages = drain(consumer)
    consumer.acknowledge_many(messages[30:] + messages[:5])
    consumer.acknowledge_many([message.message_id() for message in messages[10:20]])
    consumer.acknowledge_many(tuple(messages[4:8]))
    consumer.acknowledge_many(iter(messages[12:14]))
    consumer.acknowledge_many([])
    assert flow(clocked_client)[2] == 12
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(2, 8) + numbers(10, 20)


@pytest.mark.border(left_out="sent before acknowledged")
@sharing
def test_any_consumer_of_the_subscription_may_acknowledge(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    holder = join(clocked_client, kind, consumer_name="c", unacked_messages_timeout_ms=5000)
    publish(clocked_client, 3)
    messages = drain(holder)
    helper = join(clocked_client, kind, consumer_name="d")
    helper.acknowledge(messages[0])
    helper.acknowledge_many(messages[1:])
    assert flow(clocked_client)[1:] == (0, 0)
    manual_clock.advance(100)
    holder.redeliver_unacknowledged_messages()
    assert payloads(holder) == payloads(helper) == []


@sharing
def test_twice_counts_once(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(clocked_client, kind, consumer_name="c")
    publish(clocked_client, 3)
    messages = drain(consumer)
    for _ in range(3):
        consumer.acknowledge(messages[1])
        consumer.acknowledge_many(messages[1:2])
    assert statistics(clocked_client)["msg_backlog"] == 2
    assert flow(clocked_client)[1:] == (0, 2)


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@pytest.mark.border(left_out="sent before acknowledged")
@sharing
def test_before_it_was_ever_read_it_is_never_delivered(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=2, consumer_name="c")
    sent = publish(clocked_client, 10)
    consumer.acknowledge_many(sent[5:9])
    assert flow(clocked_client) == (0, 2, 2)
    assert payloads(consumer) == [*numbers(5), b"9"]


@pytest.mark.border(left_out="negative acknowledgements")
@sharing
@pytest.mark.parametrize(
    "odd",
    [
        MessageId(-1, 999, 0),
        MessageId(-1, 0, 0),
        MessageId.earliest,
        MessageId.latest,
        MessageId(-1, 1, 1 << 62),
        MessageId(-1, 1, 0, 1 << 30),
        MessageId(-1, 1, -1),
    ],
    ids=str,
)
def test_an_id_that_names_nothing_is_refused_and_changes_nothing(
    clocked_client: pulsarx.Client, kind: ConsumerType, odd: MessageId
) -> None:
    consumer = join(clocked_client, kind, consumer_name="c")
    publish(clocked_client, 3)
    before = flow(clocked_client)
    if odd.ledger_id() == 1:  # of a ledger that may have been trimmed
        consumer.acknowledge(odd)
        consumer.acknowledge_many([odd])
    else:
        with pytest.raises(errors.NotAllowedError, match="no such message"):
            consumer.acknowledge(odd)
        with pytest.raises(errors.NotAllowedError, match="no such message"):
            consumer.acknowledge_many([odd])
    assert flow(clocked_client) == before
    assert payloads(consumer) == numbers(3)


@sharing
def test_messages_of_another_topic_are_refused(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    other = clocked_client.subscribe("other", "s")
    clocked_client.create_producer("other").send(b"x")
    message = other.receive()
    consumer = join(clocked_client, kind)
    publish(clocked_client, 1)
    for call in (consumer.acknowledge, lambda each: consumer.acknowledge_many([each])):
        with pytest.raises(errors.NotAllowedError, match="topic"):
            call(message)
    assert payloads(consumer) == [b"0"]


@sharing
@pytest.mark.parametrize("wrong", [None, 5, "1:2:3", b"id", ...], ids=repr)
def test_what_is_no_message_is_refused(
    clocked_client: pulsarx.Client, kind: ConsumerType, wrong: Any
) -> None:
    consumer = join(clocked_client, kind)
    with pytest.raises(TypeError):
        consumer.acknowledge(wrong)
    with pytest.raises(TypeError):
        consumer.acknowledge_many([wrong])


@sharing
def test_after_close_it_is_refused(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 2)
    messages = drain(consumer)
    consumer.close()
    for call in (
        lambda: consumer.acknowledge(messages[0]),
        lambda: consumer.acknowledge(messages[0].message_id()),
        lambda: consumer.acknowledge_many(messages),
    ):
        with pytest.raises(errors.AlreadyClosed):
            call()
    assert payloads(join(clocked_client, kind)) == numbers(2)


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@pytest.mark.border(left_out="sent before acknowledged")
@sharing
def test_what_a_leaver_received_may_be_acknowledged_by_the_next(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    leaver = join(clocked_client, kind)
    publish(clocked_client, 4, batch=4)
    messages = drain(leaver)
    leaver.close()
    stayer = join(clocked_client, kind, consumer_name="c")
    assert flow(clocked_client) == (996, 4, 4)
    stayer.acknowledge_many(messages[:3])
    assert counted(drain(stayer)) == [(b"3", 0)]


def test_what_was_acknowledged_out_of_order_stays_so_when_the_type_changes(
    open_client: OpenClient,
) -> None:
    client = open_client()
    consumer = join(client, ConsumerType.Shared)
    publish(client, 12, batch=5)
    messages = drain(consumer)
    consumer.acknowledge_many(messages[1::2])
    left = [b"%d" % number for number in range(0, 12, 2)]
    consumer.close()
    for kind in (ConsumerType.Exclusive, ConsumerType.KeyShared, ConsumerType.Failover):
        with join(client, kind) as each:
            assert payloads(each) == left
    client.close()
    assert payloads(earliest(open_client())) == left
