"""Facts about what pulsarx.testing tells of topics, and how it waits for consumers."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import pulsarx
from pulsarx import testing

SHARED = pulsarx.ConsumerType.Shared
EARLIEST = pulsarx.InitialPosition.Earliest


def data_of(messages) -> list[bytes]:
    return [each.data() for each in messages]


def test_messages_are_all_a_topic_holds_and_looking_changes_nothing(pulsar_client):
    producer = pulsar_client.create_producer("orders")
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    for content in (b"one", b"two"):
        producer.send(content)
    producer.send(b"late", deliver_after=timedelta(minutes=1))
    consumer.acknowledge(consumer.receive())
    assert data_of(testing.messages(pulsar_client, "orders")) == [b"one", b"two", b"late"]
    assert data_of(testing.messages(pulsar_client, "orders")) == [b"one", b"two", b"late"]
    assert consumer.receive(timeout_millis=60_000).redelivery_count() == 0
    assert list(pulsar_client.admin.topics.stats("orders")["subscriptions"]) == ["billing"]


def test_messages_have_values_by_the_schema_that_is_given(pulsar_client):
    schema = pulsarx.schema.StringSchema()
    pulsar_client.create_producer("orders", schema=schema).send("eins")
    found = testing.messages(pulsar_client, "orders", schema)
    assert [each.value() for each in found] == ["eins"]


@pytest.mark.pulsar_partitions(orders=3)
def test_messages_of_a_partitioned_topic_come_by_partition(pulsar_client):
    producer = pulsar_client.create_producer("orders")
    for number in range(9):
        producer.send(b"%d" % number)
    found = testing.messages(pulsar_client, "orders")
    assert sorted(data_of(found)) == [b"%d" % number for number in range(9)]
    partitions = [each.message_id().partition() for each in found]
    assert partitions == sorted(partitions) and set(partitions) == {0, 1, 2}


def test_looking_makes_no_topic(pulsar_client):
    with pytest.raises(pulsarx.TopicNotFound):
        testing.messages(pulsar_client, "nobody")
    with pytest.raises(pulsarx.TopicNotFound):
        testing.unacknowledged(pulsar_client, "nobody", "billing")
    with pytest.raises(pulsarx.TopicNotFound):
        testing.drain(pulsar_client, "nobody")
    assert testing.dead_letters(pulsar_client, "nobody", "billing") == []
    assert pulsar_client.admin.topics.get_list() == []


def test_unacknowledged_are_those_on_their_way_and_those_that_wait(pulsar_client):
    producer = pulsar_client.create_producer("orders")
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    for number in range(4):
        producer.send(b"%d" % number)
    first, second = consumer.receive(), consumer.receive()
    consumer.acknowledge(second)
    found = testing.unacknowledged(pulsar_client, "orders", "billing")
    assert data_of(found) == [b"0", b"2", b"3"]
    consumer.acknowledge(first)
    with pytest.raises(pulsarx.SubscriptionNotFound):
        testing.unacknowledged(pulsar_client, "orders", "shipping")


def test_more_unacknowledged_than_are_peeked_at_a_time_are_all_told(pulsar_client):
    producer = pulsar_client.create_producer("orders", batching_enabled=True)
    pulsar_client.subscribe("orders", "billing", SHARED)
    producer.send_many([b"x"] * 1000)
    assert len(testing.unacknowledged(pulsar_client, "orders", "billing")) == 1000
    producer.send(b"last")
    found = testing.unacknowledged(pulsar_client, "orders", "billing")
    assert (len(found), found[-1].data()) == (1001, b"last")


def test_dead_letters_are_those_of_the_subscription(pulsar_client, pulsar_clock):
    consumer = pulsar_client.subscribe(
        "orders",
        "billing",
        SHARED,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1),
        negative_ack_redelivery_delay_ms=1000,
    )
    pulsar_client.create_producer("orders").send(b"bad")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(timeout_millis=60_000))
        pulsar_clock.advance(seconds=1)
    assert data_of(testing.dead_letters(pulsar_client, "orders", "billing")) == [b"bad"]
    assert testing.dead_letters(pulsar_client, "orders", "shipping") == []


def test_a_folder_is_looked_at_as_memory_is(tmp_path: Path):
    with pulsarx.Client(tmp_path / "data", durability="os") as client:
        client.create_producer("orders").send(b"one")
        assert data_of(testing.messages(client, "orders")) == [b"one"]


def test_drain_returns_when_listeners_have_done_all_and_what_follows_from_it(pulsar_client):
    """Each message is passed on twice, from topic to topic, by listeners in threads of theirs."""
    passed_on = pulsar_client.create_producer("packed")
    shipped = []

    def pack(consumer, message):
        passed_on.send(message.data())
        consumer.acknowledge(message)

    def ship(consumer, message):
        shipped.append(message.data())
        consumer.acknowledge(message)

    pulsar_client.subscribe("orders", "packing", SHARED, message_listener=pack)
    pulsar_client.subscribe("packed", "shipping", SHARED, message_listener=ship)
    producer = pulsar_client.create_producer("orders")
    for number in range(100):
        producer.send(b"%d" % number)
    testing.drain(pulsar_client)
    assert len(shipped) == 100


def test_drain_waits_for_a_worker_that_receives(pulsar_client):
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    producer = pulsar_client.create_producer("orders")
    for number in range(10):
        producer.send(b"%d" % number)
    billed = []

    def work():
        while len(billed) < 10:
            message = consumer.receive()
            billed.append(message.data())
            consumer.acknowledge(message)

    worker = threading.Thread(target=work)
    worker.start()
    testing.drain(pulsar_client, "orders")
    assert len(billed) == 10
    worker.join()


def test_drain_beside_the_owner_of_a_folder_is_refused(tmp_path: Path):
    """It raised an AttributeError about a part of the broker."""
    with pulsarx.Client(tmp_path / "data", durability="os") as client:
        client.create_producer("orders").send(b"one")
    with (
        pulsarx.Client(tmp_path / "data", read_only=True) as client,
        pytest.raises(pulsarx.OperationNotSupported) as refused,
    ):
        testing.drain(client, "orders")
    assert "read_only" in refused.value.detail


def test_drain_works_where_import_pulsar_finds_pulsarx():
    """It looked behind a part that clients of threads have then, and raised AttributeError."""
    program = """
