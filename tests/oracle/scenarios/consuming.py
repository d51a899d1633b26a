"""Scenarios: subscriptions and what their consumers get."""

from __future__ import annotations

import threading
from typing import Any

from world import NOTHING_MS, PATIENCE_MS, TYPES, World, place, scenario, text


@scenario(each=TYPES)
def everything_comes_in_order(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    world.send(client, [(b"%d" % number, str(number % 3)) for number in range(10)])
    return world.receive(consumer, 10)


@scenario(each=TYPES)
def nothing_comes_in_time(world: World, kind: str) -> Any:
    consumer = world.subscribe(world.client(), kind)
    return world.outcome(consumer.receive, NOTHING_MS)


@scenario(each=TYPES)
def a_new_subscription_begins_at_the_end(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"before"])
    consumer = client.subscribe(world.topic(), "late", getattr(world.pulsar.ConsumerType, kind))
    world.send(client, [b"after"])
    return world.receive(consumer, 1)


@scenario(each=TYPES)
def the_initial_position_counts_once(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"1", b"2"])
    consumer = world.subscribe(client, kind)
    found = world.receive(consumer, 2, acknowledge=True)
    consumer.close()
    again = world.subscribe(client, kind)
    return [found, world.is_empty(again)]


@scenario(each=TYPES)
def what_was_not_acknowledged_comes_again(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k"), (b"3", "k")])
    consumer = world.subscribe(client, kind)
    messages = world.messages(consumer, 3)
    consumer.acknowledge(messages[1])
    consumer.close()
    again = world.subscribe(client, kind)
    return world.receive(again, 2)


@scenario(each=TYPES)
def redeliveries_are_counted_when_a_consumer_leaves(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [(b"1", "k")])
    found = []
    for _ in range(3):
        consumer = world.subscribe(client, kind)
        found.append(consumer.receive(PATIENCE_MS).redelivery_count())
        consumer.close()
    return found


@scenario(each=TYPES)
def two_consumers_at_once(world: World, kind: str) -> Any:
    client = world.client()
    world.subscribe(client, kind)
    return world.outcome(world.subscribe, world.client(), kind)


@scenario(each=[f"{first}-{second}" for first in TYPES for second in TYPES if first != second])
def two_types_at_once(world: World, kinds: str) -> Any:
    first, second = kinds.split("-")
    client = world.client()
    world.subscribe(client, first)
    return world.outcome(world.subscribe, client, second)


@scenario(each=[f"{first}-{second}" for first in TYPES for second in TYPES if first != second])
def the_type_may_change_while_nobody_is_there(world: World, kinds: str) -> Any:
    first, second = kinds.split("-")
    client = world.client()
    world.send(client, [(b"1", "k"), (b"2", "k")])
    consumer = world.subscribe(client, first)
    consumer.acknowledge(consumer.receive(PATIENCE_MS))
    consumer.close()
    return world.receive(world.subscribe(client, second), 1)


@scenario
def failover_waits_for_the_first_to_leave(world: World) -> Any:
    client = world.client()
    first = world.subscribe(client, "Failover", consumer_name="a")
    second = world.subscribe(client, "Failover", consumer_name="b")
    world.send(client, [b"1", b"2"])
    found = [world.receive(first, 2), world.is_empty(second)]
    first.close()
    return [*found, world.receive(second, 2)]


@scenario
def shared_gives_each_message_to_one(world: World) -> Any:
    client = world.client()
    consumers = [
        world.subscribe(client, "Shared", receiver_queue_size=1, consumer_name=f"c{number}")
        for number in range(3)
    ]
    world.send(client, [b"%d" % number for number in range(12)])
    found: list[Any] = []
    while len(found) < 12:
        for each in consumers:
            try:
                message = each.receive(NOTHING_MS)
            except world.pulsar.Timeout:
                continue
            found.append(text(message.data()))
            each.acknowledge(message)
    return sorted(found, key=int)


@scenario
def shared_gives_the_rest_to_those_who_stay(world: World) -> Any:
    client = world.client()
    first = world.subscribe(client, "Shared")
    world.send(client, [b"1", b"2", b"3"])
    world.receive(first, 3)
    second = world.subscribe(client, "Shared")
    empty = world.is_empty(second)
    first.close()
    return [empty, sorted(world.receive(second, 3))]


@scenario
def key_shared_keeps_keys_together(world: World) -> Any:
    client = world.client()
    consumers = [world.subscribe(client, "KeyShared", consumer_name=f"c{n}") for n in range(2)]
    world.send(client, [(b"%d" % number, f"key-{number % 10}") for number in range(40)])
    owners: dict[str, set[int]] = {}
    orders: dict[str, list[int]] = {}
    count = 0
    while count < 40:
        for number, each in enumerate(consumers):
            try:
                message = each.receive(NOTHING_MS)
            except world.pulsar.Timeout:
                continue
            owners.setdefault(message.partition_key(), set()).add(number)
            orders.setdefault(message.partition_key(), []).append(int(message.data()))
            each.acknowledge(message)
            count += 1
    return [
        all(len(each) == 1 for each in owners.values()),
        all(each == sorted(each) for each in orders.values()),
        len({next(iter(each)) for each in owners.values()}),
    ]


@scenario
def sticky_ranges_choose_the_consumer(world: World) -> Any:
    module = world.pulsar
    client = world.client()
    consumers = []
    for low, high in ((0, 32767), (32768, 65535)):
        policy = module.ConsumerKeySharedPolicy(
            key_shared_mode=module.KeySharedMode.Sticky, sticky_ranges=[(low, high)]
        )
        consumers.append(world.subscribe(client, "KeyShared", key_shared_policy=policy))
    world.send(client, [(b"%d" % number, f"key-{number}") for number in range(20)])
    found: list[list[str]] = [[], []]
    while sum(map(len, found)) < 20:
        for number, each in enumerate(consumers):
            try:
                message = each.receive(NOTHING_MS)
            except module.Timeout:
                continue
            found[number].append(message.partition_key())
    return [sorted(each) for each in found]


@scenario
def sticky_ranges_that_overlap(world: World) -> Any:
    module = world.pulsar
    client = world.client()

    def policy(low: int, high: int) -> Any:
        return module.ConsumerKeySharedPolicy(
            key_shared_mode=module.KeySharedMode.Sticky, sticky_ranges=[(low, high)]
        )

    world.subscribe(client, "KeyShared", key_shared_policy=policy(0, 1000))
    return world.outcome(world.subscribe, client, "KeyShared", key_shared_policy=policy(500, 2000))


@scenario
def an_ordering_key_goes_before_the_key(world: World) -> Any:
    module = world.pulsar
    client = world.client()
    consumers = []
    for low, high in ((0, 32767), (32768, 65535)):
        policy = module.ConsumerKeySharedPolicy(
            key_shared_mode=module.KeySharedMode.Sticky, sticky_ranges=[(low, high)]
        )
        consumers.append(world.subscribe(client, "KeyShared", key_shared_policy=policy))
    producer = client.create_producer(world.topic())
    for number in range(10):
        producer.send(b"x", partition_key="same", ordering_key=f"order-{number}")
    found: list[list[str]] = [[], []]
    while sum(map(len, found)) < 10:
        for number, each in enumerate(consumers):
            try:
                found[number].append(each.receive(NOTHING_MS).ordering_key())
            except module.Timeout:
                continue
    return [sorted(each) for each in found]


@scenario(each=TYPES)
def a_consumer_knows_its_names(world: World, kind: str) -> Any:
    consumer = world.subscribe(world.client(), kind, consumer_name="me")
    return [
        consumer.topic() == world.topic(),
        consumer.subscription_name(),
        consumer.consumer_name(),
        consumer.is_connected(),
    ]


@scenario(each=TYPES)
def a_closed_consumer(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"1"])
    consumer = world.subscribe(client, kind)
    message = consumer.receive(PATIENCE_MS)
    consumer.close()
    return [
        world.outcome(consumer.receive, NOTHING_MS),
        world.outcome(consumer.acknowledge, message),
        world.outcome(consumer.negative_acknowledge, message),
        world.outcome(consumer.redeliver_unacknowledged_messages),
        world.outcome(consumer.unsubscribe),
        world.outcome(consumer.get_last_message_id),
        consumer.is_connected(),
    ]


