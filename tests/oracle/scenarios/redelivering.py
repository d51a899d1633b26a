"""Scenarios: what comes again, when, to whom, and how it is counted."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, scenario, text

SHARING = ("Shared", "KeyShared")


@scenario(each=SHARING)
def twice_negatively_comes_once(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=300)
    world.send(client, [(b"1", "k")])
    message = consumer.receive(PATIENCE_MS)
    consumer.negative_acknowledge(message)
    consumer.negative_acknowledge(message)
    again = consumer.receive(PATIENCE_MS)
    return [again.redelivery_count(), world.is_empty(consumer)]


@scenario(each=SHARING)
def to_another_consumer(world: World, kind: str) -> Any:
    client = world.client()
    first = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=100)
    world.send(client, [(b"1", "k")])
    first.negative_acknowledge(first.receive(PATIENCE_MS))
    first.close()
    again = world.subscribe(client, kind).receive(PATIENCE_MS)
    return [text(again.data()), again.redelivery_count() > 0]


@scenario(each=SHARING)
def counts_of_what_was_only_in_the_queue(world: World, kind: str) -> Any:
    """Never received: is it delivered again, or for the first time?"""
    client = world.client()
    first = world.subscribe(client, kind)
    world.send(client, [(b"1", "k"), (b"2", "k")])
    first.receive(PATIENCE_MS)
    first.close()
    messages = world.messages(world.subscribe(client, kind), 2)
    return [each.redelivery_count() for each in messages]


@scenario(each=SHARING)
def in_what_order(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=100)
    world.send(client, [(b"%d" % n, "k") for n in range(5)])
    for each in reversed(world.messages(consumer, 5)):
        consumer.negative_acknowledge(each)
    return sorted(world.receive(consumer, 5))


@scenario
def after_unloading(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    world.send(client, [b"1", b"2"])
    consumer.acknowledge(world.messages(consumer, 2)[1])
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 1)
    consumer.close()
    world.admin.unload(world.topic())
    consumer = world.subscribe(client, "Shared")
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario
def by_a_listener(world: World) -> Any:
    client = world.client()
    found: list[Any] = []
    done = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        found.append([text(message.data()), message.redelivery_count()])
        if message.redelivery_count() < 2:
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
            done.set()

    world.subscribe(
        client, "Shared", message_listener=listener, negative_ack_redelivery_delay_ms=100
    )
    world.send(client, [b"1"])
    done.wait(10)
    return found


@scenario(each=["Shared", "KeyShared", "Exclusive"])
def what_was_not_acknowledged_in_time(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, unacked_messages_timeout_ms=10_000)
    world.send(client, [(b"1", "k")])
    first = text(consumer.receive(PATIENCE_MS).data())
    again = consumer.receive(25_000)
    return [first, text(again.data())]


@scenario
def a_delayed_one_comes_again_at_once(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared", negative_ack_redelivery_delay_ms=100)
    producer = client.create_producer(world.topic())
    producer.send(b"1", deliver_after=timedelta(milliseconds=1200))
    message = consumer.receive(PATIENCE_MS)
    consumer.negative_acknowledge(message)
    again = consumer.receive(PATIENCE_MS)
    return [message.redelivery_count(), again.redelivery_count()]


@scenario
def seeking_while_something_is_delayed(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    producer = client.create_producer(world.topic())
    producer.send(b"now")
    producer.send(b"later", deliver_after=timedelta(milliseconds=1500))
    world.receive(consumer, 1, acknowledge=True)
    consumer.seek(world.pulsar.MessageId.earliest)
    return [world.receive(consumer, 2), world.is_empty(consumer)]


@scenario(each=SHARING)
def dead_letters_of_a_batch(world: World, kind: str) -> Any:
    module = world.pulsar
    client = world.client()
    letters = world.subscribe(client, topic=world.topic("dead"), name="letters")
    world.send_batch(client, [b"good", b"bad"])
    consumer = world.subscribe(
        client,
        kind,
        negative_ack_redelivery_delay_ms=100,
        batch_index_ack_enabled=True,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(1, world.topic("dead")),
    )
    good, bad = world.messages(consumer, 2)
    consumer.acknowledge(good)
    consumer.negative_acknowledge(bad)
    consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    found = world.receive(letters, 1)
    return [found, world.is_empty(letters), world.is_empty(consumer)]


@scenario
def dead_letters_keep_what_a_message_carries(world: World) -> Any:
    module = world.pulsar
    client = world.client()
    letters = world.subscribe(client, topic=world.topic("dead"), name="letters")
    client.create_producer(world.topic()).send(
        b"bad", properties={"a": "1"}, partition_key="key", ordering_key="o", event_timestamp=5
    )
    consumer = world.subscribe(
        client,
        "Shared",
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(1, world.topic("dead")),
    )
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    letter = letters.receive(PATIENCE_MS)
    return [
        letter.properties().get("a"), letter.partition_key(), letter.ordering_key(),
        letter.event_timestamp(), text(letter.data()),
    ]  # fmt: skip


@scenario(each=TYPES)
def nothing_is_acknowledged_by_receiving(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    found = []
    for _ in range(3):
        consumer = world.subscribe(client, kind)
        found += world.receive(consumer, 1)
        consumer.close()
    return found


@scenario(each=TYPES)
def redelivering_with_messages_in_the_queue(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send(client, [(b"%d" % n, "k") for n in range(6)])
    for each in world.messages(consumer, 2):
        consumer.acknowledge(each)
    world.receive(consumer, 1)
    consumer.redeliver_unacknowledged_messages()
    found = set()
    while True:
        try:
            found.add(text(consumer.receive(NOTHING_MS).data()))
        except world.pulsar.Timeout:
            return sorted(found)
