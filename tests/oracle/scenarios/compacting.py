"""Scenarios: compaction, and who reads what it left."""

from __future__ import annotations

import threading
from typing import Any

from world import PATIENCE_MS, World, place, scenario, text

PRICES = [(b"a1", "a"), (b"b1", "b"), (b"a2", "a"), (b"c1", "c"), (b"b2", "b")]  # a2 c1 b2 stay
ONE_AT_A_TIME = ("Exclusive", "Failover")


def compacted(world: World, payloads: Any = PRICES) -> Any:
    """A client of a topic with these, compacted."""
    client = world.client()
    world.send(client, payloads)
    world.compact(world.topic())
    return client


def read(world: World, client: Any, topic: str = "", **options: Any) -> list[str]:
    earliest = world.pulsar.MessageId.earliest
    options.setdefault("is_read_compacted", True)
    return world.read(client.create_reader(topic or world.topic(), earliest, **options))


@scenario
def a_reader(world: World) -> Any:
    return read(world, compacted(world))


@scenario
def a_reader_of_everything(world: World) -> Any:
    return read(world, compacted(world), is_read_compacted=False)


@scenario(each=ONE_AT_A_TIME)
def a_consumer(world: World, kind: str) -> Any:
    consumer = world.subscribe(compacted(world), kind, is_read_compacted=True)
    return [world.receive(consumer, 3, acknowledge=True), world.is_empty(consumer)]


@scenario(each=ONE_AT_A_TIME)
def a_consumer_that_was_there_before(world: World, kind: str) -> Any:
    client = world.client()
    world.subscribe(client, kind, is_read_compacted=True).close()
    world.send(client, PRICES)
    world.compact(world.topic())
    consumer = world.subscribe(client, kind, is_read_compacted=True)
    return [world.receive(consumer, 3, acknowledge=True), world.is_empty(consumer)]


@scenario
def a_consumer_of_everything(world: World) -> Any:
    return world.receive(world.subscribe(compacted(world)), 5)


@scenario(each=["Exclusive", "Failover", "Shared", "KeyShared"])
def types_that_may(world: World, kind: str) -> Any:
    return world.outcome(world.subscribe, world.client(), kind, is_read_compacted=True)


@scenario
def not_on_topics_that_are_not_persistent(world: World) -> Any:
    topic = world.topic().replace("persistent", "non-persistent")
    return world.outcome(world.subscribe, world.client(), topic=topic, is_read_compacted=True)


@scenario(each=["null", "empty"])
def a_key_without_a_value_goes(world: World, case: str) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    producer.send(b"a1", partition_key="a")
    producer.send(b"b1", partition_key="b")
    producer.send(None if case == "null" else b"", partition_key="a")
    world.compact(world.topic())
    return read(world, client)


@scenario
def a_key_that_comes_back(world: World) -> Any:
    client = compacted(world, [(b"a1", "a"), (b"", "a"), (b"a2", "a")])
    return read(world, client)


@scenario
def what_is_newest_without_a_value(world: World) -> Any:
    """Sent after the compaction: it stands in the topic, and is read."""
    client = compacted(world)
    producer = client.create_producer(world.topic())
    producer.send(None, partition_key="a")
    reader = client.create_reader(
        world.topic(), world.pulsar.MessageId.earliest, is_read_compacted=True
    )
    found = []
    while reader.has_message_available():
        message = reader.read_next(PATIENCE_MS)
        found.append([text(message.data()), message.partition_key(), message.has_null_value()])
    return found


@scenario
def without_keys(world: World) -> Any:
    return read(world, compacted(world, [b"1", (b"a1", "a"), b"2", (b"a2", "a"), b"3"]))


@scenario
def an_empty_key(world: World) -> Any:
    return read(world, compacted(world, [(b"1", ""), (b"a", "a"), (b"2", "")]))


@scenario
def all_without_keys(world: World) -> Any:
    client = compacted(world, [b"1", b"2"])
    reader = client.create_reader(
        world.topic(), world.pulsar.MessageId.earliest, is_read_compacted=True
    )
    return [reader.has_message_available(), world.read(reader)]


@scenario
def nothing_is_left(world: World) -> Any:
    client = compacted(world, [(b"1", "a"), (b"", "a")])
    reader = client.create_reader(
        world.topic(), world.pulsar.MessageId.earliest, is_read_compacted=True
    )
    before = reader.has_message_available()
    world.send(client, [(b"new", "b")])
    return [before, world.read(reader)]


