"""Facts about messages whose acknowledgement was aborted: they come again."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_types import ALL_TYPES
from support.topics import backlog, filled
from transacted_steps import StandIn, counted, messages_of, texts_of
from type_steps import KEY_SHARED, check, join, keys_between, publish, statistics

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType

EXCLUSIVE, FAILOVER, SHARED = ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared
IN_ORDER = [EXCLUSIVE, FAILOVER]
LOW, OTHER_LOW = keys_between(0, 32767, 2)

of_all_types = pytest.mark.parametrize("kind", ALL_TYPES)
of_types_in_order = pytest.mark.parametrize("kind", IN_ORDER)


@of_all_types
def test_exactly_what_was_acknowledged_comes_again_counted(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Cases 24 and 25, the stronger form."""
    filled(client, 5)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    for count in (1, 2):
        transaction = StandIn()
        consumer.acknowledge_many([messages[3], messages[1]], transaction)
        assert counted(consumer) == []
        transaction.abort()
        assert counted(consumer) == [("1", count), ("3", count)]
        check(consumer)
    consumer.acknowledge_many(messages)
    assert backlog(client) == 0
    assert counted(consumer) == []


@of_all_types
def test_what_was_acknowledged_comes_again_with_the_next_consumer(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 3)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[1], transaction)
    consumer.close()
    transaction.abort()
    assert texts_of(join(client, kind)) == ["0", "1", "2"]


@of_all_types
def test_what_was_acknowledged_comes_again_although_consumers_came_and_went(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 3)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[1], transaction)
    consumer.close()
    consumer = join(client, kind)
    assert texts_of(consumer) == ["0", "2"]
    transaction.abort()
    assert counted(consumer) == [("1", 1)]
    check(consumer)


@of_all_types
def test_a_message_that_was_not_read_comes_in_its_turn(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(client, kind, receiver_queue_size=1)
    ids = filled(client, 5)
    assert texts_of(consumer, 1) == ["0"]
    transaction = StandIn()
    consumer.acknowledge(ids[3], transaction)
    transaction.abort()
    assert texts_of(consumer) == ["1", "2", "3", "4"]
    check(consumer)


@of_all_types
def test_what_was_acknowledged_comes_again_after_a_seek(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 55."""
    filled(client, 3)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[1], transaction)
    consumer.seek(pulsarx.MessageId.earliest)
    assert texts_of(consumer) == ["0", "2"]
    transaction.abort()
    assert texts_of(consumer) == ["1"]
    check(consumer)


# Exclusive and Failover ---------------------------------------------------------------------------


@of_types_in_order
def test_what_comes_again_comes_in_order_before_what_is_queued(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 10)
    consumer = join(client, kind)
    messages = messages_of(consumer, 6)
    one, other = StandIn(), StandIn()
    consumer.acknowledge_many([messages[4], messages[1]], one)
    consumer.acknowledge_many([messages[2], messages[5]], other)
    one.abort()
    assert texts_of(consumer, 1) == ["1"]
    other.abort()
    assert texts_of(consumer) == ["2", "4", "5", "6", "7", "8", "9"]


@of_types_in_order
def test_messages_of_batches_come_again_alone(client: pulsarx.Client, kind: ConsumerType) -> None:
    with client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=86_400_000
    ) as producer:
        for batch in range(4):
            for number in range(4):
                producer.send_async(b"%d" % (4 * batch + number), None)
            producer.flush()
    consumer = join(client, kind)
    messages = messages_of(consumer, 10)
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (1, 2, 7, 8)], transaction)
    transaction.abort()
    assert texts_of(consumer, 3) == ["1", "2", "7"]
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (3, 9)], transaction)
    transaction.abort()
    assert texts_of(consumer) == ["3", "8", "9", *map(str, range(10, 16))]
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == list(map(str, range(16)))


@of_types_in_order
def test_what_comes_again_may_lie_in_several_ledgers(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
    client = pulsarx.Client("memory:ledgers", durability="os", broker_options=options)
    filled(client, 12)
    consumer = join(client, kind)
    messages = messages_of(consumer, 10)
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (0, 5, 8)], transaction)
    transaction.abort()
    assert texts_of(consumer) == ["0", "5", "8", "10", "11"]
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[7], transaction)
    transaction.abort()
    assert texts_of(consumer) == list(map(str, range(8)))
    filled(client, 2, begin=12)
    assert texts_of(consumer) == ["12", "13"]
    client.close()


@of_types_in_order
def test_what_was_acknowledged_cumulatively_comes_again(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 32, the stronger form."""
    filled(client, 8)
    consumer = join(client, kind)
    messages = messages_of(consumer, 6)
    consumer.acknowledge(messages[1])
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[3], transaction)
    consumer.acknowledge(messages[5], transaction)
    transaction.abort()
    assert counted(consumer) == [("0", 1), ("2", 1), ("3", 1), ("5", 1), ("6", 0), ("7", 0)]


@of_types_in_order
def test_what_was_not_delivered_of_a_cumulative_acknowledgement_comes_in_its_turn(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    ids = filled(client, 8)
    consumer = join(client, kind)
    assert texts_of(consumer, 3) == ["0", "1", "2"]
    transaction = StandIn()
    consumer.acknowledge_cumulative(ids[5], transaction)
    transaction.abort()
    assert counted(consumer) == [(f"{at}", int(at < 3)) for at in range(8)]


@of_types_in_order
def test_a_refusal_while_messages_come_again_has_all_behind_it_come(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    client = clocked_client
    filled(client, 8)
    consumer = join(client, kind)
    messages = messages_of(consumer, 7)
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (1, 3, 5)], transaction)
    transaction.abort()
    assert texts_of(consumer, 1) == ["1"]
    consumer.negative_acknowledge(messages[4])
    manual_clock.advance(70)
    assert texts_of(consumer) == ["3", "4", "5", "6", "7"]
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (1, 3, 5)], transaction)
    transaction.abort()
    assert texts_of(consumer, 1) == ["1"]
    consumer.negative_acknowledge(messages[0])
    manual_clock.advance(70)
    assert texts_of(consumer) == list(map(str, range(8)))


