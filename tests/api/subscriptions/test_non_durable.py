"""Facts about non-durable subscriptions."""

from __future__ import annotations

from typing import Any

import pytest
from subscription_steps import publish_plain
from topic_reading import OpenClient, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, InitialPosition, SubscriptionMode, errors
from pulsarx.broker.subscriptions import topic_cursors


def subscribe(client: pulsarx.Client, **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe("t", "s", subscription_mode=SubscriptionMode.NonDurable, **options)


def subscriptions(client: pulsarx.Client) -> Any:
    return client.admin.topics.stats("t")["subscriptions"]


def test_it_is_gone_with_its_last_consumer(memory_client: pulsarx.Client) -> None:
    publish_plain(memory_client, 3)
    first = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    second = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    first.acknowledge(first.receive(60_000))
    first.close()
    assert payloads(second) == numbers(2, 1)
    assert subscriptions(memory_client)["s"]["is_durable"] is False
    second.close()
    assert subscriptions(memory_client) == {}
    assert payloads(subscribe(memory_client)) == numbers(3)


def test_unsubscribing_one_removes_it(memory_client: pulsarx.Client) -> None:
    """It used to raise SubscriptionNotFound, and the consumer stayed."""
    consumer = subscribe(memory_client)
    consumer.unsubscribe()
    assert subscriptions(memory_client) == {}
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(0)


def test_unsubscribing_one_leaves_the_durable_one_of_its_name(
    memory_client: pulsarx.Client,
) -> None:
    """It used to delete the durable one, and with it its place and its hold on the messages."""
    durable = memory_client.subscribe("t", "s")
    publish_plain(memory_client, 3)
    subscribe(memory_client).unsubscribe()
    assert list(subscriptions(memory_client)) == ["s"]
    assert payloads(durable) == numbers(3)


def test_unsubscribing_the_durable_one_leaves_it(memory_client: pulsarx.Client) -> None:
    other = subscribe(memory_client)
    memory_client.subscribe("t", "s").unsubscribe()
    publish_plain(memory_client, 3)
    assert payloads(other) == numbers(3)


def test_a_restart_knows_nothing_of_it(open_client: OpenClient) -> None:
    client = open_client()
    publish_plain(client, 3)
    consumer = subscribe(client)
    consumer.acknowledge_cumulative(consumer.receive_many(3)[-1])
    client.close()
    client = open_client()
    assert subscriptions(client) == {}
    assert payloads(subscribe(client)) == numbers(3)


def test_a_ledger_that_comes_while_it_is_made_is_its_own(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of that ledger could not be acknowledged: it did not know it."""
    original = topic_cursors.sync_tracker

    def sync_then_open(tracker: Any, ledger_list: Any, name: str) -> None:
        original(tracker, ledger_list, name)
        monkeypatch.undo()
        ledger_list.open_writer()

    monkeypatch.setattr(topic_cursors, "sync_tracker", sync_then_open)
    consumer = subscribe(memory_client)
    publish_plain(memory_client, 2)
    for message in consumer.receive_many(2, 1000):
        consumer.acknowledge(message)
    assert subscriptions(memory_client)["s"]["msg_backlog"] == 0