@scenario
def nothing_is_left_for_a_consumer(world: World) -> Any:
    client = compacted(world, [(b"1", "a"), (b"", "a")])
    consumer = world.subscribe(client, is_read_compacted=True)
    empty = world.is_empty(consumer)
    world.send(client, [(b"new", "b")])
    return [empty, world.receive(consumer, 1)]


@scenario
def an_empty_topic(world: World) -> Any:
    client = world.client()
    world.admin.create(world.topic())
    return [world.compact(world.topic()), read(world, client)]


@scenario
def what_comes_afterwards(world: World) -> Any:
    client = compacted(world)
    world.send(client, [(b"a3", "a"), b"keyless"])
    return read(world, client)


@scenario
def twice(world: World) -> Any:
    client = compacted(world)
    world.send(client, [(b"a3", "a"), (b"d1", "d"), (b"", "b")])
    world.compact(world.topic())
    return read(world, client)


@scenario
def ids_stay(world: World) -> Any:
    client = compacted(world)
    consumer = world.subscribe(client, is_read_compacted=True)
    return [place(each.message_id()) for each in world.messages(consumer, 3)]


@scenario
def all_that_a_message_carries_stays(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic(), producer_name=f"{world.prefix}-me")
    for number in range(2):
        producer.send(
            b"x",
            properties={"n": str(number)},
            partition_key="k",
            ordering_key="o",
            event_timestamp=5 + number,
        )
    world.compact(world.topic())
    consumer = world.subscribe(client, is_read_compacted=True)
    message = consumer.receive(PATIENCE_MS)
    return [
        message.properties(), message.partition_key(), message.ordering_key(),
        message.event_timestamp(), message.producer_name() == f"{world.prefix}-me",
    ]  # fmt: skip


def send_batch(world: World, client: Any, payloads: Any, **options: Any) -> None:
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000, **options
    )
    for payload, key in payloads:
        producer.send_async(payload, lambda *_: None, partition_key=key)
    producer.flush()
    producer.close()


@scenario(each=["NONE", "LZ4", "ZSTD"])
def batches(world: World, compression: str) -> Any:
    client = world.client()
    kind = getattr(world.pulsar.CompressionType, compression)
    send_batch(world, client, PRICES, compression_type=kind)
    send_batch(world, client, [(b"c2", "c"), (b"d1", "d")], compression_type=kind)
    world.compact(world.topic())
    consumer = world.subscribe(client, is_read_compacted=True)
    messages = world.messages(consumer, 4)
    return [[text(each.data()), place(each.message_id())] for each in messages]


@scenario
def a_batch_with_values_that_go(world: World) -> Any:
    client = world.client()
    send_batch(world, client, [(b"a1", "a"), (b"b1", "b"), (b"", "a"), (b"c1", "c")])
    world.compact(world.topic())
    return read(world, client)


@scenario
def a_batch_without_keys(world: World) -> Any:
    client = world.client()
    send_batch(world, client, [(b"1", None), (b"2", "k"), (b"3", None), (b"4", "k")])
    world.compact(world.topic())
    return read(world, client)


@scenario
def a_consumer_that_acknowledged_some(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, PRICES)
    for each in world.messages(consumer, 5)[:3]:
        consumer.acknowledge(each)
    consumer.close()
    world.compact(world.topic())
    return world.receive(world.subscribe(client, is_read_compacted=True), 2)


@scenario
def a_consumer_that_leaves_in_between(world: World) -> Any:
    client = compacted(world)
    consumer = world.subscribe(client, is_read_compacted=True)
    world.receive(consumer, 2, acknowledge=True)
    consumer.close()
    consumer = world.subscribe(client, is_read_compacted=True)
    return [world.receive(consumer, 1, acknowledge=True), world.is_empty(consumer)]


@scenario
def a_consumer_that_leaves_behind_a_cumulative_one(world: World) -> Any:
    client = compacted(world)
    consumer = world.subscribe(client, is_read_compacted=True)
    consumer.acknowledge_cumulative(world.messages(consumer, 2)[1])
    consumer.close()
    consumer = world.subscribe(client, is_read_compacted=True)
    return [world.receive(consumer, 1, acknowledge=True), world.is_empty(consumer)]


@scenario
def seeking_to_the_beginning(world: World) -> Any:
    client = compacted(world)
    consumer = world.subscribe(client, is_read_compacted=True)
    world.receive(consumer, 3, acknowledge=True)
    consumer.seek(world.pulsar.MessageId.earliest)
    return world.receive(consumer, 3)


