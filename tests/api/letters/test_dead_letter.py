"""Facts about messages that are given up after too many redeliveries."""

from __future__ import annotations

import errno
import gc
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from child_process import ChildProcess
from letter_steps import all_types, publish
from topic_reading import OpenClient, numbers, payloads, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

NACK_DELAY_SECONDS = 60


def subscribe(client: pulsarx.Client, max_redeliver_count: int = 2, **options: Any) -> Any:
    """A Shared consumer that gives up after so many redeliveries."""
    options.setdefault("consumer_type", ConsumerType.Shared)
    options.setdefault("dead_letter_policy", ConsumerDeadLetterPolicy(max_redeliver_count))
    options.setdefault("consumer_name", "c")
    options.setdefault("initial_position", InitialPosition.Earliest)
    topic = options.pop("topic", "t")
    return client.subscribe(topic, "s", **options)


def refuse_until_given_up(consumer: Any, clock: pulsarx.ManualClock) -> list[int]:
    """Refuse all that comes until nothing comes; the redelivery counts of what came."""
    counts = []
    while messages := consumer.receive_many(1000, 0):
        for message in messages:
            counts.append(message.redelivery_count())
            consumer.negative_acknowledge(message)
        clock.advance(NACK_DELAY_SECONDS)
    return counts


@all_types
def test_after_so_many_redeliveries_a_message_is_in_the_dead_letter_topic(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
):
    consumer = subscribe(clocked_client, 2, consumer_type=consumer_type)
    publish(clocked_client, b"one")
    assert refuse_until_given_up(consumer, manual_clock) == [0, 1, 2]
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.data() == b"one"
    assert letter.properties()["REAL_TOPIC"] == "persistent://public/default/t"
    assert letter.properties()["REAL_SUBSCRIPTION"] == "s"
    assert letter.producer_name() == "persistent://public/default/t-s-c-DLQ"
    manual_clock.advance(86_400)
    assert payloads(consumer) == []


@all_types
def test_a_dead_letter_is_acknowledged_for_good(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock, consumer_type: ConsumerType
):
    client = open_client(clock=manual_clock)
    consumer = subscribe(client, 1, consumer_type=consumer_type)
    publish(client, b"one", b"two")
    first, second = (consumer.receive(0) for _ in range(2))
    consumer.acknowledge(second)
    for _ in range(2):
        consumer.negative_acknowledge(first)
        manual_clock.advance(NACK_DELAY_SECONDS)
        consumer.receive_many(1, 0)
    client.close()
    client = open_client(clock=manual_clock)
    assert payloads(subscribe(client, 1, consumer_type=consumer_type)) == []
    assert whole_topic(client, "t-s-DLQ") == [b"one"]


def test_what_is_not_acknowledged_in_time_counts_as_well(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, 1, unacked_messages_timeout_ms=10_000)
    publish(clocked_client, b"one")
    for _ in range(2):
        assert [m.data() for m in consumer.receive_many(10, 0)] == [b"one"]
        manual_clock.advance(12)
    assert payloads(consumer) == []
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one"]


def test_of_a_batch_only_what_was_refused_is_given_up(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, 1)
    with clocked_client.create_producer("t", batching_enabled=True) as producer:
        producer.send_many(numbers(5))
    messages = consumer.receive_many(5, 0)
    for message in messages:
        if message.data() != b"3":
            consumer.acknowledge(message)
    consumer.negative_acknowledge(messages[3])
    manual_clock.advance(NACK_DELAY_SECONDS)
    assert refuse_until_given_up(consumer, manual_clock) == [1]
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.data() == b"3"
    assert letter.properties()["ORIGIN_MESSAGE_ID"].endswith(":-1:3")


