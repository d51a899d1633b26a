"""Facts about Key_Shared subscriptions."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient
from type_steps import (
    KEY_SHARED,
    check,
    keys_between,
    publish,
    publish_batch,
    slot,
    statistics,
    take,
    take_messages,
)
from type_steps import join as join_any

import pulsarx
from pulsarx import ConsumerKeySharedPolicy, ConsumerType, KeySharedMode, errors
from pulsarx.testing import inspect

MIDDLE = 32768
LOW, OTHER_LOW = keys_between(0, MIDDLE - 1, 2)
HIGH, OTHER_HIGH = keys_between(MIDDLE, 65535, 2)


def join(client: pulsarx.Client, name: str = "", **options: Any) -> Any:
    return join_any(client, KEY_SHARED, name, **options)


def sticky(*ranges: tuple[int, int]) -> ConsumerKeySharedPolicy:
    return ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=list(ranges))


def of(key: str, *numbers: int) -> list[str]:
    return [f"{key}:{number}" for number in numbers]


# Which consumer ----------------------------------------------------------------------------------


def test_a_key_goes_to_one_consumer_however_often_it_is_delivered(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """Seed: "No matter how many times the message is re-delivered, it is delivered to the same
    consumer."
    """
    a, b = join(clocked_client, "a"), join(clocked_client, "b")
    publish(clocked_client, f"{LOW}:1", f"{HIGH}:1", f"{LOW}:2")
    for round_number in range(3):
        low, high = take_messages(b), take_messages(a)
        assert [each.data().decode() for each in low] == of(LOW, 1, 2)
        assert [each.data().decode() for each in high] == of(HIGH, 1)
        assert {each.redelivery_count() for each in low + high} == {round_number}
        for consumer, messages in ((b, low), (a, high)):
            for message in messages:
                consumer.negative_acknowledge(message)
        manual_clock.advance(61)
        check(a)


@pytest.mark.border(left_out="tuples in JSON")
def test_auto_split_halves_the_widest_range(memory_client: pulsarx.Client) -> None:
    """Seed: with four consumers `Order-3459134` has slot 6067, which is "contained within region
    [0, 16384) thus consumer C3 will be mapped to this message key"; "its region will be merged
    into the region on its right".
    """
    consumers = {name: join(memory_client, name) for name in ("C1", "C2", "C3", "C4")}
    assert slot("Order-3459134") == 6067
    assert statistics(memory_client)["hash_ranges"] == [
        (0, 16384, "C3"),
        (16384, 32768, "C2"),
        (32768, 49152, "C4"),
        (49152, 65536, "C1"),
    ]
    publish(memory_client, "Order-3459134:1")
    assert take(consumers["C3"]) == ["Order-3459134:1"]
    consumers.pop("C3").close()
    assert take(consumers["C2"]) == ["Order-3459134:1"]
    consumers.pop("C1").close()
    assert statistics(memory_client)["hash_ranges"] == [(0, 32768, "C2"), (32768, 65536, "C4")]


def test_consistent_hashing_moves_only_the_keys_of_who_joins_or_leaves() -> None:
    options = pulsarx.BrokerOptions(subscription_key_shared_use_consistent_hashing=True)
    client = pulsarx.Client("memory:ring", broker_options=options)
    consumers = {name: join(client, name) for name in ("a", "b", "c")}
    producer = client.create_producer("t")

    def owners() -> dict[str, str]:
        for number in range(200):
            producer.send(b"", partition_key=f"k{number}")
        found = {}
        for name, consumer in consumers.items():
            for message in take_messages(consumer):
                found[message.partition_key()] = name
                consumer.acknowledge(message)
        assert len(found) == 200
        return found

    before = owners()
    assert set(before.values()) == {"a", "b", "c"}
    consumers["d"] = join(client, "d")
    after = owners()
    assert {after[key] for key in before if before[key] != after[key]} == {"d"}
    consumers.pop("d").close()
    assert owners() == before
    check(consumers["a"])
    client.close()


def test_sticky_ranges_decide(memory_client: pulsarx.Client) -> None:
    low = join(memory_client, "low", key_shared_policy=sticky((0, MIDDLE - 1)))
    high = join(memory_client, "high", key_shared_policy=sticky((MIDDLE, 65535)))
    publish(memory_client, f"{LOW}:1", f"{HIGH}:1", f"{OTHER_LOW}:1")
    assert take(low) == [f"{LOW}:1", f"{OTHER_LOW}:1"]
    assert take(high) == [f"{HIGH}:1"]


def test_overlapping_ranges_are_refused_without_a_trace(memory_client: pulsarx.Client) -> None:
    """Seed: "it's disconnected, removed from the consumers list and reverted as if it never tried
    to connect."
    """
    first = join(memory_client, "first", key_shared_policy=sticky((0, MIDDLE)))
    publish(memory_client, f"{HIGH}:1")
    before = statistics(memory_client)
    for ranges in ([(MIDDLE, 65535)], [(40000, 50000), (100, 200)]):
        with pytest.raises(errors.ConsumerAssignError, match="overlaps"):
            join(memory_client, "second", key_shared_policy=sticky(*ranges))
    assert statistics(memory_client) == before
    second = join(memory_client, "second", key_shared_policy=sticky((MIDDLE + 1, 65535)))
    assert take(second) == [f"{HIGH}:1"]
    check(first)


def test_keys_nobody_owns_wait_until_somebody_does(memory_client: pulsarx.Client) -> None:
    low = join(memory_client, "low", key_shared_policy=sticky((0, 100)))
    inside = keys_between(0, 100, 1)[0]
    publish(memory_client, f"{HIGH}:1", f"{inside}:1", f"{HIGH}:2")
    publish_batch(memory_client, f"{HIGH}:3", f"{inside}:2", f"{OTHER_HIGH}:1")
    assert take(low) == of(inside, 1, 2)
    check(low)
    high = join(memory_client, "high", key_shared_policy=sticky((MIDDLE, 65535)))
    assert take(high) == [*of(HIGH, 1, 2, 3), f"{OTHER_HIGH}:1"]
    check(low)
    high.close()
    assert take(low) == []
    check(low)
    assert len(take(join(memory_client, key_shared_policy=sticky((MIDDLE, 65535))))) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    list(
        itertools.permutations(
            [
                None,
                ConsumerKeySharedPolicy(allow_out_of_order_delivery=True),
                sticky((0, 65535)),
            ],
            2,
        )
    ),
)
def test_all_consumers_agree_on_the_mapping(
    memory_client: pulsarx.Client,
    one: ConsumerKeySharedPolicy | None,
    other: ConsumerKeySharedPolicy | None,
) -> None:
    first = join(memory_client, key_shared_policy=one)
    with pytest.raises(errors.ConsumerBusy, match="Key_Shared"):
        join(memory_client, key_shared_policy=other)
    publish(memory_client, "a:1")
    assert take(first) == ["a:1"]
    first.close()
    assert take(join(memory_client, key_shared_policy=other)) == ["a:1"]


# Which key ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
def test_the_ordering_key_wins_over_the_key(memory_client: pulsarx.Client, batched: bool) -> None:
    """Seed: "messages with the same key or same ordering key are delivered to only one
    consumer"."""
    upper, lower = join(memory_client, "upper"), join(memory_client, "lower")
    producer = memory_client.create_producer("t", batching_enabled=batched)
    for number, (key, ordering) in enumerate([(LOW, HIGH), (HIGH, LOW), (LOW, None)]):
        producer.send_async(b"%d" % number, None, partition_key=key, ordering_key=ordering)
    producer.flush()
    assert take(upper) == ["0"]
    assert take(lower) == ["1", "2"]


