"""Facts about messages that are to be delivered later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flow_steps import alone, comes_after, counted, every_kind, flow, join, sharing, statistics
from topic_reading import ONE_DAY_MS, OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, ManualClock, MessageId


def send(client: pulsarx.Client, payload: bytes, delay_ms: int, **options: Any) -> Any:
    """Deliver after so many milliseconds."""
    with client.create_producer("t") as producer:
        return producer.send(payload, deliver_after=timedelta(milliseconds=delay_ms), **options)


@sharing
def test_it_comes_at_its_time_to_the_millisecond(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "This message will be delivered to a consumer once the specified delay is over." """
    consumer = join(clocked_client, kind)
    send(clocked_client, b"later", 90_000)
    assert payloads(consumer) == []
    assert comes_after(consumer, manual_clock, 90) == [b"later"]


@sharing
def test_deliver_at_is_a_time_of_the_clock(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    clocked_client.create_producer("t").send(b"x", deliver_at=manual_clock.now_ms() + 1234)
    assert comes_after(consumer, manual_clock, 1.234) == [b"x"]


@sharing
@pytest.mark.parametrize("delay_ms", [0, -1, -ONE_DAY_MS])
def test_a_time_that_has_passed_delays_nothing(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, delay_ms: int
) -> None:
    consumer = join(clocked_client, kind)
    clocked_client.create_producer("t").send(b"x", deliver_at=manual_clock.now_ms() + delay_ms)
    assert payloads(consumer) == [b"x"]


@alone
def test_a_lone_consumer_gets_it_at_once(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "In the Exclusive and Failover subscription types, the delayed message is dispatched
    immediately." """
    consumer = join(clocked_client, kind)
    send(clocked_client, b"later", ONE_DAY_MS)
    assert payloads(consumer) == [b"later"]
    manual_clock.advance(2 * 86_400)
    assert payloads(consumer) == []


def test_a_reader_gets_it_at_once(clocked_client: pulsarx.Client) -> None:
    send(clocked_client, b"later", ONE_DAY_MS)
    reader = clocked_client.create_reader("t", MessageId.earliest)
    assert reader.read_next(60_000).data() == b"later"


@pytest.mark.parametrize("past", [timedelta(milliseconds=-1), timedelta(days=-1)], ids=str)
def test_a_negative_delay_is_none(clocked_client: pulsarx.Client, past: timedelta) -> None:
    consumer = clocked_client.subscribe("t", "s", ConsumerType.Shared)
    producer = clocked_client.create_producer("t")
    producer.send(b"x", deliver_after=past)
    producer.send_async(b"y", None, deliver_after=past)
    assert [consumer.receive(60_000).data() for _ in range(2)] == [b"x", b"y"]


def test_a_negative_time_is_refused(clocked_client: pulsarx.Client) -> None:
    producer = clocked_client.create_producer("t")
    with pytest.raises(ValueError, match="deliver_at"):
        producer.send(b"x", deliver_at=-1)
    assert clocked_client.admin.topics.stats("t")["messages"] == 0


def test_it_is_never_batched(clocked_client: pulsarx.Client, manual_clock: ManualClock) -> None:
    """Nor does it wait for the batch, or overtake it."""
    consumer = join(clocked_client, ConsumerType.Shared)
    producer = clocked_client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    told: list[Any] = []
    for number in range(6):
        delay = timedelta(seconds=number) if number in (2, 3) else None
        producer.send_async(
            b"%d" % number, lambda _, message_id: told.append(message_id), deliver_after=delay
        )
    producer.flush()
    entries = [(each.entry_id(), each.batch_index()) for each in told]
    assert entries == [(0, 0), (0, 1), (1, -1), (2, -1), (3, 0), (3, 1)]
    assert payloads(consumer) == [b"0", b"1", b"4", b"5"]
    assert comes_after(consumer, manual_clock, 2) == [b"2"]
    assert comes_after(consumer, manual_clock, 1) == [b"3"]


@sharing
def test_undelayed_ones_pass_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=2)
    for number in range(20):
        send(clocked_client, b"%d" % number, 5000 if number % 2 else 0)
    assert payloads(consumer) == [b"%d" % number for number in range(0, 20, 2)]
    manual_clock.advance(5)
    assert payloads(consumer) == [b"%d" % number for number in range(1, 20, 2)]


@sharing
def test_they_come_in_the_order_of_their_times(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    for number in (5, 1, 4, 2, 3):
        send(clocked_client, b"%d" % number, number * 1000, partition_key=str(number))
    found = []
    for _ in range(6):
        found.append(payloads(consumer))
        manual_clock.advance(1)
    assert found == [[], [b"1"], [b"2"], [b"3"], [b"4"], [b"5"]]


@pytest.mark.border(left_out="due one by one")
@sharing
def test_due_together_they_come_as_they_were_published(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    for number in range(10):
        send(clocked_client, b"%d" % number, (10 - number) * 100)
    assert payloads(consumer) == []
    manual_clock.advance(10)
    assert payloads(consumer) == numbers(10)


@sharing
def test_an_acknowledgement_takes_it_back(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    sent = [send(clocked_client, b"%d" % number, 5000) for number in range(3)]
    assert payloads(consumer) == []
    consumer.acknowledge(sent[1])
    manual_clock.advance(5)
    messages = drain(consumer)
    assert counted(messages) == [(b"0", 0), (b"2", 0)]
    consumer.acknowledge_many(messages)
    assert statistics(clocked_client)["msg_backlog"] == 0


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.border(left_out="counts of what was sent")
@sharing
def test_it_needs_no_permit_before_its_time(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=3, consumer_name="c")
    for number in range(5):
        send(clocked_client, b"%d" % number, 1000)
    assert flow(clocked_client) == (3, 0, 0)
    manual_clock.advance(1)
    assert flow(clocked_client) == (0, 3, 3)
    assert payloads(consumer) == numbers(5)


@sharing
def test_negatively_acknowledged_it_waits_only_for_that(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    send(clocked_client, b"x", 5000)
    manual_clock.advance(5)
    consumer.negative_acknowledge(consumer.receive())
    assert comes_after(consumer, manual_clock, 60) == [b"x"]


@sharing
def test_strict_is_never_early(manual_clock: ManualClock, kind: ConsumerType) -> None:
    options = BrokerOptions(
        delayed_delivery_tick_time_millis=1000, is_delayed_delivery_deliver_at_time_strict=True
    )
    with pulsarx.Client("memory:strict", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, kind)
        send(client, b"x", 10_000)
        assert comes_after(consumer, manual_clock, 10) == [b"x"]


@sharing
def test_not_strict_is_early_by_a_tick_at_most(
    manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "delayedDeliveryTickTimeMillis ... isDelayedDeliveryDeliverAtTimeStrict=false"."""
    options = BrokerOptions(
        delayed_delivery_tick_time_millis=700, is_delayed_delivery_deliver_at_time_strict=False
    )
    with pulsarx.Client("memory:lenient", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, kind)
        send(client, b"x", 10_000)
        assert comes_after(consumer, manual_clock, 9.3) == [b"x"]
        send(client, b"soon", 700)
        assert payloads(consumer) == [b"soon"]


@sharing
def test_switched_off_it_comes_at_once(manual_clock: ManualClock, kind: ConsumerType) -> None:
    """Seed: "Delayed message delivery is enabled by default. You can change it"."""
    options = BrokerOptions(delayed_delivery_enabled=False)
    with pulsarx.Client("memory:off", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, kind)
        send(client, b"x", 10_000)
        assert payloads(consumer) == [b"x"]


@sharing
def test_it_outlives_the_consumers(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind)
    send(clocked_client, b"x", 10_000)
    assert payloads(first) == []
    manual_clock.advance(4)
    first.close()
    manual_clock.advance(1)
    assert comes_after(join(clocked_client, kind), manual_clock, 5) == [b"x"]


@sharing
def test_due_while_nobody_is_there_it_comes_to_the_next_one(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind)
    send(clocked_client, b"x", 10_000)
    assert payloads(first) == []
    first.close()
    manual_clock.advance(20)
    assert payloads(join(clocked_client, kind)) == [b"x"]


def test_when_the_type_changes_it_waits_on_where_that_counts(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    def now(kind: ConsumerType) -> list[bytes]:
        with join(clocked_client, kind) as consumer:
            return payloads(consumer)

    send(clocked_client, b"x", 10_000, partition_key="k")
    assert now(ConsumerType.Shared) == []
    assert now(ConsumerType.KeyShared) == []
    assert now(ConsumerType.Exclusive) == [b"x"]
    manual_clock.advance(5)
    assert now(ConsumerType.Shared) == []
    assert now(ConsumerType.Failover) == [b"x"]
    assert now(ConsumerType.KeyShared) == []
    manual_clock.advance(5)
    assert now(ConsumerType.Shared) == [b"x"]
    assert now(ConsumerType.KeyShared) == [b"x"]


@sharing
def test_a_restart_neither_loses_it_nor_brings_it_early(
    open_client: OpenClient, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    client = open_client(clock=manual_clock)
    consumer = join(client, kind)
    for number in range(10):
        send(client, b"%d" % number, 0 if number % 2 else 10_000, partition_key=str(number))
    consumer.acknowledge_many(drain(consumer))
    manual_clock.advance(6)
    client.close()
    consumer = join(open_client(clock=manual_clock), kind)
    assert comes_after(consumer, manual_clock, 4) == [b"%d" % number for number in range(0, 10, 2)]


@every_kind
def test_a_seek_keeps_it_delayed(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    send(clocked_client, b"0", 0)
    send(clocked_client, b"1", 10_000)
    delays = kind in (ConsumerType.Shared, ConsumerType.KeyShared)
    for _ in range(2):
        assert payloads(consumer) == numbers(1 if delays else 2)
        consumer.seek(MessageId.earliest)
    manual_clock.advance(10)
    assert counted(drain(consumer)) == [(b"0", 0), (b"1", 0)]
    consumer.seek(MessageId.latest)
    assert payloads(consumer) == []


@pytest.mark.border(left_out="too many frames")
@sharing
def test_a_hundred_thousand_due_at_once_all_come_once_among_undelayed_ones(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    count = 100_000
    consumer = join(clocked_client, kind, consumer_name="c")
    producer = clocked_client.create_producer("t", max_pending_messages=0)
    due_ms = manual_clock.now_ms() + 60_000
    undelayed = 0
    for number in range(count):
        producer.send_async(b"%d" % number, None, deliver_at=due_ms)
        if number % 1000 == 0:
            producer.send_async(b"now", None)
            undelayed += 1
    producer.flush()
    messages = drain(consumer)
    assert [message.data() for message in messages] == [b"now"] * undelayed
    consumer.acknowledge_many(messages)
    manual_clock.advance(59.999)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    found: list[bytes] = []
    while messages := consumer.receive_many(1000, 0):
        found += [message.data() for message in messages]
        consumer.acknowledge_many(messages)
    assert found == numbers(count)
    assert statistics(clocked_client)["msg_backlog"] == 0
    assert flow(clocked_client)[1:] == (0, 0)
    assert manual_clock.next_due_ms() is None


def test_two_consumers_share_what_becomes_due(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    first = join(clocked_client, ConsumerType.Shared, receiver_queue_size=2)
    second = join(clocked_client, ConsumerType.Shared, receiver_queue_size=2)
    for number in range(12):
        send(clocked_client, b"%d" % number, 1000)
    manual_clock.advance(1)
    found: list[bytes] = []
    for _ in range(12):
        for consumer in (first, second):
            found += [message.data() for message in consumer.receive_many(1, 0)]
    assert sorted(found, key=int) == numbers(12)
