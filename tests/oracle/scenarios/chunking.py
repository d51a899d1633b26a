"""Scenarios: messages in chunks; whole, and single chunks as a server may have them."""

from __future__ import annotations

import threading
import zlib
from datetime import timedelta
from random import Random
from typing import Any

from world import PATIENCE_MS, TYPES, World, place, scenario, text

SHARING = ("Shared", "KeyShared")
TWO, THREE = 6_000_000, 11_000_000  # bytes that need so many chunks
BODY = Random(5).randbytes(THREE)  # does not compress


def chunking(world: World, client: Any, topic: str = "", **options: Any) -> Any:
    return client.create_producer(topic or world.topic(), chunking_enabled=True, **options)


def said(message: Any) -> Any:
    """Short, and of every byte."""
    data = message.data()
    return text(data) if len(data) < 100 else [len(data), zlib.crc32(data)]


def filled(world: World) -> tuple[Any, list[Any]]:
    """A client, and ids of four messages; two of them are in chunks."""
    client = world.client()
    world.subscribe(client, name="keeper").close()
    producer = chunking(world, client)
    return client, [producer.send(each) for each in (b"0", BODY[:TWO], BODY, b"3")]


@scenario
def ids_are_those_of_the_last_chunks(world: World) -> Any:
    _, ids = filled(world)
    return [place(each) for each in ids]


@scenario
def ids_received_are_those_sent(world: World) -> Any:
    client, ids = filled(world)
    consumer = world.subscribe(client)
    found = [each.message_id() for each in world.messages(consumer, 4)]
    return [[place(each) for each in found], [one == two for one, two in zip(ids, found)]]


@scenario
def ids_survive_being_stored(world: World) -> Any:
    _, ids = filled(world)
    kept = [world.pulsar.MessageId.deserialize(each.serialize()) for each in ids]
    return [[place(each) for each in kept], [one == two for one, two in zip(ids, kept)]]


@scenario
def ids_are_ordered(world: World) -> Any:
    _, ids = filled(world)
    return [ids[0] < ids[1] < ids[2] < ids[3], ids[1] == ids[2]]


@scenario(each=TYPES)
def everything_comes_whole_and_in_order(world: World, kind: str) -> Any:
    client, _ = filled(world)
    return [said(each) for each in world.messages(world.subscribe(client, kind), 4)]


