"""Scenarios: consumers of several topics and of partitions."""

from __future__ import annotations

import re
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, scenario, text


def filled(world: World, kind: str = "Exclusive", **options: Any) -> tuple[Any, Any, list[str]]:
    """A client, and a consumer of two topics with two messages each."""
    client = world.client()
    topics = [world.topic(label) for label in "ab"]
    consumer = world.subscribe(client, kind, topics, **options)
    for topic in topics:
        world.send(client, [(f"{topic[-1]}{n}".encode(), "k") for n in range(2)], topic)
    return client, consumer, topics


def partitioned(world: World, kind: str = "Exclusive", **options: Any) -> tuple[Any, Any, str]:
    client = world.client()
    topic = world.partitioned(3)
    consumer = world.subscribe(client, kind, topic, **options)
    world.send(client, [b"%d" % n for n in range(6)], topic)
    return client, consumer, topic


@scenario(each=TYPES)
def order_within_each(world: World, kind: str) -> Any:
    _, consumer, _ = filled(world, kind)
    found = world.receive(consumer, 4)
    return [[each for each in found if each[0] == label] for label in "ab"]


@scenario
def cumulatively(world: World) -> Any:
    client, consumer, topics = filled(world)
    messages = world.messages(consumer, 4)
    last = next(each for each in messages if each.data() == b"a1")
    outcome = world.outcome(consumer.acknowledge_cumulative, last)
    consumer.close()
    return [outcome, sorted(world.receive(world.subscribe(client, topic=topics), 2))]


@scenario
def negatively(world: World) -> Any:
    _, consumer, _ = filled(world, "Shared", negative_ack_redelivery_delay_ms=100)
    for each in world.messages(consumer, 4):
        if each.data() == b"a1":
            consumer.negative_acknowledge(each)
        else:
            consumer.acknowledge(each)
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario
def redelivering_all(world: World) -> Any:
    _, consumer, _ = filled(world, "Shared")
    world.messages(consumer, 4)
    consumer.redeliver_unacknowledged_messages()
    return sorted(world.receive(consumer, 4))


@scenario(each=["earliest", "latest", "time", "id"])
def seeking(world: World, where: str) -> Any:
    client, consumer, topics = filled(world)
    messages = world.messages(consumer, 4)
    target = {
        "earliest": world.pulsar.MessageId.earliest,
        "latest": world.pulsar.MessageId.latest,
        "time": 1000,
        "id": messages[0].message_id(),
    }[where]
    outcome = world.outcome(consumer.seek, target)
    if where == "latest":
        world.send(client, [b"new"], topics[0])
        return [outcome, world.receive(consumer, 1)]
    return outcome if where == "id" else [outcome, sorted(world.receive(consumer, 4))]


@scenario
def unsubscribing(world: World) -> Any:
    _, consumer, topics = filled(world)
    outcome = world.outcome(consumer.unsubscribe)
    return [outcome, [world.admin.subscriptions(each) for each in topics]]


@scenario
def what_it_says_of_itself(world: World) -> Any:
    _, consumer, _ = filled(world, consumer_name="me")
    return [consumer.subscription_name(), consumer.consumer_name(), consumer.is_connected()]


@scenario(each=["list", "pattern"])
def a_queue_of_zero(world: World, what: str) -> Any:
    client = world.client()
    topics: Any = [world.topic(label) for label in "ab"]
    for each in topics:
        world.send(client, [b"1", b"2"], each)
    if what == "pattern":
        topics = re.compile(f"{world.topic('')}.*")
    try:
        consumer = world.subscribe(client, topic=topics, receiver_queue_size=0)
    except world.pulsar.PulsarException as error:
        return str(error)
    return world.receive(consumer, 1)


@scenario(each=[1, 2])
def a_queue_of_zero_on_partitions(world: World, count: int) -> Any:
    client = world.client()
    topic = world.partitioned(count)
    try:
        world.subscribe(client, topic=topic, receiver_queue_size=0)
    except world.pulsar.PulsarException as error:
        return str(error)
    return "ok"


@scenario
def a_reader_of_partitions_with_a_queue_of_zero(world: World) -> Any:
    client, _, topic = partitioned(world)
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest, receiver_queue_size=0)
    return world.outcome(reader.read_next, 1000)


@scenario
def one_topic_is_busy(world: World) -> Any:
    client = world.client()
    topics = [world.topic(label) for label in "ab"]
    world.subscribe(client, topic=topics[1])
    outcome = world.outcome(world.subscribe, client, topic=topics)
    free = world.outcome(world.subscribe, client, topic=topics[0])
    return [outcome, free]


