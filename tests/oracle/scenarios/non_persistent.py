"""Scenarios: topics whose messages are not kept."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text


def named(world: World, label: str = "topic") -> str:
    return world.topic(label).replace("persistent", "non-persistent")


@scenario(each=TYPES)
def who_is_there_gets_everything(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, named(world))
    world.send(client, [(b"%d" % number, str(number % 3)) for number in range(10)], named(world))
    return world.receive(consumer, 10)


@scenario(each=TYPES)
def nobody_is_there(world: World, kind: str) -> Any:
    client = world.client()
    producer = client.create_producer(named(world))
    outcome = world.outcome(producer.send, b"lost")
    consumer = world.subscribe(client, kind, named(world))
    producer.send(b"1")
    return [outcome, world.receive(consumer, 1), world.is_empty(consumer)]


@scenario
def ids_sent(world: World) -> Any:
    producer = world.client().create_producer(named(world))
    found = [producer.send(b"%d" % number) for number in range(3)]
    return [[each.ledger_id(), *place(each)] for each in found]


@scenario
def sequence_ids(world: World) -> Any:
    producer = world.client().create_producer(named(world))
    found = [producer.last_sequence_id()]
    for _ in range(2):
        producer.send(b"x")
        found.append(producer.last_sequence_id())
    return found


@scenario
def a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=named(world))
    world.send_batch(client, [b"a", b"b", b"c"], named(world))
    return world.receive(consumer, 3)


@scenario(each=["NONE", "LZ4", "ZSTD"])
def compressed(world: World, name: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=named(world))
    compression = getattr(world.pulsar.CompressionType, name)
    world.send(client, [b"short", b"x" * 100_000], named(world), compression_type=compression)
    return world.receive(consumer, 2)


@scenario
def all_that_a_message_carries(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=named(world))
    producer = client.create_producer(named(world))
    producer.send(
        b"full",
        properties={"a": "1"},
        partition_key="key",
        ordering_key="order",
        event_timestamp=123_456,
    )
    message = consumer.receive(PATIENCE_MS)
    return [
        text(message.data()), message.properties(), message.partition_key(),
        message.ordering_key(), message.event_timestamp(), message.redelivery_count(),
        message.topic_name() == named(world), message.publish_timestamp() > 1_600_000_000_000,
    ]  # fmt: skip


@scenario
def several_subscriptions(world: World) -> Any:
    client = world.client()
    consumers = [world.subscribe(client, topic=named(world), name=name) for name in ("a", "b")]
    world.send(client, [b"1", b"2"], named(world))
    return [world.receive(each, 2) for each in consumers]


@scenario(each=TYPES)
def two_consumers_at_once(world: World, kind: str) -> Any:
    client = world.client()
    world.subscribe(client, kind, named(world))
    return world.outcome(world.subscribe, world.client(), kind, named(world))


@scenario(each=["Exclusive-Shared", "Shared-Exclusive", "Shared-KeyShared", "Failover-Shared"])
def two_types_at_once(world: World, kinds: str) -> Any:
    first, second = kinds.split("-")
    client = world.client()
    world.subscribe(client, first, named(world))
    return world.outcome(world.subscribe, client, second, named(world))


@scenario
def failover(world: World) -> Any:
    client = world.client()
    first = world.subscribe(client, "Failover", named(world), consumer_name="a")
    second = world.subscribe(client, "Failover", named(world), consumer_name="b")
    producer = client.create_producer(named(world))
    producer.send(b"1")
    found = [world.receive(first, 1), world.is_empty(second)]
    first.close()
    producer.send(b"2")
    return [*found, world.receive(second, 1)]


@scenario
def shared(world: World) -> Any:
    client = world.client()
    consumers = [
        world.subscribe(client, "Shared", named(world), consumer_name=f"c{number}")
        for number in range(2)
    ]
    world.send(client, [b"%d" % number for number in range(10)], named(world))
    found = [world.receive(each, 5) for each in consumers]
    return [sorted(found[0] + found[1], key=int), all(world.is_empty(each) for each in consumers)]


@scenario
def keys_stay_together(world: World) -> Any:
    client = world.client()
    consumers = [
        world.subscribe(client, "KeyShared", named(world), consumer_name=f"c{n}") for n in range(2)
    ]
    keyed = [(b"%d" % number, f"key-{number % 5}") for number in range(20)]
    world.send(client, keyed, named(world))
    owners: dict[str, set[int]] = {}
    count = 0
    while count < 20:
        for number, each in enumerate(consumers):
            try:
                message = each.receive(NOTHING_MS)
            except world.pulsar.Timeout:
                continue
            owners.setdefault(message.partition_key(), set()).add(number)
            count += 1
    return [len(owners), all(len(each) == 1 for each in owners.values())]


@scenario(each=TYPES)
def nothing_comes_again(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, named(world), negative_ack_redelivery_delay_ms=100)
    world.send(client, [(b"1", "k"), (b"2", "k"), (b"3", "k")], named(world))
    messages = world.messages(consumer, 3)
    found = [
        world.outcome(consumer.acknowledge, messages[0]),
        world.outcome(consumer.negative_acknowledge, messages[1]),
        world.outcome(consumer.redeliver_unacknowledged_messages),
    ]
    return [*found, world.is_empty(consumer)]


@scenario(each=TYPES)
def what_a_consumer_leaves_is_lost(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, named(world))
    world.send(client, [(b"1", "k"), (b"2", "k")], named(world))
    consumer.receive(PATIENCE_MS)
    consumer.close()
    return world.is_empty(world.subscribe(client, kind, named(world)))


@scenario(each=TYPES)
def acknowledging(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, named(world))
    world.send(client, [(b"1", "k"), (b"2", "k")], named(world))
    one, two = world.messages(consumer, 2)
    return [
        world.outcome(consumer.acknowledge, one),
        world.outcome(consumer.acknowledge, one),
        world.outcome(consumer.acknowledge_cumulative, two),
    ]


@scenario(each=["earliest", "time", "received"])
def seeking(world: World, where: str) -> Any:
    client = world.client(operation_timeout_seconds=3)
    consumer = world.subscribe(client, topic=named(world))
    world.send(client, [b"1"], named(world))
    message = consumer.receive(PATIENCE_MS)
    target = {
        "earliest": world.pulsar.MessageId.earliest,
        "time": 1000,
        "received": message.message_id(),
    }[where]
    return world.outcome(consumer.seek, target)


@scenario
def the_last_message_id(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    consumer = world.subscribe(client, topic=named(world))
    world.send(client, [b"1"], named(world))
    return world.outcome(consumer.get_last_message_id)


@scenario(each=["earliest", "latest"])
def a_reader(world: World, where: str) -> Any:
    client = world.client(operation_timeout_seconds=3)
    client.create_producer(named(world)).send(b"before")
    try:
        reader = client.create_reader(named(world), getattr(world.pulsar.MessageId, where))
    except Exception as error:
        return type(error).__name__
    world.send(client, [b"after"], named(world))
    return text(reader.read_next(PATIENCE_MS).data())


@scenario
def a_reader_asks_what_is_there(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    reader = client.create_reader(named(world), world.pulsar.MessageId.latest)
    return world.outcome(reader.has_message_available)


@scenario
def a_subscription_goes_with_its_last_consumer(world: World) -> Any:
    client = world.client()
    client.create_producer(named(world))
    consumer = world.subscribe(client, topic=named(world))
    found = [world.admin.subscriptions(named(world))]
    consumer.close()
    world.settle(lambda: not world.admin.subscriptions(named(world)))
    return [*found, world.admin.subscriptions(named(world))]


@scenario
def unsubscribing(world: World) -> Any:
    client = world.client()
    client.create_producer(named(world))
    consumer = world.subscribe(client, topic=named(world))
    outcome = world.outcome(consumer.unsubscribe)
    return [outcome, world.admin.subscriptions(named(world))]


@scenario(each=["Exclusive", "Shared"])
def more_than_the_queue_holds_is_dropped(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, named(world), receiver_queue_size=5)
    producer = client.create_producer(named(world))
    outcomes = {world.outcome(producer.send, b"%d" % number) for number in range(50)}
    found = []
    while True:
        try:
            found.append(text(consumer.receive(NOTHING_MS).data()))
        except world.pulsar.Timeout:
            return [sorted(outcomes), found]


@scenario
def delays_have_no_effect(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared", named(world))
    producer = client.create_producer(named(world))
    producer.send(b"later", deliver_after=timedelta(seconds=60))
    return world.receive(consumer, 1)


@scenario
def a_listener(world: World) -> Any:
    client = world.client()
    found: list[str] = []
    done = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        found.append(text(message.data()))
        consumer.acknowledge(message)
        if len(found) == 3:
            done.set()

    world.subscribe(client, topic=named(world), message_listener=listener)
    world.send(client, [b"1", b"2", b"3"], named(world))
    done.wait(10)
    return found


@scenario
def partitions(world: World) -> Any:
    client = world.client()
    topic = named(world, "partitioned")
    world.admin.create_partitioned(topic, 3)
    consumer = world.subscribe(client, topic=topic)
    world.send(client, [b"%d" % number for number in range(6)], topic)
    return [len(client.get_topic_partitions(topic)), sorted(world.receive(consumer, 6))]


@scenario
def beside_a_persistent_one_of_its_name(world: World) -> Any:
    client = world.client()
    one = world.subscribe(client, topic=named(world))
    two = world.subscribe(client, topic=world.topic())
    world.send(client, [b"passing"], named(world))
    world.send(client, [b"kept"], world.topic())
    return [world.receive(one, 1), world.is_empty(one), world.receive(two, 1)]


@scenario
def several_topics(world: World) -> Any:
    client = world.client()
    topics = [named(world), world.topic()]
    consumer = world.subscribe(client, topic=topics)
    world.send(client, [b"passing"], topics[0])
    world.send(client, [b"kept"], topics[1])
    return sorted(world.receive(consumer, 2))


@scenario(each=["Exclusive", "ExclusiveWithFencing"])
def access_modes(world: World, mode: str) -> Any:
    client = world.client()
    access = getattr(world.pulsar.ProducerAccessMode, mode)
    first = client.create_producer(named(world), access_mode=access)
    second = world.outcome(client.create_producer, named(world), access_mode=access)
    return [second, world.outcome(first.send, b"x")]


@scenario
def a_table_view(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    try:
        view = client.create_table_view(named(world))
    except Exception as error:
        return type(error).__name__
    world.send(client, [(b"1", "a")], named(world))
    world.settle(lambda: len(view) == 1)
    return [len(view), text(view.get("a") or b"nothing")]


@scenario
def a_schema(world: World) -> Any:
    client = world.client()
    schema = world.pulsar.schema.StringSchema()
    consumer = world.subscribe(client, topic=named(world), schema=schema)
    client.create_producer(named(world), schema=schema).send("hello")
    return consumer.receive(PATIENCE_MS).value()


@scenario
def a_dead_letter_topic(world: World) -> Any:
    client = world.client()
    policy = world.pulsar.ConsumerDeadLetterPolicy(1, world.topic("dead"))
    try:
        consumer = world.subscribe(client, "Shared", named(world), dead_letter_policy=policy)
    except world.pulsar.PulsarException as error:
        return type(error).__name__
    world.send(client, [b"1"], named(world))
    return world.receive(consumer, 1)


@scenario(each=["terminate", "unload", "truncate", "compact"])
def administration(world: World, verb: str) -> Any:
    client = world.client()
    client.create_producer(named(world)).close()
    return world.refused(getattr(world.admin, verb), named(world))


@scenario
def a_topic_that_was_deleted(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(named(world))
    refused = world.refused(world.admin.delete, named(world))
    producer.close()
    return [refused, world.refused(world.admin.delete, named(world))]
