"""Facts about messages that a consumer asks for later: `reconsume_later`."""

from __future__ import annotations

import errno
import re
from queue import SimpleQueue
from typing import Any

import pytest
from letter_steps import all_types, publish
from topic_reading import OpenClient, numbers, payloads, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition, errors
from pulsarx.testing.faults import fault_plan

FULL = "persistent://public/default/"


def subscribe(client: pulsarx.Client, max_redeliver_count: int = 2, **options: Any) -> Any:
    """A Shared consumer with retries."""
    options.setdefault("consumer_type", ConsumerType.Shared)
    options.setdefault("dead_letter_policy", ConsumerDeadLetterPolicy(max_redeliver_count))
    options.setdefault("initial_position", InitialPosition.Earliest)
    options.setdefault("retry_enable", True)
    return client.subscribe(options.pop("topic", "t"), "s", **options)


@all_types
def test_a_message_comes_back_from_the_retry_topic_when_its_time_has_come(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
):
    consumer = subscribe(clocked_client, consumer_type=consumer_type)
    publish(clocked_client, b"one", properties={"mine": "kept"}, partition_key="ada")
    first = consumer.receive(0)
    consumer.reconsume_later(first, 3000, {"custom-key-1": "custom-value-1"})
    manual_clock.advance(2.9)
    assert payloads(consumer) == []
    manual_clock.advance(1.1)  # the time and a tick
    again = consumer.receive(0)
    assert (again.data(), again.partition_key()) == (b"one", "ada")
    assert again.topic_name() == FULL + "t-s-RETRY"
    place = first.message_id()
    assert again.properties() == {
        "mine": "kept",
        "custom-key-1": "custom-value-1",
        "REAL_TOPIC": FULL + "t",
        "ORIGIN_MESSAGE_ID": f"{place.ledger_id()}:{place.entry_id()}:-1:-1",
        "ORIGIN_MESSAGE_IDY_TIME": f"{place.ledger_id()}:{place.entry_id()}:-1:-1",
        "REAL_SUBSCRIPTION": "s",
        "RECONSUMETIMES": "1",
        "DELAY_TIME": "3000",
    }
    consumer.acknowledge(again)
    manual_clock.advance(86_400)
    assert payloads(consumer) == []


@all_types
def test_after_so_many_retries_it_is_in_the_dead_letter_topic(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
):
    consumer = subscribe(clocked_client, 3, consumer_type=consumer_type)
    publish(clocked_client, b"one")
    times = []
    while messages := consumer.receive_many(10, 0):
        [message] = messages
        times.append(message.properties().get("RECONSUMETIMES"))
        consumer.reconsume_later(message, 1000)
        manual_clock.advance(2.1)
    assert times == [None, "1", "2", "3"]
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.properties()["RECONSUMETIMES"] == "4"
    assert letter.properties()["REAL_TOPIC"] == FULL + "t"


def test_without_a_policy_there_are_sixteen_retries(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client, dead_letter_policy=None)
    publish(clocked_client, b"one")
    count = 0
    while messages := consumer.receive_many(10, 0):
        consumer.reconsume_later(messages[0], 0)
        count += 1
    assert count == 17
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one"]


def test_a_retry_that_is_refused_is_given_up_as_well(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    """The redeliveries of the letter count by themselves; the dead letter topic is one."""
    consumer = subscribe(clocked_client, 1)
    publish(clocked_client, b"one")
    consumer.reconsume_later(consumer.receive(0), 0)
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(0))
        manual_clock.advance(60)
    assert payloads(consumer) == []
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.properties()["REAL_TOPIC"] == FULL + "t"


def test_the_policy_names_the_retry_topic(clocked_client: pulsarx.Client):
    policy = ConsumerDeadLetterPolicy(2, retry_letter_topic="again")
    consumer = subscribe(clocked_client, dead_letter_policy=policy)
    publish(clocked_client, b"one")
    consumer.reconsume_later(consumer.receive(0), 0)
    assert consumer.receive(0).topic_name() == FULL + "again"


def test_of_several_topics_the_first_names_the_letter_topics(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client, 1, topic=["u", "t"])
    publish(clocked_client, b"one")
    for name in ("t", "u-s-RETRY"):
        message = consumer.receive(0)
        assert message.topic_name() == FULL + name
        consumer.reconsume_later(message, 0)
    assert whole_topic(clocked_client, "u-s-DLQ") == [b"one"]


