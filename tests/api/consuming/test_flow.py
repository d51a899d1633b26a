"""Facts about permits, receiver queues and limits of what is unacknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flow_steps import flow, join, of_consumer, publish, sharing, statistics
from topic_reading import drain, numbers, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, ManualClock, errors

Limited = Any


@pytest.fixture
def limited(manual_clock: ManualClock) -> Iterator[Limited]:
    """Opens a client in memory whose broker has these options."""
    opened: list[pulsarx.Client] = []

    def make(**options: int) -> pulsarx.Client:
        opened.append(
            pulsarx.Client(
                "memory:limited",
                clock=manual_clock,
                durability="os",
                broker_options=BrokerOptions(**options),
            )
        )
        return opened[-1]

    yield make
    for client in opened:
        client.shutdown()


@sharing
@pytest.mark.parametrize("batch", [0, 7], ids=["plain", "batched"])
def test_permits_count_messages_not_entries(
    clocked_client: pulsarx.Client, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=10, consumer_name="c")
    assert flow(clocked_client) == (10, 0, 0)
    publish(clocked_client, 28, batch)
    assert flow(clocked_client) == (0, 10, 10)
    assert payloads(consumer) == numbers(28)


@sharing
def test_permits_go_back_when_half_of_the_queue_was_received(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """permits, queued, unacknowledged: at every step."""
    consumer = join(clocked_client, kind, receiver_queue_size=6, consumer_name="c")
    publish(clocked_client, 9, batch=4)
    assert flow(clocked_client) == (0, 6, 6)
    received = [consumer.receive(), consumer.receive()]
    assert flow(clocked_client) == (0, 4, 6)
    received.append(consumer.receive())
    assert flow(clocked_client) == (0, 6, 9)  # three permits, used at once
    consumer.acknowledge_many(received)
    assert flow(clocked_client) == (0, 6, 6)
    assert drain(consumer)
    assert flow(clocked_client) == (6, 0, 6)


@sharing
def test_a_message_acknowledged_in_the_queue_leaves_it_and_gives_its_permit_back(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=4, consumer_name="c")
    sent = publish(clocked_client, 6, batch=3)
    assert flow(clocked_client) == (0, 4, 4)
    consumer.acknowledge(sent[1])
    consumer.acknowledge_many(sent[2:4])
    assert flow(clocked_client) == (1, 3, 3)  # 0, and 4 and 5 in place of what left
    consumer.acknowledge(sent[5])
    assert flow(clocked_client) == (2, 2, 2)
    assert payloads(consumer) == [b"0", b"4"]
    assert flow(clocked_client) == (4, 0, 2)


@sharing
def test_acknowledged_by_another_consumer_it_leaves_the_queue_too(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind, receiver_queue_size=4, consumer_name="c")
    sent = publish(clocked_client, 4)
    assert flow(clocked_client) == (0, 4, 4)
    second = join(clocked_client, kind, consumer_name="d")
    second.acknowledge_many(sent[:3])
    assert flow(clocked_client) == (3, 1, 1)
    assert payloads(second) == []
    assert payloads(first) == [b"3"]


@sharing
def test_queued_messages_acknowledged_without_end_take_no_memory_without_end(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """One that never receives, while its messages are acknowledged by their ids."""
    idle = join(clocked_client, kind, receiver_queue_size=4, consumer_name="c")
    for start in range(0, 4000, 4):
        sent = publish(clocked_client, 4, start=start)
        assert flow(clocked_client) == (0, 4, 4)
        idle.acknowledge_many(sent)
    publish(clocked_client, 2)
    assert payloads(idle) == numbers(2)


@sharing
def test_a_seek_gives_all_permits_back(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=5, consumer_name="c")
    publish(clocked_client, 9)
    consumer.receive_many(4)
    consumer.seek(pulsarx.MessageId.latest)
    assert flow(clocked_client) == (5, 0, 0)
    consumer.seek(pulsarx.MessageId.earliest)
    assert flow(clocked_client) == (0, 5, 5)
    assert payloads(consumer) == numbers(9)


# A queue of none ----------------------------------------------------------------------------------


@sharing
def test_without_a_queue_messages_come_one_at_a_time_when_asked(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=0, consumer_name="c")
    publish(clocked_client, 5, batch=3)
    assert flow(clocked_client) == (0, 0, 0)
    for number in range(5):
        assert consumer.receive().data() == b"%d" % number
        assert flow(clocked_client) == (0, 0, number + 1)


@sharing
def test_without_a_queue_nothing_is_kept_from_the_others(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """It used to keep the permit of a look that found nothing, and with it the next message."""
    unqueued = join(clocked_client, kind, receiver_queue_size=0, consumer_name="c")
    assert unqueued.receive_many(1, 0) == []
    assert unqueued.take_now() is None
    assert len(unqueued.receive_arrow(1, 0)) == 0
    if kind == ConsumerType.Shared:
        other = join(clocked_client, kind, consumer_name="d")
        publish(clocked_client, 4)
        assert payloads(other) == numbers(4)
    assert flow(clocked_client) == (0, 0, 0)


@sharing
def test_without_a_queue_one_may_take_many(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=0, consumer_name="c")
    publish(clocked_client, 5)
    messages = consumer.receive_many(3, 0)
    assert [message.data() for message in messages] == numbers(3)
    assert flow(clocked_client) == (0, 0, 3)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(5)


def test_a_queue_of_less_than_none_is_refused(clocked_client: pulsarx.Client) -> None:
    with pytest.raises((ValueError, errors.InvalidConfiguration)):
        join(clocked_client, ConsumerType.Shared, receiver_queue_size=-1)


@sharing
@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_queues_never_get_stuck(
    clocked_client: pulsarx.Client, kind: ConsumerType, size: int
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=size, consumer_name="c")
    publish(clocked_client, 50, batch=9)
    assert payloads(consumer) == numbers(50)
    assert sum(flow(clocked_client)[:2]) + 50 % max(1, -(-size // 2)) == size


# Limits -------------------------------------------------------------------------------------------


@sharing
@pytest.mark.parametrize("batch", [0, 4, 100], ids=["plain", "batched", "one batch"])
def test_a_consumer_is_given_no_more_than_its_limit(
    limited: Limited, kind: ConsumerType, batch: int
) -> None:
    """Blocked at the limit, unblocked at half of it."""
    client = limited(max_unacked_messages_per_consumer=10)
    consumer = join(client, kind, consumer_name="c")
    publish(client, 40, batch)
    assert flow(client) == (990, 10, 10)
    messages = drain(consumer)
    assert [message.data() for message in messages] == numbers(10)
    assert of_consumer(client, "c")["blocked_consumer_on_unacked_msgs"]
    for message in messages[:4]:
        consumer.acknowledge(message)
        assert payloads(consumer) == []
    assert flow(client)[1:] == (0, 6)
    consumer.acknowledge(messages[4])
    assert flow(client)[1:] == (5, 10)
    messages = drain(consumer)
    assert [message.data() for message in messages] == numbers(5, 10)
    consumer.acknowledge_many(messages)
    assert [message.data() for message in drain(consumer)] == numbers(5, 15)


@sharing
@pytest.mark.parametrize("batch", [0, 4, 100], ids=["plain", "batched", "one batch"])
def test_a_subscription_gives_out_no_more_than_its_limit(
    limited: Limited, kind: ConsumerType, batch: int
) -> None:
    client = limited(max_unacked_messages_per_subscription=10)
    consumers = [
        join(client, kind, consumer_name=name, receiver_queue_size=7) for name in ("c", "d")
    ]
    publish(client, 40, batch)
    messages = [message for each in consumers for message in drain(each)]
    assert sorted(message.data() for message in messages) == numbers(10)
    found = statistics(client)
    assert found["unacked_messages"] == 10
    assert found["blocked_subscription_on_unacked_msgs"]
    consumers[0].acknowledge_many(messages[:4])
    assert [drain(each) for each in consumers] == [[], []]
    consumers[1].acknowledge(messages[4])
    found = statistics(client)
    assert found["unacked_messages"] == 10
    more = [message.data() for each in consumers for message in drain(each)]
    assert sorted(more) == numbers(5, 10)


@sharing
@pytest.mark.parametrize("limit", ["consumer", "subscription"])
def test_what_is_to_be_delivered_again_comes_whatever_the_limit(
    limited: Limited, manual_clock: ManualClock, kind: ConsumerType, limit: str
) -> None:
    client = limited(**{f"max_unacked_messages_per_{limit}": 10})
    consumer = join(client, kind, consumer_name="c")
    publish(client, 20)
    messages = drain(consumer)
    assert len(messages) == 10
    consumer.negative_acknowledge(messages[9])
    manual_clock.advance(60)
    assert payloads(consumer) == [b"9"]
    consumer.redeliver_unacknowledged_messages()
    assert len(drain(consumer)) == 10


@sharing
def test_a_leaver_frees_the_limit(limited: Limited, kind: ConsumerType) -> None:
    client = limited(max_unacked_messages_per_subscription=10)
    first = join(client, kind, consumer_name="c")
    publish(client, 20)
    assert payloads(first) == numbers(10)
    second = join(client, kind, consumer_name="d")
    assert payloads(second) == []
    first.close()
    messages = drain(second)
    assert [message.data() for message in messages] == numbers(10)
    second.acknowledge_many(messages)
    assert payloads(second) == numbers(10, 10)


@sharing
def test_no_limit_is_no_limit(limited: Limited, kind: ConsumerType) -> None:
    client = limited(max_unacked_messages_per_subscription=0, max_unacked_messages_per_consumer=0)
    consumer = join(client, kind)
    publish(client, 250_000, batch=1000)
    assert len(drain(consumer)) == 250_000


@sharing
def test_a_blocked_consumer_leaves_the_rest_to_the_others(
    limited: Limited, kind: ConsumerType
) -> None:
    client = limited(max_unacked_messages_per_consumer=3)
    first = join(client, kind, consumer_name="c")
    second = join(client, kind, consumer_name="d")
    with client.create_producer("t") as producer:
        for number in range(20):
            producer.send(b"%d" % number, partition_key=str(number))
    got = [len(drain(first)), len(drain(second))]
    assert got == [3, 3]
    assert statistics(client)["unacked_messages"] == 6


def test_a_lone_consumer_has_no_limit(limited: Limited) -> None:
    client = limited(max_unacked_messages_per_subscription=5, max_unacked_messages_per_consumer=5)
    consumer = join(client, ConsumerType.Exclusive)
    publish(client, 20)
    assert payloads(consumer) == numbers(20)