@scenario(each=["0-in", "0-ex", "1-in", "2-in", "2-ex", "3-ex", "4-in", "4-ex"])
def a_reader_from_an_id(world: World, case: str) -> Any:
    """The ids 0 and 1 are those of messages that went."""
    number, inclusive = case.split("-")
    client = world.client()
    producer = client.create_producer(world.topic())
    ids = [producer.send(payload, partition_key=key) for payload, key in PRICES]
    world.compact(world.topic())
    reader = client.create_reader(
        world.topic(),
        ids[int(number)],
        is_read_compacted=True,
        start_message_id_inclusive=inclusive == "in",
    )
    return world.read(reader)


@scenario(each=["0-in", "1-ex", "2-in", "3-ex"])
def seeking_to_an_id(world: World, case: str) -> Any:
    number, inclusive = case.split("-")
    client = world.client()
    producer = client.create_producer(world.topic())
    ids = [producer.send(payload, partition_key=key) for payload, key in PRICES]
    world.compact(world.topic())
    consumer = world.subscribe(
        client, is_read_compacted=True, start_message_id_inclusive=inclusive == "in"
    )
    world.receive(consumer, 3, acknowledge=True)
    consumer.seek(ids[int(number)])
    return world.receive(consumer, 1)


@scenario
def the_last_message_id(world: World) -> Any:
    consumer = world.subscribe(compacted(world), is_read_compacted=True)
    return place(consumer.get_last_message_id())


@scenario
def the_last_message_id_when_the_last_went(world: World) -> Any:
    client = compacted(world, [(b"a1", "a"), (b"b1", "b"), (b"", "b")])
    consumer = world.subscribe(client, is_read_compacted=True)
    return [place(consumer.get_last_message_id()), read(world, client)]


@scenario
def a_table_view(world: World) -> Any:
    client = compacted(world, [*PRICES, (b"", "c")])
    world.send(client, [(b"a3", "a"), (b"d1", "d")])
    view = client.create_table_view(world.topic())
    seen: dict[str, str] = {}
    view.for_each(lambda key, value: seen.update({key: text(value)}))
    return [len(view), dict(sorted(seen.items()))]


@scenario
def what_it_left_stays_when_the_topic_is_trimmed(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, PRICES)
    world.compact(world.topic())
    world.receive(consumer, 5, acknowledge=True)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    consumer.close()
    world.admin.roll_over(world.topic())
    world.send(client, [(b"new", "e")])
    return [read(world, client), read(world, client, is_read_compacted=False)]


@scenario
def partitions(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    producer = client.create_producer(topic)
    for number in range(10):
        producer.send(b"%d" % number, partition_key=f"key-{number % 3}")
    world.compact(topic, partitions=2)
    return sorted(read(world, client, topic))


@scenario
def a_key_in_chunks(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic(), chunking_enabled=True)
    producer.send(b"a1", partition_key="a")
    producer.send(b"b1", partition_key="b")
    producer.send(b"x" * 6_000_000, partition_key="a")
    world.compact(world.topic())
    consumer = world.subscribe(client, is_read_compacted=True)
    return world.receive(consumer, 2)


@scenario
def the_subscription_of_compaction(world: World) -> Any:
    client = compacted(world)
    world.subscribe(client).close()
    return [each for each in world.admin.subscriptions(world.topic()) if each == "subscription"]


@scenario
def unloading(world: World) -> Any:
    client = compacted(world)
    world.admin.unload(world.topic())
    return read(world, client)


@scenario
def with_a_schema(world: World) -> Any:
    client = world.client()
    schema = world.pulsar.schema.StringSchema()
    producer = client.create_producer(world.topic(), schema=schema)
    for value, key in (("1", "a"), ("2", "b"), ("3", "a")):
        producer.send(value, partition_key=key)
    world.compact(world.topic())
    consumer = world.subscribe(client, schema=schema, is_read_compacted=True)
    return [each.value() for each in world.messages(consumer, 2)]


@scenario
def a_listener_of_a_reader(world: World) -> Any:
    client = compacted(world)
    found: list[str] = []
    done = threading.Event()

    def listener(_: Any, message: Any) -> None:
        found.append(text(message.data()))
        if len(found) == 3:
            done.set()

    earliest = world.pulsar.MessageId.earliest
    client.create_reader(world.topic(), earliest, is_read_compacted=True, reader_listener=listener)
    done.wait(10)
    return found
