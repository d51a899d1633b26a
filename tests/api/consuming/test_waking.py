"""Facts about those who wait: when something can be delivered and somebody has permits, it is.

Each waits asleep in a real thread.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flow_steps import (
    Waiting,
    every_kind,
    join,
    publish,
    sharing,
    waiting_receive,
)
from topic_reading import drain, numbers, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, ManualClock, MessageId, errors

# Of an Exclusive subscription there is only one consumer.
with_others = pytest.mark.parametrize(
    "kind",
    [ConsumerType.Failover, ConsumerType.Shared, ConsumerType.KeyShared],
    ids=["failover", "shared", "key_shared"],
)
KEYS = [str(number) for number in range(64)]


def publish_keys(client: pulsarx.Client) -> None:
    """One message of each of many keys, so that every consumer has some."""
    with client.create_producer("t") as producer:
        for key in KEYS:
            producer.send(key.encode(), partition_key=key)


@every_kind
def test_a_message_wakes_who_waits(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    waiting = waiting_receive(join(clocked_client, kind))
    publish(clocked_client, 1)
    assert waiting.result().data() == b"0"


@every_kind
@pytest.mark.parametrize(
    "call", ["receive_many", "receive_arrow"], ids=["receive_many", "receive_arrow"]
)
def test_however_it_waits(clocked_client: pulsarx.Client, kind: ConsumerType, call: str) -> None:
    consumer = join(clocked_client, kind)
    waiting = Waiting(lambda: getattr(consumer, call)(10))
    publish(clocked_client, 3, batch=3)
    assert len(waiting.result()) == 3


@sharing
def test_all_who_wait_get_their_part(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumers = [
        join(clocked_client, kind, consumer_name=name, receiver_queue_size=1) for name in "abcd"
    ]
    threads = [waiting_receive(each) for each in consumers]
    publish_keys(clocked_client)
    assert len({thread.result().data() for thread in threads}) == len(consumers)


@every_kind
def test_time_that_passes_wakes_who_waits_for_a_negatively_acknowledged_one(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 1)
    consumer.negative_acknowledge(consumer.receive())
    waiting = waiting_receive(consumer)
    manual_clock.advance(60)
    assert waiting.result().redelivery_count() == 1


@every_kind
def test_time_that_passes_wakes_who_waits_for_an_overdue_one(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, unacked_messages_timeout_ms=1000)
    publish(clocked_client, 1)
    consumer.receive()
    waiting = waiting_receive(consumer)
    manual_clock.advance(1)
    assert waiting.result().redelivery_count() == 1


@sharing
def test_time_that_passes_wakes_who_waits_for_a_delayed_one(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    waiting = waiting_receive(join(clocked_client, kind))
    clocked_client.create_producer("t").send(b"0", deliver_after=timedelta(seconds=5))
    waiting.until_asleep()
    assert waiting.is_waiting
    manual_clock.advance(5)
    assert waiting.result().data() == b"0"


@sharing
def test_a_delayed_message_nobody_looked_at_wakes_who_came_to_wait_since(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    clocked_client.create_producer("t").send(b"0", deliver_after=timedelta(seconds=5))
    waiting = waiting_receive(consumer)
    manual_clock.advance(5)
    assert waiting.result().data() == b"0"


@sharing
@pytest.mark.parametrize("by_id", [False, True], ids=["all", "one"])
def test_what_another_gives_back_wakes_who_waits(
    clocked_client: pulsarx.Client, kind: ConsumerType, by_id: bool
) -> None:
    """Its negative acknowledgement without a delay, or its redelivery of everything.

    The first one's queue is full of what it would have been given again.
    """
    holder = join(clocked_client, kind, consumer_name="a", negative_ack_redelivery_delay_ms=0)
    publish(clocked_client, 1)
    message = holder.receive()
    receiving = waiting_receive(join(clocked_client, kind, consumer_name="b"))
    if by_id:
        holder.negative_acknowledge(message)
    else:
        holder.redeliver_unacknowledged_messages()
    other = Waiting(holder.receive)
    # Whoever of the two it was given to has it; the other one gets the next.
    with clocked_client.create_producer("t") as producer:
        for key in KEYS:
            producer.send(b"next", partition_key=key)
    found = {receiving.result().data(), other.result().data()}
    assert b"0" in found or b"0" in [each.data() for each in drain(holder)]


@with_others
def test_a_leaver_wakes_who_waits(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    leaver = join(clocked_client, kind, consumer_name="a")
    publish(clocked_client, 2)
    assert payloads(leaver) == numbers(2)
    waiting = waiting_receive(join(clocked_client, kind, consumer_name="b"))
    leaver.close()
    assert waiting.result().data() == b"0"


@with_others
def test_one_that_was_forgotten_wakes_who_waits(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    client = pulsarx.Client("memory:clocked", clock=manual_clock, durability="os")
    forgotten = join(client, kind, consumer_name="a")
    publish(clocked_client, 2)
    assert payloads(forgotten) == numbers(2)
    waiting = waiting_receive(join(clocked_client, kind, consumer_name="b"))
    del forgotten, client
    assert waiting.result().data() == b"0"


@sharing
def test_one_that_comes_wakes_nobody_wrongly_and_is_served(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """A full consumer's later messages go to the newcomer."""
    full = join(clocked_client, kind, consumer_name="a", receiver_queue_size=4)
    publish_keys(clocked_client)
    assert full.has_message()
    newcomer = join(clocked_client, kind, consumer_name="b")
    assert newcomer.has_message()


