"""Scenarios: the four access modes of producers."""

from __future__ import annotations

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
