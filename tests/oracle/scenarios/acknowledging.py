"""Scenarios: acknowledging, negatively too, and what comes again."""

from __future__ import annotations

from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text

ONE_AT_A_TIME = ("Exclusive", "Failover")
SHARING = ("Shared", "KeyShared")


@scenario(each=TYPES)
def by_message(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"%d" % number, "k") for number in range(4)])
    consumer = world.subscribe(client, kind)
    for message in world.messages(consumer, 4)[::2]:
        consumer.acknowledge(message)
    consumer.close()
    return world.receive(world.subscribe(client, kind), 2)


@scenario(each=TYPES)
def by_id(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"%d" % number, "k") for number in range(4)])
    consumer = world.subscribe(client, kind)
    for message in world.messages(consumer, 4)[::2]:
        consumer.acknowledge(message.message_id())
    consumer.close()
    return world.receive(world.subscribe(client, kind), 2)


@scenario(each=TYPES)
def by_an_id_that_was_stored(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k")])
    consumer = world.subscribe(client, kind)
    kept = world.messages(consumer, 2)[0].message_id().serialize()
    consumer.acknowledge(world.pulsar.MessageId.deserialize(kept))
    consumer.close()
    return world.receive(world.subscribe(client, kind), 1)


@scenario(each=TYPES)
def twice(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    consumer = world.subscribe(client, kind)
    message = consumer.receive(PATIENCE_MS)
    return [world.outcome(consumer.acknowledge, message) for _ in range(2)]


@scenario(each=TYPES)
def cumulatively(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"%d" % number, "k") for number in range(4)])
    consumer = world.subscribe(client, kind)
    outcome = world.outcome(consumer.acknowledge_cumulative, world.messages(consumer, 4)[2])
    consumer.close()
    return [outcome, world.receive(world.subscribe(client, kind), 1)]


@scenario(each=ONE_AT_A_TIME)
def cumulatively_behind_single_ones(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"%d" % number for number in range(5)])
    consumer = world.subscribe(client, kind)
    messages = world.messages(consumer, 5)
    consumer.acknowledge(messages[3])
    consumer.acknowledge_cumulative(messages[1])
    consumer.close()
    return world.receive(world.subscribe(client, kind), 2)


@scenario(each=TYPES)
def a_part_of_a_batch(world: World, kind: str) -> Any:
    client = world.client()
    world.send_batch(client, [b"0", b"1", b"2", b"3"])
    consumer = world.subscribe(client, kind, batch_index_ack_enabled=True)
    for message in world.messages(consumer, 4)[:2]:
        consumer.acknowledge(message)
    consumer.close()
    again = world.subscribe(client, kind, batch_index_ack_enabled=True)
    return [world.receive(again, 2), world.is_empty(again)]


@scenario(each=TYPES)
def a_whole_batch(world: World, kind: str) -> Any:
    client = world.client()
    world.send_batch(client, [b"0", b"1", b"2"])
    consumer = world.subscribe(client, kind)
    for message in world.messages(consumer, 3):
        consumer.acknowledge(message)
    consumer.close()
    return world.is_empty(world.subscribe(client, kind))


@scenario(each=ONE_AT_A_TIME)
def a_batch_cumulatively_in_its_middle(world: World, kind: str) -> Any:
    client = world.client()
    world.send_batch(client, [b"0", b"1", b"2", b"3"])
    consumer = world.subscribe(client, kind, batch_index_ack_enabled=True)
    consumer.acknowledge_cumulative(world.messages(consumer, 4)[1])
    consumer.close()
    again = world.subscribe(client, kind, batch_index_ack_enabled=True)
    return world.receive(again, 2)


@scenario(each=TYPES)
def negatively(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=200)
    found = []
    for _ in range(3):
        message = consumer.receive(PATIENCE_MS)
        found.append([text(message.data()), message.redelivery_count()])
        consumer.negative_acknowledge(message)
    return found


@scenario(each=SHARING)
def negatively_the_others_do_not_come_again(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k"), (b"3", "k")])
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=200)
    consumer.negative_acknowledge(world.messages(consumer, 3)[1])
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario(each=ONE_AT_A_TIME)
def negatively_everything_comes_again(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"1", b"2", b"3"])
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=200)
    consumer.negative_acknowledge(world.messages(consumer, 3)[1])
    return world.receive(consumer, 3)


