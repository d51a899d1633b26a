"""Facts about Shared subscriptions."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from type_steps import check, publish, publish_batch, statistics, take, take_messages
from type_steps import join as join_any

import pulsarx
from pulsarx import ConsumerType, errors
from pulsarx.testing import inspect


def join(client: pulsarx.Client, name: str = "", queue_size: int = 1000, **options: Any) -> Any:
    return join_any(client, ConsumerType.Shared, name, receiver_queue_size=queue_size, **options)


def numbers(count: int, start: int = 0) -> list[str]:
    return [f"{number}" for number in range(start, start + count)]


# Whose turn it is --------------------------------------------------------------------------------


def test_messages_go_round_robin(memory_client: pulsarx.Client) -> None:
    consumers = [join(memory_client, name) for name in ("a", "b", "c")]
    publish(memory_client, *numbers(7))
    assert [take(each) for each in consumers] == [["0", "3", "6"], ["1", "4"], ["2", "5"]]
    check(consumers[0])


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.border(left_out="counts of what was sent")
def test_permits_and_priority_levels_decide_as_in_the_documents(
    memory_client: pulsarx.Client,
) -> None:
    """Pulsar's documents: of level 0, C1 has 2 permits, C2 1, C3 1; of level 1, C4 has 2, C5 1:
    "C1, C2, C3, C1, C4, C5, C4".
    """
    levels = {"C1": (2, 0), "C2": (1, 0), "C3": (1, 0), "C4": (2, 1), "C5": (1, 1)}
    consumers = {
        name: join(memory_client, name, size, priority_level=level)
        for name, (size, level) in levels.items()
    }
    publish(memory_client, *numbers(9))
    queued = {
        each["consumer_name"]: each["receiver_queue_messages"]
        for each in statistics(memory_client)["consumers"]
    }
    assert queued == {"C1": 2, "C2": 1, "C3": 1, "C4": 2, "C5": 1}
    order = [consumers[name].receive(0).data() for name in ("C1", "C2", "C3", "C1")]
    assert order == [b"0", b"1", b"2", b"3"]
    assert consumers["C4"].receive(0).data() == b"4"
    assert consumers["C5"].receive(0).data() == b"5"
    assert consumers["C4"].receive(0).data() == b"6"
    check(consumers["C1"])


def test_a_joiner_gets_nothing_that_was_assigned_before(memory_client: pulsarx.Client) -> None:
    first = join(memory_client, "first", 3)
    publish(memory_client, *numbers(5))
    second = join(memory_client, "second")
    assert take(second) == ["3", "4"]
    assert take(first) == ["0", "1", "2"]


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.border(left_out="whole batches")
def test_a_batch_is_split_by_permits(memory_client: pulsarx.Client) -> None:
    consumers = [join(memory_client, name, size) for name, size in (("a", 2), ("b", 3), ("c", 9))]
    publish_batch(memory_client, *numbers(10))
    found = {
        each["consumer_name"]: each["receiver_queue_messages"]
        for each in statistics(memory_client)["consumers"]
    }
    assert found == {"a": 2, "b": 3, "c": 5}
    assert [take(each, 2) for each in consumers] == [["0", "1"], ["2", "3"], ["5", "6"]]
    check(consumers[0])


@pytest.mark.border(left_out="whole batches", of="*-True")
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_what_a_consumer_does_not_take_waits_with_it_and_no_more(
    memory_client: pulsarx.Client, size: int, batched: bool
) -> None:
    idle, busy = join(memory_client, "idle", size), join(memory_client, "busy", size)
    (publish_batch if batched else publish)(memory_client, *numbers(40))
    got = take(busy)
    assert len(got) == 40 - size
    assert sorted([*got, *take(idle)], key=int) == numbers(40)
    check(idle)


# One at a time -----------------------------------------------------------------------------------


@pytest.mark.guest(left_out="messages come later")
@pytest.mark.border(left_out="permits without a queue")
def test_a_consumer_without_a_queue_gets_one_message_when_it_asks(
    memory_client: pulsarx.Client,
) -> None:
    """What it had asked for in vain used to be pushed to it later, to lie there."""
    none, other = join(memory_client, "none", 0), join(memory_client, "other")
    assert none.receive_many(1, 0) == []
    publish(memory_client, *numbers(3))
    assert take(other) == numbers(3)
    publish(memory_client, "3", "4")
    assert none.receive().data() == b"3"
    assert take(other) == ["4"]
    check(none)
    none.close()
    assert take(other) == ["3"]


@pytest.mark.border(left_out="whole batches")
def test_only_consumers_without_queues(memory_client: pulsarx.Client) -> None:
    consumers = [join(memory_client, queue_size=0) for _ in range(3)]
    publish(memory_client, *numbers(3))
    publish_batch(memory_client, *numbers(6, 3))
    got = [consumers[number % 3].receive().data() for number in range(9)]
    assert got == [b"%d" % number for number in range(9)]
    check(consumers[0])


def test_a_waiting_consumer_without_a_queue_is_woken(memory_client: pulsarx.Client) -> None:
    consumer = join(memory_client, queue_size=0)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(consumer.receive().data()))
    thread.start()
    publish(memory_client, "1")
    thread.join(60)
    assert got == [b"1"]
    assert take(join(memory_client)) == []
    check(consumer)


# Who leaves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
def test_what_a_leaver_had_goes_to_the_others_uncounted(
    memory_client: pulsarx.Client, batched: bool
) -> None:
    """Seed: "When a consumer disconnects, all the messages that were sent to it and not
    acknowledged will be rescheduled for sending to the remaining consumers."
    """
    leaver = join(memory_client, "leaver")
    (publish_batch if batched else publish)(memory_client, *numbers(10))
    got = take_messages(leaver, 6)
    leaver.acknowledge(got[1])
    leaver.acknowledge(got[4])
    rest = [join(memory_client, "one"), join(memory_client, "two")]
    leaver.close()
    messages = [message for each in rest for message in take_messages(each)]
    payloads = sorted(int(message.data()) for message in messages)
    assert payloads == [0, 2, 3, 5, 6, 7, 8, 9]
    assert {message.redelivery_count() for message in messages} == {0}
    check(rest[0])


@pytest.mark.guest(left_out="forgotten consumers")
@pytest.mark.border(left_out="forgotten consumers")
def test_a_forgotten_consumer_leaves(memory_client: pulsarx.Client) -> None:
    gone, other = join(pulsarx.Client("memory:")), join(memory_client)
    publish(memory_client, *numbers(4))
    assert len(take(gone)) + len(take(other)) == 4
    del gone  # and its client
    inspect(memory_client).settle()
    assert len(take(other)) == 2
    check(other)


def test_a_waiting_consumer_gets_what_a_leaver_gives_back(memory_client: pulsarx.Client) -> None:
    leaver = join(memory_client)
    publish(memory_client, "1")
    assert take(leaver) == ["1"]
    other = join(memory_client)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(other.receive(60_000).data()))
    thread.start()
    leaver.close()
    thread.join(60)
    assert got == [b"1"]


def test_the_place_of_a_leaver_is_another_s_without_its_messages(
    memory_client: pulsarx.Client,
) -> None:
    a, b = join(memory_client, "a", 2), join(memory_client, "b", 2)
    publish(memory_client, *numbers(4))
    assert (take(a, 1), take(b, 1)) == (["0"], ["1"])
    a.close()
    c = join(memory_client, "c", 2)
    check(b)
    b.redeliver_unacknowledged_messages()
    check(b)
    assert sorted(take(b) + take(c)) == numbers(4)
    check(c)


# Acknowledged, refused ---------------------------------------------------------------------------


def test_another_consumer_may_acknowledge(memory_client: pulsarx.Client) -> None:
    a, b = join(memory_client), join(memory_client)
    publish(memory_client, *numbers(4))
    got = take_messages(a)
    b.acknowledge(got[0].message_id())
    a.close()
    assert sorted(take(b)) == ["1", "2", "3"]
    check(b)


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@pytest.mark.border(left_out="sent before acknowledged")
def test_an_acknowledgement_takes_a_message_out_of_the_queue_of_another(
    memory_client: pulsarx.Client,
) -> None:
    a, b = join(memory_client, "a"), join(memory_client, "b")
    publish_batch(memory_client, *numbers(3))
    publish(memory_client, "3", "4")
    got = take_messages(a, 3)
    reader = memory_client.create_reader("t", pulsarx.MessageId.earliest)
    ids = [reader.read_next().message_id() for _ in range(5)]
    a.acknowledge(ids[3])
    check(b)
    assert take(b) == []
    assert len(got) == 3 and take(a) == ["4"]
    check(a)


def test_what_went_on_to_another_is_not_refused_by_who_had_it(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """A late refusal used to take the message away from whoever had it by then."""
    a = join(clocked_client, "a", negative_ack_redelivery_delay_ms=1000)
    publish(clocked_client, "1")
    message = take_messages(a)[0]
    a.negative_acknowledge(message)
    b = join(clocked_client, "b", priority_level=0)
    a_other = join(clocked_client, "c", priority_level=0)
    manual_clock.advance(1)
    owners = [each for each in (a, b, a_other) if take(each) == ["1"]]
    assert len(owners) == 1
    for each in (a, b, a_other):
        if each is not owners[0]:
            each.negative_acknowledge(message)
    manual_clock.advance(60)
    assert take(a) + take(b) + take(a_other) == []
    check(a)


def test_a_refused_message_alone_comes_again(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = join(clocked_client, negative_ack_redelivery_delay_ms=5000)
    publish_batch(clocked_client, *numbers(5))
    got = take_messages(consumer)
    for number in (3, 1):
        consumer.negative_acknowledge(got[number])
    manual_clock.advance(4.999)
    assert take(consumer) == []
    manual_clock.advance(0.001)
    again = take_messages(consumer)
    assert [(each.data(), each.redelivery_count()) for each in again] == [(b"1", 1), (b"3", 1)]
    check(consumer)


@pytest.mark.border(left_out="whole batches")
def test_unacknowledged_limits_hold_back_and_let_go_at_half(
    memory_client: pulsarx.Client,
) -> None:
    options = pulsarx.BrokerOptions(
        max_unacked_messages_per_consumer=4, max_unacked_messages_per_subscription=6
    )
    client = pulsarx.Client("memory:limits", broker_options=options)
    a, b = join(client, "a"), join(client, "b")
    publish_batch(client, *numbers(20))
    got = take_messages(a)
    assert len(got) == 4
    assert len(take_messages(b)) == 2
    check(a)
    for message in got[:2]:
        a.acknowledge(message)
    assert take(a) + take(b) == []  # the subscription still has 4
    a.acknowledge(got[2])
    assert len(take(a)) + len(take(b)) == 3
    check(a)
    client.close()


def test_cumulative_acknowledgement_is_refused(memory_client: pulsarx.Client) -> None:
    consumer = join(memory_client)
    publish(memory_client, "1")
    with pytest.raises(errors.CumulativeAcknowledgementNotAllowedError):
        consumer.acknowledge_cumulative(consumer.receive())
