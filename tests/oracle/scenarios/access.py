"""Scenarios: the four access modes of producers."""

from __future__ import annotations

import gc
import threading
from typing import Any

from world import World, scenario

MODES = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


def create(world: World, client: Any, mode: str) -> Any:
    access = getattr(world.pulsar.ProducerAccessMode, mode)
    return client.create_producer(world.topic(), access_mode=access)


@scenario(each=MODES)
def on_a_topic_without_producers(world: World, mode: str) -> Any:
    return world.outcome(create(world, world.client(), mode).send, b"x")


@scenario(each=["Shared", "Exclusive"])
def beside_a_shared_one(world: World, mode: str) -> Any:
    client = world.client()
    first = create(world, client, "Shared")
    second = world.outcome(create, world, client, mode)
    return [second, world.outcome(first.send, b"x")]


@scenario(each=["Shared", "Exclusive"])
def beside_an_exclusive_one(world: World, mode: str) -> Any:
    client = world.client()
    first = create(world, client, "Exclusive")
    second = world.outcome(create, world, client, mode)
    return [second, world.outcome(first.send, b"x")]


@scenario(each=["Shared", "Exclusive", "ExclusiveWithFencing"])
def fencing_takes_the_topic(world: World, mode: str) -> Any:
    client = world.client()
    first = create(world, client, mode)
    first.send(b"before")
    second = create(world, world.client(), "ExclusiveWithFencing")
    outcome = world.outcome(first.send, b"late")
    return [outcome, world.outcome(second.send, b"x")]


@scenario
def an_exclusive_one_leaves_room_when_it_closes(world: World) -> Any:
    client = world.client()
    create(world, client, "Exclusive").close()
    return [world.outcome(create, world, client, mode) for mode in ("Exclusive", "Shared")]


@scenario(each=MODES[1:])
def one_that_nobody_refers_to_keeps_its_topic(world: World, mode: str) -> Any:
    client = world.client()
    access = getattr(world.pulsar.ProducerAccessMode, mode)
    client.create_producer(world.topic(), access_mode=access).send(b"x")
    gc.collect()
    others = [world.outcome(create, world, client, each) for each in ("Exclusive", "Shared")]
    client.close()
    return [others, world.outcome(create, world, world.client(), "Exclusive")]


@scenario
def waiting_ends_when_the_holder_leaves(world: World) -> Any:
    client = world.client()
    first = create(world, client, "Exclusive")
    told: list[str] = []

    def work() -> None:
        waiting = create(world, world.client(), "WaitForExclusive")
        told.append(world.outcome(waiting.send, b"x"))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(0.5)
    before = list(told)
    first.close()
    thread.join(10)
    return [before, told]


@scenario
def fencing_ends_the_waiting_of_others(world: World) -> Any:
    client = world.client()
    first = create(world, client, "Exclusive")
    told: list[str] = []
    waiting = world.client()
    thread = threading.Thread(
        target=lambda: told.append(world.outcome(create, world, waiting, "WaitForExclusive")),
        daemon=True,
    )
    thread.start()
    thread.join(0.5)
    second = create(world, world.client(), "ExclusiveWithFencing")
    thread.join(5)
    return [told, world.outcome(second.send, b"x"), world.outcome(first.send, b"late")]


@scenario(each=["Shared", "Exclusive"])
def while_somebody_waits(world: World, mode: str) -> Any:
    """The holder is one that shares."""
    client = world.client()
    first = create(world, client, "Shared")
    waiting = world.client()
    thread = threading.Thread(
        target=lambda: world.outcome(create, world, waiting, "WaitForExclusive"), daemon=True
    )
    thread.start()
    thread.join(0.5)
    return [
        world.outcome(create, world, client, mode),
        world.outcome(first.send, b"x"),
    ]


@scenario(each=MODES)
def on_partitions(world: World, mode: str) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    access = getattr(world.pulsar.ProducerAccessMode, mode)
    first = client.create_producer(topic, access_mode=access)
    shared = world.pulsar.ProducerAccessMode.Shared
    second = world.outcome(client.create_producer, topic, access_mode=shared)
    return [second, world.outcome(first.send, b"x")]


@scenario
def an_exclusive_one_that_unloads(world: World) -> Any:
    client = world.client()
    first = create(world, client, "Exclusive")
    first.send(b"1")
    world.admin.unload(world.topic())
    return [world.outcome(first.send, b"2"), world.outcome(create, world, client, "Shared")]