@scenario(each=TYPES)
def acknowledging_takes_all_chunks(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    for each in world.messages(consumer, 4):
        consumer.acknowledge(each)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    consumer.close()
    again = world.subscribe(client, kind)
    return [world.admin.backlog(world.topic(), "subscription"), world.is_empty(again)]


@scenario(each=TYPES)
def what_was_not_acknowledged_comes_whole_again(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    messages = world.messages(consumer, 4)
    consumer.acknowledge(messages[1])
    consumer.close()
    return [said(each) for each in world.messages(world.subscribe(client, kind), 3)]


@scenario(each=SHARING)
def negatively(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=100)
    chunking(world, client).send(BODY, partition_key="k")
    found: list[Any] = []
    for _ in range(3):
        try:
            message = consumer.receive(PATIENCE_MS)
        except world.pulsar.Timeout:
            return [*found, "Timeout"]
        found.append([said(message), message.redelivery_count()])
        consumer.negative_acknowledge(message)
    return found


@scenario(each=TYPES)
def redelivering_all(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    world.messages(consumer, 4)
    consumer.redeliver_unacknowledged_messages()
    return sorted(str(said(each)) for each in world.messages(consumer, 4))


@scenario(each=["Exclusive", "Failover"])
def cumulatively(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    consumer.acknowledge_cumulative(world.messages(consumer, 4)[1])
    consumer.close()
    return [said(each) for each in world.messages(world.subscribe(client, kind), 2)]


@scenario(each=["in", "ex"])
def seeking_to_one(world: World, inclusive: str) -> Any:
    client, ids = filled(world)
    consumer = world.subscribe(client, start_message_id_inclusive=inclusive == "in")
    world.messages(consumer, 4)
    consumer.seek(ids[1])
    return said(consumer.receive(PATIENCE_MS))


@scenario(each=["in", "ex"])
def seeking_to_one_that_was_received(world: World, inclusive: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, start_message_id_inclusive=inclusive == "in")
    consumer.seek(world.messages(consumer, 4)[1].message_id())
    return said(consumer.receive(PATIENCE_MS))


@scenario(each=["in", "ex"])
def a_reader_from_one(world: World, inclusive: str) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(
        world.topic(), ids[1], start_message_id_inclusive=inclusive == "in"
    )
    return [reader.has_message_available(), said(reader.read_next(PATIENCE_MS))]


@scenario(each=["in", "ex"])
def a_reader_from_one_that_was_stored(world: World, inclusive: str) -> Any:
    client, ids = filled(world)
    kept = world.pulsar.MessageId.deserialize(ids[2].serialize())
    reader = client.create_reader(world.topic(), kept, start_message_id_inclusive=inclusive == "in")
    return said(reader.read_next(PATIENCE_MS))


@scenario
def a_reader_reads_all(world: World) -> Any:
    client, _ = filled(world)
    return world.read(client.create_reader(world.topic(), world.pulsar.MessageId.earliest))


@scenario
def a_reader_behind_the_last(world: World) -> Any:
    client, _ = filled(world)
    last = chunking(world, client).send(BODY)
    return client.create_reader(world.topic(), last).has_message_available()


@scenario
def the_last_message_id(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    chunking(world, client).send(BODY)
    return place(consumer.get_last_message_id())


@scenario(each=["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def compressed(world: World, name: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    compression = getattr(world.pulsar.CompressionType, name)
    sent = chunking(world, client, compression_type=compression).send(BODY[:TWO])
    return [place(sent), said(consumer.receive(PATIENCE_MS))]


@scenario
def what_compresses_needs_no_chunks(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    compression = world.pulsar.CompressionType.ZSTD
    sent = chunking(world, client, compression_type=compression).send(b"x" * THREE)
    return [place(sent), said(consumer.receive(PATIENCE_MS))]


@scenario
def all_that_it_carries(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = chunking(world, client, producer_name=f"{world.prefix}-me")
    producer.send(
        BODY[:TWO],
        properties={"a": "1"},
        partition_key="key",
        ordering_key="order",
        sequence_id=7,
        event_timestamp=123_456,
    )
    message = consumer.receive(PATIENCE_MS)
    return [
        message.properties(), message.partition_key(), message.ordering_key(),
        message.event_timestamp(), message.redelivery_count(), message.has_null_value(),
        message.producer_name() == f"{world.prefix}-me", producer.last_sequence_id(),
        message.topic_name() == world.topic(),
    ]  # fmt: skip


@scenario
def sequence_ids(world: World) -> Any:
    producer = chunking(world, world.client())
    found = []
    for each in (b"0", BODY[:TWO], b"2"):
        producer.send(each)
        found.append(producer.last_sequence_id())
    return found


@scenario
def callbacks_get_the_last_chunk(world: World) -> Any:
    producer = chunking(world, world.client())
    told: list[Any] = []
    done = threading.Event()

    def callback(result: Any, message_id: Any) -> None:
        told.append([result.name, place(message_id)])
        if len(told) == 3:
            done.set()

    for each in (b"0", BODY[:TWO], BODY):
        producer.send_async(each, callback)
    producer.flush()
    done.wait(10)
    return told


@scenario(each=[1, 2, 3])
def a_queue_for_so_many_messages(world: World, most: int) -> Any:
    """A message of three chunks."""
    producer = chunking(world, world.client(), max_pending_messages=most)
    return [world.outcome(producer.send, BODY), world.outcome(producer.send, b"small")]


@scenario
def without_it_a_large_message_is_refused(world: World) -> Any:
    producer = world.client().create_producer(world.topic())
    return [world.outcome(producer.send, BODY[:TWO]), world.outcome(producer.send, b"small")]


@scenario
def properties_count(world: World) -> Any:
    """So many that there is no room for a chunk beside them."""
    producer = chunking(world, world.client())
    outcome = world.outcome(producer.send, b"x", properties={"a": "x" * (5 * 1024 * 1024)})
    return [outcome, world.outcome(producer.send, b"small")]


@scenario
def not_on_topics_that_are_not_persistent(world: World) -> Any:
    topic = world.topic().replace("persistent", "non-persistent")
    return world.outcome(chunking, world, world.client(), topic)


@scenario(each=["Exclusive", "Shared"])
def into_a_short_queue(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind, receiver_queue_size=1)
    found = []
    for _ in range(4):
        message = consumer.receive(PATIENCE_MS)
        found.append(said(message))
        consumer.acknowledge(message)
    return found


@scenario
def all_chunks_go_to_one_consumer(world: World) -> Any:
    client = world.client()
    consumers = [world.subscribe(client, "Shared", consumer_name=f"c{n}") for n in range(2)]
    producer = chunking(world, client)
    for number in range(4):
        producer.send(BODY[number : TWO + number])
    found: list[Any] = []
    while len(found) < 4:
        for each in consumers:
            try:
                message = each.receive(200)
            except world.pulsar.Timeout:
                continue
            found.append(said(message))
            each.acknowledge(message)
    return sorted(found)


@scenario
def of_several_producers_at_once(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)

    def work(number: int) -> None:
        producer = chunking(world, world.client())
        for each in range(2):
            producer.send(BODY[10 * number + each : TWO])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sorted(said(each) for each in world.messages(consumer, 6))


@scenario
def later(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    producer = chunking(world, client)
    producer.send(BODY, deliver_after=timedelta(milliseconds=1500))
    producer.send(b"now")
    return [said(each) for each in world.messages(consumer, 2)]


@scenario
def for_a_listener(world: World) -> Any:
    client, _ = filled(world)
    found: list[Any] = []
    done = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        found.append(said(message))
        consumer.acknowledge(message)
        if len(found) == 4:
            done.set()

    world.subscribe(client, message_listener=listener)
    done.wait(10)
    return found


@scenario
def many_at_once(world: World) -> Any:
    client, _ = filled(world)
    policy = world.pulsar.ConsumerBatchReceivePolicy(4, 0, 3000)
    consumer = world.subscribe(client, batch_receive_policy=policy)
    return [said(each) for each in consumer.batch_receive()]


@scenario
def in_a_table_view(world: World) -> Any:
    client = world.client()
    chunking(world, client).send(BODY[:TWO], partition_key="a")
    view = client.create_table_view(world.topic())
    return [len(view), zlib.crc32(view.get("a"))]


@scenario
def with_a_schema(world: World) -> Any:
    client = world.client()
    schema = world.pulsar.schema.StringSchema()
    consumer = world.subscribe(client, schema=schema)
    chunking(world, client, schema=schema).send("ä" * (TWO // 2))
    return consumer.receive(PATIENCE_MS).value() == "ä" * (TWO // 2)


@scenario
def on_partitions(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    consumer = world.subscribe(client, topic=topic)
    producer = chunking(world, client, topic)
    for number in range(4):
        producer.send(BODY[number:TWO], partition_key="k")
    return [said(each) for each in world.messages(consumer, 4)]


@scenario(each=SHARING)
def as_a_dead_letter(world: World, kind: str) -> Any:
    module = world.pulsar
    client = world.client()
    letters = world.subscribe(client, topic=world.topic("dead"), name="letters")
    chunking(world, client).send(BODY[:TWO], partition_key="k")
    consumer = world.subscribe(
        client,
        kind,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(1, world.topic("dead")),
    )
    for _ in range(2):
        try:
            consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
        except world.pulsar.Timeout:
            return "Timeout"
    return said(letters.receive(PATIENCE_MS))


@scenario
def sent_twice(world: World) -> Any:
    client = world.client()
    topic = world.governed(deduplication={"enabled": True})
    consumer = world.subscribe(client, topic=topic)
    producer = chunking(world, client, topic, producer_name="one")
    for number in (1, 1, 2):
        producer.send(BODY[:TWO], sequence_id=number)
    producer.send(b"end", sequence_id=3)
    return [said(each) for each in world.messages(consumer, 3)]


@scenario
def a_subscription_that_skips(world: World) -> Any:
    client, _ = filled(world)
    world.subscribe(client).close()
    world.admin.skip_all(world.topic(), "subscription")
    world.send(client, [b"new"])
    return world.receive(world.subscribe(client), 1)


# Single chunks, in any order ----------------------------------------------------------------------


def interwoven(world: World, count: int = 2) -> list[str]:
    """Messages a, b, ... of two chunks each: all first ones, then all second ones."""
    names = [chr(ord("a") + number) for number in range(count)]
    world.chunks([(name, number, 2) for number in range(2) for name in names])
    return names


@scenario(each=TYPES)
def interwoven_ones(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.chunks([("a", 0, 3), ("b", 0, 2), ("a", 1, 3), ("b", 1, 2), ("a", 2, 3)])
    messages = world.messages(consumer, 2)
    for each in messages:
        consumer.acknowledge(each)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    return [
        [text(each.data()) for each in messages],
        [place(each.message_id()) for each in messages],
        world.admin.backlog(world.topic(), "subscription"),
    ]


@scenario(each=TYPES)
def interwoven_with_a_plain_one(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.chunks([("a", 0, 2)])
    world.send(client, [b"plain"])
    world.chunks([("a", 1, 2)])
    return world.receive(consumer, 2)


@scenario(each=["Exclusive", "Shared"])
def more_than_may_wait_are_acknowledged(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(
        client,
        kind,
        max_pending_chunked_message=1,
        auto_ack_oldest_chunked_message_on_queue_full=True,
    )
    interwoven(world, 3)
    found = world.receive(consumer, 1)
    return [found, world.is_empty(consumer)]


@scenario
def as_many_as_may_wait(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, max_pending_chunked_message=3)
    interwoven(world, 3)
    return world.receive(consumer, 3)


@scenario
def any_number_may_wait(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, max_pending_chunked_message=0)
    interwoven(world, 20)
    return world.receive(consumer, 20)


@scenario
def more_than_ten_at_once(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, auto_ack_oldest_chunked_message_on_queue_full=True)
    interwoven(world, 12)
    found = world.receive(consumer, 10)
    return [found, world.is_empty(consumer)]


@scenario(each=TYPES)
def a_repeated_chunk(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.chunks([("a", 0, 3), ("a", 1, 3), ("a", 1, 3), ("a", 2, 3)])
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario(each=TYPES)
def a_message_that_begins_again(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.chunks([("a", 0, 3), ("a", 1, 3), ("a", 0, 3), ("a", 1, 3), ("a", 2, 3)])
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario(each=["without_the_first", "with_a_gap", "without_the_last"])
def an_incomplete_one(world: World, case: str) -> Any:
    chunks = {
        "without_the_first": [("a", 1, 3), ("a", 2, 3)],
        "with_a_gap": [("a", 0, 3), ("a", 2, 3)],
        "without_the_last": [("a", 0, 3), ("a", 1, 3)],
    }[case]
    client = world.client()
    consumer = world.subscribe(client)
    world.chunks(chunks)
    world.send(client, [b"plain"])
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario
def a_reader_before_an_incomplete_one(world: World) -> Any:
    client = world.client()
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    world.chunks([("a", 0, 2)])
    world.send(client, [b"plain"])
    return world.read(reader)


@scenario
def a_single_chunk_is_a_message(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.chunks([("a", 0, 1)])
    return world.receive(consumer, 1)


@scenario
def the_rest_comes_to_the_next_consumer(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.chunks([("a", 0, 2)])
    empty = world.is_empty(consumer)
    consumer.close()
    consumer = world.subscribe(client)
    world.chunks([("a", 1, 2)])
    return [empty, world.receive(consumer, 1)]