@of_types_in_order
def test_messages_that_were_given_back_while_others_came_again_come_alone(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 8)
    consumer = join(client, kind)
    messages = messages_of(consumer, 7)
    transaction = StandIn()
    consumer.acknowledge_many([messages[at] for at in (1, 3, 5)], transaction)
    transaction.abort()
    taken = [consumer.receive(0), consumer.receive(0)]
    consumer.give_back(taken)  # as an interrupted call does
    assert counted(consumer) == [("1", 1), ("3", 1), ("5", 1), ("7", 0)]


def test_the_next_active_consumer_begins_in_order_while_messages_come_again(
    client: pulsarx.Client,
) -> None:
    filled(client, 6)
    first, second = join(client, FAILOVER, "a"), join(client, FAILOVER, "b")
    messages = messages_of(first)
    transaction = StandIn()
    first.acknowledge_many([messages[1], messages[3]], transaction)
    transaction.abort()
    assert texts_of(first, 1) == ["1"]
    first.close()
    assert texts_of(second) == list(map(str, range(6)))


@of_types_in_order
def test_what_comes_again_keeps_to_the_dispatch_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    client = clocked_client
    filled(client, 6)
    client.admin.topics.set_dispatch_rate("t", msgs=2)
    consumer = join(client, kind)
    assert texts_of(consumer) == ["0", "1"]
    manual_clock.advance(1)
    first = messages_of(consumer)
    assert [each.data() for each in first] == [b"2", b"3"]
    transaction = StandIn()
    consumer.acknowledge_many(first, transaction)
    transaction.abort()
    manual_clock.advance(1)
    assert texts_of(consumer) == ["2", "3"]
    manual_clock.advance(1)
    assert texts_of(consumer) == ["4", "5"]


# Shared and Key_Shared ----------------------------------------------------------------------------


def test_what_comes_again_goes_to_any_consumer(client: pulsarx.Client) -> None:
    filled(client, 4)
    first = join(client, SHARED, "a", receiver_queue_size=4)
    messages = messages_of(first)
    transaction = StandIn()
    first.acknowledge_many(messages[1:3], transaction)
    second = join(client, SHARED, "b")
    first.close()
    assert texts_of(second) == ["0", "3"]
    transaction.abort()
    assert counted(second) == [("1", 1), ("2", 1)]
    check(second)