@pytest.mark.parametrize("batched", [False, True])
def test_messages_without_a_key_have_the_key_non_key(
    memory_client: pulsarx.Client, batched: bool
) -> None:
    """Seed: "When the broker dispatches messages from this batch, it uses `NON_KEY` as the
    key."
    """
    assert slot("NON_KEY") == 17380
    inside = join(memory_client, "in", key_shared_policy=sticky((17380, 17380)))
    outside = join(memory_client, "out", key_shared_policy=sticky((0, 17379), (17381, 65535)))
    (publish_batch if batched else publish)(memory_client, "1", "2", f"{HIGH}:3", "4")
    assert take(inside) == ["1", "2", "4"]
    assert take(outside) == [f"{HIGH}:3"]


def test_a_batch_of_mixed_keys_is_split_by_key(memory_client: pulsarx.Client) -> None:
    upper, lower = join(memory_client, "upper"), join(memory_client, "lower")
    publish_batch(
        memory_client, f"{LOW}:1", f"{HIGH}:1", f"{LOW}:2", f"{OTHER_HIGH}:1", f"{HIGH}:2"
    )
    assert take(lower, 1) == [f"{LOW}:1"]
    got = take_messages(upper)
    assert [each.data().decode() for each in got] == [
        f"{HIGH}:1",
        f"{OTHER_HIGH}:1",
        f"{HIGH}:2",
    ]
    check(upper)
    for message in got:
        upper.acknowledge(message)
    check(upper)
    assert take(lower) == [f"{LOW}:2"]
    upper.close()
    lower.close()
    assert take(join(memory_client)) == of(LOW, 1, 2)


