"""Scenarios: topics that end, are emptied or change their place, and ids of their last messages."""

from __future__ import annotations

from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text


@scenario
def what_terminating_returns(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send(client, [b"1", b"2"])
    return world.admin.terminate(world.topic())


@scenario
def terminating_twice(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send(client, [b"1"])
    found = [world.admin.terminate(world.topic())]
    return [*found, world.refused(world.admin.terminate, world.topic())]


@scenario
def a_producer_of_a_terminated_topic(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    world.send(client, [b"1"])
    world.admin.terminate(world.topic())
    return world.outcome(client.create_producer, world.topic())


@scenario(each=TYPES)
def a_terminated_topic_is_read_to_its_end(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send(client, [(b"1", "k"), (b"2", "k")])
    world.admin.terminate(world.topic())
    found = world.receive(consumer, 2, acknowledge=True)
    return [found, world.outcome(consumer.receive, NOTHING_MS)]


@scenario
def a_reader_of_a_terminated_topic(world: World) -> Any:
    client = world.client()
    world.send(client, [b"1", b"2"])
    world.admin.terminate(world.topic())
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    return [world.read(reader), world.outcome(reader.read_next, NOTHING_MS)]


@scenario
def seeking_in_a_terminated_topic(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    world.admin.terminate(world.topic())
    world.receive(consumer, 2)
    consumer.seek(world.pulsar.MessageId.earliest)
    return world.receive(consumer, 2)


@scenario
def the_last_id_of_a_terminated_topic(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    world.admin.terminate(world.topic())
    return place(consumer.get_last_message_id())


@scenario
def callbacks_on_a_terminated_topic(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    producer.send(b"1")
    world.admin.terminate(world.topic())
    told: list[str] = []
    world.outcome(producer.send_async, b"late", lambda result, _: told.append(result.name))
    world.settle(lambda: bool(told))
    return told


@scenario(each=["subscribed", "connected"])
def truncating(world: World, case: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    if case == "subscribed":
        consumer.close()
    refused = world.refused(world.admin.truncate, world.topic())
    world.send(client, [b"new"])
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 1)
    found = world.admin.backlog(world.topic(), "subscription")
    if case == "subscribed":
        consumer = world.subscribe(client)
        return [refused, found, world.receive(consumer, 1)]
    return [refused, found]


@scenario
def truncating_beside_a_producer(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    producer.send(b"old")
    refused = world.refused(world.admin.truncate, world.topic())
    outcome = world.outcome(producer.send, b"new")
    earliest = world.pulsar.MessageId.earliest
    return [refused, outcome, world.read(client.create_reader(world.topic(), earliest))]


@scenario(each=TYPES)
def unloading_beside_a_consumer(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    producer = client.create_producer(world.topic())
    producer.send(b"1", partition_key="k")
    consumer.acknowledge(consumer.receive(PATIENCE_MS))
    producer.send(b"2", partition_key="k")
    world.receive(consumer, 1)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 1)
    world.admin.unload(world.topic())
    producer.send(b"3", partition_key="k")
    return sorted(world.receive(consumer, 2))


@scenario
def unloading_beside_a_reader(world: World) -> Any:
    client = world.client()
    world.send(client, [b"1"])
    reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
    found = world.read(reader)
    world.admin.unload(world.topic())
    world.send(client, [b"2"])
    return [*found, text(reader.read_next(PATIENCE_MS).data())]


@scenario
def entries_behind_unloading(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    producer = client.create_producer(world.topic())
    first = producer.send(b"1")
    world.admin.unload(world.topic())
    second = producer.send(b"2")
    return [place(first), place(second), first.ledger_id() < second.ledger_id(), first < second]


@scenario
def the_last_id_behind_unloading(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    sent = client.create_producer(world.topic()).send(b"1")
    world.admin.unload(world.topic())
    last = world.subscribe(client).get_last_message_id()
    return [place(last), last.ledger_id() == sent.ledger_id()]


@scenario
def the_last_id_when_all_is_acknowledged(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    world.receive(consumer, 2, acknowledge=True)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    return place(consumer.get_last_message_id())


@scenario
def the_last_id_of_several_topics(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=[world.topic("a"), world.topic("b")])
    return world.outcome(consumer.get_last_message_id)


@scenario
def the_last_id_of_partitions(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, topic=world.partitioned(2))
    return world.outcome(consumer.get_last_message_id)


@scenario
def deleting_by_force(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send(client, [b"1"])
    world.admin.delete(world.topic(), force=True)
    return [world.admin.exists(world.topic()), world.is_empty(world.subscribe(client))]


@scenario(each=["missing", "there", "with_consumer"])
def deleting_a_subscription(world: World, case: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    if case != "with_consumer":
        consumer.close()
    name = "other" if case == "missing" else "subscription"
    return world.refused(world.admin.delete_subscription, world.topic(), name)


@scenario
def a_subscription_made_by_hand(world: World) -> Any:
    client = world.client()
    world.send(client, [b"before"])
    world.admin.create_subscription(world.topic(), "subscription")
    world.send(client, [b"after"])
    return [
        world.refused(world.admin.create_subscription, world.topic(), "subscription"),
        world.receive(world.subscribe(client), 1),
    ]


@scenario
def resetting_to_a_time(world: World) -> Any:
    client = world.client()
    world.subscribe(client, name="keeper").close()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2"])
    world.receive(consumer, 2, acknowledge=True)
    consumer.close()
    world.admin.reset_cursor(world.topic(), "subscription", 1000)
    return world.receive(world.subscribe(client), 2)


@scenario
def skipping_more_than_there_is(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send(client, [b"1", b"2"])
    world.admin.skip(world.topic(), "subscription", 5)
    return world.admin.backlog(world.topic(), "subscription")


@scenario
def deleting_a_partitioned_topic_by_its_partition(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(2)
    world.send(client, [b"1", b"2"], topic)
    return world.refused(world.admin.delete, topic)


@scenario(each=["producer", "consumer", "reader"])
def deleting_by_force_beside(world: World, who: str) -> Any:
    """Is the topic there again, and can one go on with what one had?"""
    client = world.client()
    producer = client.create_producer(world.topic())
    producer.send(b"old")
    if who == "producer":
        world.admin.delete(world.topic(), force=True)
        return world.outcome(producer.send, b"new")
    producer.close()
    if who == "consumer":
        one = world.subscribe(client)
        receive = one.receive
    else:
        one = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
        receive = one.read_next
    receive(PATIENCE_MS)
    world.admin.delete(world.topic(), force=True)
    world.pause(1)
    world.send(client, [b"new"])
    try:
        return text(receive(PATIENCE_MS).data())
    except Exception as error:
        return type(error).__name__


@scenario
def a_namespace_with_topics(world: World) -> Any:
    client = world.client()
    topic = world.governed()
    producer = client.create_producer(topic)
    namespace = f"public/{world.prefix}"
    found = [world.refused(world.admin.delete_namespace, namespace)]
    producer.close()
    found.append(world.refused(world.admin.delete_namespace, namespace))
    world.admin.delete(topic)
    return [*found, world.refused(world.admin.delete_namespace, namespace)]
