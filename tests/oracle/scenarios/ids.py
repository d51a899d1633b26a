"""Scenarios: ids that are of another place: before, behind, within a batch, of another topic."""

from __future__ import annotations

from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text


def filled(world: World, label: str = "topic") -> tuple[Any, Any, list[Any]]:
    """A client, a consumer that has nothing yet, ids of four messages in one ledger."""
    client = world.client()
    consumer = world.subscribe(client, topic=world.topic(label))
    producer = client.create_producer(world.topic(label))
    return client, consumer, [producer.send(b"%d" % number) for number in range(4)]


def strange_ids(world: World, ids: list[Any]) -> dict[str, Any]:
    make = world.pulsar.MessageId
    ledger = ids[0].ledger_id()
    return {
        "behind": make(-1, ledger, 1000, -1),
        "later_ledger": make(-1, ledger + 1000, 0, -1),
        "earlier_ledger": make(-1, 0, 0, -1),
        "before_all": make(-1, ledger, -1, -1),
        "earliest": make.earliest,
        "latest": make.latest,
        "other_partition": make(5, ledger, ids[1].entry_id(), -1),
        "batch_of_single": make(-1, ledger, ids[1].entry_id(), 0),
        "batch_index_beyond": make(-1, ledger, ids[1].entry_id(), 7),
    }


NOWHERE = (
    "behind", "later_ledger", "earlier_ledger", "before_all", "earliest", "latest",
    "batch_index_beyond",
)  # fmt: skip
SOMEWHERE = ("other_partition", "batch_of_single")
STRANGE = NOWHERE + SOMEWHERE


def acknowledge(world: World, name: str) -> Any:
    client, consumer, ids = filled(world)
    outcome = world.outcome(consumer.acknowledge, strange_ids(world, ids)[name])
    consumer.close()
    return [outcome, world.receive(world.subscribe(client), 1)]


def acknowledge_cumulatively(world: World, name: str) -> Any:
    client, consumer, ids = filled(world, "cumulative")
    outcome = world.outcome(consumer.acknowledge_cumulative, strange_ids(world, ids)[name])
    consumer.close()
    topic = world.topic("cumulative")
    world.send(client, [b"new"], topic)
    return [outcome, world.receive(world.subscribe(client, topic=topic), 1)]


scenario(each=SOMEWHERE)(acknowledge)
scenario(each=SOMEWHERE)(acknowledge_cumulatively)


@scenario(each=NOWHERE)
def acknowledging_what_never_was(world: World, name: str) -> Any:
    return [acknowledge(world, name), acknowledge_cumulatively(world, name)]


@scenario(each=STRANGE)
def seeking(world: World, name: str) -> Any:
    client, consumer, ids = filled(world)
    world.receive(consumer, 4)
    outcome = world.outcome(consumer.seek, strange_ids(world, ids)[name])
    world.send(client, [b"new"])
    return [outcome, world.receive(consumer, 1)]


@scenario(each=STRANGE)
def a_reader_from_one(world: World, name: str) -> Any:
    client, _, ids = filled(world)
    try:
        reader = client.create_reader(world.topic(), strange_ids(world, ids)[name])
    except Exception as error:
        return type(error).__name__
    found = [reader.has_message_available()]
    world.send(client, [b"new"])
    try:
        return [*found, text(reader.read_next(PATIENCE_MS).data())]
    except world.pulsar.Timeout:
        return [*found, "Timeout"]


@scenario(each=["earliest", "latest"])
def negatively(world: World, name: str) -> Any:
    _, consumer, ids = filled(world)
    return world.outcome(consumer.negative_acknowledge, strange_ids(world, ids)[name])


@scenario
def of_another_topic(world: World) -> Any:
    client, consumer, _ = filled(world)
    other = client.create_producer(world.topic("other")).send(b"x")
    return [world.outcome(consumer.acknowledge, other), world.receive(consumer, 1)]