@scenario
def one_topic_is_missing_its_namespace(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    topics = [world.topic(), f"persistent://public/{world.prefix}/topic"]
    return world.outcome(world.subscribe, client, topic=topics)


@scenario
def many_at_once(world: World) -> Any:
    policy = world.pulsar.ConsumerBatchReceivePolicy(4, 0, 3000)
    _, consumer, _ = filled(world, batch_receive_policy=policy)
    return sorted(text(each.data()) for each in consumer.batch_receive())


@scenario
def many_at_once_by_bytes(world: World) -> Any:
    client = world.client()
    policy = world.pulsar.ConsumerBatchReceivePolicy(0, 25, 2000)
    consumer = world.subscribe(client, batch_receive_policy=policy)
    world.send(client, [b"x" * 10] * 4)
    return [len(each.data()) for each in consumer.batch_receive()]


@scenario(each=TYPES)
def partitions_are_acknowledged_one_by_one(world: World, kind: str) -> Any:
    client, consumer, topic = partitioned(world, kind)
    for each in world.messages(consumer, 6):
        if int(each.data()) % 2:
            consumer.acknowledge(each)
    consumer.close()
    return sorted(world.receive(world.subscribe(client, kind, topic), 3))


@scenario(each=["earliest", "latest", "time", "id"])
def seeking_on_partitions(world: World, where: str) -> Any:
    client, consumer, topic = partitioned(world)
    messages = world.messages(consumer, 6)
    target = {
        "earliest": world.pulsar.MessageId.earliest,
        "latest": world.pulsar.MessageId.latest,
        "time": 1000,
        "id": messages[0].message_id(),
    }[where]
    outcome = world.outcome(consumer.seek, target)
    if where == "latest":
        world.send(client, [b"new"], topic)
        return [outcome, world.receive(consumer, 1)]
    return outcome if where == "id" else [outcome, sorted(world.receive(consumer, 6))]


@scenario
def unsubscribing_from_partitions(world: World) -> Any:
    _, consumer, topic = partitioned(world)
    outcome = world.outcome(consumer.unsubscribe)
    return [outcome, world.admin.subscriptions(f"{topic}-partition-0")]


@scenario
def failover_on_partitions(world: World) -> Any:
    """Who has which partition follows from the names."""
    client = world.client()
    topic = world.partitioned(4)
    consumers = [world.subscribe(client, "Failover", topic, consumer_name=n) for n in "cab"]
    world.pause(1.5)
    for number in range(4):
        world.send(client, [b"%d" % number], f"{topic}-partition-{number}")
    found = []
    for each in consumers:
        mine = []
        while True:
            try:
                mine.append(text(each.receive(NOTHING_MS).data()))
            except world.pulsar.Timeout:
                break
        found.append(sorted(mine))
    return found


@scenario
def one_partition_beside_all(world: World) -> Any:
    client, consumer, topic = partitioned(world)
    single = world.subscribe(client, topic=f"{topic}-partition-1", name="single")
    found = world.messages(single, 2)
    return [
        len(world.receive(consumer, 6)),
        sorted({each.message_id().partition() for each in found}),
        sorted({each.topic_name()[-12:] for each in found}),
    ]


@scenario
def one_partition_with_the_same_subscription(world: World) -> Any:
    client, _, topic = partitioned(world)
    return world.outcome(world.subscribe, client, topic=f"{topic}-partition-1")


@scenario(each=["producer", "consumer", "reader"])
def a_partition_that_is_not_there(world: World, what: str) -> Any:
    client = world.client(operation_timeout_seconds=3)
    topic = f"{world.partitioned(2)}-partition-7"
    if what == "producer":
        return world.outcome(client.create_producer, topic)
    if what == "consumer":
        return world.outcome(world.subscribe, client, topic=topic)
    return world.outcome(client.create_reader, topic, world.pulsar.MessageId.earliest)


@scenario
def partitions_that_come_later(world: World) -> Any:
    client, consumer, topic = partitioned(world)
    world.receive(consumer, 6, acknowledge=True)
    world.admin.update_partitioned(topic, 5)
    return [len(client.get_topic_partitions(topic)), world.admin.exists(f"{topic}-partition-4")]


@scenario(each=["smaller", "same", "plain"])
def a_number_of_partitions_that_does_not_fit(world: World, case: str) -> Any:
    if case == "plain":
        world.admin.create(world.topic())
        return world.refused(world.admin.update_partitioned, world.topic(), 3)
    topic = world.partitioned(3)
    return world.refused(world.admin.update_partitioned, topic, 2 if case == "smaller" else 3)


@scenario(each=["plain_twice", "partitioned_twice", "plain_then", "partitioned_then", "zero"])
def creating_what_is_there(world: World, case: str) -> Any:
    admin, topic = world.admin, world.topic()
    if case == "zero":
        return world.refused(admin.create_partitioned, topic, 0)
    if case.startswith("plain"):
        admin.create(topic)
    else:
        admin.create_partitioned(topic, 2)
    if case in ("plain_twice", "partitioned_then"):
        return world.refused(admin.create, topic)
    return world.refused(admin.create_partitioned, topic, 2)


@scenario
def partitions_of_nothing(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    try:
        return [
            each[-12:] == world.topic()[-12:] for each in client.get_topic_partitions(world.topic())
        ]
    except Exception as error:
        return type(error).__name__


@scenario
def a_dead_letter_of_a_partition(world: World) -> Any:
    module = world.pulsar
    client = world.client()
    topic = world.partitioned(2)
    letters = world.subscribe(client, topic=f"{topic}-subscription-DLQ", name="letters")
    consumer = world.subscribe(
        client,
        "Shared",
        topic,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(1, f"{topic}-subscription-DLQ"),
    )
    world.send(client, [b"bad"], topic)
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    letter = letters.receive(PATIENCE_MS)
    return [text(letter.data()), letter.properties().get("REAL_TOPIC", "")[-20:] == topic[-20:]]


@scenario
def a_pattern_with_partitions(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2, "red-p")
    world.send(client, [b"1"], world.topic("red-1"))
    consumer = world.subscribe(client, topic=re.compile(f"{world.topic('red')}-.*"))
    world.send(client, [b"2", b"3"], topic)
    messages = world.messages(consumer, 3)
    return sorted(text(each.data()) for each in messages)


@scenario
def a_pattern_that_matches_nothing(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=re.compile(f"{world.topic('none')}-.*"))
    return [world.is_empty(consumer), world.outcome(consumer.unsubscribe)]