def test_partitions_share_the_dead_letter_topic_of_their_topic(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    clocked_client.admin.topics.create_partitioned_topic("t", 3)
    consumer = subscribe(clocked_client, 1)
    with clocked_client.create_producer("t") as producer:
        for content in numbers(12):
            producer.send(content, partition_key=content.decode())
    refuse_until_given_up(consumer, manual_clock)
    letters = read_all(clocked_client, "t-s-DLQ")
    assert sorted(letter.data() for letter in letters) == sorted(numbers(12))
    assert {letter.properties()["REAL_TOPIC"] for letter in letters} == {
        "persistent://public/default/t"
    }
    assert len({letter.producer_name() for letter in letters}) == 1


def test_a_key_goes_on_after_a_message_of_it_was_given_up(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, 1, consumer_type=ConsumerType.KeyShared)
    publish(clocked_client, b"bad", partition_key="ada")
    assert refuse_until_given_up(consumer, manual_clock) == [0, 1]
    publish(clocked_client, b"good", partition_key="ada")
    assert payloads(consumer) == [b"good"]
    assert [letter.partition_key() for letter in read_all(clocked_client, "t-s-DLQ")] == ["ada"]


def test_the_count_goes_on_after_a_restart(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(clock=manual_clock)
    publish(client, b"one")
    consumer = subscribe(client, 3)
    for _ in range(2):
        [message] = consumer.receive_many(10, 0)
        consumer.negative_acknowledge(message)
        manual_clock.advance(NACK_DELAY_SECONDS)
    client.close()
    client = open_client(clock=manual_clock)
    assert refuse_until_given_up(subscribe(client, 3), manual_clock) == [2, 3]
    assert whole_topic(client, "t-s-DLQ") == [b"one"]


def test_the_initial_subscription_gets_all_of_them(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    policy = ConsumerDeadLetterPolicy(1, "graves", "keeper")
    consumer = subscribe(clocked_client, dead_letter_policy=policy)
    publish(clocked_client, *numbers(7))
    refuse_until_given_up(consumer, manual_clock)
    keeper = clocked_client.subscribe("graves", "keeper")
    assert sorted(payloads(keeper)) == numbers(7)


def test_a_full_disk_loses_no_dead_letter(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(clock=manual_clock)
    consumer = subscribe(client, 1)
    publish(client, b"one")
    with fault_plan() as plan:
        for op in ("write", "allocate"):
            plan.fail(op, error=errno.ENOSPC, sticky=True)
        consumer.negative_acknowledge(consumer.receive(0))
        manual_clock.advance(NACK_DELAY_SECONDS)
        consumer.negative_acknowledge(consumer.receive(0))
        manual_clock.advance(NACK_DELAY_SECONDS)
    refuse_until_given_up(consumer, manual_clock)
    manual_clock.advance(600)
    refuse_until_given_up(consumer, manual_clock)
    manual_clock.advance(0)  # it was given up when it was received
    assert whole_topic(client, "t-s-DLQ") == [b"one"]
    assert payloads(consumer) == []


def test_a_dead_letter_topic_that_cannot_be_made_keeps_the_message_on_its_subscription(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    policy = ConsumerDeadLetterPolicy(1, "public/nowhere/graves")
    consumer = subscribe(clocked_client, dead_letter_policy=policy)
    publish(clocked_client, b"one")
    refuse_until_given_up(consumer, manual_clock)
    consumer.close()
    manual_clock.advance(86_400)
    assert payloads(subscribe(clocked_client, dead_letter_policy=None)) == [b"one"]


def test_while_the_dead_letter_topic_is_held_exclusively_messages_come_again(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, 1)
    publish(clocked_client, b"one", b"two")
    mode = pulsarx.ProducerAccessMode.Exclusive
    holder = clocked_client.create_producer("t-s-DLQ", access_mode=mode)
    assert len(refuse_until_given_up(consumer, manual_clock)) == 4
    manual_clock.advance(600)
    assert whole_topic(clocked_client, "t-s-DLQ") == []
    holder.close()
    refuse_until_given_up(consumer, manual_clock)
    manual_clock.advance(600)
    refuse_until_given_up(consumer, manual_clock)
    manual_clock.advance(0)
    assert sorted(whole_topic(clocked_client, "t-s-DLQ")) == [b"one", b"two"]
    assert payloads(consumer) == []


def test_when_the_dead_letter_topic_is_taken_its_producer_is_fenced_and_messages_come_again(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, 1)
    publish(clocked_client, b"one")
    refuse_until_given_up(consumer, manual_clock)
    mode = pulsarx.ProducerAccessMode.ExclusiveWithFencing
    holder = clocked_client.create_producer("t-s-DLQ", access_mode=mode)
    publish(clocked_client, b"two")
    refuse_until_given_up(consumer, manual_clock)
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one"]
    holder.close()
    for _ in range(2):
        manual_clock.advance(600)
        refuse_until_given_up(consumer, manual_clock)
    manual_clock.advance(0)
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one", b"two"]


def test_consumers_of_one_subscription_give_up_together(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumers = [subscribe(clocked_client, 2) for _ in range(3)]  # all are named c
    publish(clocked_client, *numbers(30))
    for _ in range(3):
        for consumer in consumers:
            for message in consumer.receive_many(1000, 0):
                consumer.negative_acknowledge(message)
        manual_clock.advance(NACK_DELAY_SECONDS)
    assert [payloads(consumer) for consumer in consumers] == [[], [], []]
    assert sorted(whole_topic(clocked_client, "t-s-DLQ")) == sorted(numbers(30))


def test_on_real_time_a_message_is_given_up_too(memory_client: pulsarx.Client):
    consumer = subscribe(memory_client, 1, negative_ack_redelivery_delay_ms=1)
    dead = memory_client.subscribe("t-s-DLQ", "dead")
    publish(memory_client, b"one")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(60_000))
    assert dead.receive(60_000).data() == b"one"
    consumer.close()


@pytest.mark.parametrize("left_first", [False, True])
def test_a_forgotten_consumer_holds_nothing_back(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, left_first: bool
):
    """Whether it was forgotten before or after its last redelivery is due."""
    client = pulsarx.Client("memory:clocked", clock=manual_clock, durability="os")
    consumer = subscribe(client, 1)
    publish(clocked_client, b"one")
    consumer.negative_acknowledge(consumer.receive(0))
    manual_clock.advance(NACK_DELAY_SECONDS)
    consumer.negative_acknowledge(consumer.receive(0))
    del consumer, client
    if left_first:
        inspect(clocked_client).settle()
    manual_clock.advance(NACK_DELAY_SECONDS)
    inspect(clocked_client).settle()
    manual_clock.advance(NACK_DELAY_SECONDS)
    consumer = subscribe(clocked_client, 1)
    refuse_until_given_up(consumer, manual_clock)
    inspect(clocked_client).settle()  # it may be given up at once, with nothing received
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one"]
    gc.collect()  # the letters of the forgotten one, which have its broker open


def test_nothing_is_lost_while_consumers_come_and_go(memory_client: pulsarx.Client):
    """In real threads: every message ends in the dead letter topic, some perhaps twice."""
    count = 300
    dead = memory_client.subscribe("t-s-DLQ", "dead")
    contents = numbers(count)
    publish(memory_client, *contents)
    found: set[bytes] = set()
    complete = threading.Event()

    def refuse(seed: int) -> None:
        random = Random(seed)
        while not complete.is_set():
            with subscribe(memory_client, 1, negative_ack_redelivery_delay_ms=0) as consumer:
                for _ in range(random.randrange(1, 20)):
                    for message in consumer.receive_many(random.randrange(1, 50), 5):
                        consumer.negative_acknowledge(message)

    threads = [threading.Thread(target=refuse, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        while len(found) < count:
            found.add(dead.receive(60_000).data())
    finally:
        complete.set()
        for thread in threads:
            thread.join()
    assert found == set(contents)


GIVING_UP = """
import sys
import pulsarx

client = pulsarx.Client(sys.argv[1], durability="os")
consumer = client.subscribe(
    "t",
    "s",
    pulsarx.ConsumerType.Shared,
    dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1),
    negative_ack_redelivery_delay_ms=0,
    retry_enable=True,
)
print("begun")
while True:
    for number, message in enumerate(consumer.receive_many(100, 1000)):
        if number % 3:
            consumer.negative_acknowledge(message)
        else:
            consumer.reconsume_later(message, 0)
        print("refused")
"""


@pytest.mark.standard
@pytest.mark.parametrize("refusals", [0, 1, 40, 150, 600])
def test_a_kill_while_messages_are_given_up_loses_none(
    open_client: OpenClient, folder: Path, refusals: int
):
    """Each is in the dead letter topic, or still on the subscription of topic or retry topic."""
    client = open_client()
    contents = numbers(300)
    subscribe(client, retry_enable=True).close()
    publish(client, *contents)
    client.close()
    with ChildProcess(GIVING_UP, folder) as child:
        assert child.line() == "begun"
        for _ in range(refusals):
            assert child.line() == "refused"
        child.kill()
    client = open_client()
    left = payloads(client.subscribe("t", "s", ConsumerType.Shared))
    retries = payloads(client.subscribe("t-s-RETRY", "s", ConsumerType.Shared))
    dead = whole_topic(client, "t-s-DLQ")
    assert {*left, *retries, *dead} == set(contents)
    # Twice is only what was under way when the kill came: one receive_many of the child.
    assert len(left) + len(retries) + len(dead) <= len(contents) + 100


def test_without_a_policy_nothing_is_given_up(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    consumer = subscribe(clocked_client, dead_letter_policy=None)
    publish(clocked_client, b"one")
    for count in range(20):
        [message] = consumer.receive_many(10, 0)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
        manual_clock.advance(NACK_DELAY_SECONDS)
    with pytest.raises(errors.TopicNotFound):
        clocked_client.admin.topics.stats("t-s-DLQ")


@pytest.mark.parametrize("policy", [(1, "t"), (1, "a/b"), (1, None, "pulsar.dedup")])
def test_a_policy_that_cannot_work_is_refused_and_nothing_is_made(
    clocked_client: pulsarx.Client, policy: tuple[Any, ...]
):
    with pytest.raises((errors.InvalidConfiguration, errors.InvalidTopicName)):
        subscribe(clocked_client, dead_letter_policy=ConsumerDeadLetterPolicy(*policy))
    assert clocked_client.admin.topics.get_list("public/default") == []