@scenario(each=["0-in", "0-ex", "2-in", "2-ex", "4-in", "4-ex"])
def seeking_within_a_batch(world: World, case: str) -> Any:
    number, inclusive = case.split("-")
    client = world.client()
    consumer = world.subscribe(client, start_message_id_inclusive=inclusive == "in")
    world.send_batch(client, [b"%d" % n for n in range(5)])
    world.send(client, [b"end"])
    messages = world.messages(consumer, 6)
    consumer.seek(messages[int(number)].message_id())
    return world.receive(consumer, 1)


@scenario(each=TYPES)
def acknowledging_within_a_batch(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, batch_index_ack_enabled=True)
    world.send_batch(client, [b"%d" % n for n in range(5)])
    for each in world.messages(consumer, 5)[::2]:
        consumer.acknowledge(each)
    consumer.close()
    again = world.subscribe(client, kind, batch_index_ack_enabled=True)
    return [world.receive(again, 2), world.is_empty(again)]


@scenario(each=["Exclusive", "Failover"])
def acknowledging_cumulatively_within_a_batch(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, batch_index_ack_enabled=True)
    world.send_batch(client, [b"%d" % n for n in range(5)])
    consumer.acknowledge_cumulative(world.messages(consumer, 5)[2])
    consumer.close()
    again = world.subscribe(client, kind, batch_index_ack_enabled=True)
    return [world.receive(again, 2), world.is_empty(again)]


@scenario(each=TYPES)
def acknowledging_each_of_a_batch_frees_it(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send_batch(client, [b"%d" % n for n in range(5)])
    for each in reversed(world.messages(consumer, 5)):
        consumer.acknowledge(each)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    consumer.close()
    return world.is_empty(world.subscribe(client, kind))


@scenario(each=["Shared", "KeyShared"])
def negatively_within_a_batch(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(
        client, kind, negative_ack_redelivery_delay_ms=100, batch_index_ack_enabled=True
    )
    world.send_batch(client, [b"%d" % n for n in range(4)])
    messages = world.messages(consumer, 4)
    for each in messages[:3]:
        consumer.acknowledge(each)
    consumer.negative_acknowledge(messages[3])
    again = consumer.receive(PATIENCE_MS)
    return [text(again.data()), again.redelivery_count(), place(again.message_id())]


@scenario
def a_reader_from_a_batch_that_was_stored(world: World) -> Any:
    client = world.client()
    world.send_batch(client, [b"%d" % n for n in range(4)])
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    reader.read_next(PATIENCE_MS)
    kept = reader.read_next(PATIENCE_MS).message_id().serialize()
    start = world.pulsar.MessageId.deserialize(kept)
    return world.read(client.create_reader(world.topic(), start))


@scenario(each=["first", "middle", "last", "behind"])
def seeking_by_time(world: World, where: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic())
    for number in range(3):
        producer.send(b"%d" % number)
        world.pause(0.05)
    times = [each.publish_timestamp() for each in world.messages(consumer, 3)]
    moment = {
        "first": times[0], "middle": times[1], "last": times[2], "behind": times[2] + 1000,
    }[where]  # fmt: skip
    consumer.seek(moment)
    producer.send(b"new")
    return world.receive(consumer, 1)


@scenario(each=["Shared", "KeyShared", "Failover"])
def seeking_beside_another(world: World, kind: str) -> Any:
    client = world.client()
    first = world.subscribe(client, kind, consumer_name="a")
    second = world.subscribe(client, kind, consumer_name="b")
    world.send(client, [(b"%d" % number, f"k{number}") for number in range(6)])
    found: list[Any] = []

    def drain() -> list[str]:
        found.clear()
        for _ in range(20):
            for each in (first, second):
                try:
                    message = each.receive(NOTHING_MS)
                except world.pulsar.Timeout:
                    continue
                found.append(text(message.data()))
                each.acknowledge(message)
            if len(found) == 6:
                break
        return sorted(found)

    before = drain()
    first.seek(world.pulsar.MessageId.earliest)
    world.settle(first.is_connected)
    return [before, drain()]
