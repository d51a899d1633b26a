"""The control plane: no Python of the broker runs in the main thread, where a signal could stop it
between two of its steps."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from damaged_ledgers import flip, ledger_paths, receive_all

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, SubscriptionMode
from pulsarx.broker import registry
from pulsarx.schema import AutoConsumeSchema, Int32Schema, StringSchema

_OPTIMIZED = 0x1  # what a function's code has, and the body of a module or class has not


@contextmanager
def broker_calls() -> Iterator[list[str]]:
    """The functions of the broker that the calling thread enters meanwhile."""
    found: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        is_function = frame.f_code.co_flags & _OPTIMIZED
        if event == "call" and is_function and f"{module}.".startswith("pulsarx.broker."):
            found.append(f"{module}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


def use_administration(client: pulsarx.Client) -> None:
    """Tenants, namespaces, what ends topics and moves subscriptions."""
    admin = client.admin
    admin.tenants.create_tenant("acme")
    admin.tenants.update_tenant("acme", ["role"])
    admin.tenants.get_tenant_info(admin.tenants.get_tenants()[0])
    admin.namespaces.create_namespace("acme/ns")
    admin.namespaces.set_auto_topic_creation("acme/ns", True)
    admin.namespaces.get_policies("acme/ns")
    topic, topics = "acme/ns/t", admin.topics
    producer = client.create_producer(topic)
    producer.send(b"1")
    topics.create_subscription(topic, "s", 0)
    consumer = client.subscribe(topic, "s")
    topics.peek_messages(topic, topics.get_subscriptions(topic)[0])
    topics.skip_messages(topic, "s", 1)
    topics.skip_all_messages(topic, "s")
    topics.reset_cursor(topic, "s", topics.get_last_message_id(topic))
    topics.expire_messages(topic, "s", -1)
    topics.set_auto_subscription_creation(topic, False)
    topics.get_auto_subscription_creation(topic)
    topics.unload(topic)
    topics.truncate(topic)
    topics.terminate(topic)
    topics.delete_subscription(topic, "s", force=True)
    topics.delete(topic, force=True)
    consumer.close()
    admin.namespaces.get_topics("acme/ns")
    admin.namespaces.delete_namespace("acme/ns")
    admin.tenants.delete_tenant("acme", force=True)
    admin.brokers.get_storage_size()


def use_all(client: pulsarx.Client, clock: pulsarx.ManualClock) -> None:
    """Every public call but those of fixtures."""
    topics = client.admin.topics
    topics.create_non_partitioned_topic("made")
    topics.create_partitioned_topic("p", 2)
    topics.update_partitioned_topic("p", 3)
    topics.get_list("public/default")
    topics.get_partitioned_topic_list("public/default")
    topics.get_partitioned_topic_metadata("p")
    client.get_topic_partitions("p")
    client.admin.namespaces.get_namespaces("public")
    use_administration(client)
    for topic in ("t", "p"):
        client.subscribe(topic, "keeps", initial_position=InitialPosition.Earliest).close()
        producer = client.create_producer(topic)
        for number in range(25):  # several ledgers
            producer.send(b"%d" % number)
            producer.send_async(b"a", None, partition_key=str(number))
        producer.send_many([b"m"] * 5)
        producer.send(b"later", deliver_after=timedelta(seconds=1))
        producer.flush()
        producer.last_sequence_id(), producer.is_connected(), producer.topic()
        for kind in (
            ConsumerType.Exclusive,
            ConsumerType.Failover,
            ConsumerType.Shared,
            ConsumerType.KeyShared,
        ):
            use_consumer(client, clock, topic, kind)
        producer.close()
    topics.stats("t")
    topics.partitioned_stats("p")
    with client.create_producer("arrow") as producer:
        producer.send_arrow(pyarrow.table({"value": pyarrow.array([b"1", b"2"])}))
    use_reader(client)
    use_schemas(client)
    client.create_producer("t")  # forgotten
    client.subscribe("t", "forgotten")


def use_schemas(client: pulsarx.Client) -> None:
    schemas, info = client.admin.schemas, StringSchema().schema_info()
    consumer = client.subscribe("typed", "s", schema=AutoConsumeSchema())
    client.admin.topics.create_partitioned_topic("typed-parts", 2)
    for topic in ("typed", "typed-parts"):
        producer = client.create_producer(topic, schema=StringSchema())
        producer.send("x")
        producer.use_schema(StringSchema())
        producer.close()
        schemas.create_schema(topic, info), schemas.get_all_schemas(topic)
        schemas.get_schema_info(topic), schemas.get_version_by_schema(topic, info)
        schemas.test_compatibility(topic, info)
        client.subscribe(topic, "t", schema=StringSchema()).close()
    assert consumer.receive(60_000).value() == "x"
    with client.create_reader("typed", MessageId.earliest, schema=AutoConsumeSchema()) as reader:
        assert reader.read_next(60_000).value() == "x"
    with pytest.raises(pulsarx.IncompatibleSchema):
        client.create_producer("typed", schema=Int32Schema())
    schemas.delete_schema("typed")
    for group, target in (
        (client.admin.topics, "typed"),
        (client.admin.namespaces, "public/default"),
    ):
        group.set_schema_compatibility_strategy(target, "FULL")
        group.get_schema_compatibility_strategy(target)
        group.remove_schema_compatibility_strategy(target)


def use_consumer(
    client: pulsarx.Client, clock: pulsarx.ManualClock, topic: str, kind: ConsumerType
) -> None:
    dead = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1)
    shares = kind in (ConsumerType.Shared, ConsumerType.KeyShared)
    consumer = client.subscribe(
        topic,
        f"s-{kind.name}",
        consumer_type=kind,
        initial_position=InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=1000,
        batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(2, -1, 1000),
        dead_letter_policy=dead if shares else None,
    )
    message = consumer.receive(60_000)
    consumer.acknowledge(message)
    consumer.acknowledge_many(consumer.receive_many(3, 1000))
    consumer.acknowledge(consumer.batch_receive()[0])
    consumer.receive_arrow(2, 1000)
    future = consumer.receive_async()
    future.cancel()
    if not shares and topic == "t":
        consumer.acknowledge_cumulative(consumer.receive(60_000))
    for _ in range(3):
        consumer.negative_acknowledge(consumer.receive(60_000))
        clock.advance(2)
    consumer.redeliver_unacknowledged_messages()
    if topic == "t":
        consumer.get_last_message_id()
    consumer.topic(), consumer.subscription_name(), consumer.is_connected()
    with pytest.raises(pulsarx.Timeout):
        while True:
            consumer.receive(0)
    consumer.seek(MessageId.earliest)
    consumer.seek(clock.now_ms())
    if kind == ConsumerType.Failover:
        consumer.unsubscribe()
    consumer.close()


def use_reader(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.earliest)
    reader.read_next(1000), reader.has_message_available()
    reader.seek(MessageId.latest)
    reader.get_last_message_id(), reader.is_connected(), reader.topic()
    reader.close()
    client.subscribe("t", "n", subscription_mode=SubscriptionMode.NonDurable).close()
    client.subscribe(["t", "p"], "several").close()
    came = threading.Event()
    listening = client.subscribe(
        "t",
        "l",
        initial_position=InitialPosition.Earliest,
        message_listener=lambda consumer, message: came.set(),
    )
    assert came.wait(60)
    listening.pause_message_listener()
    listening.resume_message_listener()
    listening.close()


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_no_function_of_the_broker_runs_in_the_main_thread(tmp_path: Path, durability: str) -> None:
    clock = pulsarx.ManualClock()
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=10)
    with broker_calls() as found:
        client = pulsarx.Client(
            tmp_path / "data", clock=clock, durability=durability, broker_options=options
        )
        use_all(client, clock)
        client.close()
        with pulsarx.Client(tmp_path / "data", read_only=True) as beside:
            use_reader_beside(beside)
        pulsarx.Client("memory:short").shutdown()
    assert not set(found), "\n".join(sorted(set(found)))


def use_reader_beside(client: pulsarx.Client) -> None:
    client.admin.topics.get_list("public/default")
    client.admin.topics.stats("t")
    with client.create_reader("t", MessageId.earliest) as reader:
        reader.read_next(1000), reader.has_message_available()
    with client.create_reader("typed", MessageId.earliest, AutoConsumeSchema()) as typed:
        assert typed.read_next(60_000).value() == "x"


@pytest.mark.parametrize("read_only", [False, True])
def test_damage_is_told_without_the_broker_in_the_main_thread(
    tmp_path: Path, read_only: bool
) -> None:
    """One entry is damaged, the file of the next ledger is missing."""
    folder = tmp_path / "data"
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=10)
    with pulsarx.Client(folder, broker_options=options) as client:
        producer = client.create_producer("t")
        for name in ("Exclusive", "Shared"):
            client.subscribe("t", name).close()
        ids = [producer.send(b"%d" % number) for number in range(30)]
    paths = ledger_paths(folder)
    flip(paths[0], 4, "frame")
    paths[1].unlink()
    with broker_calls() as found, pulsarx.Client(folder, read_only=read_only) as client:
        reader = client.create_reader("t", MessageId.earliest)
        messages, told = receive_all(reader)
        assert (len(messages), len(told)) == (19, 2)
        reader.seek(ids[4])
        for kind in () if read_only else (ConsumerType.Exclusive, ConsumerType.Shared):
            consumer = client.subscribe("t", kind.name, kind)
            with pytest.raises(pulsarx.errors.CorruptDataError):
                consumer.acknowledge(ids[14])
            messages, told = receive_all(consumer)
            assert (len(messages), len(told)) == (19, 2)
            consumer.acknowledge_many(messages)
            consumer.close()
        client.admin.topics.stats("t")
    assert not set(found), "\n".join(sorted(set(found)))


def test_the_functions_of_a_broker_are_seen() -> None:
    with broker_calls() as found:
        registry.find("nowhere")
    assert found == ["pulsarx.broker.registry.find"]