@pytest.mark.parametrize("topic", ["t", ["t", "u"], re.compile("t")], ids=["t", "list", "pattern"])
def test_partitioned_letter_topics_of_before_2_8_are_used_on(
    clocked_client: pulsarx.Client, topic: Any
):
    """Statement: "Pulsar continues to use original topics, which are formatted with
    <subscriptionname>-RETRY", and -DLQ."""
    topics = clocked_client.admin.topics
    for name in ("t", "s-RETRY-of-another"):
        topics.create_non_partitioned_topic(name)
    for name in ("s-RETRY", "s-DLQ"):
        topics.create_partitioned_topic(name, 2)
    consumer = subscribe(clocked_client, 1, topic=topic)
    publish(clocked_client, b"one")
    consumer.reconsume_later(consumer.receive(0), 0)
    again = consumer.receive(0)
    assert again.topic_name().startswith(FULL + "s-RETRY-partition-")
    assert again.properties()["RECONSUMETIMES"] == "1"
    consumer.reconsume_later(again, 0)
    dead = [whole_topic(clocked_client, f"s-DLQ-partition-{number}") for number in range(2)]
    assert sorted(dead) == [[], [b"one"]]
    assert not [name for name in topics.get_list() if "t-s-" in name]


def test_letter_topics_of_old_names_that_are_not_partitioned_or_not_meant_are_left_alone(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
):
    topics = clocked_client.admin.topics
    topics.create_non_partitioned_topic("s-RETRY")
    topics.create_partitioned_topic("s-DLQ", 2)
    clocked_client.admin.namespaces.create_namespace("public/other")
    topics.create_partitioned_topic("public/other/s-RETRY", 2)
    policy = ConsumerDeadLetterPolicy(1, "graves")
    consumer = subscribe(clocked_client, dead_letter_policy=policy)
    publish(clocked_client, b"one")
    consumer.reconsume_later(consumer.receive(0), 0)
    again = consumer.receive(0)
    assert again.topic_name() == FULL + "t-s-RETRY"
    consumer.reconsume_later(again, 0)
    assert whole_topic(clocked_client, "graves") == [b"one"]
    consumer.close()
    plain = subscribe(clocked_client, 1, retry_enable=False)  # as Pulsar: only beside retries
    publish(clocked_client, b"two")
    for _ in range(2):
        plain.negative_acknowledge(plain.receive(0))
        manual_clock.advance(60)
    assert payloads(plain) == []
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"two"]


