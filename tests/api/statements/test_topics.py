"""Statements about topics, namespaces, partitions and retention; each test quotes its words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from topic_reading import OpenClient, numbers, payloads, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, PartitionsRoutingMode
from pulsarx.testing import inspect

EARLIEST = InitialPosition.Earliest
ROUND_ROBIN = PartitionsRoutingMode.RoundRobinDistribution
SINGLE = PartitionsRoutingMode.UseSinglePartition


@pytest.mark.parametrize("by", ["writing", "receiving"])
def test_a_topic_is_created_where_its_name_says(memory_client: pulsarx.Client, by: str) -> None:
    """'If a client attempts to write or receive messages to/from a topic that does not yet exist,
    Pulsar creates that topic under the namespace provided in the topic name automatically.'"""
    admin = memory_client.admin
    admin.tenants.create_tenant("my-tenant")
    admin.namespaces.create_namespace("my-tenant/my-namespace")
    for name in ("persistent://my-tenant/my-namespace/my-topic", "my-topic"):
        if by == "writing":
            memory_client.create_producer(name).close()
        else:
            memory_client.subscribe(name, "s").close()
    assert admin.namespaces.get_topics("my-tenant/my-namespace") == [
        "persistent://my-tenant/my-namespace/my-topic"
    ]
    assert admin.namespaces.get_topics("public/default") == ["persistent://public/default/my-topic"]


def test_topics_of_one_name_in_several_namespaces_are_apart(memory_client: pulsarx.Client) -> None:
    """'a tenant with different applications can create a separate namespace for each
    application'."""
    admin = memory_client.admin
    for tenant in ("my-tenant", "other"):
        admin.tenants.create_tenant(tenant)
        for application in ("app1", "app2"):
            admin.namespaces.create_namespace(f"{tenant}/{application}")
    names = [f"{tenant}/{app}/t" for tenant in ("my-tenant", "other") for app in ("app1", "app2")]
    for name in names:
        memory_client.create_producer(name).send(name.encode())
    assert admin.namespaces.get_namespaces("my-tenant") == ["my-tenant/app1", "my-tenant/app2"]
    for name in names:
        assert whole_topic(memory_client, name) == [name.encode()]


def test_a_topic_is_partitioned_only_when_somebody_creates_it_so(
    memory_client: pulsarx.Client,
) -> None:
    """'Partitioned topics need to be explicitly created via the admin API. The number of partitions
    can be specified when creating the topic.'"""
    topics = memory_client.admin.topics
    memory_client.create_producer("t").close()
    memory_client.subscribe("u", "s").close()
    assert topics.get_partitioned_topic_list() == []
    topics.create_partitioned_topic("p", 7)
    assert topics.get_partitioned_topic_metadata("p") == {"partitions": 7}
    assert topics.get_partitioned_topic_metadata("t") == {"partitions": 0}
    assert memory_client.create_producer("t").send(b"").partition() == -1


@pytest.mark.parametrize("mode", [ROUND_ROBIN, SINGLE], ids=str)
@pytest.mark.parametrize("batching", [False, True])
def test_messages_of_a_key_stay_in_order_in_one_partition(
    memory_client: pulsarx.Client, mode: Any, batching: bool
) -> None:
    """'All the messages with the same key will be in order and be placed in same partition.'"""
    memory_client.admin.topics.create_partitioned_topic("p", 4)
    consumer = memory_client.subscribe("p", "s")
    with memory_client.create_producer(
        "p", message_routing_mode=mode, batching_enabled=batching, batching_max_messages=7
    ) as producer:
        for number in range(300):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number % 11}")
    orders: dict[str, list[int]] = {}
    places: dict[str, set[int]] = {}
    while messages := consumer.receive_many(1000, 0):
        for message in messages:
            orders.setdefault(message.partition_key(), []).append(int(message.data()))
            places.setdefault(message.partition_key(), set()).add(message.message_id().partition())
    assert orders == {f"k{key}": list(range(key, 300, 11)) for key in range(11)}
    assert {len(each) for each in places.values()} == {1}
    assert len(set.union(*places.values())) > 1


