"""Scenarios: readers, seeking, ids."""

from __future__ import annotations

import threading
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text

COUNT = 6


def filled(world: World) -> tuple[Any, list[Any]]:
    """A client, and the ids of six messages in the topic, which a subscription keeps there."""
    client = world.client()
    world.subscribe(client, name="keeper").close()
    producer = client.create_producer(world.topic())
    return client, [producer.send(b"%d" % number) for number in range(COUNT)]


@scenario
def a_reader_from_the_beginning(world: World) -> Any:
    client, _ = filled(world)
    return world.read(client.create_reader(world.topic(), world.pulsar.MessageId.earliest))


@scenario
def a_reader_from_the_end(world: World) -> Any:
    client, _ = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.latest)
    before = reader.has_message_available()
    world.send(client, [b"new"])
    return [before, text(reader.read_next(PATIENCE_MS).data())]


@scenario(each=[True, False])
def a_reader_from_an_id(world: World, inclusive: bool) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(world.topic(), ids[2], start_message_id_inclusive=inclusive)
    return world.read(reader)


@scenario(each=[True, False])
def a_reader_from_the_last_id(world: World, inclusive: bool) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(world.topic(), ids[-1], start_message_id_inclusive=inclusive)
    return [reader.has_message_available(), world.read(reader)]


@scenario
def a_reader_from_the_end_inclusive(world: World) -> Any:
    client, _ = filled(world)
    latest = world.pulsar.MessageId.latest
    reader = client.create_reader(world.topic(), latest, start_message_id_inclusive=True)
    return world.outcome(reader.read_next, PATIENCE_MS)


@scenario(each=[True, False])
def a_reader_within_a_batch(world: World, inclusive: bool) -> Any:
    client = world.client()
    world.send_batch(client, [b"%d" % number for number in range(COUNT)])
    first = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    middle = [first.read_next(PATIENCE_MS).message_id() for _ in range(3)][-1]
    reader = client.create_reader(world.topic(), middle, start_message_id_inclusive=inclusive)
    return world.read(reader)


@scenario
def a_reader_of_nothing(world: World) -> Any:
    client = world.client()
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    return [reader.has_message_available(), world.outcome(reader.read_next, NOTHING_MS)]


@scenario
def a_closed_reader(world: World) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    connected = reader.is_connected()
    reader.close()
    return [
        connected,
        reader.is_connected(),
        world.outcome(reader.read_next, NOTHING_MS),
        world.outcome(reader.has_message_available),
        world.outcome(reader.seek, ids[0]),
        world.outcome(reader.close),
    ]


@scenario
def a_reader_leaves_no_subscription(world: World) -> Any:
    client, _ = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    world.read(reader)
    reader.close()
    world.settle(lambda: len(world.admin.subscriptions(world.topic())) == 1)
    return world.admin.subscriptions(world.topic())


@scenario
def two_readers_read_everything(world: World) -> Any:
    client, _ = filled(world)
    earliest = world.pulsar.MessageId.earliest
    return [world.read(client.create_reader(world.topic(), earliest)) for _ in range(2)]


@scenario
def a_reader_knows_its_topic(world: World) -> Any:
    client = world.client()
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    return reader.topic() == world.topic()


@scenario
def a_listener_of_a_reader(world: World) -> Any:
    client, _ = filled(world)
    found: list[str] = []
    done = threading.Event()

    def listener(_: Any, message: Any) -> None:
        found.append(text(message.data()))
        if len(found) == COUNT:
            done.set()

    earliest = world.pulsar.MessageId.earliest
    client.create_reader(world.topic(), earliest, reader_listener=listener)
    done.wait(10)
    return found


@scenario(each=["earliest", "latest", "id"])
def seeking_of_a_reader(world: World, where: str) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    world.read(reader)
    target = ids[2] if where == "id" else getattr(world.pulsar.MessageId, where)
    reader.seek(target)
    return world.read(reader)


@scenario
def seeking_of_a_reader_by_time(world: World) -> Any:
    client, _ = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.latest)
    reader.seek(1000)
    return world.read(reader)


