"""Facts about negative acknowledgements."""

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
    statistics,
)
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, ManualClock, MessageId, errors

batched_or_not = pytest.mark.parametrize("batch", [0, 4], ids=["plain", "batched"])


@every_kind
def test_it_comes_again_after_a_minute(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Seed: "negativeAckRedeliveryDelay ... the default value is 1 min"."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, 1)
    consumer.negative_acknowledge(consumer.receive())
    assert comes_after(consumer, manual_clock, 60) == [b"0"]


@every_kind
def test_the_delay_is_the_consumers(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, negative_ack_redelivery_delay_ms=2_500)
    publish(clocked_client, 1)
    for _ in range(3):
        consumer.negative_acknowledge(consumer.receive())
        manual_clock.advance(2.499)
        assert not consumer.has_message()
        manual_clock.advance(0.001)
    assert consumer.receive().redelivery_count() == 3


@every_kind
def test_without_a_delay_it_comes_at_once(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, negative_ack_redelivery_delay_ms=0)
    publish(clocked_client, 2)
    first = consumer.receive()
    consumer.negative_acknowledge(first)
    assert payloads(consumer) in ([b"0", b"1"], [b"1", b"0"])


@sharing
@batched_or_not
def test_shared_consumers_get_that_message_alone(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, batch: int
) -> None:
    """Seed: "In Shared and Key_Shared subscription types, consumers can negatively acknowledge
    messages individually." Of a batch too: no other message of it comes again."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, 12, batch)
    messages = drain(consumer)
    for number in (9, 2, 5):
        consumer.negative_acknowledge(messages[number])
    assert payloads(consumer) == []
    manual_clock.advance(60)
    assert counted(drain(consumer)) == [(b"2", 1), (b"5", 1), (b"9", 1)]


@pytest.mark.border(left_out="everything comes back")
@alone
@batched_or_not
def test_a_lone_consumer_gets_all_later_ones_too_in_order(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 12, batch)
    messages = consumer.receive_many(10)
    consumer.acknowledge(messages[6])
    consumer.negative_acknowledge(messages[4])
    assert payloads(consumer) == numbers(2, 10)
    manual_clock.advance(60)
    again = [(b"%d" % number, 0) for number in (5, 7, 8, 9, 10, 11)]
    assert counted(drain(consumer)) == [(b"4", 1), *again]


@pytest.mark.border(left_out="counts of what was sent")
@alone
@batched_or_not
def test_a_lone_consumer_gets_what_it_never_had_behind_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, batch: int
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 12, batch)
    messages = consumer.receive_many(6)
    consumer.negative_acknowledge(messages[3])
    manual_clock.advance(60)
    expected = [(b"%d" % number, 0) for number in range(4, 12)]
    assert counted(drain(consumer)) == [(b"3", 1), *expected]


@pytest.mark.border(left_out="everything comes back")
@alone
def test_several_on_a_lone_consumer_come_again_from_the_first_one_due(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 10)
    messages = drain(consumer)
    consumer.negative_acknowledge(messages[7])
    manual_clock.advance(10)
    consumer.negative_acknowledge(messages[2])
    manual_clock.advance(50)
    assert counted(drain(consumer)) == [(b"7", 1), (b"8", 0), (b"9", 0)]
    manual_clock.advance(10)
    expected = [(b"%d" % number, 1 if number in (2, 7) else 0) for number in range(2, 10)]
    assert counted(drain(consumer)) == expected
    manual_clock.advance(1000)
    assert payloads(consumer) == []


@pytest.mark.border(left_out="the client keeps the delay")
@alone
def test_due_one_after_the_other_with_nobody_receiving_they_come_in_order(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 6)
    messages = drain(consumer)
    consumer.negative_acknowledge(messages[4])
    manual_clock.advance(1)
    consumer.negative_acknowledge(messages[1])
    manual_clock.advance(60)
    expected = [(b"1", 1), (b"2", 0), (b"3", 0), (b"4", 1), (b"5", 0)]
    assert counted(drain(consumer)) == expected


@pytest.mark.border(left_out="the client keeps the delay")
@alone
def test_refusals_shortly_one_after_the_other_come_again_together(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """In another order than the topic's each came once more for every one refused before it."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, 10)
    for message in reversed(drain(consumer)):
        consumer.negative_acknowledge(message)
        manual_clock.advance(0.02)
    found = []
    for _ in range(200):
        manual_clock.advance(0.5)
        found += drain(consumer)
    assert counted(found) == [(b"%d" % number, 1) for number in range(10)]


@pytest.mark.border(left_out="dead letters")
@alone
def test_what_lies_behind_a_refused_message_is_no_dead_letter(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """What came again because it lay behind was given up like what was refused each time."""
    policy = pulsarx.ConsumerDeadLetterPolicy(2)
    consumer = join(clocked_client, kind, dead_letter_policy=policy)
    publish(clocked_client, 5)
    for _ in range(6):
        for message in drain(consumer):
            if message.data() == b"0":
                consumer.negative_acknowledge(message)
        manual_clock.advance(60)
    reader = clocked_client.create_reader("t-s-DLQ", pulsarx.MessageId.earliest)
    assert reader.read_next(60000).data() == b"0"
    assert not reader.has_message_available()
    assert statistics(clocked_client)["msg_backlog"] == 4


@pytest.mark.border(left_out="negative acknowledgements")
@alone
def test_a_batch_refused_without_a_delay_counts_once_for_each(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, negative_ack_redelivery_delay_ms=0)
    publish(clocked_client, 6, 3)
    first = drain(consumer)[0].message_id()
    consumer.negative_acknowledge(
        MessageId(first.partition(), first.ledger_id(), first.entry_id(), -1)
    )
    expected = [(b"%d" % number, 1 if number < 3 else 0) for number in range(6)]
    assert counted(drain(consumer)) == expected


@pytest.mark.border(left_out="counts of what was sent")
@every_kind
def test_the_redelivery_count_is_of_the_message(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 2)
    for count in range(5):
        messages = drain(consumer)
        assert counted(messages)[-1] == (b"1", count)
        consumer.negative_acknowledge(messages[-1])
        manual_clock.advance(60)
    assert counted(drain(consumer)) == [(b"1", 5)]


@every_kind
def test_of_an_acknowledged_message_it_does_nothing(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    messages = drain(consumer)
    consumer.acknowledge_many(messages)
    consumer.negative_acknowledge(messages[1])
    assert manual_clock.next_due_ms() is None or statistics(clocked_client)["unacked_messages"] == 0
    manual_clock.advance(1000)
    assert payloads(consumer) == []
    assert statistics(clocked_client)["msg_backlog"] == 0


@every_kind
def test_an_acknowledgement_takes_it_back(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 1)
    message = consumer.receive()
    consumer.negative_acknowledge(message)
    consumer.acknowledge(message)
    manual_clock.advance(60)
    assert payloads(consumer) == []
    assert manual_clock.next_due_ms() is None


@pytest.mark.border(left_out="the client keeps the delay")
@every_kind
def test_acknowledged_when_its_time_has_come_it_does_not_come(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 2)
    messages = drain(consumer)
    consumer.negative_acknowledge(messages[1])
    manual_clock.advance(60)
    consumer.acknowledge(messages[1])
    assert payloads(consumer) == []


@every_kind
def test_twice_counts_once_and_the_later_one_says_when(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 1)
    message = consumer.receive()
    consumer.negative_acknowledge(message)
    manual_clock.advance(40)
    consumer.negative_acknowledge(message)
    manual_clock.advance(59.999)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    assert counted(drain(consumer)) == [(b"0", 1)]
    manual_clock.advance(1000)
    assert payloads(consumer) == []


@pytest.mark.border(left_out="negative acknowledgements")
@every_kind
@pytest.mark.parametrize(
    "odd",
    [
        MessageId(-1, 999, 0),
        MessageId.earliest,
        MessageId.latest,
        MessageId(-1, 1, 1 << 62),
        MessageId(-1, 1, 0, 1 << 30),
        MessageId(-1, 1, -1),
    ],
    ids=str,
)
def test_an_id_that_names_nothing_is_refused_and_does_nothing(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, odd: MessageId
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    assert payloads(consumer) == numbers(3)
    if odd.ledger_id() == 1:  # of a ledger that may have been trimmed
        consumer.negative_acknowledge(odd)
    else:
        with pytest.raises(errors.NotAllowedError, match="no such message"):
            consumer.negative_acknowledge(odd)
    manual_clock.advance(1000)
    assert payloads(consumer) == []


@pytest.mark.border(left_out="sent before acknowledged")
@every_kind
def test_of_a_message_nobody_has_it_does_nothing(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, receiver_queue_size=1)
    sent = publish(clocked_client, 10)
    assert consumer.receive().data() == b"0"
    consumer.negative_acknowledge(sent[8])
    assert payloads(consumer) == numbers(9, 1)
    manual_clock.advance(1000)
    assert payloads(consumer) == []


@every_kind
def test_of_another_topic_it_is_refused(clocked_client: pulsarx.Client, kind: ConsumerType) -> None:
    other = clocked_client.subscribe("other", "s")
    clocked_client.create_producer("other").send(b"x")
    consumer = join(clocked_client, kind)
    with pytest.raises(errors.NotAllowedError, match="topic"):
        consumer.negative_acknowledge(other.receive())


@every_kind
@pytest.mark.parametrize("wrong", [None, 5, "1:2:3", b"id", ...], ids=repr)
def test_of_what_is_no_message_it_is_refused(
    clocked_client: pulsarx.Client, kind: ConsumerType, wrong: Any
) -> None:
    consumer = join(clocked_client, kind)
    with pytest.raises(TypeError):
        consumer.negative_acknowledge(wrong)


@sharing
def test_the_id_of_a_batch_means_all_of_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 8, batch=4)
    messages = drain(consumer)
    consumer.acknowledge(messages[5])
    last = messages[-1].message_id()
    consumer.negative_acknowledge(MessageId(-1, last.ledger_id(), last.entry_id()))
    manual_clock.advance(60)
    assert payloads(consumer) == [b"4", b"6", b"7"]


@every_kind
def test_the_backoff_says_when_by_the_redelivery_count(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
) -> None:
    """Seed: "The message redelivery behavior should be as follows. Redelivery count, Redelivery
    delay": 1, 2, 4, 8, 16, 32, 60, 60 seconds."""
    seconds = (1, 2, 4, 8, 16, 32, 60, 60)
    backoff = Table(*(1000 * each for each in seconds))
    consumer = join(clocked_client, kind, nack_backoff=backoff)
    publish(clocked_client, 1)
    for delay in seconds:
        consumer.negative_acknowledge(consumer.receive())
        manual_clock.advance(delay - 0.001)
        assert not consumer.has_message()
        manual_clock.advance(0.001)
    assert counted(drain(consumer)) == [(b"0", len(seconds))]
    assert backoff.asked == list(range(len(seconds)))


@every_kind
def test_a_backoff_that_raises_says_so_and_loses_nothing(
    clocked_client: pulsarx.Client,
    manual_clock: ManualClock,
    kind: ConsumerType,
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = join(clocked_client, kind, nack_backoff=Table())
    publish(clocked_client, 1)
    consumer.negative_acknowledge(consumer.receive())
    assert "IndexError" in caplog.text
    manual_clock.advance(60)
    assert payloads(consumer) == [b"0"]


@pytest.mark.border(left_out="the client keeps the delay")
@sharing
def test_what_a_leaver_had_negatively_acknowledged_goes_out_at_once(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    leaver = join(clocked_client, kind, consumer_name="a")
    publish(clocked_client, 4)
    messages = drain(leaver)
    stayer = join(clocked_client, kind, consumer_name="b")
    for message in messages[1:3]:
        leaver.negative_acknowledge(message)
    leaver.close()
    assert counted(drain(stayer)) == [(b"%d" % number, 0) for number in range(4)]
    assert manual_clock.next_due_ms() is None


@pytest.mark.border(left_out="everything comes back")
def test_what_a_failing_over_consumer_had_negatively_acknowledged_goes_out_at_once(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    active = join(clocked_client, ConsumerType.Failover, consumer_name="a")
    next_one = join(clocked_client, ConsumerType.Failover, consumer_name="b")
    publish(clocked_client, 4)
    active.negative_acknowledge(drain(active)[2])
    assert payloads(next_one) == []
    active.close()
    assert counted(drain(next_one)) == [(b"%d" % number, 0) for number in range(4)]
    assert manual_clock.next_due_ms() is None


def test_one_consumers_leaves_the_others_alone(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    first = join(clocked_client, ConsumerType.Shared, receiver_queue_size=2, consumer_name="a")
    second = join(clocked_client, ConsumerType.Shared, receiver_queue_size=2, consumer_name="b")
    publish(clocked_client, 4)
    mine, others = drain(first), drain(second)
    assert len(mine) + len(others) == 4
    first.negative_acknowledge(mine[0])
    manual_clock.advance(60)
    again = drain(first) + drain(second)
    assert counted(again) == [(mine[0].data(), 1)]


@pytest.mark.border(left_out="the client keeps the delay")
def test_a_key_waits_for_its_negatively_acknowledged_message(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    """What was queued behind it goes back; other keys go on."""
    consumer = join(clocked_client, ConsumerType.KeyShared)
    producer = clocked_client.create_producer("t")
    for number in range(8):
        producer.send(b"%d" % number, partition_key="ab"[number % 2])
    first = consumer.receive()
    assert first.data() == b"0"
    consumer.negative_acknowledge(first)
    assert payloads(consumer) == [b"1", b"3", b"5", b"7"]
    manual_clock.advance(60)
    assert counted(drain(consumer)) == [(b"0", 1), (b"2", 0), (b"4", 0), (b"6", 0)]


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.border(left_out="counts of what was sent")
@sharing
def test_permits_and_counts_stay_exact(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """permits, queued, unacknowledged."""
    consumer = join(clocked_client, kind, receiver_queue_size=10, consumer_name="c")
    sent = publish(clocked_client, 4)
    assert flow(clocked_client) == (6, 4, 4)
    message = consumer.receive()
    assert flow(clocked_client) == (6, 3, 4)
    consumer.negative_acknowledge(message)
    waiting = 3 if kind == ConsumerType.Shared else 0
    assert flow(clocked_client) == (6 + 3 - waiting, waiting, waiting + 1)
    manual_clock.advance(60)
    assert flow(clocked_client) == (5, 4, 4)
    consumer.negative_acknowledge(sent[3])
    assert flow(clocked_client) == (6, 3, 4)
    consumer.acknowledge(sent[3])
    assert flow(clocked_client) == (6, 3, 3)
    consumer.acknowledge_many(sent)
    assert flow(clocked_client) == (9, 0, 0)
    assert payloads(consumer) == []


def test_a_restart_does_not_wait(open_client: OpenClient, manual_clock: ManualClock) -> None:
    client = open_client(clock=manual_clock)
    consumer = join(client, ConsumerType.Shared)
    publish(client, 2)
    consumer.negative_acknowledge(consumer.receive())
    client.close()
    again = join(open_client(clock=manual_clock), ConsumerType.Shared)
    assert payloads(again) == numbers(2)


@every_kind
def test_a_seek_forgets_it(
    clocked_client: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    publish(clocked_client, 3)
    consumer.negative_acknowledge(drain(consumer)[1])
    consumer.seek(MessageId.earliest)
    assert counted(drain(consumer)) == [(b"%d" % number, 0) for number in range(3)]
    manual_clock.advance(1000)
    assert payloads(consumer) == []
