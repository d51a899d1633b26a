"""Scenarios: readers and table views of topics with partitions."""

from __future__ import annotations

import threading
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, World, scenario, text


def filled(world: World, count: int = 9) -> tuple[Any, str]:
    client = world.client()
    topic = world.partitioned(3)
    world.send(client, [b"%d" % number for number in range(count)], topic)
    return client, topic


@scenario(each=["earliest", "latest"])
def from_the_ends(world: World, where: str) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, getattr(world.pulsar.MessageId, where))
    before = sorted(world.read(reader))
    world.send(client, [b"new"], topic)
    return [before, text(reader.read_next(PATIENCE_MS).data())]


@scenario
def nothing_is_there(world: World) -> Any:
    client, topic = filled(world, 0)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    return [
        reader.has_message_available(), world.outcome(reader.read_next, NOTHING_MS),
        reader.topic() == topic, reader.is_connected(),
    ]  # fmt: skip


@scenario
def some_partitions_are_empty(world: World) -> Any:
    client, topic = filled(world, 0)
    producer = client.create_producer(topic)
    for number in range(3):
        producer.send(b"%d" % number, partition_key="k")
    return world.read(client.create_reader(topic, world.pulsar.MessageId.earliest))


@scenario
def from_an_id(world: World) -> Any:
    client, topic = filled(world)
    first = client.create_reader(topic, world.pulsar.MessageId.earliest)
    message_id = first.read_next(PATIENCE_MS).message_id()
    return world.outcome(client.create_reader, topic, message_id)


@scenario(each=["earliest", "latest", "time"])
def seeking(world: World, where: str) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    world.read(reader)
    reader.seek(1000 if where == "time" else getattr(world.pulsar.MessageId, where))
    return sorted(world.read(reader))


@scenario
def seeking_to_an_id(world: World) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    message_id = reader.read_next(PATIENCE_MS).message_id()
    return world.outcome(reader.seek, message_id)


@scenario
def closed(world: World) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    reader.close()
    return [world.outcome(reader.read_next, NOTHING_MS), reader.is_connected()]


@scenario
def a_listener(world: World) -> Any:
    client, topic = filled(world)
    found: list[str] = []
    done = threading.Event()

    def listener(_: Any, message: Any) -> None:
        found.append(text(message.data()))
        if len(found) == 9:
            done.set()

    client.create_reader(topic, world.pulsar.MessageId.earliest, reader_listener=listener)
    done.wait(10)
    return sorted(found)


@scenario
def no_subscription_is_left(world: World) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    world.read(reader)
    reader.close()
    world.settle(lambda: not world.admin.subscriptions(f"{topic}-partition-0"))
    return world.admin.subscriptions(f"{topic}-partition-0")


@scenario
def of_one_partition(world: World) -> Any:
    client, topic = filled(world, 0)
    producer = client.create_producer(f"{topic}-partition-1")
    producer.send(b"1")
    reader = client.create_reader(f"{topic}-partition-1", world.pulsar.MessageId.earliest)
    message = reader.read_next(PATIENCE_MS)
    return [text(message.data()), message.message_id().partition(), reader.topic()[-12:]]


@scenario
def names_of_partitions_in_messages(world: World) -> Any:
    client, topic = filled(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    messages = [reader.read_next(PATIENCE_MS) for _ in range(9)]
    return sorted({(each.topic_name()[-12:], each.message_id().partition()) for each in messages})


@scenario
def a_table_view(world: World) -> Any:
    client, topic = filled(world, 0)
    producer = client.create_producer(topic)
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"k{number % 6}")
    view = client.create_table_view(topic)
    seen: dict[str, str] = {}
    view.for_each(lambda key, value: seen.update({key: text(value)}))
    return dict(sorted(seen.items()))


@scenario
def compacted(world: World) -> Any:
    client, topic = filled(world, 0)
    producer = client.create_producer(topic)
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"k{number % 6}")
    world.compact(topic, partitions=3)
    earliest = world.pulsar.MessageId.earliest
    return sorted(world.read(client.create_reader(topic, earliest, is_read_compacted=True)))
