"""Scenarios: partitioned topics, and which partition a message goes to."""

from __future__ import annotations

from typing import Any

from world import NOTHING_MS, PATIENCE_MS, World, place, scenario, text

KEYS = ("", "a", "b", "key-1", "key-2", "ü", "some longer key", "0")


@scenario
def keys_choose_the_partition(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(7)
    consumer = world.subscribe(client, topic=topic)
    world.send(client, [(key.encode(), key) for key in KEYS[1:]], topic)
    found = {}
    for each in world.messages(consumer, len(KEYS) - 1):
        found[text(each.data())] = each.message_id().partition()
    return dict(sorted(found.items()))


@scenario
def round_robin_visits_all_partitions(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(4)
    producer = client.create_producer(
        topic, message_routing_mode=world.pulsar.PartitionsRoutingMode.RoundRobinDistribution
    )
    places = [producer.send(b"x").partition() for _ in range(8)]
    return [sorted(places), len({places[0], places[1], places[2], places[3]})]


@scenario
def a_single_partition_is_kept(world: World) -> Any:
    topic = world.partitioned(4)
    producer = world.client().create_producer(
        topic, message_routing_mode=world.pulsar.PartitionsRoutingMode.UseSinglePartition
    )
    return len({producer.send(b"x").partition() for _ in range(8)})


@scenario
def a_single_partition_gives_way_to_keys(world: World) -> Any:
    topic = world.partitioned(4)
    producer = world.client().create_producer(
        topic, message_routing_mode=world.pulsar.PartitionsRoutingMode.UseSinglePartition
    )
    return [producer.send(b"x", partition_key=key).partition() for key in "abcdef"]


@scenario
def a_router_of_ones_own(world: World) -> Any:
    topic = world.partitioned(4)
    producer = world.client().create_producer(
        topic,
        message_routing_mode=world.pulsar.PartitionsRoutingMode.CustomPartition,
        message_router=lambda message, count: len(message.data()) % count,
    )
    return [producer.send(b"x" * size).partition() for size in (1, 2, 3, 4, 5)]


@scenario
def the_partitions_of_a_topic(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(3)
    names = client.get_topic_partitions(topic)
    plain = client.get_topic_partitions(world.topic("plain"))
    return [
        [each.replace(topic, "T") for each in names],
        len(plain),
        plain == [world.topic("plain")],
    ]


@scenario
def one_partition_may_be_used_alone(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(3)
    world.send(client, [b"one"], f"{topic}-partition-1")
    consumer = world.subscribe(client, topic=topic)
    message = consumer.receive(PATIENCE_MS)
    return [place(message.message_id()), message.topic_name() == f"{topic}-partition-1"]


@scenario(each=["3", "17"])
def a_partition_that_is_not_there(world: World, number: str) -> Any:
    topic = world.partitioned(3)
    return world.outcome(world.client().create_producer, f"{topic}-partition-{number}")


@scenario
def a_partition_of_no_topic(world: World) -> Any:
    return world.outcome(world.client().create_producer, f"{world.topic()}-partition-0")


@scenario
def order_holds_within_each_partition(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(3)
    consumer = world.subscribe(client, topic=topic)
    world.send(client, [(b"%s%d" % (key.encode(), number), key) for number in range(4)
                        for key in "abcd"], topic)  # fmt: skip
    found: dict[str, list[str]] = {}
    for each in world.messages(consumer, 16):
        found.setdefault(each.partition_key(), []).append(text(each.data()))
    return dict(sorted(found.items()))


@scenario
def a_consumer_of_partitions_knows_the_topic(world: World) -> Any:
    topic = world.partitioned(2)
    consumer = world.subscribe(world.client(), topic=topic)
    return consumer.topic() == topic


@scenario
def a_producer_of_partitions_knows_the_topic(world: World) -> Any:
    topic = world.partitioned(2)
    producer = world.client().create_producer(topic)
    producer.send(b"x")
    return [producer.topic() == topic, producer.is_connected(), producer.last_sequence_id() >= 0]


@scenario
def acknowledged_by_id(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    consumer = world.subscribe(client, topic=topic)
    world.send(client, [b"1", b"2"], topic)
    for each in world.messages(consumer, 2):
        consumer.acknowledge(each.message_id())
    consumer.close()
    return world.is_empty(world.subscribe(client, topic=topic))


@scenario
def a_topic_that_grows(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    world.admin.update_partitioned(topic, 4)
    return len(client.get_topic_partitions(topic))


@scenario(each=["Exclusive", "Shared", "Failover", "KeyShared"])
def every_type_consumes_partitions(world: World, kind: str) -> Any:
    client = world.client()
    topic = world.partitioned(3)
    consumer = world.subscribe(client, kind, topic)
    world.send(client, [(b"%d" % number, str(number)) for number in range(9)], topic)
    return sorted(world.receive(consumer, 9, acknowledge=True))


@scenario(each=[True, False])
def a_reader_from_an_id(world: World, inclusive: bool) -> Any:
    """Each partition compares it with its own ledgers, which have one order over all of them."""
    client = world.client()
    topic = world.partitioned(3)
    places = {}
    ids = []
    for number in range(6):
        sent = client.create_producer(f"{topic}-partition-{number % 3}").send(b"%d" % number)
        places[str(number)] = sent.ledger_id(), sent.entry_id()
        ids.append(sent)
    found = []
    for number, sent in enumerate(ids):
        reader = client.create_reader(topic, sent, start_message_id_inclusive=inclusive)
        start = places[str(number)]
        behind = [
            each for each in places if places[each] > start or (inclusive and each == str(number))
        ]
        read = sorted(text(reader.read_next(PATIENCE_MS).data()) for _ in behind)
        more = world.outcome(reader.read_next, NOTHING_MS)
        found.append([read == sorted(behind), more])
    return found