@scenario(each=["closed", "unsubscribed", "client closed", "of several topics"])
def batch_receive_of_a_closed_consumer(world: World, how: str) -> Any:
    client = world.client()
    topic = [world.topic(), world.topic("other")] if how == "of several topics" else world.topic()
    consumer = world.subscribe(client, topic=topic)
    if how == "client closed":
        client.close()
    elif how == "unsubscribed":
        consumer.unsubscribe()
    else:
        consumer.close()
    return world.outcome(consumer.batch_receive)


@scenario(each=TYPES)
def closing_twice(world: World, kind: str) -> Any:
    consumer = world.subscribe(world.client(), kind)
    consumer.close()
    return world.outcome(consumer.close)


@scenario(each=TYPES)
def unsubscribing_forgets_the_position(world: World, kind: str) -> Any:
    client = world.client()
    world.send(client, [b"1"])
    consumer = world.subscribe(client, kind)
    world.receive(consumer, 1, acknowledge=True)
    consumer.unsubscribe()
    consumer.close()
    return [
        world.admin.subscriptions(world.topic()),
        world.receive(world.subscribe(client, kind), 1),
    ]


@scenario(each=["Shared", "KeyShared", "Failover"])
def unsubscribing_beside_another(world: World, kind: str) -> Any:
    client = world.client()
    first = world.subscribe(client, kind)
    world.subscribe(client, kind)
    return world.outcome(first.unsubscribe)