@pytest.mark.parametrize("batching", [False, True])
def test_messages_of_a_producer_stay_in_order_without_keys(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    """'All the messages from the same producer will be in order', 'Use SinglePartition mode, and no
    Key is provided for each message.'"""
    memory_client.admin.topics.create_partitioned_topic("p", 4)
    consumer = memory_client.subscribe("p", "s")
    producers = [
        memory_client.create_producer(
            "p", message_routing_mode=SINGLE, batching_enabled=batching, batching_max_messages=7
        )
        for _ in range(6)
    ]
    for number in range(300):
        producers[number % 6].send_async(b"%d" % number, None)
    for producer in producers:
        producer.close()
    found = [int(each) for each in payloads(consumer)]
    for producer in range(6):
        assert [each for each in found if each % 6 == producer] == list(range(producer, 300, 6))


def test_a_pattern_of_everything_is_a_whole_namespace(memory_client: pulsarx.Client) -> None:
    """'Subscribe to all topics in a namespace', 'When subscribing to multiple topics by regex, all
    topics must be in the same namespace.'"""
    memory_client.admin.namespaces.create_namespace("public/other")
    consumer = memory_client.subscribe(re.compile("persistent://public/default/.*"), "s")
    for name in ("a", "finance-1", "public/other/b"):
        memory_client.create_producer(name).send(name.encode())
    found = [consumer.receive(60_000).data() for _ in range(2)]
    assert sorted(found) == [b"a", b"finance-1"]
    assert payloads(consumer) == []


def test_a_retention_policy_is_that_of_all_topics_of_its_namespace(
    open_client: OpenClient,
) -> None:
    """'a retention policy applied to all topics in a namespace', 'Without a retention policy, all
    of the acknowledged messages would be deleted.'"""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)
    client = open_client(broker_options=options)
    client.admin.namespaces.create_namespace("public/kept")
    client.admin.namespaces.set_retention("public/kept", -1, -1)
    for name in ("public/kept/a", "public/kept/b", "public/default/c"):
        consumer = client.subscribe(name, "s", ConsumerType.Exclusive)
        producer = client.create_producer(name)
        for payload in numbers(23):
            producer.send(payload)
        for message in consumer.receive_many(100, 0):
            consumer.acknowledge(message)
    inspect(client).settle()
    assert whole_topic(client, "public/kept/a") == numbers(23)
    assert whole_topic(client, "public/kept/b") == numbers(23)
    assert len(whole_topic(client, "public/default/c")) < 5


def test_a_time_to_live_is_that_of_all_topics_of_its_namespace(
    manual_clock: pulsarx.ManualClock,
) -> None:
    """'a TTL of 5 minutes has been applied and the messages haven't been acknowledged but are 10
    minutes old', 'some messages are deleted, even though they haven't been acknowledged, because
    they've expired according to the TTL applied to the namespace'."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    with pulsarx.Client("memory:ttl", clock=manual_clock, broker_options=options) as client:
        client.admin.namespaces.create_namespace("public/short")
        client.admin.namespaces.set_message_ttl("public/short", 5 * 60)
        names = ("public/short/a", "public/short/b", "public/default/c")
        for name in names:
            client.subscribe(name, "s").close()
        for minutes, content in ((6, b"10 minutes old"), (4, b"4 minutes old"), (0, b"new")):
            for name in names:
                client.create_producer(name).send(content)
            manual_clock.advance(minutes * 60)
        inspect(client).settle()
        for name in names[:2]:
            assert whole_topic(client, name) == [b"4 minutes old", b"new"]
            assert payloads(client.subscribe(name, "s")) == [b"4 minutes old", b"new"]
        assert payloads(client.subscribe(names[2], "s")) == [
            b"10 minutes old",
            b"4 minutes old",
            b"new",
        ]
