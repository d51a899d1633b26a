"""Facts about the policies of delayed delivery: whether messages wait, and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from topic_reading import OpenClient, Told, drain, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, Result, errors
from pulsarx.admin import Admin

NAMESPACE = "public/default"
TYPES = (ConsumerType.Shared, ConsumerType.KeyShared)


@pytest.mark.parametrize("type", TYPES, ids=lambda each: each.name)
def test_what_waits_comes_at_once_where_delayed_delivery_is_turned_off(
    manual_clock: pulsarx.ManualClock, type: ConsumerType
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe("t", "s", type)
        producer = client.create_producer("t")
        producer.send(b"waits", deliver_after=timedelta(hours=1))
        assert drain(consumer) == []
        client.admin.topics.set_delayed_delivery_policies("t", False, 1000)
        assert payloads(consumer) == [b"waits"]
        producer.send(b"too", deliver_after=timedelta(hours=1))
        assert payloads(consumer) == [b"too"]
        client.admin.topics.set_delayed_delivery_policies("t", True, 1000)
        producer.send(b"waits again", deliver_after=timedelta(hours=1))
        assert drain(consumer) == []
        manual_clock.advance(3600)
        assert payloads(consumer) == [b"waits again"]


def test_the_topic_wins_over_its_namespace_and_that_over_the_options(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(delayed_delivery_enabled=False)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        topics, namespaces = client.admin.topics, client.admin.namespaces
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer("t")

        def waits() -> bool:
            producer.send(b"m", deliver_after=timedelta(seconds=60))
            at_once = drain(consumer)
            manual_clock.advance(60)
            assert len([*at_once, *drain(consumer)]) == 1
            return not at_once

        assert not waits()
        namespaces.set_delayed_delivery_policies(NAMESPACE, True, 1)
        assert waits()
        topics.set_delayed_delivery_policies("t", False, 1)
        assert not waits()
        topics.remove_delayed_delivery_policies("t")
        assert waits()
        namespaces.remove_delayed_delivery_policies(NAMESPACE)
        assert not waits()
        assert topics.get_delayed_delivery_policies("t") is None


def test_a_tick_is_how_much_early_a_message_may_come(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(is_delayed_delivery_deliver_at_time_strict=False)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer("t")
        client.admin.topics.set_delayed_delivery_policies("t", True, 30_000)
        producer.send(b"early", deliver_after=timedelta(seconds=30))
        producer.send(b"later", deliver_after=timedelta(seconds=31))
        assert payloads(consumer) == [b"early"]


def test_a_message_is_not_delayed_for_longer_than_allowed(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(delayed_delivery_max_delay_in_millis=60_000)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer("t")
        producer.send(b"allowed", deliver_after=timedelta(seconds=60))
        with pytest.raises(errors.NotAllowedError, match="60000 ms"):
            producer.send(b"longer", deliver_after=timedelta(milliseconds=60_001))
        with pytest.raises(errors.NotAllowedError):
            producer.send(b"longer", deliver_at=manual_clock.now_ms() + 60_001)
        told = Told()
        producer.send_async(b"longer", told, deliver_after=timedelta(hours=1))
        producer.flush()
        assert told.results[0][0] == Result.NotAllowedError
        client.admin.topics.set_delayed_delivery_policies("t", True, 1000, 120_000)
        producer.send(b"now allowed", deliver_after=timedelta(seconds=120))
        client.admin.topics.set_delayed_delivery_policies("t", True, 1000, 30_000)
        with pytest.raises(errors.NotAllowedError):
            producer.send(b"longer", deliver_after=timedelta(seconds=31))
        with pytest.raises(errors.NotAllowedError):
            client.create_producer("t").send(b"longer", deliver_after=timedelta(seconds=31))
        producer.send(b"past", deliver_at=1)
        manual_clock.advance(10_000)
        assert sorted(payloads(consumer)) == [b"allowed", b"now allowed", b"past"]


def test_the_policy_is_kept_and_set_from_other_processes(
    open_client: OpenClient, folder: Any, manual_clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=manual_clock)
    client.subscribe("t", "s", ConsumerType.Shared).close()
    Admin.at(folder).topics.set_delayed_delivery_policies("t", False, 5, 9)
    wanted = {"active": False, "tick_time_millis": 5, "max_delivery_delay_in_millis": 9}
    beside = open_client(read_only=True)
    assert beside.admin.topics.get_delayed_delivery_policies("t") == wanted
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.remove_delayed_delivery_policies("t")
    client.close()
    client = open_client(clock=manual_clock)
    producer = client.create_producer("t")
    with pytest.raises(errors.NotAllowedError):
        producer.send(b"m", deliver_after=timedelta(milliseconds=10))
    producer.send(b"m", deliver_after=timedelta(milliseconds=9))
    assert payloads(client.subscribe("t", "s", ConsumerType.Shared)) == [b"m"]


@pytest.mark.parametrize("wrong", [(1, 1000, 0), (True, 0, 0), (True, 1.5, 0), (True, 1, -1)])
def test_wrong_policies_are_refused(memory_client: pulsarx.Client, wrong: Any) -> None:
    with pytest.raises(ValueError):
        memory_client.admin.namespaces.set_delayed_delivery_policies(NAMESPACE, *wrong)
    assert memory_client.admin.namespaces.get_delayed_delivery_policies(NAMESPACE) is None