def test_what_waits_in_the_retry_topic_survives_a_restart(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(clock=manual_clock)
    consumer = subscribe(client)
    publish(client, b"one", b"two")
    for message in consumer.receive_many(2, 0):
        consumer.reconsume_later(message, 60_000)
    client.close()
    client = open_client(clock=manual_clock)
    consumer = subscribe(client)
    assert payloads(consumer) == []
    manual_clock.advance(62)
    assert sorted(payloads(consumer)) == [b"one", b"two"]


def partitioned(client: pulsarx.Client, *contents: bytes) -> None:
    """Topic `t` with three partitions, and messages of several keys."""
    client.admin.topics.create_partitioned_topic("t", 3)
    with client.create_producer("t") as producer:
        for content in contents:
            producer.send(content, partition_key=content.decode())


def test_partitions_share_the_letter_topics_of_their_topic(clocked_client: pulsarx.Client):
    contents = numbers(12)
    partitioned(clocked_client, *contents)
    consumer = subscribe(clocked_client, 1)
    for _ in range(2):
        messages = [consumer.receive(0) for _ in contents]
        assert {message.data() for message in messages} == set(contents)
        for message in messages:
            consumer.reconsume_later(message, 0)
    letters = read_all(clocked_client, "t-s-DLQ")
    assert sorted(letter.data() for letter in letters) == sorted(contents)
    assert {letter.properties()["REAL_TOPIC"] for letter in letters} == {FULL + "t"}
    partitions = {letter.properties()["ORIGIN_MESSAGE_ID"].split(":")[2] for letter in letters}
    assert partitions <= {"0", "1", "2"} and len(partitions) > 1


def test_letter_topics_have_no_partitions_where_other_new_topics_have():
    options = pulsarx.BrokerOptions(
        allow_auto_topic_creation_type="partitioned", default_num_partitions=2
    )
    with pulsarx.Client("memory:partitioned", broker_options=options) as client:
        consumer = subscribe(client, 1)
        publish(client, b"one")
        for _ in range(2):
            consumer.reconsume_later(consumer.receive(60_000), 0)
        assert len(client.get_topic_partitions("t")) == 2
        assert client.get_topic_partitions("t-s-RETRY") == [FULL + "t-s-RETRY"]
        assert whole_topic(client, "t-s-DLQ") == [b"one"]


def test_a_failure_is_raised_and_the_message_is_there_at_once(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(clock=manual_clock)
    consumer = subscribe(client)
    publish(client, b"one")
    message = consumer.receive(0)
    with fault_plan() as plan, pytest.raises(errors.StorageFullError):
        for op in ("write", "allocate"):
            plan.fail(op, error=errno.ENOSPC, sticky=True)
        consumer.reconsume_later(message, 0)
    again = consumer.receive(0)
    assert (again.data(), again.topic_name()) == (b"one", FULL + "t")


def test_a_listener_may_ask_for_later(memory_client: pulsarx.Client):
    came: SimpleQueue[Any] = SimpleQueue()

    def listen(consumer: Any, message: Any) -> None:
        came.put(message.properties().get("RECONSUMETIMES"))
        consumer.reconsume_later(message, 1)

    consumer = subscribe(memory_client, 2, message_listener=listen)
    dead = memory_client.subscribe("t-s-DLQ", "dead")
    publish(memory_client, b"one")
    assert dead.receive(60_000).data() == b"one"
    assert [came.get(timeout=60) for _ in range(3)] == [None, "1", "2"]
    consumer.close()


def test_without_retry_enable_there_is_no_later(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client, retry_enable=False)
    publish(clocked_client, b"one")
    message = consumer.receive(0)
    with pytest.raises(errors.InvalidConfiguration, match="retry_enable=True"):
        consumer.reconsume_later(message, 0)
    plain = clocked_client.subscribe("t", "plain")
    with pytest.raises(errors.InvalidConfiguration, match="retry_enable=True"):
        plain.reconsume_later(message, 0)


def test_what_makes_no_sense_is_refused_and_changes_nothing(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client)
    publish(clocked_client, b"one")
    message = consumer.receive(0)
    with pytest.raises(ValueError, match="negative"):
        consumer.reconsume_later(message, -1)
    with pytest.raises(TypeError, match="Message"):
        consumer.reconsume_later(message.message_id(), 0)
    with pytest.raises(TypeError, match="properties"):
        consumer.reconsume_later(message, 0, {"a": 1})
    assert whole_topic(clocked_client, "t-s-RETRY") == []
    consumer.acknowledge(message)


def test_a_message_of_another_topic_is_refused(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client)
    with clocked_client.create_producer("elsewhere") as producer:
        producer.send(b"one")
    [foreign] = read_all(clocked_client, "elsewhere")
    with pytest.raises(errors.PulsarException, match="elsewhere"):
        consumer.reconsume_later(foreign, 0)
    assert whole_topic(clocked_client, "t-s-RETRY") == []


def test_a_closed_consumer_asks_for_nothing(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client)
    publish(clocked_client, b"one")
    message = consumer.receive(0)
    consumer.close()
    with pytest.raises(errors.AlreadyClosed):
        consumer.reconsume_later(message, 0)
    assert whole_topic(clocked_client, "t-s-RETRY") == []
    assert payloads(subscribe(clocked_client)) == [b"one"]


def test_unsubscribing_leaves_the_retry_topic_too(clocked_client: pulsarx.Client):
    consumer = subscribe(clocked_client)
    publish(clocked_client, b"one")
    consumer.reconsume_later(consumer.receive(0), 0)
    consumer.unsubscribe()
    for topic in ("t", "t-s-RETRY"):
        assert clocked_client.admin.topics.stats(topic)["subscriptions"] == {}


def test_a_busy_subscription_leaves_no_trace_on_the_retry_topic(clocked_client: pulsarx.Client):
    first = clocked_client.subscribe("t", "s")
    with pytest.raises(errors.ConsumerBusy):
        subscribe(clocked_client, consumer_type=ConsumerType.Exclusive)
    first.close()
    consumer = subscribe(clocked_client, consumer_type=ConsumerType.Exclusive)
    assert consumer.is_connected()