@scenario(each=TYPES)
def seeking_to_the_beginning(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    world.receive(consumer, COUNT, acknowledge=True)
    consumer.seek(world.pulsar.MessageId.earliest)
    return world.receive(consumer, COUNT)


@scenario(each=TYPES)
def seeking_to_the_end(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    consumer.seek(world.pulsar.MessageId.latest)
    world.send(client, [b"new"])
    return world.receive(consumer, 1)


@scenario(each=[f"{kind}-{inclusive}" for kind in TYPES for inclusive in ("in", "ex")])
def seeking_to_an_id(world: World, case: str) -> Any:
    kind, inclusive = case.split("-")
    client, ids = filled(world)
    consumer = world.subscribe(client, kind, start_message_id_inclusive=inclusive == "in")
    world.receive(consumer, COUNT, acknowledge=True)
    consumer.seek(ids[3])
    return world.receive(consumer, 2)


@scenario(each=TYPES)
def seeking_by_time(world: World, kind: str) -> Any:
    client, _ = filled(world)
    consumer = world.subscribe(client, kind)
    times = [each.publish_timestamp() for each in world.messages(consumer, COUNT)]
    consumer.seek(times[0])
    return world.receive(consumer, 1)


@scenario(each=["text", -1, None, 1.5])
def seeking_to_something_else(world: World, where: Any) -> Any:
    return world.outcome(world.subscribe(world.client()).seek, where)


@scenario
def ids_are_ordered(world: World) -> Any:
    _, ids = filled(world)
    first, second = ids[0], ids[1]
    return [
        first < second, first <= second, first > second, first >= second,
        first == second, first != second, first == first,
    ]  # fmt: skip


@scenario
def ids_survive_being_stored(world: World) -> Any:
    _, ids = filled(world)
    kept = world.pulsar.MessageId.deserialize(ids[2].serialize())
    return [kept == ids[2], place(kept) == place(ids[2])]


@scenario
def ids_of_ones_own(world: World) -> Any:
    made = world.pulsar.MessageId(3, 7, 11, 5)
    return [
        made.partition(), made.ledger_id(), made.entry_id(), made.batch_index(), str(made),
        made.serialize().hex(),
    ]  # fmt: skip


@scenario(each=["earliest", "latest"])
def the_ends_as_ids(world: World, name: str) -> Any:
    found = getattr(world.pulsar.MessageId, name)
    return [found.ledger_id(), found.entry_id(), found.batch_index(), found.partition()]


@scenario(each=[b"", b"\xff\xff\xff", b"\x08"])
def bytes_that_are_no_id(world: World, data: bytes) -> Any:
    return world.outcome(world.pulsar.MessageId.deserialize, data)


@scenario
def a_table_view(world: World) -> Any:
    client = world.client()
    world.send(client, [(b"1", "a"), (b"2", "b"), (b"3", "a"), b"keyless"])
    view = client.create_table_view(world.topic())
    seen: dict[str, str] = {}
    view.for_each(lambda key, value: seen.update({key: text(value)}))
    values = [text(view.get("a")), text(view.get("b")), view.get("c")]
    return [*values, len(view), dict(sorted(seen.items()))]


@scenario
def a_table_view_follows(world: World) -> Any:
    client = world.client()
    world.send(client, [(b"1", "a")])
    view = client.create_table_view(world.topic())
    told: list[Any] = []
    done = threading.Event()

    def listener(key: str, value: Any) -> None:
        told.append([key, text(value)])
        if key == "z":
            done.set()

    view.for_each_and_listen(listener)
    world.send(client, [(b"2", "a"), (b"3", "b"), (b"4", "z")])
    done.wait(10)
    view.close()
    return told


@scenario
def a_table_view_forgets_null_values(world: World) -> Any:
    client = world.client()
    world.send(client, [(b"1", "a"), (b"2", "b"), (b"", "a")])
    view = client.create_table_view(world.topic())
    return [view.get("a"), text(view.get("b")), len(view)]


@scenario(each=["earliest", "latest", "first", "last", "behind_last"])
def what_is_available_after_seeking(world: World, where: str) -> Any:
    client, ids = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    world.read(reader)
    last = ids[-1]
    target = {
        "earliest": world.pulsar.MessageId.earliest,
        "latest": world.pulsar.MessageId.latest,
        "first": ids[0],
        "last": last,
        "behind_last": world.pulsar.MessageId(-1, last.ledger_id(), last.entry_id() + 1, -1),
    }[where]
    reader.seek(target)
    return [reader.has_message_available(), reader.has_message_available()]


@scenario
def what_is_available_to_an_inclusive_reader_after_seeking(world: World) -> Any:
    client, ids = filled(world)
    earliest = world.pulsar.MessageId.earliest
    reader = client.create_reader(world.topic(), earliest, start_message_id_inclusive=True)
    world.read(reader)
    reader.seek(ids[-1])
    return [reader.has_message_available(), world.read(reader)]


@scenario(each=[0, 1, 2])
def a_reader_with_a_queue_of(world: World, size: int) -> Any:
    client, _ = filled(world)
    earliest = world.pulsar.MessageId.earliest
    reader = client.create_reader(world.topic(), earliest, receiver_queue_size=size)
    found = []
    for _ in range(COUNT):
        found.append(text(reader.read_next().data()))
    return [found, reader.has_message_available()]


@scenario
def a_reader_while_more_comes(world: World) -> Any:
    client, _ = filled(world)
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    found = world.read(reader)
    for number in range(3):
        world.send(client, [b"new%d" % number])
        found += world.read(reader)
    return found


@scenario
def a_reader_keeps_nothing(world: World) -> Any:
    """What readers read goes all the same when subscriptions have acknowledged it."""
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    reader.close()
    world.receive(consumer, 2, acknowledge=True)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    consumer.close()
    world.admin.roll_over(world.topic())
    world.send(client, [b"new"])
    return world.read(client.create_reader(world.topic(), world.pulsar.MessageId.earliest))


@scenario
def a_table_view_tells_what_is_removed(world: World) -> Any:
    client = world.client()
    view = client.create_table_view(world.topic())
    told: list[Any] = []
    done = threading.Event()

    def listener(key: str, value: Any) -> None:
        told.append([key, None if value is None else text(value)])
        if key == "z":
            done.set()

    view.for_each_and_listen(listener)
    producer = client.create_producer(world.topic())
    producer.send(b"1", partition_key="a")
    producer.send(None, partition_key="a")
    producer.send(b"2", partition_key="b")
    producer.send(b"", partition_key="b")
    producer.send(b"keyless")
    producer.send(b"end", partition_key="z")
    done.wait(10)
    return [told, len(view)]


@scenario
def a_table_view_of_batches(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    for number in range(10):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key=f"k{number % 3}")
    producer.flush()
    view = client.create_table_view(world.topic())
    return [text(view.get(f"k{number}")) for number in range(3)]


@scenario
def a_table_view_of_values(world: World) -> Any:
    client = world.client()
    schema = world.pulsar.schema.StringSchema()
    client.create_producer(world.topic(), schema=schema).send("ä", partition_key="a")
    view = client.create_table_view(world.topic(), schema=schema)
    return [view.get("a"), view.get("b"), len(view)]
