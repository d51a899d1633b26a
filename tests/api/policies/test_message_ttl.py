"""Facts about the TTL of messages: what is too old is not delivered, and counts as acknowledged."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from topic_reading import OpenClient, drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, errors
from pulsarx.admin import Admin
from pulsarx.enumerations import SubscriptionMode
from pulsarx.testing import inspect

NAMESPACE = "public/default"
TYPES = (
    ConsumerType.Exclusive,
    ConsumerType.Failover,
    ConsumerType.Shared,
    ConsumerType.KeyShared,
)


def stats(client: pulsarx.Client, name: str = "s", topic: str = "t") -> dict[str, Any]:
    found: dict[str, Any] = client.admin.topics.stats(topic)["subscriptions"][name]
    return found


def total_expired(client: pulsarx.Client, name: str = "s") -> int:
    count: int = stats(client, name)["total_expired"]
    return count


def rarely(**more: Any) -> BrokerOptions:
    """The check comes too late to matter."""
    return BrokerOptions(message_expiry_check_interval_in_minutes=100_000, **more)


@pytest.mark.parametrize("type", TYPES, ids=lambda each: each.name)
def test_what_is_older_than_its_ttl_is_not_delivered_before_any_check(
    manual_clock: pulsarx.ManualClock, type: ConsumerType
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe("t", "s", type)
        client.admin.topics.set_message_ttl("t", 60)
        producer = client.create_producer("t")
        producer.send(b"old", partition_key="k")
        manual_clock.advance(30)
        producer.send(b"young", partition_key="k")
        manual_clock.advance(31)
        assert payloads(consumer) == [b"young"]
        assert (stats(client)["msg_backlog"], total_expired(client)) == (1, 1)


@pytest.mark.parametrize("type", TYPES, ids=lambda each: each.name)
def test_what_waits_in_a_receiver_queue_expires_there(
    manual_clock: pulsarx.ManualClock, type: ConsumerType
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe("t", "s", type)
        client.admin.topics.set_message_ttl("t", 60)
        producer = client.create_producer("t")
        for payload in numbers(5):
            producer.send(payload, partition_key="k")
        assert consumer.receive(60_000).data() == b"0"  # the others are in the queue now
        manual_clock.advance(61)
        producer.send(b"young", partition_key="k")
        assert payloads(consumer) == [b"young"]
        assert total_expired(client) == 4  # the one received expires with the next check


@pytest.mark.parametrize("type", TYPES, ids=lambda each: each.name)
def test_a_batch_expires_as_a_whole_also_half_received(
    manual_clock: pulsarx.ManualClock, type: ConsumerType
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe("t", "s", type)
        client.admin.topics.set_message_ttl("t", 60)
        client.create_producer("t").send_many(numbers(10), keys=["k"] * 10)
        received = [consumer.receive(60_000) for _ in range(4)]
        manual_clock.advance(61)
        assert drain(consumer) == []
        assert (stats(client)["msg_backlog"], total_expired(client)) == (0, 10)
        for message in received:
            consumer.acknowledge(message)  # what it holds it may still acknowledge
        client.create_producer("t").send(b"young", partition_key="k")
        assert payloads(consumer) == [b"young"]


@pytest.mark.parametrize("type", TYPES, ids=lambda each: each.name)
def test_there_is_no_message_where_all_are_too_old(
    manual_clock: pulsarx.ManualClock, type: ConsumerType
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe("t", "s", type)
        client.admin.topics.set_message_ttl("t", 60)
        client.create_producer("t").send_many(numbers(10), keys=["k"] * 10)
        assert consumer.receive(60_000).data() == b"0"
        assert consumer.has_message()
        manual_clock.advance(61)
        assert not consumer.has_message()
        client.create_producer("t").send(b"young", partition_key="k")
        assert consumer.has_message()
        assert consumer.receive(0).data() == b"young"


def test_a_ttl_takes_effect_at_once_for_open_consumers(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        shared = client.subscribe("t", "shared", ConsumerType.Shared)
        alone = client.subscribe("t", "alone")
        producer = client.create_producer("t")
        producer.send_many(numbers(6))
        assert (shared.receive(60_000).data(), alone.receive(60_000).data()) == (b"0", b"0")
        manual_clock.advance(10)
        client.admin.namespaces.set_message_ttl(NAMESPACE, 5)
        assert (drain(shared), drain(alone)) == ([], [])
        client.admin.namespaces.remove_message_ttl(NAMESPACE)
        producer.send(b"new")
        manual_clock.advance(10)
        assert (payloads(shared), payloads(alone)) == ([b"new"], [b"new"])


def test_the_check_acknowledges_on_every_subscription_connected_or_not(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(ttl_duration_default_in_seconds=60)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        connected = client.subscribe("t", "connected", ConsumerType.Shared)
        client.subscribe("t", "away").close()
        producer = client.create_producer("t")
        inspect(client).settle()  # a topic that was opened is looked at once, in the background
        for payload in numbers(3):
            producer.send(payload)
        assert connected.receive(60_000).data() == b"0"
        manual_clock.advance(299)
        assert stats(client, "away")["msg_backlog"] == 3
        producer.send(b"young")
        manual_clock.advance(1)
        for name in ("connected", "away"):
            found = stats(client, name)
            assert (found["msg_backlog"], found["total_expired"]) == (1, 3)
        assert stats(client, "away")["msg_rate_expired"] == pytest.approx(3 / 60)
        manual_clock.advance(61)
        assert stats(client, "away")["msg_rate_expired"] == 0
        assert payloads(client.subscribe("t", "away")) == []


def test_the_check_stops_at_the_first_young_message(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer("t")
        producer.send(b"old")
        manual_clock.advance(30)
        producer.send(b"young")
        producer.send(b"younger")
        manual_clock.advance(1)
        client.admin.topics.set_message_ttl("t", 30)
        assert stats(client)["msg_backlog"] == 2


def test_delayed_messages_expire_before_their_time(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.admin.topics.set_message_ttl("t", 60)
        producer = client.create_producer("t")
        producer.send(b"later", deliver_after=timedelta(seconds=90))
        producer.send(b"soon", deliver_after=timedelta(seconds=20))
        assert drain(consumer) == []  # they wait for their time
        manual_clock.advance(20)
        assert payloads(consumer) == [b"soon"]
        manual_clock.advance(70)
        assert drain(consumer) == []
        assert total_expired(client) == 1  # the other one was received


def test_a_check_takes_delayed_messages_too(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.create_producer("t").send(b"later", deliver_after=timedelta(hours=9))
        assert drain(consumer) == []
        manual_clock.advance(11)
        client.admin.topics.set_message_ttl("t", 10)
        assert (stats(client)["msg_backlog"], total_expired(client)) == (0, 1)


def test_redelivered_messages_expire(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        client.admin.namespaces.set_message_ttl(NAMESPACE, 60)
        for name, type in (("shared", ConsumerType.Shared), ("alone", ConsumerType.Exclusive)):
            consumer = client.subscribe(
                "t", name, type, negative_ack_redelivery_delay_ms=50_000,
                unacked_messages_timeout_ms=10_000,
            )  # fmt: skip
            client.create_producer("t").send(b"m")
            consumer.negative_acknowledge(consumer.receive(60_000))
            manual_clock.advance(50)
            again = consumer.receive(60_000)
            assert again.redelivery_count() == 1
            manual_clock.advance(30)  # its acknowledgement is overdue, but it is too old
            assert drain(consumer) == []
            assert total_expired(client, name) == 1
            consumer.close()


def test_the_topic_wins_over_its_namespace_and_that_over_the_options(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = rarely(ttl_duration_default_in_seconds=60)
    client = open_client(clock=manual_clock, broker_options=options)
    topics, namespaces = client.admin.topics, client.admin.namespaces
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")

    def delivered_after(seconds: int) -> bool:
        producer.send(b"m")
        manual_clock.advance(seconds)
        found = drain(consumer)
        for message in found:
            consumer.acknowledge(message)
        return bool(found)

    assert (delivered_after(59), delivered_after(61)) == (True, False)
    namespaces.set_message_ttl(NAMESPACE, 30)
    assert (delivered_after(29), delivered_after(31)) == (True, False)
    topics.set_message_ttl("t", 10)
    assert (delivered_after(9), delivered_after(11)) == (True, False)
    topics.set_message_ttl("t", 0)
    assert delivered_after(1000)
    topics.remove_message_ttl("t")
    assert (delivered_after(29), delivered_after(31)) == (True, False)
    namespaces.set_message_ttl(NAMESPACE, 0)
    assert delivered_after(1000)
    namespaces.remove_message_ttl(NAMESPACE)
    assert (delivered_after(59), delivered_after(61)) == (True, False)
    assert (topics.get_message_ttl("t"), namespaces.get_message_ttl(NAMESPACE)) == (None, None)


def test_partitions_have_the_ttl_of_their_topic(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        client.admin.topics.create_partitioned_topic("p", 3)
        consumer = client.subscribe("p", "s", ConsumerType.Shared)
        producer = client.create_producer("p")
        client.admin.topics.set_message_ttl("p-partition-1", 60)  # means the whole topic
        for payload in numbers(9):
            producer.send(payload)
        manual_clock.advance(61)
        producer.send(b"young")
        assert payloads(consumer) == [b"young"]
        assert client.admin.topics.get_message_ttl("p") == 60


def test_without_a_subscription_nothing_expires(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(
        ttl_duration_default_in_seconds=1, managed_ledger_max_entries_per_ledger=2
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        producer = client.create_producer("t")
        for payload in numbers(7):
            producer.send(payload)
        manual_clock.advance(1000)
        inspect(client).settle()
        assert whole_topic(client) == numbers(7)


def test_what_expired_stays_for_readers_as_long_as_retention_keeps_it(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.admin.namespaces.set_message_ttl(NAMESPACE, 5 * 60)
        client.admin.namespaces.set_retention(NAMESPACE, 60, -1)
        client.subscribe("t", "s").close()
        producer = client.create_producer("t")
        for payload in numbers(5):
            producer.send(payload)
        inspect(client).settle()  # two ledgers are closed
        manual_clock.advance(11 * 60)
        assert drain(client.subscribe("t", "s")) == []
        assert whole_topic(client) == numbers(5)
        manual_clock.advance(60 * 60)
        inspect(client).settle()
        assert whole_topic(client) == [b"4"]


def test_what_expired_makes_room(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.subscribe("t", "s").close()
        client.admin.topics.set_message_ttl("t", 60)
        producer = client.create_producer("t")
        for payload in numbers(5):
            producer.send(payload)
        manual_clock.advance(300)
        inspect(client).settle()
        assert client.admin.topics.stats("t")["entries"] == 1


def test_delivery_alone_makes_room_too(manual_clock: pulsarx.ManualClock) -> None:
    options = rarely(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.admin.topics.set_message_ttl("t", 60)
        producer = client.create_producer("t")
        for payload in numbers(5):
            producer.send(payload)
        manual_clock.advance(300)
        assert drain(consumer) == []
        inspect(client).settle()
        assert client.admin.topics.stats("t")["entries"] == 1


def test_a_listener_is_not_given_what_is_too_old(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        client.subscribe("t", "s", ConsumerType.Shared).close()
        producer = client.create_producer("t")
        producer.send(b"old")
        client.admin.topics.set_message_ttl("t", 60)
        manual_clock.advance(61)
        seen: list[bytes] = []
        client.subscribe(
            "t", "s", ConsumerType.Shared,
            message_listener=lambda _, message: seen.append(message.data()),
        )  # fmt: skip
        producer.send(b"young")
        inspect(client).settle()
        manual_clock.advance(0)
        assert seen == [b"young"]


@pytest.mark.standard  # PyArrow is loaded
def test_columns_leave_out_what_is_too_old(manual_clock: pulsarx.ManualClock) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        client.admin.namespaces.set_message_ttl(NAMESPACE, 60)
        for name, type in (("shared", ConsumerType.Shared), ("alone", ConsumerType.Exclusive)):
            consumer = client.subscribe(f"of-{name}", name, type)
            producer = client.create_producer(f"of-{name}")
            producer.send_many(numbers(5))
            manual_clock.advance(30)
            producer.send_many(numbers(5, 5))
            manual_clock.advance(31)
            table = pyarrow.table(consumer.receive_arrow(100, 0))
            assert table["value"].to_pylist() == numbers(5, 5)


def test_a_ttl_is_kept_over_restarts(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = rarely()
    client = open_client(clock=manual_clock, broker_options=options)
    client.subscribe("t", "s").close()
    client.admin.topics.set_message_ttl("t", 60)
    client.create_producer("t").send(b"old")
    client.close()
    manual_clock.advance(61)
    client = open_client(clock=manual_clock, broker_options=options)
    assert client.admin.topics.get_message_ttl("t") == 60
    assert drain(client.subscribe("t", "s")) == []
    client.close()
    client = open_client(clock=manual_clock, broker_options=options)
    client.admin.topics.remove_message_ttl("t")
    assert drain(client.subscribe("t", "s")) == []  # it counted as acknowledged


def test_a_ttl_is_set_from_other_processes_and_not_by_readers(
    open_client: OpenClient, folder: Any
) -> None:
    client = open_client()
    client.subscribe("t", "s").close()
    Admin.at(folder).topics.set_message_ttl("t", 7)
    assert client.admin.topics.get_message_ttl("t") == 7
    beside = open_client(read_only=True)
    assert beside.admin.topics.get_message_ttl("t") == 7
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.set_message_ttl("t", 8)
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.namespaces.remove_message_ttl(NAMESPACE)


def test_beside_the_owner_nobody_knows_how_many_expired(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    """These statistics were not there at all: who read them met a KeyError."""
    owner = open_client(clock=manual_clock)
    owner.admin.topics.create_partitioned_topic("p", 2)
    for topic in ("t", "p"):
        owner.subscribe(topic, "s").close()
        assert_counts(owner, topic, 0)
    owner.close()
    for topic in ("t", "p"):
        assert_counts(open_client(read_only=True), topic, None)


def assert_counts(client: pulsarx.Client, topic: str, expected: int | None) -> None:
    topics = client.admin.topics
    found = topics.stats(topic) if topic == "t" else topics.partitioned_stats(topic)
    for name in ("total_expired", "msg_rate_expired"):
        assert found["subscriptions"]["s"][name] == expected
    for limit in ("topic", "subscription"):
        for kind in ("msg", "bytes"):
            name = f"dispatch_throttled_{kind}_events_by_{limit}_limit"
            assert found["subscriptions"]["s"][name] == expected
    assert found["publish_rate_limited_times"] == expected


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "60", None, 2**31])
def test_a_ttl_is_a_number_of_seconds(memory_client: pulsarx.Client, wrong: Any) -> None:
    with pytest.raises(ValueError):
        memory_client.admin.namespaces.set_message_ttl(NAMESPACE, wrong)
    assert memory_client.admin.namespaces.get_message_ttl(NAMESPACE) is None


def test_there_is_no_ttl_of_what_is_not_there(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.topics.set_message_ttl("nothing", 1)
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.namespaces.set_message_ttl("public/nothing", 1)
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.topics.get_message_ttl("nothing")


def test_topics_with_two_underscores_are_exempt(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(ttl_duration_default_in_seconds=1)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.subscribe("__mine", "s").close()
        client.create_producer("__mine").send(b"m")
        manual_clock.advance(1000)
        assert payloads(client.subscribe("__mine", "s")) == [b"m"]


def test_non_durable_subscriptions_expire_and_readers_do_not(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=rarely()) as client:
        consumer = client.subscribe(
            "t", "s", subscription_mode=SubscriptionMode.NonDurable,
            initial_position=InitialPosition.Earliest,
        )  # fmt: skip
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        client.admin.topics.set_message_ttl("t", 60)
        client.create_producer("t").send(b"m")
        manual_clock.advance(61)
        assert drain(consumer) == []
        assert reader.read_next(60_000).data() == b"m"


def test_expire_messages_counts_what_it_expires(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        producer = client.create_producer("t")
        for payload in numbers(5):
            producer.send(payload)
            manual_clock.advance(10)
        messages = [consumer.receive(60_000) for _ in range(3)]
        consumer.acknowledge(messages[1])
        client.admin.topics.expire_messages("t", "s", 25)
        assert total_expired(client) == 2  # one of the three was acknowledged before
        assert stats(client)["msg_backlog"] == 2
