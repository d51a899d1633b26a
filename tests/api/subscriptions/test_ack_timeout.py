"""Facts about the acknowledgement timeout: unacked_messages_timeout_ms and its tick."""

from __future__ import annotations

from typing import Any

import pytest
from flow_steps import (
    Table,
    alone,
    comes_after,
    counted,
    every_kind,
    flow,
    join,
    publish,
    sharing,
)
from topic_reading import drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, ManualClock, MessageId

TEN_SECONDS = {"unacked_messages_timeout_ms": 10_000}


@every_kind
def test_without_one_nothing_comes_again(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "By default, the acknowledge timeout is disabled and that means that messages delivered
    to a consumer will not be re-delivered unless the consumer crashes." """
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    assert payloads(consumer) == numbers(3)
    assert manual_clock.next_due_ms() is None
    manual_clock.advance(1e6)
    assert payloads(consumer) == []


@every_kind
def test_what_is_not_acknowledged_in_time_comes_again(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 1)
    assert payloads(consumer) == [b"0"]
    for _ in range(3):
        assert comes_after(consumer, manual_clock, 10) == [b"0"]


@every_kind
@pytest.mark.parametrize("receive", ["receive", "receive_many", "receive_arrow"])
def test_however_it_was_received(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, receive: str
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 4, batch=4)
    received: Any = {
        "receive": lambda: [consumer.receive() for _ in range(3)],
        "receive_many": lambda: consumer.receive_many(3),
        "receive_arrow": lambda: consumer.receive_arrow(3),
    }[receive]()
    assert len(received) == 3
    manual_clock.advance(10)
    assert sorted(counted(drain(consumer))) == [(b"0", 1), (b"1", 1), (b"2", 1), (b"3", 0)]


@every_kind
def test_its_time_begins_when_it_is_received(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 1)
    assert consumer.has_message()  # in the receiver queue
    manual_clock.advance(100)
    assert counted(drain(consumer)) == [(b"0", 0)]
    assert comes_after(consumer, manual_clock, 10) == [b"0"]


@every_kind
@pytest.mark.parametrize("many", [False, True])
def test_acknowledged_in_time_it_does_not_come(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, many: bool
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 5)
    messages = drain(consumer)
    manual_clock.advance(9.999)
    if many:
        consumer.acknowledge_many(messages)
    else:
        for message in messages:
            consumer.acknowledge(message)
    manual_clock.advance(100)
    assert payloads(consumer) == []
    assert manual_clock.next_due_ms() is None


@alone
def test_acknowledged_cumulatively_in_time_they_do_not_come(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 5)
    consumer.acknowledge_cumulative(drain(consumer)[3])
    manual_clock.advance(100)
    assert payloads(consumer) == [b"4"]


@sharing
def test_each_message_has_its_own_time(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 3)
    for _ in range(3):
        consumer.receive()
        manual_clock.advance(2)
    manual_clock.advance(4)
    for number in range(3):
        assert counted(drain(consumer)) == [(b"%d" % number, 1)]
        manual_clock.advance(2)


@alone
def test_a_lone_consumer_gets_all_later_ones_too(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 5, batch=3)
    messages = []
    for _ in range(4):
        messages.append(consumer.receive())
        manual_clock.advance(1)
    consumer.acknowledge(messages[0])
    consumer.acknowledge(messages[2])
    manual_clock.advance(6.999)
    assert payloads(consumer) == [b"4"]
    manual_clock.advance(0.001)
    assert counted(drain(consumer)) == [(b"1", 1), (b"3", 0), (b"4", 0)]


@every_kind
def test_it_comes_at_a_tick_never_early_and_late_by_less_than_one(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    """Seed: "execute a timer task to check the acknowledgment timeout messages during every
    ackTimeoutTickTime period"."""
    consumer = join(clocked_client, kind, ack_timeout_tick_ms=500, **TEN_SECONDS)
    publish(clocked_client, 3)
    manual_clock.advance((-manual_clock.now_ms() % 500 + 200) / 1000)
    consumer.receive()
    start_ms = manual_clock.now_ms()
    due_ms = manual_clock.next_due_ms()
    assert due_ms == start_ms + 10_300
    assert due_ms % 500 == 0
    manual_clock.advance(0.2)
    consumer.receive()
    manual_clock.advance(0.2)
    consumer.receive()
    manual_clock.advance(9.899)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    assert payloads(consumer)[:2] == [b"0", b"1"]


@every_kind
def test_a_tick_above_the_timeout_is_the_timeout(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    consumer = join(clocked_client, kind, ack_timeout_tick_ms=100_000, **TEN_SECONDS)
    publish(clocked_client, 1)
    consumer.receive()
    due_ms = manual_clock.next_due_ms()
    assert due_ms is not None
    assert 10_000 <= due_ms - manual_clock.now_ms() < 20_000


@every_kind
def test_a_negative_acknowledgement_in_time_decides(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "make sure it is negatively acknowledged before the acknowledgment timeout"."""
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 1)
    consumer.negative_acknowledge(consumer.receive())
    assert comes_after(consumer, manual_clock, 60) == [b"0"]


@every_kind
def test_the_backoff_comes_on_top(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    """Seed: "Redelivery count, Redelivery delay: 1, 10 + 1 seconds; 2, 10 + 2 seconds ..." """
    seconds = (1, 2, 4, 8, 16, 32, 60, 60)
    backoff = Table(*(1000 * each for each in seconds))
    consumer = join(clocked_client, kind, ack_timeout_backoff=backoff, **TEN_SECONDS)
    publish(clocked_client, 1)
    assert payloads(consumer) == [b"0"]
    for delay in seconds:
        assert comes_after(consumer, manual_clock, 10 + delay) == [b"0"]
    assert backoff.asked == list(range(len(seconds)))


@every_kind
def test_acknowledged_during_the_backoff_it_does_not_come(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    consumer = join(clocked_client, kind, ack_timeout_backoff=Table(5000), **TEN_SECONDS)
    publish(clocked_client, 1)
    message = consumer.receive()
    manual_clock.advance(12)
    consumer.acknowledge(message)
    manual_clock.advance(100)
    assert payloads(consumer) == []
    assert manual_clock.next_due_ms() is None


@every_kind
def test_a_backoff_that_raises_counts_as_none_and_stops_no_timer(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    consumer = join(clocked_client, kind, ack_timeout_backoff=Table(), **TEN_SECONDS)
    publish(clocked_client, 2)
    consumer.receive()
    manual_clock.advance(1)
    consumer.receive()
    manual_clock.advance(20)
    # Where they are in order the second one came again with the first, before its own timeout.
    overdue = int(kind in (ConsumerType.Shared, ConsumerType.KeyShared))
    assert counted(drain(consumer)) == [(b"0", 1), (b"1", overdue)]


@sharing
def test_the_permit_of_a_timed_out_message_is_not_lost(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=2, consumer_name="c", **TEN_SECONDS)
    publish(clocked_client, 2)
    for _ in range(5):
        assert payloads(consumer) == numbers(2)
        assert flow(clocked_client) == (2, 0, 2)
        manual_clock.advance(10)
    messages = drain(consumer)
    consumer.acknowledge_many(messages)
    assert flow(clocked_client) == (2, 0, 0)


@sharing
def test_another_consumer_may_get_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind, receiver_queue_size=1, consumer_name="a", **TEN_SECONDS)
    second = join(clocked_client, kind, receiver_queue_size=1, consumer_name="b")
    publish(clocked_client, 2)
    mine = first.receive() if first.has_message() else None
    others = drain(second)
    assert len(others) == 2 - (mine is not None)
    manual_clock.advance(10)
    again = drain(first) + drain(second)
    assert [message.data() for message in again] == ([mine.data()] if mine else [])


@every_kind
def test_a_leavers_timeouts_leave_with_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    leaver = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 3)
    assert payloads(leaver) == numbers(3)
    leaver.close()
    stayer = join(clocked_client, kind)
    assert counted(drain(stayer)) == [(b"%d" % number, 0) for number in range(3)]
    manual_clock.advance(100)
    assert payloads(stayer) == []


@every_kind
def test_a_seek_forgets_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, **TEN_SECONDS)
    publish(clocked_client, 2)
    assert payloads(consumer) == numbers(2)
    consumer.seek(MessageId.latest)
    manual_clock.advance(100)
    assert payloads(consumer) == []
    assert manual_clock.next_due_ms() is None
