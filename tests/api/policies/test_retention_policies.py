"""Facts about retention: of a topic over that of its namespace over the broker's options."""

from __future__ import annotations

from typing import Any

import pytest
from topic_reading import OpenClient, drain, numbers, whole_topic

import pulsarx
from pulsarx import BrokerOptions, errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "public/default"
TWO_A_LEDGER = BrokerOptions(managed_ledger_max_entries_per_ledger=2)


def acknowledged(client: pulsarx.Client, topic: str, count: int = 5) -> None:
    """Publish messages and acknowledge all of them."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for payload in numbers(count):
        producer.send(payload)
    consumer.acknowledge_cumulative(drain(consumer)[-1])
    consumer.close()
    producer.close()


def left(client: pulsarx.Client, topic: str) -> list[bytes]:
    inspect(client).settle()
    return whole_topic(client, topic)


def test_a_topic_keeps_what_its_namespace_does_not() -> None:
    with pulsarx.Client("memory:x", broker_options=TWO_A_LEDGER) as client:
        topics, namespaces = client.admin.topics, client.admin.namespaces
        for topic in ("kept", "other"):
            client.create_producer(topic).close()
        topics.set_retention("kept", -1, -1)
        for topic in ("kept", "other"):
            acknowledged(client, topic)
        assert left(client, "kept") == numbers(5)
        assert left(client, "other") == [b"4"]
        assert topics.get_retention("kept") == (-1, -1)
        assert topics.get_retention("other") is None
        assert namespaces.get_retention(NAMESPACE) is None


def test_a_topic_drops_what_its_namespace_keeps() -> None:
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=2,
        default_retention_time_in_minutes=-1,
        default_retention_size_in_mb=-1,
    )
    with pulsarx.Client("memory:x", broker_options=options) as client:
        client.create_producer("t").close()
        acknowledged(client, "t")
        assert left(client, "t") == numbers(5)
        client.admin.topics.set_retention("t", 0, 0)  # at once, for what is there
        assert left(client, "t") == [b"4"]
        client.admin.topics.remove_retention("t")
        acknowledged(client, "u")
        assert left(client, "u") == numbers(5)
        client.admin.namespaces.set_retention(NAMESPACE, 0, 0)
        assert left(client, "u") == [b"4"]
        client.admin.namespaces.remove_retention(NAMESPACE)
        acknowledged(client, "v")
        assert left(client, "v") == numbers(5)


def test_partitions_have_the_retention_of_their_topic() -> None:
    with pulsarx.Client("memory:x", broker_options=TWO_A_LEDGER) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        client.admin.topics.set_retention("p", -1, -1)
        acknowledged(client, "p-partition-1")
        assert left(client, "p-partition-1") == numbers(5)


def test_retention_is_more_than_the_backlog_quota(memory_client: pulsarx.Client) -> None:
    topics, namespaces = memory_client.admin.topics, memory_client.admin.namespaces
    memory_client.create_producer("t").close()
    for group, target in ((namespaces, NAMESPACE), (topics, "t")):
        group.set_backlog_quota(target, limit_size=10 << 20)
        with pytest.raises(errors.NotAllowedError, match="10 MiB"):
            group.set_retention(target, 60, 10)
        for allowed in ((60, 11), (-1, -1), (0, 0), (60, -1)):
            group.set_retention(target, *allowed)
            assert group.get_retention(target) == allowed
        group.set_retention(target, 60, 11)
        with pytest.raises(errors.NotAllowedError, match="11 MiB"):
            group.set_backlog_quota(target, limit_size=11 << 20)
        assert group.get_backlog_quota(target)["limit_size"] == 10 << 20
        group.set_backlog_quota(target, limit_time=10, type="message_age")
        group.remove_retention(target)
        group.set_backlog_quota(target, limit_size=11 << 20)
    namespaces.remove_backlog_quota(NAMESPACE)
    topics.remove_backlog_quota("t")
    namespaces.set_backlog_quota(NAMESPACE, limit_size=10 << 20)
    with pytest.raises(errors.NotAllowedError):
        topics.set_retention("t", 60, 10)  # below what holds on the topic


def test_other_policies_are_set_where_the_options_contradict_each_other() -> None:
    """They were refused for what the options say of retention and the backlog quota."""
    options = BrokerOptions(
        default_retention_time_in_minutes=60,
        default_retention_size_in_mb=10,
        backlog_quota_default_limit_bytes=20 << 20,
    )
    with pulsarx.Client("memory:x", broker_options=options) as client:
        client.create_producer("t").close()
        for group, target in ((client.admin.namespaces, NAMESPACE), (client.admin.topics, "t")):
            group.set_message_ttl(target, 10)
            assert group.get_message_ttl(target) == 10
            group.set_deduplication(target, True)
            with pytest.raises(errors.NotAllowedError, match="15 MiB"):
                group.set_retention(target, 60, 15)


def test_retention_is_set_from_other_processes_and_kept(
    open_client: OpenClient, folder: Any
) -> None:
    client = open_client(broker_options=TWO_A_LEDGER)
    client.create_producer("t").close()
    Admin.at(folder).topics.set_retention("t", 7, -1)
    beside = open_client(read_only=True)
    assert beside.admin.topics.get_retention("t") == (7, -1)
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.set_retention("t", 1, 1)
    client.close()
    client = open_client(broker_options=TWO_A_LEDGER)
    acknowledged(client, "t")
    assert left(client, "t") == numbers(5)


@pytest.mark.parametrize("wrong", [(-2, 0), (0, -2), (1.5, 1), (1, "2"), (True, 1)])
def test_retention_is_two_whole_numbers(memory_client: pulsarx.Client, wrong: Any) -> None:
    memory_client.create_producer("t").close()
    with pytest.raises(ValueError):
        memory_client.admin.topics.set_retention("t", *wrong)
    assert memory_client.admin.topics.get_retention("t") is None