import pulsarx
pulsarx.install_as_pulsar({"pulsar://host:6650": "memory:one"})
import pulsar
from pulsarx.testing import drain
with pulsar.Client("pulsar://host:6650") as client:
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"one")
    consumer.acknowledge(consumer.receive())
    drain(client, "orders")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_drain_names_what_is_not_acknowledged_and_when_more_would_come(pulsar_client):
    consumer = pulsar_client.subscribe(
        "orders", "billing", SHARED, negative_ack_redelivery_delay_ms=1500
    )
    pulsar_client.create_producer("orders").send(b"one")
    consumer.negative_acknowledge(consumer.receive())
    with pytest.raises(pulsarx.Timeout, match=r"1 of .*orders by 'billing'.* in 1500 ms"):
        testing.drain(pulsar_client, timeout_seconds=0)


@pytest.mark.pulsar_partitions(orders=2)
@pytest.mark.pulsar_namespaces("shop/eu")
def test_drain_looks_at_every_partition_and_namespace(pulsar_client):
    for topic in ("orders", "shop/eu/orders"):
        consumer = pulsar_client.subscribe(topic, "billing", SHARED)
        producer = pulsar_client.create_producer(topic)
        producer.send(b"one", partition_key="k")
        with pytest.raises(pulsarx.Timeout, match="billing"):
            testing.drain(pulsar_client, timeout_seconds=0)
        with pytest.raises(pulsarx.Timeout, match="billing"):
            testing.drain(pulsar_client, topic, timeout_seconds=0)
        consumer.acknowledge(consumer.receive(timeout_millis=5000))
        testing.drain(pulsar_client)


def test_a_client_by_url_takes_over_what_the_broker_has(pulsar_url, pulsar_clock):
    with pulsarx.Client(pulsar_url) as client:
        sent = client.create_producer("orders")
        reader = client.create_reader("orders", pulsarx.MessageId.earliest)
        sent.send(b"one")
        assert reader.read_next().publish_timestamp() == pulsar_clock.now_ms()
    with pytest.raises(pulsarx.InvalidConfiguration, match="clock"):
        pulsarx.Client(pulsar_url, clock=pulsarx.ManualClock())


def test_advance_waits_for_listeners_of_a_client_that_took_over_the_clock(pulsar_url, pulsar_clock):
    heard = []
    with pulsarx.Client(pulsar_url) as client:
        client.subscribe("orders", "billing", message_listener=lambda _, each: heard.append(each))
        producer = client.create_producer("orders", batching_enabled=True)
        producer.send_async(b"one", None)
        pulsar_clock.advance(seconds=0.010)
        assert data_of(heard) == [b"one"]


def test_a_second_client_of_a_folder_takes_over_its_options(tmp_path: Path):
    options = pulsarx.BrokerOptions(max_message_size=1000)
    with (
        pulsarx.Client(tmp_path / "data", broker_options=options),
        pulsarx.Client(tmp_path / "data") as second,
        pytest.raises(pulsarx.MessageTooBig),
    ):
        second.create_producer("orders").send(b"x" * 1001)


def test_nobody_need_agree_how_durable_memory_is(pulsar_url):
    with pulsarx.Client(pulsar_url, durability="os", flush_interval_ms=7) as client:
        client.create_producer("orders").send(b"one")


@pytest.mark.parametrize("url", ["memory:looked-at", "folder"])
def test_a_closed_client_is_said_to_be_closed(url: str, tmp_path: Path) -> None:
    """It was InvalidConfiguration, about options that nobody had given."""
    client = pulsarx.Client(url if ":" in url else tmp_path / url)
    client.create_producer("orders").send(b"one")
    client.close()
    for look in (testing.messages, lambda *each: testing.dead_letters(*each, "s")):
        with pytest.raises(pulsarx.AlreadyClosed):
            look(client, "orders")
    with pytest.raises(pulsarx.AlreadyClosed):
        testing.unacknowledged(client, "orders", "s")
