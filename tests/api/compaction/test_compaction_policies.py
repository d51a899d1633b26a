"""Facts about topics that are compacted by themselves, when more was published than a threshold."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_steps import Pairs, publish, survivors
from topic_reading import OpenClient

import pulsarx
from pulsarx import BrokerOptions, errors
from pulsarx.admin import Admin

NAMESPACE = "public/default"
TWICE: Pairs = [("a", b"1" * 100), ("a", b"2" * 100)]


@pytest.fixture
def clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


def is_compacted(client: pulsarx.Client, topic: str = "t") -> bool:
    return len(survivors(client, topic)) == 1


def test_topics_over_the_threshold_are_compacted_each_minute(
    open_client: OpenClient, clock: pulsarx.ManualClock
) -> None:
    options = BrokerOptions(broker_service_compaction_threshold_in_bytes=200)
    client = open_client(clock=clock, broker_options=options)
    publish(client, [("a", b"1"), ("a", b"2")], "small", batching_enabled=True)
    publish(client, TWICE)
    clock.advance(59)
    assert not is_compacted(client)
    clock.advance(1)
    assert is_compacted(client)
    assert not is_compacted(client, "small")
    publish(client, [("a", b"3" * 300)])
    clock.advance(60)
    assert [value[:1] for _, value in survivors(client)] == [b"3"]


def test_without_a_threshold_nothing_is_compacted(
    open_client: OpenClient, clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=clock)
    publish(client, TWICE)
    clock.advance(600)
    assert not is_compacted(client)


def test_a_topic_wins_over_its_namespace_and_that_over_the_broker(
    open_client: OpenClient, clock: pulsarx.ManualClock
) -> None:
    options = BrokerOptions(broker_service_compaction_threshold_in_bytes=1)
    client = open_client(clock=clock, broker_options=options)
    topics, namespaces = client.admin.topics, client.admin.namespaces
    publish(client, TWICE)
    publish(client, TWICE, "u")
    namespaces.set_compaction_threshold(NAMESPACE, 0)
    topics.set_compaction_threshold("u", 100)
    clock.advance(60)
    assert (is_compacted(client), is_compacted(client, "u")) == (False, True)
    publish(client, TWICE, "u")
    topics.set_compaction_threshold("u", 100_000)
    topics.remove_compaction_threshold("t")
    namespaces.remove_compaction_threshold(NAMESPACE)
    clock.advance(60)
    assert is_compacted(client)
    assert len(survivors(client, "u")) == 3
    topics.remove_compaction_threshold("u")
    clock.advance(60)
    assert is_compacted(client, "u")


def test_a_threshold_takes_effect_when_it_is_set(
    open_client: OpenClient, clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=clock)
    publish(client, TWICE)
    client.admin.topics.set_compaction_threshold("t", 1)
    clock.advance(60)
    assert is_compacted(client)


def test_a_threshold_outlives_its_owner(
    open_client: OpenClient, clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=clock)
    client.admin.topics.create_partitioned_topic("p", 2)
    client.admin.topics.set_compaction_threshold("p", 1)
    client.close()
    client = open_client(clock=clock)
    publish(client, TWICE, "p")
    clock.advance(60)
    found = [len(survivors(client, f"p-partition-{n}")) for n in range(2)]
    assert sorted(found) == [0, 1]


def test_what_is_set_is_told_at_its_level(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, TWICE)
    beside = open_client(read_only=True)
    groups: list[tuple[Any, str, Any]] = [
        (client.admin.topics, "t", beside.admin.topics),
        (client.admin.namespaces, NAMESPACE, beside.admin.namespaces),
    ]
    for number, (group, target, read_only) in enumerate(groups):
        assert group.get_compaction_threshold(target) is None
        group.set_compaction_threshold(target, number)
        assert group.get_compaction_threshold(target) == number
        assert read_only.get_compaction_threshold(target) == number
        with pytest.raises(errors.OperationNotSupported):
            read_only.set_compaction_threshold(target, 1)
        group.remove_compaction_threshold(target)
        assert group.get_compaction_threshold(target) is None
        for wrong in (-1, 1.5, True, "1", 1 << 63):
            with pytest.raises(ValueError, match="threshold"):
                group.set_compaction_threshold(target, wrong)
    for call in (
        client.admin.topics.get_compaction_threshold,
        client.admin.topics.trigger_compaction,
    ):
        with pytest.raises(errors.TopicNotFound):
            call("missing")
    with pytest.raises(errors.TopicNotFound):
        client.admin.namespaces.set_compaction_threshold("public/missing", 1)


def test_another_process_has_a_topic_compacted(open_client: OpenClient, folder: Any) -> None:
    """Through the table of verbs, as processes beside the owner and without one do."""
    client = open_client()
    publish(client, TWICE)
    client.close()
    admin = Admin.at(folder)
    admin.topics.set_compaction_threshold("t", 5)
    assert admin.topics.get_compaction_threshold("t") == 5
    client = open_client()
    admin.topics.trigger_compaction("t")
    pulsarx.testing.inspect(client).settle()
    assert admin.topics.compaction_status("t")["status"] == "SUCCESS"
    assert is_compacted(client)