def test_the_order_of_a_key_is_kept(client: pulsarx.Client) -> None:
    """What comes again goes in front of later messages of its key that wait in the queue."""
    publish(client, *(f"{LOW}:{number}" for number in range(3)), f"{OTHER_LOW}:0")
    consumer = join(client, KEY_SHARED)
    one, two = messages_of(consumer, 2)
    transaction = StandIn()
    consumer.acknowledge(one, transaction)
    transaction.abort()
    assert sorted(texts_of(consumer)) == sorted([f"{LOW}:0", f"{LOW}:2", f"{OTHER_LOW}:0"])
    check(consumer)
    consumer.redeliver_unacknowledged_messages()
    found = [each for each in texts_of(consumer) if each.startswith(LOW)]
    assert found == [f"{LOW}:{number}" for number in range(3)]


def test_a_later_message_of_a_key_that_is_queued_goes_behind(client: pulsarx.Client) -> None:
    publish(client, *(f"{LOW}:{number}" for number in range(4)))
    consumer = join(client, KEY_SHARED)
    one, two = messages_of(consumer, 2)
    transaction = StandIn()
    consumer.acknowledge_many([one, two], transaction)
    transaction.abort()
    assert texts_of(consumer) == [f"{LOW}:{number}" for number in range(4)]
    check(consumer)


def test_keys_in_a_batch_come_again_to_their_owners(client: pulsarx.Client) -> None:
    consumers = {name: join(client, KEY_SHARED, name) for name in ("a", "b")}
    with client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=86_400_000
    ) as producer:
        for number in range(40):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % 20}")
    held = {name: messages_of(each) for name, each in consumers.items()}
    before = {name: [each.data() for each in found] for name, found in held.items()}
    assert all(before.values()) and sum(map(len, before.values())) == 40
    transaction = StandIn()
    for name, consumer in consumers.items():
        consumer.acknowledge_many(held[name], transaction)
    transaction.abort()
    for name, consumer in consumers.items():
        assert [each.data() for each in messages_of(consumer)] == before[name]
        check(consumer)


def test_a_message_for_later_that_was_acknowledged_comes_when_it_is_due(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    for kind in (SHARED, KEY_SHARED):
        topic = f"later-{kind.name}"
        ids = filled(clocked_client, 2, topic, deliver_at=int(manual_clock.now_ms()) + 60_000)
        consumer = join(clocked_client, kind, topic=topic)
        assert texts_of(consumer) == []
        transaction = StandIn()
        consumer.acknowledge(ids[1], transaction)
        transaction.abort()
        assert texts_of(consumer) == []
        manual_clock.advance(70)
        assert counted(consumer) == [("0", 0), ("1", 0)]
        check(consumer)


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_an_abort_counts_for_the_dead_letter_topic(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 2)
    policy = ConsumerDeadLetterPolicy(2, dead_letter_topic="dead")
    dead = client.subscribe("dead", "s")
    consumer = join(client, kind, dead_letter_policy=policy)
    for _ in range(3):
        (message, *_) = messages_of(consumer)
        transaction = StandIn()
        consumer.acknowledge(message, transaction)
        transaction.abort()
    assert texts_of(consumer) == []
    assert dead.receive(60_000).data() == b"0"


def test_an_abort_wakes_a_consumer_that_waits(client: pulsarx.Client) -> None:
    for kind in ALL_TYPES:
        topic = f"wakes-{kind.name}"
        filled(client, 1, topic)
        consumer = join(client, kind, topic=topic)
        message = consumer.receive(0)
        transaction = StandIn()
        consumer.acknowledge(message, transaction)
        future = consumer.receive_future() if hasattr(consumer, "receive_future") else None
        told: list[Any] = []
        consumer.watch(lambda told=told: told.append(1))
        transaction.abort()
        assert told
        assert consumer.receive(60_000).data() == b"0"
        del future


def test_an_abort_leaves_what_is_blocked_as_it_is(client: pulsarx.Client) -> None:
    filled(client, 4)
    consumer = join(client, SHARED, receiver_queue_size=2)
    messages = messages_of(consumer, 2)
    transaction = StandIn()
    consumer.acknowledge_many(messages, transaction)
    transaction.abort()
    assert sorted(texts_of(consumer)) == ["0", "1", "2", "3"]
    check(consumer)
    assert statistics(client)["unacked_messages"] == 4
