"""Facts about limits that namespaces and topics set: of producers, consumers, subscriptions, topics
and unacknowledged messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import OpenClient, drain, numbers

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, errors

NS = "public/default"
ATTACHED = [
    "max_producers_per_topic",
    "max_consumers_per_topic",
    "max_consumers_per_subscription",
    "max_subscriptions_per_topic",
]
UNACKNOWLEDGED = ["max_unacked_messages_per_consumer", "max_unacked_messages_per_subscription"]
SHARING = [ConsumerType.Shared, ConsumerType.KeyShared]


def attach_one(client: pulsarx.Client, limit: str, topic: str) -> Callable[[], Any]:
    """What makes one more of those that a limit counts."""
    made: list[Any] = []

    def attach() -> None:
        if limit == "max_producers_per_topic":
            made.append(client.create_producer(topic))
        else:
            several = limit != "max_consumers_per_subscription"
            name = f"s{len(made)}" if several else "s"
            made.append(client.subscribe(topic, name, ConsumerType.Shared))

    return attach


REFUSALS: dict[str, type[Exception]] = {
    "max_producers_per_topic": errors.ProducerBusy,
    "max_consumers_per_topic": errors.ConsumerBusy,
    "max_consumers_per_subscription": errors.ConsumerBusy,
    "max_subscriptions_per_topic": errors.NotAllowedError,
}


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("limit", ATTACHED)
def test_a_namespace_limits_its_topics(
    open_client: OpenClient, limit: str, persistent: bool
) -> None:
    client = open_client(broker_options=BrokerOptions(**{limit: 1}))
    topic = "t" if persistent else "non-persistent://public/default/t"
    attach = attach_one(client, limit, topic)
    attach()
    with pytest.raises(REFUSALS[limit], match=limit):
        attach()
    namespaces = client.admin.namespaces
    assert getattr(namespaces, f"get_{limit}")(NS) is None
    getattr(namespaces, f"set_{limit}")(NS, 2)
    assert getattr(namespaces, f"get_{limit}")(NS) == 2
    assert namespaces.get_policies(NS) == {limit: 2}
    attach()
    with pytest.raises(REFUSALS[limit], match=limit):
        attach()
    getattr(namespaces, f"set_{limit}")(NS, 0)  # without limit, though the option has one
    attach()
    attach()
    getattr(namespaces, f"remove_{limit}")(NS)
    with pytest.raises(REFUSALS[limit], match=limit):
        attach()


@pytest.mark.parametrize("limit", ATTACHED)
def test_a_topic_wins_over_its_namespace(open_client: OpenClient, limit: str) -> None:
    client = open_client()
    getattr(client.admin.namespaces, f"set_{limit}")(NS, 1)
    attach = attach_one(client, limit, "t")
    attach()
    topics = client.admin.topics
    getattr(topics, f"set_{limit}")("t", 3)
    assert getattr(topics, f"get_{limit}")("t") == 3
    attach()
    attach()
    with pytest.raises(REFUSALS[limit], match=limit):
        attach()
    other = attach_one(client, limit, "u")
    other()
    with pytest.raises(REFUSALS[limit], match=limit):
        other()


def test_limits_are_kept_and_hold_for_each_partition(open_client: OpenClient) -> None:
    with open_client() as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        client.admin.topics.set_max_producers_per_topic("p", 1)
    client = open_client()
    producer = client.create_producer("p")
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("p")
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("p-partition-1")
    producer.close()
    client.create_producer("p-partition-1")


def test_who_is_there_stays(open_client: OpenClient) -> None:
    client = open_client()
    producers = [client.create_producer("t") for _ in range(3)]
    client.admin.namespaces.set_max_producers_per_topic(NS, 1)
    for each in producers:
        each.send(b"m")
    for each in producers[:2]:
        each.close()
        with pytest.raises(errors.ProducerBusy):
            client.create_producer("t")
    producers[2].close()
    client.create_producer("t").close()


def test_topics_with_two_underscores_have_the_options_limits(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(max_producers_per_topic=2))
    client.admin.namespaces.set_max_producers_per_topic(NS, 1)
    kept = [client.create_producer("__mine") for _ in range(2)]
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("__mine")
    assert len(kept) == 2


def test_a_namespace_limits_how_many_topics_it_has(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(max_topics_per_namespace=1))
    namespaces, topics = client.admin.namespaces, client.admin.topics
    topics.create_non_partitioned_topic("a")
    namespaces.set_max_topics_per_namespace(NS, 3)
    assert namespaces.get_max_topics_per_namespace(NS) == 3
    topics.create_partitioned_topic("p", 2)
    with pytest.raises(errors.NotAllowedError, match="max_topics_per_namespace, 3"):
        client.create_producer("b")
    namespaces.set_max_topics_per_namespace(NS, 0)
    client.create_producer("b").close()
    namespaces.remove_max_topics_per_namespace(NS)
    assert namespaces.get_max_topics_per_namespace(NS) is None
    with pytest.raises(errors.NotAllowedError, match="max_topics_per_namespace, 1"):
        client.create_producer("c")
    assert not hasattr(topics, "set_max_topics_per_namespace")


# Unacknowledged messages --------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["namespace", "topic"])
@pytest.mark.parametrize("limit", UNACKNOWLEDGED)
@pytest.mark.parametrize("kind", SHARING)
def test_consumers_that_are_there_hold_as_much_as_the_policy_says_now(
    open_client: OpenClient, kind: ConsumerType, limit: str, level: str
) -> None:
    client = open_client(broker_options=BrokerOptions(**{limit: 4}))
    group: Any = client.admin.topics if level == "topic" else client.admin.namespaces
    target = "t" if level == "topic" else NS
    consumer = client.subscribe("t", "s", kind)
    with client.create_producer("t", batching_enabled=False) as producer:
        for payload in numbers(20):
            producer.send(payload, partition_key="k")
    held = drain(consumer)
    assert len(held) == 4
    getattr(group, f"set_{limit}")(target, 6)
    held += drain(consumer)
    assert len(held) == 6
    getattr(group, f"set_{limit}")(target, 2)
    assert drain(consumer) == []
    for each in held[:4]:
        consumer.acknowledge(each)
        assert drain(consumer) == []
    consumer.acknowledge(held[4])  # half of two are left
    held = held[5:] + drain(consumer)
    assert len(held) == 2
    getattr(group, f"set_{limit}")(target, 0)
    assert len(drain(consumer)) == 20 - 7
    assert consumer.dispatcher.check() == []


@pytest.mark.parametrize("limit", UNACKNOWLEDGED)
def test_a_consumer_that_waits_is_woken_by_a_higher_limit(
    open_client: OpenClient, limit: str
) -> None:
    client = open_client(broker_options=BrokerOptions(**{limit: 1}))
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    with client.create_producer("t", batching_enabled=False) as producer:
        for payload in numbers(2):
            producer.send(payload)
    consumer.receive(60_000)
    pending = consumer.receive_async() if hasattr(consumer, "receive_async") else None
    getattr(client.admin.namespaces, f"set_{limit}")(NS, 2)
    assert (pending.result(60) if pending else consumer.receive(60_000)).data() == b"1"


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [-1, 1 << 31, "1", 1.0, True, [1]])
@pytest.mark.parametrize("limit", [*ATTACHED, *UNACKNOWLEDGED, "max_topics_per_namespace"])
def test_what_is_no_limit_is_refused(open_client: OpenClient, limit: str, wrong: Any) -> None:
    client = open_client()
    with pytest.raises(ValueError, match=limit):
        getattr(client.admin.namespaces, f"set_{limit}")(NS, wrong)
    assert client.admin.namespaces.get_policies(NS) == {}


def test_kept_messages_alone_are_unacknowledged(open_client: OpenClient) -> None:
    client = open_client()
    topic = "non-persistent://public/default/p"
    client.admin.topics.create_partitioned_topic(topic, 1)
    client.admin.topics.set_max_producers_per_topic(topic, 1)
    with pytest.raises(errors.OperationNotSupported):
        client.admin.topics.set_max_unacked_messages_per_consumer(topic, 1)


@pytest.mark.parametrize("kind", SHARING)
@pytest.mark.parametrize("way", ["refused", "overdue", "redelivered"])
def test_who_has_as_much_as_it_may_gets_back_what_it_gave_up(
    open_client: OpenClient, kind: ConsumerType, way: str
) -> None:
    """It got nothing before half of the limit was acknowledged. Pulsar lifts the block with the
    first message that is to come again."""
    clock = pulsarx.ManualClock()
    client = open_client(
        clock=clock, broker_options=BrokerOptions(max_unacked_messages_per_consumer=10)
    )
    consumer = client.subscribe(
        "t",
        "s",
        kind,
        negative_ack_redelivery_delay_ms=1000,
        unacked_messages_timeout_ms=10_000 if way == "overdue" else None,
    )
    client.create_producer("t").send_many(numbers(30))
    held = drain(consumer)
    assert len(held) == 10
    if way == "refused":
        for message in held[:3]:
            consumer.negative_acknowledge(message)
        clock.advance(1)
        again = held[:3]
    elif way == "overdue":
        clock.advance(20)
        again = held
    else:
        consumer.redeliver_unacknowledged_messages()
        again = held
    found = drain(consumer)
    assert {each.data() for each in again} <= {each.data() for each in found}
    assert len(found) == len(again)