@sharing
@pytest.mark.parametrize("acknowledge", ["one", "many"])
def test_the_limit_of_a_consumer_that_frees_wakes_it(
    manual_clock: ManualClock, kind: ConsumerType, acknowledge: str
) -> None:
    options = BrokerOptions(max_unacked_messages_per_consumer=4)
    with pulsarx.Client("memory:waking", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, kind)
        publish(client, 6)
        messages = drain(consumer)
        waiting = waiting_receive(consumer)
        if acknowledge == "many":
            consumer.acknowledge_many(messages[:2])
        else:
            consumer.acknowledge(messages[0])
            waiting.until_asleep()
            assert waiting.is_waiting
            consumer.acknowledge(messages[1])
        assert waiting.result().data() == b"4"


@sharing
def test_the_limit_of_a_subscription_that_frees_wakes_another(
    manual_clock: ManualClock, kind: ConsumerType
) -> None:
    options = BrokerOptions(max_unacked_messages_per_subscription=40)
    with pulsarx.Client("memory:waking", clock=manual_clock, broker_options=options) as client:
        holder = join(client, kind, consumer_name="a")
        publish_keys(client)
        messages = drain(holder)
        assert len(messages) == 40
        waiting = waiting_receive(join(client, kind, consumer_name="b"))
        holder.acknowledge_many(messages[:20])
        assert waiting.result().data().decode() in KEYS


def test_a_key_that_was_drained_wakes_its_new_owner(clocked_client: pulsarx.Client) -> None:
    """Its first owner held a message of it and has acknowledged that now."""
    first = join(clocked_client, ConsumerType.KeyShared, consumer_name="a")
    publish_keys(clocked_client)
    held = drain(first)
    second = join(clocked_client, ConsumerType.KeyShared, consumer_name="b")
    publish_keys(clocked_client)
    waiting = waiting_receive(second)
    first.acknowledge_many(held)
    assert waiting.result().data().decode() in KEYS


def test_a_key_whose_message_is_dropped_wakes_its_new_owner(
    clocked_client: pulsarx.Client,
) -> None:
    """The first owner was negatively acknowledged a message, which was then acknowledged."""
    first = join(clocked_client, ConsumerType.KeyShared, consumer_name="a")
    publish_keys(clocked_client)
    held = drain(first)
    second = join(clocked_client, ConsumerType.KeyShared, consumer_name="b")
    publish_keys(clocked_client)
    waiting = waiting_receive(second)
    for message in held:
        first.negative_acknowledge(message)
    for message in held:
        first.acknowledge(message)
    assert waiting.result().data().decode() in KEYS


@every_kind
def test_a_seek_wakes_who_waits(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    consumer.acknowledge_many(drain(consumer))
    waiting = waiting_receive(consumer)
    consumer.seek(MessageId.earliest)
    assert waiting.result().data() == b"0"


@every_kind
@pytest.mark.parametrize(
    "end",
    [lambda consumer: consumer.close(), lambda consumer: consumer.unsubscribe()],
    ids=["close", "unsubscribe"],
)
def test_closing_wakes_who_waits(
    clocked_client: pulsarx.Client, kind: ConsumerType, end: Callable[[Any], None]
) -> None:
    """Seed of the issue: "a consumer closed while others wait in receive"."""
    consumer = join(clocked_client, kind)
    threads = [waiting_receive(consumer) for _ in range(3)]
    end(consumer)
    for thread in threads:
        with pytest.raises(errors.AlreadyClosed):
            thread.result()


@sharing
def test_several_threads_of_one_consumer_each_get_one(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=1)
    threads = [waiting_receive(consumer) for _ in range(4)]
    publish(clocked_client, 4)
    assert sorted(thread.result().data() for thread in threads) == numbers(4)


@sharing
def test_without_a_queue_they_are_woken_as_well(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=0)
    for _ in range(2):
        waiting = waiting_receive(consumer)
        publish(clocked_client, 1)
        message = waiting.result()
        consumer.negative_acknowledge(message)
        waiting = waiting_receive(consumer)
        manual_clock.advance(60)
        consumer.acknowledge(waiting.result())


@every_kind
def test_a_watcher_is_told_once_whenever_a_message_may_be_received(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """When one is published, when its time has come, when it goes out again; and not otherwise."""
    consumer = join(clocked_client, kind)
    producer = clocked_client.create_producer("t")
    producer.send(b"opens the ledger, which readers are told of too")
    consumer.acknowledge(consumer.take_now())
    told: list[int] = []

    def times() -> int:
        count = len(told)
        told.clear()
        return count

    def notify() -> None:
        told.append(1)

    consumer.watch(notify)
    for _ in range(3):
        producer.send(b"0")
        assert times() == 1
    messages = [consumer.take_now() for _ in range(3)]
    consumer.acknowledge_many(messages[1:])
    assert times() == 0
    consumer.negative_acknowledge(messages[0])
    assert times() <= 1  # it says so when it keeps the message back from somebody else
    assert consumer.take_now() is None
    manual_clock.advance(59.999)
    assert times() == 0
    manual_clock.advance(0.001)
    assert times() == 1
    assert consumer.take_now().redelivery_count() == 1
    assert times() == 0
    consumer.redeliver_unacknowledged_messages()
    assert times() == 1
    consumer.acknowledge(consumer.take_now())
    consumer.redeliver_unacknowledged_messages()
    manual_clock.advance(600)
    assert times() == 0
    consumer.unwatch(notify)
    producer.send(b"1")
    assert times() == 0
    assert consumer.take_now().data() == b"1"