@scenario(each=TYPES)
def a_listener_gets_everything(world: World, kind: str) -> Any:
    client = world.client()
    found: list[str] = []
    done = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        found.append(text(message.data()))
        consumer.acknowledge(message)
        if len(found) == 5:
            done.set()

    world.subscribe(client, kind, message_listener=listener)
    world.send(client, [(b"%d" % number, "k") for number in range(5)])
    done.wait(10)
    return found


@scenario
def receiving_beside_a_listener(world: World) -> Any:
    consumer = world.subscribe(world.client(), message_listener=lambda *_: None)
    return world.outcome(consumer.receive, NOTHING_MS)


@scenario
def a_listener_that_is_paused(world: World) -> Any:
    client = world.client()
    found: list[str] = []
    came = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        found.append(text(message.data()))
        consumer.acknowledge(message)
        came.set()

    consumer = world.subscribe(client, message_listener=listener)
    consumer.pause_message_listener()
    world.send(client, [b"1"])
    waited = came.wait(NOTHING_MS / 1000)
    consumer.resume_message_listener()
    return [waited, came.wait(10), found]


@scenario
def a_batch_of_messages_by_number(world: World) -> Any:
    client = world.client()
    policy = world.pulsar.ConsumerBatchReceivePolicy(3, 0, 2000)
    consumer = world.subscribe(client, batch_receive_policy=policy)
    world.send(client, [b"%d" % number for number in range(7)])
    return [[text(each.data()) for each in consumer.batch_receive()] for _ in range(2)]


@scenario
def a_batch_of_messages_by_time(world: World) -> Any:
    client = world.client()
    policy = world.pulsar.ConsumerBatchReceivePolicy(100, 0, 500)
    consumer = world.subscribe(client, batch_receive_policy=policy)
    world.send(client, [b"1", b"2"])
    return [[text(each.data()) for each in consumer.batch_receive()] for _ in range(2)]


@scenario(each=["0,0,0", "-1,-1,-1", "1,0,0", "0,0,1"])
def a_policy_of_batch_receive(world: World, numbers: str) -> Any:
    most, size, wait = map(int, numbers.split(","))
    return world.outcome(world.pulsar.ConsumerBatchReceivePolicy, most, size, wait)


@scenario
def the_last_message_id(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send(client, [b"1", b"2", b"3"])
    return place(consumer.get_last_message_id())


@scenario
def the_last_message_id_of_a_batch(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    world.send_batch(client, [b"1", b"2", b"3"])
    return place(consumer.get_last_message_id())


@scenario
def the_last_message_id_of_nothing(world: World) -> Any:
    last = world.subscribe(world.client()).get_last_message_id()
    return [last.entry_id(), last.batch_index()]


@scenario
def a_queue_of_zero(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared", receiver_queue_size=0)
    world.send(client, [b"1", b"2"])
    found = [text(consumer.receive().data()) for _ in range(2)]
    return [found, world.outcome(consumer.receive, NOTHING_MS)]


@scenario
def a_queue_of_one(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, receiver_queue_size=1)
    world.send(client, [b"%d" % number for number in range(5)])
    return world.receive(consumer, 5, acknowledge=True)


BAD_CONSUMERS: dict[str, dict[str, Any]] = {
    "type_int": {"consumer_type": 1},
    "schema_text": {"schema": "json"},
    "listener_text": {"message_listener": "f"},
    "queue_negative": {"receiver_queue_size": -1},
    "queue_text": {"receiver_queue_size": "1"},
    "name_int": {"consumer_name": 5},
    "ack_timeout_text": {"unacked_messages_timeout_ms": "1"},
    "ack_timeout_small": {"unacked_messages_timeout_ms": 5},
    "nack_delay_text": {"negative_ack_redelivery_delay_ms": "1"},
    "read_compacted_int": {"is_read_compacted": 1},
    "properties_list": {"properties": ["a"]},
    "position_int": {"initial_position": 1},
    "inclusive_int": {"start_message_id_inclusive": 1},
    "policy_int": {"batch_receive_policy": 5},
    "key_shared_policy_int": {"key_shared_policy": 5},
    "batch_index_int": {"batch_index_ack_enabled": 1},
    "dead_letter_int": {"dead_letter_policy": 5},
    "crypto_action_int": {"crypto_failure_action": 1},
    "chunks_text": {"max_pending_chunked_message": "1"},
}


@scenario(each=BAD_CONSUMERS)
def a_bad_argument_of_subscribe(world: World, name: str) -> Any:
    client = world.client()
    return world.outcome(client.subscribe, world.topic(), "s", **BAD_CONSUMERS[name])


@scenario(each=["", 5, None])
def a_bad_subscription_name(world: World, name: Any) -> Any:
    return world.outcome(world.client().subscribe, world.topic(), name)
