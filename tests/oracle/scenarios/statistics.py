"""Scenarios: what a topic's statistics say, of what both packages count."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from world import PATIENCE_MS, TYPES, World, scenario


def told(world: World, topic: str = "", name: str = "subscription") -> dict[str, Any]:
    return dict(world.admin.statistics(topic or world.topic())["subscriptions"][name])


@scenario(each=TYPES)
def of_a_subscription(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, consumer_name="me")
    world.send(client, [(b"%d" % n, "k") for n in range(3)])
    consumer.acknowledge(consumer.receive(PATIENCE_MS))
    world.settle(lambda: told(world)["backlog"] == 2)
    found = told(world)
    return [found["type"], found["durable"], found["backlog"], found["consumers"]]


@scenario(each=["Shared", "KeyShared"])
def of_what_a_consumer_has(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send(client, [(b"%d" % n, "k") for n in range(4)])
    messages = world.messages(consumer, 4)
    before = told(world)["unacknowledged"]
    consumer.acknowledge(messages[0])
    world.settle(lambda: told(world)["unacknowledged"] == 3)
    between = told(world)["unacknowledged"]
    consumer.close()
    world.settle(lambda: told(world)["unacknowledged"] == 0)
    return [before, between, told(world)["unacknowledged"], told(world)["backlog"]]


@scenario
def of_a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    world.send_batch(client, [b"1", b"2", b"3"])
    before = told(world)["backlog"]
    for each in world.messages(consumer, 3):
        consumer.acknowledge(each)
    world.settle(lambda: told(world)["backlog"] == 0)
    return [before, told(world)["backlog"], told(world)["unacknowledged"]]


@scenario
def of_a_message_in_chunks(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    client.create_producer(world.topic(), chunking_enabled=True).send(b"x" * 11_000_000)
    return told(world)["backlog"]


@scenario
def of_a_delayed_message(world: World) -> Any:
    client = world.client()
    world.subscribe(client, "Shared")
    client.create_producer(world.topic()).send(b"x", deliver_after=timedelta(seconds=60))
    return [told(world)["backlog"], told(world)["unacknowledged"]]


@scenario
def of_nobody(world: World) -> Any:
    client = world.client()
    world.subscribe(client, "Shared").close()
    return told(world)["consumers"]


@scenario
def of_producers(world: World) -> Any:
    client = world.client()
    access = world.pulsar.ProducerAccessMode.Exclusive
    producer = client.create_producer(
        world.topic(), producer_name=f"{world.prefix}-me", access_mode=access
    )
    found = [world.admin.statistics(world.topic())["publishers"]]
    producer.close()
    world.settle(lambda: not world.admin.statistics(world.topic())["publishers"])
    found.append(world.admin.statistics(world.topic())["publishers"])
    return [[[name == f"{world.prefix}-me", mode] for name, mode in each] for each in found]


@scenario
def of_a_reader(world: World) -> Any:
    client = world.client()
    world.send(client, [b"1"])
    client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    found = world.admin.statistics(world.topic())["subscriptions"].values()
    return [[each["durable"], each["consumers"]] for each in found]


@scenario
def of_deduplication(world: World) -> Any:
    client = world.client()
    topics = [world.governed(deduplication={"enabled": True}), world.topic()]
    for each in topics:
        client.create_producer(each)
    return [world.admin.statistics(each)["deduplication"] for each in topics]


@scenario
def of_epochs(world: World) -> Any:
    client = world.client()
    found = []
    for mode in ("Shared", "Exclusive", "ExclusiveWithFencing"):
        access = getattr(world.pulsar.ProducerAccessMode, mode)
        producer = client.create_producer(world.topic(), access_mode=access)
        found.append(world.admin.statistics(world.topic())["epoch"])
        producer.close()
    return found


@scenario
def of_a_skip(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send_batch(client, [b"1", b"2", b"3"])
    world.send(client, [b"4", b"5"])
    world.admin.skip(world.topic(), "subscription", 1)
    return [told(world)["backlog"], world.receive(world.subscribe(client), 1)]


@scenario
def of_an_individual_acknowledgement(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    world.send(client, [b"%d" % n for n in range(5)])
    for each in world.messages(consumer, 5)[1::2]:
        consumer.acknowledge(each)
    world.settle(lambda: told(world)["backlog"] == 3)
    return [told(world)["backlog"], told(world)["unacknowledged"]]