@scenario(each=SHARING)
def negatively_a_part_of_a_batch(world: World, kind: str) -> Any:
    client = world.client()
    world.send_batch(client, [b"0", b"1", b"2"])
    consumer = world.subscribe(
        client, kind, negative_ack_redelivery_delay_ms=200, batch_index_ack_enabled=True
    )
    messages = world.messages(consumer, 3)
    consumer.acknowledge(messages[0])
    consumer.acknowledge(messages[2])
    consumer.negative_acknowledge(messages[1])
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario(each=TYPES)
def negatively_and_acknowledged_after(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    consumer = world.subscribe(client, kind, negative_ack_redelivery_delay_ms=300)
    message = consumer.receive(PATIENCE_MS)
    consumer.negative_acknowledge(message)
    consumer.acknowledge(message)
    consumer.close()
    return world.is_empty(world.subscribe(client, kind))


@scenario(each=TYPES)
def redelivering_all(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k")])
    consumer = world.subscribe(client, kind)
    world.messages(consumer, 2)
    consumer.redeliver_unacknowledged_messages()
    return [[text(each.data()), each.redelivery_count()] for each in world.messages(consumer, 2)]


@scenario(each=TYPES)
def redelivering_spares_what_is_acknowledged(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k"), (b"3", "k")])
    consumer = world.subscribe(client, kind)
    consumer.acknowledge(world.messages(consumer, 3)[1])
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 2)
    consumer.redeliver_unacknowledged_messages()
    return [world.receive(consumer, 2), world.is_empty(consumer)]


@scenario(each=["text", 5, None])
def something_else(world: World, what: Any) -> Any:
    consumer = world.subscribe(world.client())
    return [
        world.outcome(consumer.acknowledge, what),
        world.outcome(consumer.acknowledge_cumulative, what),
        world.outcome(consumer.negative_acknowledge, what),
    ]


@scenario(each=SHARING)
def dead_letters(world: World, kind: str) -> Any:
    module = world.pulsar
    client = world.client()
    letters = world.subscribe(client, topic=world.topic("dead"), name="letters")
    world.send(client, [(b"bad", "k")])
    consumer = world.subscribe(
        client,
        kind,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(2, world.topic("dead")),
    )
    counts = []
    for _ in range(3):
        message = consumer.receive(PATIENCE_MS)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    letter = letters.receive(PATIENCE_MS)
    properties = letter.properties()
    return [
        counts,
        text(letter.data()),
        letter.partition_key(),
        sorted(properties),
        properties.get("REAL_TOPIC") == world.topic(),
        world.is_empty(consumer),
    ]


@scenario
def dead_letters_have_a_topic_by_default(world: World) -> Any:
    module = world.pulsar
    client = world.client()
    world.send(client, [b"bad"])
    consumer = world.subscribe(
        client,
        "Shared",
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=module.ConsumerDeadLetterPolicy(1, initial_subscription_name="look"),
    )
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    empty = world.is_empty(consumer)
    topic = f"{world.topic()}-subscription-DLQ"
    letters = world.subscribe(client, topic=topic, name="look")
    return [empty, world.receive(letters, 1)]


@scenario(each=[0, -1, "1"])
def a_bad_number_of_redeliveries(world: World, count: Any) -> Any:
    return world.outcome(world.pulsar.ConsumerDeadLetterPolicy, count, "topic")


@scenario(each=TYPES)
def a_delay(world: World, kind: str) -> Any:
    from datetime import timedelta

    client = world.client()
    consumer = world.subscribe(client, kind)
    producer = client.create_producer(world.topic())
    producer.send(b"late", deliver_after=timedelta(milliseconds=1500))
    producer.send(b"now")
    return world.receive(consumer, 2)


@scenario(each=TYPES)
def the_backlog(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send(client, [(b"%d" % number, "k") for number in range(5)])
    found = [world.admin.backlog(world.topic(), "subscription")]
    for message in world.messages(consumer, 5)[:3]:
        consumer.acknowledge(message)
    consumer.close()
    return [*found, world.admin.backlog(world.topic(), "subscription")]


@scenario
def skipping(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.send(client, [b"%d" % number for number in range(5)])
    world.admin.skip(world.topic(), "subscription", 2)
    found = [world.admin.backlog(world.topic(), "subscription")]
    consumer = world.subscribe(client)
    found.append(place(consumer.receive(PATIENCE_MS).message_id()))
    consumer.close()
    world.admin.skip_all(world.topic(), "subscription")
    return [*found, world.admin.backlog(world.topic(), "subscription")]


@scenario
def deleting_a_subscription(world: World) -> Any:
    client = world.client()
    world.subscribe(client).close()
    world.admin.delete_subscription(world.topic(), "subscription")
    return world.admin.subscriptions(world.topic())


@scenario(each=["Shared", "KeyShared", "Failover"])
def what_another_consumer_has(world: World, kind: str) -> Any:
    client = world.client()
    first = world.subscribe(client, kind, consumer_name="a")
    second = world.subscribe(client, kind, consumer_name="b")
    world.send(client, [(b"1", "k"), (b"2", "k")])
    found: list[Any] = []
    for _ in range(10):
        for each, other in ((first, second), (second, first)):
            try:
                message = each.receive(NOTHING_MS)
            except world.pulsar.Timeout:
                continue
            found.append(world.outcome(other.acknowledge, message))
        if len(found) == 2:
            break
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    return [found, world.admin.backlog(world.topic(), "subscription")]


@scenario(each=TYPES)
def what_a_closed_consumer_had(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k")])
    first = world.subscribe(client, kind)
    message = first.receive(PATIENCE_MS)
    first.close()
    second = world.subscribe(client, kind)
    outcome = world.outcome(second.acknowledge, message.message_id())
    second.close()
    return [outcome, world.receive(world.subscribe(client, kind), 1)]


@scenario(each=TYPES)
def before_it_was_received(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    producer = client.create_producer(world.topic())
    ids = [producer.send(b"%d" % number, partition_key="k") for number in range(3)]
    outcome = world.outcome(consumer.acknowledge, ids[1])
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 2)
    backlog = world.admin.backlog(world.topic(), "subscription")
    consumer.close()
    return [outcome, backlog, world.receive(world.subscribe(client, kind), 2)]


@scenario(each=TYPES)
def after_unsubscribing(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    consumer = world.subscribe(client, kind)
    message = consumer.receive(PATIENCE_MS)
    consumer.unsubscribe()
    return [
        world.outcome(consumer.acknowledge, message),
        world.outcome(consumer.receive, NOTHING_MS),
    ]


@scenario(each=["Exclusive", "Failover"])
def cumulatively_backwards(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"%d" % number for number in range(4)])
    consumer = world.subscribe(client, kind)
    messages = world.messages(consumer, 4)
    consumer.acknowledge_cumulative(messages[2])
    outcome = world.outcome(consumer.acknowledge_cumulative, messages[0])
    consumer.close()
    return [outcome, world.receive(world.subscribe(client, kind), 1)]
