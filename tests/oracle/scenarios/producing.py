"""Scenarios: producers, what they send and what they refuse."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, World, place, scenario, text


@scenario
def ids_of_single_messages(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    return [place(producer.send(b"%d" % number)) for number in range(4)]


@scenario
def ids_in_a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send_batch(client, [b"a", b"b", b"c"])
    return [place(each.message_id()) for each in world.messages(consumer, 3)]


@scenario
def id_of_a_batch_of_one(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic(), batching_enabled=True)
    return place(producer.send(b"alone"))


@scenario
def id_that_send_returns_is_the_one_received(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    sent = client.create_producer(world.topic()).send(b"one")
    return sent == consumer.receive(PATIENCE_MS).message_id()


@scenario
def defaults_of_a_message(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"plain"])
    message = consumer.receive(PATIENCE_MS)
    return {
        "properties": message.properties(),
        "partition_key": message.partition_key(),
        "ordering_key": message.ordering_key(),
        "event_timestamp": message.event_timestamp(),
        "redelivery_count": message.redelivery_count(),
        "topic": message.topic_name() == world.topic(),
        "has_null_value": message.has_null_value(),
        "schema_version": repr(message.schema_version()),
        "published": message.publish_timestamp() > 1_600_000_000_000,
        "value": text(message.value()),
    }


@scenario
def all_that_a_message_carries(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic(), producer_name=f"{world.prefix}-me")
    producer.send(
        b"full",
        properties={"a": "1", "b": "", "ü": "ö"},
        partition_key="key",
        ordering_key="order",
        sequence_id=77,
        event_timestamp=123_456,
        replication_clusters=["standalone"],
    )
    message = consumer.receive(PATIENCE_MS)
    return [
        message.properties(), message.partition_key(), message.ordering_key(),
        message.event_timestamp(), message.producer_name() == f"{world.prefix}-me",
        producer.last_sequence_id(),
    ]  # fmt: skip


@scenario
def all_that_a_message_in_a_batch_carries(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    for number in range(3):
        producer.send_async(
            b"%d" % number,
            lambda *_: None,
            properties={"n": str(number)} if number else None,
            partition_key="k" if number == 1 else None,
            ordering_key="o" if number == 2 else None,
            event_timestamp=number or None,
        )
    producer.flush()
    return [
        [each.properties(), each.partition_key(), each.ordering_key(), each.event_timestamp()]
        for each in world.messages(consumer, 3)
    ]


@scenario(each=["", "a", "ü-ö", "x" * 5000])
def a_partition_key(world: World, key: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [(b"1", key)])
    return consumer.receive(PATIENCE_MS).partition_key() == key


@scenario
def sequence_ids_count_from_zero(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    found = [producer.last_sequence_id()]
    for number in range(3):
        producer.send(b"%d" % number)
        found.append(producer.last_sequence_id())
    return found


@scenario
def sequence_ids_count_from_the_initial_one(world: World) -> Any:
    producer = world.client().create_producer(world.topic(), initial_sequence_id=41)
    found = [producer.last_sequence_id()]
    producer.send(b"first")
    return [*found, producer.last_sequence_id()]


@scenario
def own_sequence_ids_may_go_back(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    found = []
    for number in (10, 5, None, 11):
        producer.send(b"x", sequence_id=number)
        found.append(producer.last_sequence_id())
    return found


@scenario
def a_producer_knows_its_name_and_topic(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic(), producer_name=f"{world.prefix}-p")
    return [producer.producer_name() == f"{world.prefix}-p", producer.topic() == world.topic()]


@scenario
def a_short_topic_name_is_completed(world: World) -> Any:
    short = world.topic().rpartition("/")[2]
    producer = world.client().create_producer(short)
    return producer.topic() in (world.topic(), short) and producer.topic() == world.topic()


@scenario
def a_generated_name_is_no_name_twice(world: World) -> Any:
    client = world.client()
    names = {client.create_producer(world.topic()).producer_name() for _ in range(3)}
    return [len(names), all(names)]


@scenario
def a_name_that_is_taken(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic(), producer_name="taken")
    first = world.outcome(client.create_producer, world.topic(), producer_name="taken")
    producer.close()
    return [first, world.outcome(client.create_producer, world.topic(), producer_name="taken")]


@scenario
def a_closed_producer(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    connected = [producer.is_connected()]
    producer.close()
    connected.append(producer.is_connected())
    return [
        connected,
        world.outcome(producer.send, b"late"),
        world.outcome(producer.flush),
        world.outcome(producer.close),
    ]


@scenario
def callbacks_get_result_and_id(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    told: list[Any] = []
    done = threading.Event()

    def callback(result: Any, message_id: Any) -> None:
        told.append([result.name, place(message_id)])
        if len(told) == 3:
            done.set()

    for number in range(3):
        producer.send_async(b"%d" % number, callback)
    done.wait(5)
    return told


@scenario
def a_callback_of_a_closed_producer(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    producer.close()
    told: list[str] = []
    outcome = world.outcome(
        producer.send_async, b"late", lambda result, _: told.append(result.name)
    )
    world.settle(lambda: bool(told))
    return [outcome, told]


@scenario
def flush_sends_what_waits(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    producer.send_async(b"waits", lambda *_: None)
    empty = world.is_empty(consumer)
    producer.flush()
    return [empty, world.receive(consumer, 1)]


@scenario
def the_delay_sends_what_waits(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=50
    )
    producer.send_async(b"waits", lambda *_: None)
    return world.receive(consumer, 1)


@scenario(each=[2, 5])
def the_number_of_messages_closes_a_batch(world: World, most: int) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(),
        batching_enabled=True,
        batching_max_messages=most,
        batching_max_publish_delay_ms=60_000,
    )
    for number in range(7):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    found = [place(each.message_id()) for each in world.messages(consumer, 7)]
    return [entry for _, entry, _ in found]


@scenario
def the_size_closes_a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(),
        batching_enabled=True,
        batching_max_allowed_size_in_bytes=1000,
        batching_max_publish_delay_ms=60_000,
    )
    for _ in range(6):
        producer.send_async(b"x" * 400, lambda *_: None)
    producer.flush()
    return len({each.message_id().entry_id() for each in world.messages(consumer, 6)}) > 1


@scenario
def batches_by_key(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(),
        batching_enabled=True,
        batching_type=world.pulsar.BatchingType.KeyBased,
        batching_max_publish_delay_ms=60_000,
    )
    for number, key in enumerate("abab"):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key=key)
    producer.flush()
    entries: dict[int, list[str]] = {}
    for each in world.messages(consumer, 4):
        entries.setdefault(each.message_id().entry_id(), []).append(each.partition_key())
    return sorted(entries.values())


@scenario(each=["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def compressed(world: World, name: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(), compression_type=getattr(world.pulsar.CompressionType, name)
    )
    for payload in (b"", b"short", b"x" * 100_000):
        producer.send(payload)
    return world.receive(consumer, 3)


@scenario(each=["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def compressed_in_batches(world: World, name: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(),
        compression_type=getattr(world.pulsar.CompressionType, name),
        batching_enabled=True,
        batching_max_publish_delay_ms=60_000,
    )
    for payload in (b"", b"short", b"x" * 10_000):
        producer.send_async(payload, lambda *_: None)
    producer.flush()
    return world.receive(consumer, 3)


@scenario
def the_largest_message(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    limit = 5 * 1024 * 1024
    return [
        world.outcome(producer.send, b"x" * (limit - 100)),
        world.outcome(producer.send, b"x" * (limit + 1)),
        world.outcome(producer.send, b"still usable"),
    ]


@scenario
def a_large_message_that_compresses(world: World) -> Any:
    producer = world.client().create_producer(
        world.topic(), compression_type=world.pulsar.CompressionType.LZ4
    )
    return world.outcome(producer.send, b"x" * (6 * 1024 * 1024))


@scenario
def a_null_message(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    outcome = world.outcome(client.create_producer(world.topic()).send, None)
    if outcome != "ok":
        return outcome
    message = consumer.receive(PATIENCE_MS)
    return [message.has_null_value(), text(message.data())]


@scenario(each=["text", 5, {"a": 1}, ["a"], 1.5])
def contents_of_another_type(world: World, content: Any) -> Any:
    return world.outcome(world.client().create_producer(world.topic()).send, content)


BAD_SENDS: dict[str, dict[str, Any]] = {
    "properties_list": {"properties": ["a"]},
    "properties_values": {"properties": {"a": 1}},
    "partition_key_int": {"partition_key": 5},
    "partition_key_bytes": {"partition_key": b"k"},
    "ordering_key_int": {"ordering_key": 5},
    "sequence_id_text": {"sequence_id": "1"},
    "event_timestamp_text": {"event_timestamp": "1"},
    "event_timestamp_float": {"event_timestamp": 1.5},
    "deliver_at_text": {"deliver_at": "1"},
    "deliver_after_int": {"deliver_after": 5},
    "replication_clusters_text": {"replication_clusters": "a"},
    "disable_replication_text": {"disable_replication": "a"},
}


@scenario(each=BAD_SENDS)
def a_bad_argument_of_send(world: World, name: str) -> Any:
    producer = world.client().create_producer(world.topic())
    return world.outcome(producer.send, b"x", **BAD_SENDS[name])


BAD_PRODUCERS: dict[str, dict[str, Any]] = {
    "name_int": {"producer_name": 5},
    "schema_text": {"schema": "json"},
    "initial_sequence_id_text": {"initial_sequence_id": "1"},
    "send_timeout_text": {"send_timeout_millis": "1"},
    "compression_int": {"compression_type": 1},
    "max_pending_zero": {"max_pending_messages": 0},
    "max_pending_negative": {"max_pending_messages": -1},
    "max_pending_text": {"max_pending_messages": "1"},
    "across_partitions_negative": {"max_pending_messages_across_partitions": -1},
    "block_int": {"block_if_queue_full": 1},
    "batching_int": {"batching_enabled": 1},
    "batch_messages_zero": {"batching_max_messages": 0},
    "batch_messages_one": {"batching_max_messages": 1},
    "batch_messages_text": {"batching_max_messages": "1"},
    "batch_bytes_zero": {"batching_max_allowed_size_in_bytes": 0},
    "batch_delay_zero": {"batching_max_publish_delay_ms": 0},
    "batch_delay_text": {"batching_max_publish_delay_ms": "1"},
    "routing_int": {"message_routing_mode": 0},
    "lazy_int": {"lazy_start_partitioned_producers": 1},
    "properties_list": {"properties": ["a"]},
    "batching_type_int": {"batching_type": 0},
    "encryption_key_int": {"encryption_key": 5},
    "access_mode_int": {"access_mode": 0},
    "chunking_and_batching": {"chunking_enabled": True, "batching_enabled": True},
}


@scenario(each=BAD_PRODUCERS)
def a_bad_argument_of_create_producer(world: World, name: str) -> Any:
    client = world.client()
    return world.outcome(client.create_producer, world.topic(), **BAD_PRODUCERS[name])


@scenario
def a_full_queue(world: World) -> Any:
    producer = world.client().create_producer(
        world.topic(),
        max_pending_messages=3,
        batching_enabled=True,
        batching_max_publish_delay_ms=60_000,
    )
    told: list[str] = []
    done = threading.Event()

    def callback(result: Any, _: Any) -> None:
        told.append(result.name)
        if len(told) == 5:
            done.set()

    for number in range(5):
        producer.send_async(b"%d" % number, callback)
    producer.flush()
    done.wait(5)
    return sorted(told)


@scenario
def delayed_into_the_past(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    producer = client.create_producer(world.topic())
    producer.send(b"after", deliver_after=timedelta(seconds=-5))
    producer.send(b"at", deliver_at=1000)
    return world.receive(consumer, 2)


@scenario
def producers_of_many_clients_meet_in_one_topic(world: World) -> Any:
    consumer = world.subscribe(world.client())
    for number in range(3):
        world.send(world.client(), [b"%d" % number])
    return world.receive(consumer, 3)


@scenario
def what_was_sent_asynchronously_keeps_its_order(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic(), block_if_queue_full=True)
    for number in range(2000):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    found = world.receive(consumer, 2000)
    return [len(found), found == [str(number) for number in range(2000)]]


@scenario
def closing_sends_what_waits(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    told: list[str] = []
    producer.send_async(b"waits", lambda result, _: told.append(result.name))
    producer.close()
    try:
        found = text(consumer.receive(NOTHING_MS).data())
    except world.pulsar.Timeout:
        found = "nothing"
    return [found, told]


@scenario
def a_null_message_in_a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send_batch(client, [b"1", None, b"", b"3"])
    return [[text(m.data()), m.has_null_value()] for m in world.messages(consumer, 4)]


@scenario(each=["text", "bytes"])
def a_null_message_with_a_schema(world: World, kind: str) -> Any:
    client = world.client()
    schemas = world.pulsar.schema
    schema = schemas.StringSchema() if kind == "text" else schemas.BytesSchema()
    consumer = world.subscribe(client, schema=schema)
    producer = client.create_producer(world.topic(), schema=schema)
    outcome = world.outcome(producer.send, None, partition_key="k")
    if outcome != "ok":
        return outcome
    message = consumer.receive(PATIENCE_MS)
    return [message.has_null_value(), message.partition_key(), text(message.data())]


@scenario
def sequence_ids_of_a_batch(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    found = [producer.last_sequence_id()]
    for number in range(3):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    found.append(producer.last_sequence_id())
    producer.send_async(b"x", lambda *_: None, sequence_id=50)
    producer.flush()
    return [*found, producer.last_sequence_id()]


@scenario
def flushing_nothing(world: World) -> Any:
    producer = world.client().create_producer(world.topic(), batching_enabled=True)
    return [world.outcome(producer.flush), world.outcome(producer.flush)]


@scenario(each=["many", "empty_key", "long", "signs"])
def strange_properties(world: World, case: str) -> Any:
    properties = {
        "many": {f"key-{number}": str(number) for number in range(500)},
        "empty_key": {"": "x"},
        "long": {"a": "x" * 100_000},
        "signs": {"ä\n": "\x00 €😀"},
    }[case]
    client = world.client()
    consumer = world.subscribe(client)
    client.create_producer(world.topic()).send(b"x", properties=properties)
    return consumer.receive(PATIENCE_MS).properties() == properties


@scenario(each=["single", "batch"])
def the_publish_time_is_that_of_sending(world: World, case: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    if case == "batch":
        world.send_batch(client, [b"1", b"2"])
    else:
        world.send(client, [b"1", b"2"])
    first, second = (each.publish_timestamp() for each in world.messages(consumer, 2))
    return [first <= second < first + 10_000, case == "batch" and first == second]


@scenario(each=[0, 1, 2**53, 2**63 - 1])
def an_event_time(world: World, moment: int) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic())
    outcome = world.outcome(producer.send, b"x", event_timestamp=moment)
    return [outcome, consumer.receive(PATIENCE_MS).event_timestamp()]


@scenario(each=[-1, 2**64])
def a_number_that_does_not_fit(world: World, number: int) -> Any:
    producer = world.client().create_producer(world.topic())
    return [
        world.outcome(producer.send, b"x", event_timestamp=number),
        world.outcome(producer.send, b"x", sequence_id=number),
        world.outcome(producer.send, b"x", deliver_at=number),
    ]