def test_a_batch_of_mixed_keys_stays_split_when_it_comes_again(open_client: OpenClient) -> None:
    client = open_client()
    join(client).close()
    publish_batch(client, *(f"{key}:{number}" for number in range(3) for key in (LOW, HIGH)))
    client.close()
    client = open_client()
    first = join(client, receiver_queue_size=4)
    first.acknowledge(take_messages(first, 3)[1])
    upper, lower = join(client), join(client, receiver_queue_size=1)
    check(first)
    first.close()
    check(upper)
    found = take(upper) + take(lower)
    assert [each for each in found if each.startswith(LOW)] == of(LOW, 0, 1, 2)
    assert [each for each in found if each.startswith(HIGH)] == of(HIGH, 1, 2)
    check(lower)


# In order ----------------------------------------------------------------------------------------


def test_a_moved_key_waits_for_what_is_with_the_former_consumer(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """Seed: "Key Shared Subscription type guarantees a key will be processed by a single consumer
    at any given time."
    """
    first = join(clocked_client, "first")
    publish(clocked_client, f"{LOW}:1", f"{LOW}:2", f"{HIGH}:1", f"{OTHER_LOW}:1")
    got = take_messages(first)
    first.acknowledge(got[3])
    second = join(clocked_client, "second")
    publish(clocked_client, f"{LOW}:3", f"{OTHER_LOW}:2", f"{HIGH}:2")
    assert take(second) == [f"{OTHER_LOW}:2"]  # nobody holds the key: it need not wait
    manual_clock.advance(5)
    assert take(first) == [f"{HIGH}:2"]
    held = statistics(clocked_client)["keys_held_back"]
    assert [(each["held_by"], each["waiting_messages"]) for each in held] == [("first", 1)]
    assert held[0]["key_hash"] % 65536 == slot(LOW)
    assert held[0]["since_ms"] == manual_clock.now_ms() - 5000
    first.acknowledge(got[0])
    assert take(second) == []
    first.acknowledge(got[1])
    assert take(second) == [f"{LOW}:3"]
    assert statistics(clocked_client)["keys_held_back"] == []
    check(first)


def test_out_of_order_delivery_does_not_wait(memory_client: pulsarx.Client) -> None:
    """Seed: "the broker will allow it to receive messages knowing some messages of that key may be
    still be processing in other consumers at the time".
    """
    policy = ConsumerKeySharedPolicy(allow_out_of_order_delivery=True)
    first = join(memory_client, "first", key_shared_policy=policy)
    publish(memory_client, f"{LOW}:1", f"{HIGH}:1")
    got = take_messages(first)
    second = join(memory_client, "second", key_shared_policy=policy)
    publish(memory_client, f"{LOW}:2", f"{HIGH}:2")
    assert take(second) == [f"{LOW}:2"]
    assert take(first) == [f"{HIGH}:2"]
    check(first)
    first.acknowledge(got[0])
    check(first)
    first.close()
    assert take(second) == of(HIGH, 1, 2)
    check(second)


@pytest.mark.guest(left_out="messages come later")
def test_a_leaver_s_messages_come_before_the_later_ones_of_their_key(
    memory_client: pulsarx.Client,
) -> None:
    first, second = join(memory_client, "first"), join(memory_client, "second")
    publish(memory_client, *of(HIGH, 1, 2, 3), f"{LOW}:1")
    got = take_messages(first, 2)
    first.acknowledge(got[1])
    publish(memory_client, f"{HIGH}:4")
    first.close()
    assert take(second) == [f"{LOW}:1", *of(HIGH, 1, 3, 4)]
    check(second)


@pytest.mark.border(left_out="the client keeps the delay")
def test_a_refused_key_keeps_its_order(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = join(clocked_client, receiver_queue_size=10, negative_ack_redelivery_delay_ms=1000)
    publish(clocked_client, "a:1", "a:2", "b:1", "a:3")
    got = take_messages(consumer, 1)
    consumer.negative_acknowledge(got[0])
    check(consumer)
    assert take(consumer) == ["b:1"]
    publish(clocked_client, "a:4", "b:2")
    assert take(consumer) == ["b:2"]
    manual_clock.advance(1)
    assert take(consumer) == of("a", 1, 2, 3, 4)
    check(consumer)


@pytest.mark.border(left_out="the client keeps the delay")
def test_several_refused_messages_of_a_key_come_in_order(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = join(clocked_client, negative_ack_redelivery_delay_ms=1000)
    publish_batch(clocked_client, *of("a", *range(6)))
    got = take_messages(consumer)
    consumer.negative_acknowledge(got[4])
    manual_clock.advance(0.5)
    consumer.negative_acknowledge(got[1])
    manual_clock.advance(0.5)
    assert take(consumer) == []  # the one before it is not due
    for number in (0, 2, 3, 5):
        consumer.acknowledge(got[number])
    manual_clock.advance(0.5)
    assert take(consumer) == of("a", 1, 4)
    check(consumer)


@pytest.mark.border(left_out="the client keeps the delay")
def test_an_acknowledged_refused_message_blocks_its_key_no_longer(
    memory_client: pulsarx.Client,
) -> None:
    consumer = join(memory_client)
    publish(memory_client, *of("a", 1, 2))
    got = take_messages(consumer, 1)
    consumer.negative_acknowledge(got[0])
    assert take(consumer) == []
    consumer.acknowledge(got[0])
    assert take(consumer) == ["a:2"]
    check(consumer)


@pytest.mark.border(left_out="too many frames")
def test_a_stalled_consumer_holds_back_its_own_keys_only(open_client: OpenClient) -> None:
    """With 100,000 messages behind it, and look-ahead as far as the limits of what is
    unacknowledged allow."""
    options = pulsarx.BrokerOptions(
        key_shared_look_ahead_msg_in_replay_threshold_per_consumer=0,
        key_shared_look_ahead_msg_in_replay_threshold_per_subscription=0,
    )
    memory_client = open_client("memory:", broker_options=options)
    upper = join(memory_client, "stalled", receiver_queue_size=1)
    lower = join(memory_client, "lower")
    producer = memory_client.create_producer("t", batching_max_messages=1000)
    count = 100_000
    producer.send_many([b"%d" % each for each in range(count)], keys=[HIGH, LOW] * (count // 2))
    producer.close()
    seen = 0
    while messages := lower.receive_many(1000, 0):
        assert [int(each.data()) for each in messages] == list(
            range(2 * seen + 1, 2 * (seen + len(messages)), 2)
        )
        lower.acknowledge_many(messages)
        seen += len(messages)
    assert seen == count // 2
    assert take(upper, 1) == ["0"]
    check(upper)
    upper.close()
    assert [int(each) for each in take(lower, count)] == list(range(0, count, 2))
    check(lower)


@pytest.mark.guest(left_out="forgotten consumers")
@pytest.mark.border(left_out="forgotten consumers")
def test_a_forgotten_consumer_s_keys_go_on(memory_client: pulsarx.Client) -> None:
    first, second = join(pulsarx.Client("memory:")), join(memory_client)
    publish(memory_client, f"{HIGH}:1")
    assert take(first) == [f"{HIGH}:1"]
    del first  # and its client
    inspect(memory_client).settle()
    assert take(second) == [f"{HIGH}:1"]


def test_consumers_without_a_queue_share_keys(memory_client: pulsarx.Client) -> None:
    upper = join(memory_client, "upper", receiver_queue_size=0)
    lower = join(memory_client, "lower", receiver_queue_size=0)
    publish(memory_client, f"{LOW}:1", f"{HIGH}:1", f"{HIGH}:2", f"{LOW}:2")
    assert take(upper, 1) == [f"{HIGH}:1"]
    assert take(lower) == of(LOW, 1, 2)
    assert take(upper) == [f"{HIGH}:2"]
    check(upper)


def test_delayed_messages_find_their_keys_after_a_restart(
    folder: Path, manual_clock: pulsarx.ManualClock
) -> None:
    """The cursor keeps their times alone, and all of them used to go to the consumer of hash 0."""
    client = pulsarx.Client(folder, clock=manual_clock, durability="os")
    consumer = join(client)
    producer = client.create_producer("t")
    due_ms = manual_clock.now_ms() + 60_000
    for key in (LOW, HIGH, LOW):
        producer.send(key.encode(), partition_key=key, deliver_at=due_ms)
    assert take(consumer) == []
    client.close()
    client = pulsarx.Client(folder, clock=manual_clock, durability="os")
    upper, lower = join(client, "upper"), join(client, "lower")
    manual_clock.advance(61)
    assert take(upper) == [HIGH]
    assert take(lower) == [LOW, LOW]
    check(upper)
    client.close()


def test_a_change_from_shared_keeps_delayed_messages_with_their_keys(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    shared = join_any(clocked_client, ConsumerType.Shared)
    producer = clocked_client.create_producer("t")
    for key in (LOW, HIGH):
        producer.send(key.encode(), partition_key=key, deliver_at=manual_clock.now_ms() + 1000)
    assert take(shared) == []
    shared.close()
    upper, lower = join(clocked_client, "upper"), join(clocked_client, "lower")
    manual_clock.advance(1)
    assert (take(upper), take(lower)) == ([HIGH], [LOW])


# What a negative acknowledgement takes back ------------------------------------------------------


def deep_queue(client: pulsarx.Client, payloads: list[str], **options: Any) -> Any:
    """A consumer that has all of these messages in its queue, unread: another one, without keys,
    has looked for some of its own."""
    everything = sticky((0, 65534))
    consumer = join(
        client, receiver_queue_size=len(payloads), key_shared_policy=everything, **options
    )
    other = join(client, key_shared_policy=sticky((65535, 65535)))
    publish_batch(client, *payloads)
    assert not other.has_message()
    return consumer


@pytest.mark.border(left_out="more than is pending at most")
@pytest.mark.parametrize("rounds", [1, 4])
def test_what_is_taken_back_comes_behind_what_was_refused(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, rounds: int
) -> None:
    """Of many keys, with some acknowledged by others in the queue; round by round."""
    keys = [key for key in (f"k{each}" for each in range(400)) if slot(key) != 65535]
    payloads = [f"{key}:{number}" for number in range(8) for key in keys]
    consumer = deep_queue(clocked_client, payloads, negative_ack_redelivery_delay_ms=1000)
    ids = {each.data().decode(): each.message_id() for each in queue_of(clocked_client)}
    gone = {payload for at, payload in enumerate(payloads) if at % 7 == 3}
    for payload in gone:
        consumer.acknowledge(ids[payload])
    for _ in range(rounds):
        refused = take_messages(consumer, len(payloads))
        # All of the queue but the first of each key was taken back by them.
        for message in refused[:50]:
            consumer.negative_acknowledge(message)
        for message in refused[50:]:
            consumer.redeliver_at_once(message)
        check(consumer)
        manual_clock.advance(1)
    found = take(consumer, len(payloads))
    for key in keys:
        expected = [each for each in of(key, *range(8)) if each not in gone]
        assert [each for each in found if each.partition(":")[0] == key] == expected
    check(consumer)


def queue_of(client: pulsarx.Client) -> list[Any]:
    """Every message of the topic, by a reader."""
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    found: list[Any] = []
    while messages := reader.read_many(1000, 0):
        found += messages
    return found


@pytest.mark.guest(left_out="messages come later")
@pytest.mark.border(left_out="more than is pending at most")
def test_one_by_one_what_lies_in_the_queue_is_taken_back(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """Received and refused in turns: what is queued meanwhile is known as well."""
    keys = [key for key in (f"k{each}" for each in range(300)) if slot(key) != 65535]
    payloads = [f"{key}:{number}" for number in range(4) for key in keys]
    consumer = deep_queue(clocked_client, payloads, negative_ack_redelivery_delay_ms=1000)
    for turn in range(12):
        first = []
        while messages := consumer.receive_many(1, 0):
            first += messages
            consumer.negative_acknowledge(messages[0])
        assert [each.data().decode() for each in first] == [f"{key}:0" for key in keys]
        assert {each.redelivery_count() for each in first} == {turn}
        check(consumer)
        manual_clock.advance(1)
    found = take(consumer, len(payloads))
    for key in keys:
        assert [each for each in found if each.partition(":")[0] == key] == of(key, *range(4))


@pytest.mark.guest(left_out="messages come later")
@pytest.mark.border(left_out="more than is pending at most")
@pytest.mark.standard
def test_a_refusal_costs_the_same_however_much_is_queued() -> None:
    """It walked the queue: ten times as much of it took ten times as long, 240 us with 40,000
    messages. The ratio of two sizes in one run, the best of several."""

    def seconds_each(count: int) -> float:
        options = pulsarx.BrokerOptions(
            max_unacked_messages_per_consumer=0, max_unacked_messages_per_subscription=0
        )
        with pulsarx.Client("memory:refusals", durability="os", broker_options=options) as client:
            keys = [key for key in (f"k{each}" for each in range(count // 2)) if slot(key) != 65535]
            payloads = [f"{key}:{number}" for number in range(2) for key in keys]
            consumer = deep_queue(client, payloads)
            began = time.thread_time()  # of the processor: others may be at work
            for _ in keys:
                consumer.negative_acknowledge(consumer.receive_many(1, 0)[0])
            return (time.thread_time() - began) / len(keys)

    ratios = [seconds_each(20_000) / seconds_each(2_000) for _ in range(3)]
    assert min(ratios) < 4


@pytest.mark.border(left_out="whole batches")
@pytest.mark.parametrize(("of_consumer", "of_subscription"), [(7, 0), (0, 13), (9, 12), (0, 0)])
def test_no_message_of_a_batch_goes_beyond_a_limit(of_consumer: int, of_subscription: int) -> None:
    """What a consumer has room for is asked once for all messages of a batch."""
    options = pulsarx.BrokerOptions(
        max_unacked_messages_per_consumer=of_consumer,
        max_unacked_messages_per_subscription=of_subscription,
    )
    with pulsarx.Client("memory:limits", durability="os", broker_options=options) as client:
        consumers = [join(client, name, receiver_queue_size=10) for name in ("a", "b", "c")]
        sent = [f"k{number % 40}:{number}" for number in range(400)]
        publish_batch(client, *sent)
        consumers[0].receive(0)
        figures = statistics(client)["consumers"]
        counts = [each["unacked_messages"] for each in figures]
        assert counts[0] and max(each["receiver_queue_messages"] for each in figures) <= 10
        assert max(counts) <= (of_consumer or 11)
        assert sum(counts) <= (of_subscription or 33)
        for each in consumers:
            check(each)
            each.redeliver_unacknowledged_messages()
        received: dict[str, list[int]] = {}
        for _ in range(len(sent)):
            for each in consumers:
                for message in each.receive_many(3, 0):
                    key, _, number = message.data().decode().partition(":")
                    received.setdefault(key, []).append(int(number))
                    each.acknowledge(message)
        assert received == {f"k{key}": list(range(key, 400, 40)) for key in range(40)}
