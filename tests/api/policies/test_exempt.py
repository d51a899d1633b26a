"""Facts about what policies leave alone: topics and subscriptions that users do not have."""

from __future__ import annotations

import pytest
from support.topics import backlog
from topic_reading import drain, numbers, whole_topic

import pulsarx
from pulsarx import BrokerOptions, errors
from pulsarx.testing import inspect
from pulsarx.topic_name import TopicName

NAMESPACE = "public/default"
TWO_A_LEDGER = BrokerOptions(managed_ledger_max_entries_per_ledger=2)


def hidden_subscription(client: pulsarx.Client, topic: str) -> None:
    """As compaction makes it: users can neither create nor delete it."""
    found = inspect(client).broker.topic(TopicName.of(topic))
    found.create_subscription("__compaction", found.ledger.first_position())


def test_namespaces_keep_nothing_of_topics_with_two_underscores() -> None:
    with pulsarx.Client("memory:x", broker_options=TWO_A_LEDGER) as client:
        client.admin.namespaces.set_retention(NAMESPACE, -1, -1)
        for topic in ("__mine", "t"):
            consumer = client.subscribe(topic, "s")
            producer = client.create_producer(topic)
            for payload in numbers(5):
                producer.send(payload)
            consumer.acknowledge_cumulative(drain(consumer)[-1])
        inspect(client).settle()
        assert whole_topic(client, "__mine") == [b"4"]
        assert whole_topic(client, "t") == numbers(5)


def test_quotas_do_not_hold_on_topics_with_two_underscores(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.admin.namespaces.set_backlog_quota(
            NAMESPACE, limit_size=10, policy="producer_exception"
        )
        client.subscribe("__mine", "s").close()
        producer = client.create_producer("__mine")
        producer.send(bytes(1000))
        manual_clock.advance(60)
        producer.send(b"more")
        client.create_producer("__mine").send(b"more")


def test_hidden_subscriptions_do_not_expire(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(subscription_expiration_time_minutes=10)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.create_producer("t").send(b"m")
        hidden_subscription(client, "t")
        client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
        manual_clock.advance(5)
        client.admin.topics.set_message_ttl("t", 1)
        assert (backlog(client, "s"), backlog(client, "__compaction")) == (0, 1)
        manual_clock.advance(30 * 60)
        assert list(client.admin.topics.stats("t")["subscriptions"]) == ["__compaction"]


def test_hidden_subscriptions_use_up_no_quota(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        producer = client.create_producer("t")
        for _ in range(20):
            producer.send(bytes(1000))
        hidden_subscription(client, "t")
        client.subscribe("t", "s").close()
        for policy in ("producer_exception", "consumer_backlog_eviction"):
            client.admin.topics.set_backlog_quota("t", limit_size=10_000, policy=policy)
            producer.send(b"m")
        assert (backlog(client, "s"), backlog(client, "__compaction")) == (2, 22)


def test_a_subscription_that_is_just_being_deleted_counts_as_none(
    manual_clock: pulsarx.ManualClock,
) -> None:
    """Its position is gone before the topic has forgotten it."""
    options = BrokerOptions(
        broker_delete_inactive_topics_enabled=True,
        broker_delete_inactive_topics_mode="delete_when_subscriptions_caught_up",
        ttl_duration_default_in_seconds=60,
        message_expiry_check_interval_in_minutes=1,
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        for name in ("going", "s"):
            client.admin.topics.create_subscription("t", name)
        producer = client.create_producer("t")
        producer.send(bytes(1000))
        inspect(client).broker.topic(TopicName.of("t")).subscriptions["going"].remove()
        client.admin.topics.set_backlog_quota("t", limit_size=2000, policy="producer_exception")
        client.admin.topics.set_backlog_quota("t", limit_time=5, type="message_age")
        client.create_producer("t").send(bytes(1000))
        with pytest.raises(errors.ProducerBlockedQuotaExceededException):
            client.create_producer("t")
        manual_clock.advance(61)
        assert drain(client.subscribe("t", "s")) == []
        client.admin.topics.get_list()


def test_hidden_subscriptions_keep_no_topic(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(broker_delete_inactive_topics_enabled=True)
    for mode in ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"):
        options = options.replace(broker_delete_inactive_topics_mode=mode)
        with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
            client.create_producer("t").send(b"m")
            hidden_subscription(client, "t")
            manual_clock.advance(300)
            assert client.admin.topics.get_list() == []
