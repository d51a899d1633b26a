"""Scenarios: what policies of a namespace do with its topics: expiry, retention, quotas."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

from world import PATIENCE_MS, TYPES, World, place, scenario, text

KILOBYTE = b"x" * 1000


# Expiry -------------------------------------------------------------------------------------------


@scenario(each=TYPES)
def expired_messages_do_not_come(world: World, kind: str) -> Any:
    client = world.client()
    topic = world.governed(message_ttl={"seconds": 1})
    world.subscribe(client, kind, topic).close()
    world.send(client, [(b"old", "k"), (b"older", "k")], topic)
    world.pause(1.5)
    world.admin.expire_by_policy(topic)
    world.send(client, [(b"new", "k")], topic)
    return world.receive(world.subscribe(client, kind, topic), 1)


@scenario
def an_expired_batch_does_not_come(world: World) -> Any:
    client = world.client()
    topic = world.governed(message_ttl={"seconds": 1})
    world.subscribe(client, topic=topic).close()
    world.send_batch(client, [b"1", b"2"], topic)
    world.pause(1.5)
    world.admin.expire_by_policy(topic)
    world.send(client, [b"new"], topic)
    return world.receive(world.subscribe(client, topic=topic), 1)


@scenario
def expired_messages_that_are_delayed(world: World) -> Any:
    client = world.client()
    topic = world.governed(message_ttl={"seconds": 1})
    world.subscribe(client, "Shared", topic).close()
    producer = client.create_producer(topic)
    producer.send(b"later", deliver_after=timedelta(seconds=2))
    world.pause(1.5)
    world.admin.expire_by_policy(topic)
    producer.send(b"new")
    consumer = world.subscribe(client, "Shared", topic)
    return [world.receive(consumer, 1), world.is_empty(consumer)]


@scenario
def expiry_leaves_readers_what_is_there(world: World) -> Any:
    client = world.client()
    topic = world.governed(message_ttl={"seconds": 1})
    world.subscribe(client, topic=topic).close()
    world.send(client, [b"old"], topic)
    world.pause(1.5)
    world.admin.expire_by_policy(topic)
    return world.read(client.create_reader(topic, world.pulsar.MessageId.earliest))


@scenario
def no_expiry_without_a_policy(world: World) -> Any:
    client = world.client()
    topic = world.governed(message_ttl={"seconds": 100})
    world.subscribe(client, topic=topic).close()
    world.send(client, [b"1"], topic)
    return world.receive(world.subscribe(client, topic=topic), 1)


@scenario(each=TYPES)
def expiring_by_hand(world: World, kind: str) -> Any:
    client = world.client()
    world.subscribe(client, kind).close()
    world.send(client, [(b"old", "k"), (b"older", "k")])
    world.pause(2.1)
    world.send(client, [(b"new", "k")])
    world.admin.expire(world.topic(), "subscription", 1)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 1)
    found = [world.admin.backlog(world.topic(), "subscription")]
    return [*found, world.receive(world.subscribe(client, kind), 1)]


@scenario
def expiring_what_a_consumer_has(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    world.send(client, [b"old"])
    message = consumer.receive(PATIENCE_MS)
    world.pause(2.1)
    world.send(client, [b"new"])
    world.admin.expire(world.topic(), "subscription", 1)
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 1)
    outcome = world.outcome(consumer.acknowledge, message)
    consumer.redeliver_unacknowledged_messages()
    return [outcome, world.receive(consumer, 1)]


# Retention ----------------------------------------------------------------------------------------


def consumed(world: World, topic: str, payloads: Any) -> Any:
    """A client; all of them were acknowledged and their ledger is closed."""
    client = world.client()
    consumer = world.subscribe(client, topic=topic)
    world.send(client, payloads, topic)
    world.receive(consumer, len(payloads), acknowledge=True)
    world.settle(lambda: world.admin.backlog(topic, "subscription") == 0)
    consumer.close()
    world.admin.roll_over(topic)
    return client


RETENTIONS = {
    "none": None, "all": (-1, -1), "time": (60, -1), "size": (-1, 100), "both": (60, 100),
    "zero": (0, 0),
}  # fmt: skip


@scenario(each=RETENTIONS)
def acknowledged_messages(world: World, name: str) -> Any:
    kept = RETENTIONS[name]
    policies = {} if kept is None else {"retention": {"time_minutes": kept[0], "size_mb": kept[1]}}
    topic = world.governed(**policies)
    client = consumed(world, topic, [b"1", b"2"])
    world.send(client, [b"3"], topic)
    return world.read(client.create_reader(topic, world.pulsar.MessageId.earliest))


@scenario
def more_than_the_size_that_is_kept(world: World) -> Any:
    topic = world.governed(retention={"time_minutes": -1, "size_mb": 1})
    client = consumed(world, topic, [KILOBYTE * 800])
    consumed(world, topic, [KILOBYTE * 801])
    consumed(world, topic, [KILOBYTE * 802])
    world.send(client, [b"last"], topic)
    return world.read(client.create_reader(topic, world.pulsar.MessageId.earliest))


@scenario(each=["0/1", "1/0", "-1/0", "0/-1", "-2/1", "-1/-1"])
def a_retention(world: World, numbers: str) -> Any:
    minutes, size = map(int, numbers.split("/"))
    return world.refused(world.governed, retention={"time_minutes": minutes, "size_mb": size})


@scenario
def seeking_to_what_was_kept(world: World) -> Any:
    topic = world.governed(retention={"time_minutes": 60, "size_mb": -1})
    client = consumed(world, topic, [b"1", b"2"])
    consumer = world.subscribe(client, topic=topic)
    empty = world.is_empty(consumer)
    consumer.seek(world.pulsar.MessageId.earliest)
    return [empty, world.receive(consumer, 2)]


@scenario
def seeking_to_what_is_gone(world: World) -> Any:
    topic = world.governed()
    client = consumed(world, topic, [b"1", b"2"])
    world.send(client, [b"3"], topic)
    consumer = world.subscribe(client, topic=topic)
    consumer.seek(world.pulsar.MessageId.earliest)
    return world.receive(consumer, 1)


# Backlog quotas -----------------------------------------------------------------------------------


def over_quota(world: World, policy: str, **limits: Any) -> tuple[Any, Any, str]:
    """A client and a producer of a topic whose backlog, one message, is above its quota."""
    client = world.client()
    limits = limits or {"limit_size": 10_000}
    topic = world.governed(backlog_quota={"policy": policy, **limits})
    world.subscribe(client, topic=topic).close()
    hold = policy == "producer_request_hold"
    producer = client.create_producer(topic, send_timeout_millis=3000 if hold else 30_000)
    producer.send(KILOBYTE * 30)
    return client, producer, topic


AGE = {"limit_time": 1, "type": "message_age"}


@scenario(each=["size", "age"])
def above_a_quota_with_exceptions(world: World, kind: str) -> Any:
    client, producer, topic = over_quota(
        world, "producer_exception", **(AGE if kind == "age" else {})
    )
    world.pause(3.5)
    found = [world.outcome(client.create_producer, topic), world.outcome(producer.send, b"more")]
    world.admin.skip_all(topic, "subscription")
    world.pause(2.5)
    return [*found, world.outcome(client.create_producer, topic)]


@scenario(each=["size", "age"])
def above_a_quota_with_holding(world: World, kind: str) -> Any:
    client, producer, topic = over_quota(
        world, "producer_request_hold", **(AGE if kind == "age" else {})
    )
    world.pause(3.5)
    found = [world.outcome(producer.send, b"more")]
    world.admin.skip_all(topic, "subscription")
    world.pause(2.5)
    return [*found, world.outcome(client.create_producer, topic)]


@scenario
def a_send_that_is_held_goes_on(world: World) -> Any:
    """When there is room again."""
    client = world.client()
    topic = world.governed(backlog_quota={"policy": "producer_request_hold", "limit_size": 10_000})
    world.subscribe(client, topic=topic).close()
    producer = client.create_producer(topic)
    producer.send(KILOBYTE * 30)
    world.pause(2.5)
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(world.outcome(producer.send, b"more")))
    thread.start()
    thread.join(1)
    waited = not told
    world.admin.skip_all(topic, "subscription")
    thread.join(20)
    return [waited, told]


@scenario
def an_asynchronous_send_that_is_held(world: World) -> Any:
    _, producer, _ = over_quota(world, "producer_request_hold")
    world.pause(2.5)
    told: list[str] = []
    began = time.monotonic()
    producer.send_async(b"more", lambda result, _: told.append(result.name))
    returned = time.monotonic() - began < 1
    world.settle(lambda: bool(told))
    return [returned, told]


def evicting(world: World) -> tuple[Any, Any, str]:
    """A client and a producer of a topic whose backlog of 30 kB is brought down to 9."""
    client = world.client()
    policy = {"policy": "consumer_backlog_eviction", "limit_size": 10_000}
    topic = world.governed(backlog_quota=policy)
    world.subscribe(client, topic=topic).close()
    producer = client.create_producer(topic)
    for _ in range(30):
        producer.send_async(KILOBYTE, lambda *_: None)
    producer.flush()
    return client, producer, topic


@scenario
def above_a_quota_with_eviction(world: World) -> Any:
    client, producer, topic = evicting(world)
    world.settle(lambda: world.admin.backlog(topic, "subscription") < 30)
    world.pause(1.5)
    backlog = world.admin.backlog(topic, "subscription")
    consumer = world.subscribe(client, topic=topic)
    first = consumer.receive(PATIENCE_MS).message_id().entry_id()
    return [backlog < 10, first + backlog, world.outcome(producer.send, b"more")]


@scenario
def eviction_spares_who_is_not_slow(world: World) -> Any:
    client = world.client()
    topic = world.governed(
        backlog_quota={"policy": "consumer_backlog_eviction", "limit_size": 10_000}
    )
    world.subscribe(client, topic=topic).close()
    fast = world.subscribe(client, topic=topic, name="fast")
    producer = client.create_producer(topic)
    for _ in range(30):
        producer.send(KILOBYTE)
    for each in world.messages(fast, 30)[:25]:
        fast.acknowledge(each)
    world.settle(lambda: world.admin.backlog(topic, "subscription") < 30)
    world.pause(1.5)
    return [world.admin.backlog(topic, "subscription") < 10, world.admin.backlog(topic, "fast")]


@scenario
def a_quota_without_a_subscription(world: World) -> Any:
    client = world.client()
    topic = world.governed(backlog_quota={"policy": "producer_exception", "limit_size": 10_000})
    producer = client.create_producer(topic)
    for _ in range(30):
        producer.send(KILOBYTE)
    world.pause(2.5)
    return [world.outcome(producer.send, b"more"), world.outcome(client.create_producer, topic)]


@scenario
def readers_use_up_no_quota(world: World) -> Any:
    client = world.client()
    topic = world.governed(backlog_quota={"policy": "producer_exception", "limit_size": 10_000})
    reader = client.create_reader(topic, world.pulsar.MessageId.earliest)
    producer = client.create_producer(topic)
    for _ in range(30):
        producer.send(KILOBYTE)
    world.pause(2.5)
    return [reader.has_message_available(), world.outcome(producer.send, b"more")]


@scenario(each=["larger", "smaller"])
def a_quota_beside_a_retention(world: World, case: str) -> Any:
    quota = {"policy": "producer_exception", "limit_size": (20 if case == "larger" else 5) << 20}
    retention = {"time_minutes": 10, "size_mb": 10}
    return world.refused(world.governed, retention=retention, backlog_quota=quota)


# Topics and subscriptions that nobody uses --------------------------------------------------------

UNUSED = {"mode": "delete_when_no_subscriptions", "seconds": 1, "enabled": True}
CAUGHT_UP = {**UNUSED, "mode": "delete_when_subscriptions_caught_up"}


def is_gone(world: World, topic: str) -> bool:
    world.settle(lambda: not world.admin.exists(topic))
    return not world.admin.exists(topic)


@scenario
def an_unused_topic_goes(world: World) -> Any:
    topic = world.governed(inactive_topic_policies=UNUSED)
    client = world.client()
    client.create_producer(topic).close()
    return is_gone(world, topic)


@scenario
def an_unused_topic_with_messages_goes(world: World) -> Any:
    topic = world.governed(inactive_topic_policies=UNUSED)
    world.send(world.client(), [b"1"], topic)
    return is_gone(world, topic)


@scenario
def an_unused_topic_with_messages_stays_for_its_retention(world: World) -> Any:
    topic = world.governed(
        inactive_topic_policies=UNUSED, retention={"time_minutes": 60, "size_mb": -1}
    )
    world.send(world.client(), [b"1"], topic)
    return is_gone(world, topic)


@scenario(each=["producer", "reader", "consumer", "subscription"])
def who_keeps_a_topic(world: World, who: str) -> Any:
    topic = world.governed(inactive_topic_policies=UNUSED)
    client = world.client()
    client.create_producer(topic).close()
    if who == "producer":
        world.outcome(client.create_producer, topic)
    if who == "reader":
        world.outcome(client.create_reader, topic, world.pulsar.MessageId.earliest)
    if who in ("consumer", "subscription"):
        consumer = world.subscribe(client, topic=topic)
        if who == "subscription":
            consumer.close()
    return is_gone(world, topic)


@scenario(each=["nothing", "all", "some"])
def a_topic_goes_with_subscriptions_that_have_acknowledged(world: World, what: str) -> Any:
    topic = world.governed(inactive_topic_policies=CAUGHT_UP)
    client = world.client()
    consumer = world.subscribe(client, topic=topic)
    if what != "nothing":
        world.send(client, [b"1", b"2"], topic)
        messages = world.messages(consumer, 2)
        for each in messages if what == "all" else messages[:1]:
            consumer.acknowledge(each)
        world.settle(lambda: world.admin.backlog(topic, "subscription") == (what == "some"))
    consumer.close()
    return is_gone(world, topic)


@scenario
def a_consumer_keeps_a_topic_that_is_read_to_its_end(world: World) -> Any:
    topic = world.governed(inactive_topic_policies=CAUGHT_UP)
    world.subscribe(world.client(), topic=topic)
    return is_gone(world, topic)


@scenario
def nothing_goes_where_it_is_not_asked_for(world: World) -> Any:
    topic = world.governed(inactive_topic_policies={**UNUSED, "enabled": False})
    world.client().create_producer(topic).close()
    return is_gone(world, topic)


# Delayed delivery ---------------------------------------------------------------------------------


@scenario
def delays_that_are_turned_off(world: World) -> Any:
    topic = world.governed(delayed_delivery_policies={"active": False, "tick_time_millis": 1000})
    client = world.client()
    consumer = world.subscribe(client, "Shared", topic)
    producer = client.create_producer(topic)
    producer.send(b"later", deliver_after=timedelta(seconds=60))
    producer.send(b"now")
    return world.receive(consumer, 2)


@scenario(each=["short", "long"])
def a_longest_delay(world: World, case: str) -> Any:
    topic = world.governed(
        delayed_delivery_policies={
            "active": True,
            "tick_time_millis": 1000,
            "max_delivery_delay_in_millis": 5000,
        }
    )
    producer = world.client().create_producer(topic)
    told: list[str] = []
    delay = timedelta(seconds=2 if case == "short" else 60)
    producer.send_async(b"x", lambda result, _: told.append(result.name), deliver_after=delay)
    world.settle(lambda: bool(told))
    return told


@scenario(each=["Shared", "KeyShared"])
def delays_in_another_order(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind)
    producer = client.create_producer(world.topic())
    now = int(time.time() * 1000)
    for label, delay in ((b"late", 4000), (b"early", 1000)):
        producer.send(label, deliver_at=now + delay, partition_key=label.decode())
    return world.receive(consumer, 2)


@scenario
def a_delay_outlives_its_consumer(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    producer = client.create_producer(world.topic())
    producer.send(b"later", deliver_after=timedelta(milliseconds=1500))
    empty = world.is_empty(consumer)
    consumer.close()
    consumer = world.subscribe(client, "Shared")
    return [empty, world.is_empty(consumer), world.receive(consumer, 1)]


@scenario
def what_is_delayed_counts_as_backlog(world: World) -> Any:
    client = world.client()
    world.subscribe(client, "Shared")
    producer = client.create_producer(world.topic())
    producer.send(b"later", deliver_after=timedelta(seconds=60))
    return world.admin.backlog(world.topic(), "subscription")


@scenario
def delayed_messages_of_a_batching_producer(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, "Shared")
    producer = client.create_producer(
        world.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    producer.send_async(b"a", lambda *_: None)
    producer.send_async(b"later", lambda *_: None, deliver_after=timedelta(milliseconds=1000))
    producer.send_async(b"b", lambda *_: None)
    producer.flush()
    return [[text(m.data()), place(m.message_id())] for m in world.messages(consumer, 3)]


# Deduplication ------------------------------------------------------------------------------------


def deduplicating(world: World) -> tuple[Any, str]:
    return world.client(), world.governed(deduplication={"enabled": True})


@scenario
def what_is_sent_twice_is_stored_once(world: World) -> Any:
    client, topic = deduplicating(world)
    consumer = world.subscribe(client, topic=topic)
    producer = client.create_producer(topic, producer_name="one")
    ids = [producer.send(b"%d" % n, sequence_id=n) for n in (1, 2, 2, 1, 5, 3, 6)]
    return [
        [place(each) if each.entry_id() >= 0 else "none" for each in ids],
        world.receive(consumer, 4),
        world.is_empty(consumer),
        producer.last_sequence_id(),
    ]


@scenario
def a_producer_that_comes_back_knows_its_last_sequence_id(world: World) -> Any:
    client, topic = deduplicating(world)
    producer = client.create_producer(topic, producer_name="one")
    producer.send(b"1", sequence_id=7)
    producer.close()
    producer = client.create_producer(topic, producer_name="one")
    found = [producer.last_sequence_id()]
    producer.send(b"2")
    return [*found, producer.last_sequence_id()]


@scenario
def another_producer_may_send_the_same_ids(world: World) -> Any:
    client, topic = deduplicating(world)
    consumer = world.subscribe(client, topic=topic)
    for name in ("one", "two"):
        client.create_producer(topic, producer_name=name).send(name.encode(), sequence_id=3)
    return world.receive(consumer, 2)


@scenario
def batches_that_are_sent_twice(world: World) -> Any:
    client, topic = deduplicating(world)
    consumer = world.subscribe(client, topic=topic)
    for _ in range(2):
        producer = client.create_producer(
            topic,
            producer_name="one",
            batching_enabled=True,
            batching_max_publish_delay_ms=60_000,
        )
        for number in (1, 2, 3):
            producer.send_async(b"%d" % number, lambda *_: None, sequence_id=number)
        producer.flush()
        producer.close()
    world.send(client, [b"end"], topic)
    return world.receive(consumer, 4)


@scenario
def a_batch_that_is_partly_there(world: World) -> Any:
    client, topic = deduplicating(world)
    consumer = world.subscribe(client, topic=topic)
    for numbers in ((1, 2), (2, 3)):
        producer = client.create_producer(
            topic,
            producer_name="one",
            batching_enabled=True,
            batching_max_publish_delay_ms=60_000,
        )
        for number in numbers:
            producer.send_async(b"%d" % number, lambda *_: None, sequence_id=number)
        producer.flush()
        producer.close()
    world.send(client, [b"end"], topic)
    return world.receive(consumer, 3)


@scenario
def callbacks_of_what_was_sent_twice(world: World) -> Any:
    client, topic = deduplicating(world)
    producer = client.create_producer(topic, producer_name="one")
    told: list[str] = []
    for number in (1, 1, 0):
        producer.send_async(b"x", lambda result, _: told.append(result.name), sequence_id=number)
    producer.flush()
    world.settle(lambda: len(told) == 3)
    return told


@scenario
def without_deduplication_it_is_stored_twice(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic(), producer_name=f"{world.prefix}-one")
    for _ in range(2):
        producer.send(b"x", sequence_id=1)
    return world.receive(consumer, 2)


@scenario
def deduplication_that_is_turned_on(world: World) -> Any:
    client, topic = world.client(), world.governed()
    producer = client.create_producer(topic, producer_name="one")
    for number in (1, 2, 1):
        producer.send(b"off %d" % number, sequence_id=number)
    world.governed(deduplication={"enabled": True})
    world.pause(2)
    for number in (1, 2, 3, 3):
        producer.send(b"on %d" % number, sequence_id=number)
    consumer = world.subscribe(client, topic=topic)
    return [world.receive(consumer, 4), world.is_empty(consumer)]


@scenario
def deduplication_outlives_unloading(world: World) -> Any:
    client, topic = deduplicating(world)
    consumer = world.subscribe(client, topic=topic)
    consumer.close()
    producer = client.create_producer(topic, producer_name="one")
    producer.send(b"1", sequence_id=1)
    producer.close()
    world.admin.unload(topic)
    producer = client.create_producer(topic, producer_name="one")
    producer.send(b"again", sequence_id=1)
    producer.send(b"2", sequence_id=2)
    return world.receive(world.subscribe(client, topic=topic), 2)


# What may be made ---------------------------------------------------------------------------------


@scenario(each=TYPES)
def types_that_are_not_enabled(world: World, kind: str) -> Any:
    topic = world.governed(subscription_types_enabled={"types": ["Exclusive", "Shared"]})
    client = world.client(operation_timeout_seconds=3)
    return world.outcome(world.subscribe, client, kind, topic)


@scenario
def subscriptions_that_are_not_made(world: World) -> Any:
    topic = world.governed(auto_subscription_creation={"allowed": False})
    client = world.client(operation_timeout_seconds=3)
    client.create_producer(topic)
    found = [world.outcome(world.subscribe, client, topic=topic)]
    world.admin.create_subscription(topic, "subscription")
    found.append(world.outcome(world.subscribe, client, topic=topic))
    earliest = world.pulsar.MessageId.earliest
    return [*found, world.outcome(client.create_reader, topic, earliest)]


@scenario
def topics_that_are_not_made(world: World) -> Any:
    topic = world.governed(auto_topic_creation={"allowed": False})
    client = world.client(operation_timeout_seconds=3)
    earliest = world.pulsar.MessageId.earliest
    found = [
        world.outcome(client.create_producer, topic),
        world.outcome(world.subscribe, client, topic=topic),
        world.outcome(client.create_reader, topic, earliest),
    ]
    world.admin.create(topic)
    return [*found, world.outcome(client.create_producer, topic)]


@scenario
def topics_that_are_made_with_partitions(world: World) -> Any:
    topic = world.governed(
        auto_topic_creation={"allowed": True, "type": "partitioned", "partitions": 3}
    )
    client = world.client()
    client.create_producer(topic).send(b"x")
    return len(client.get_topic_partitions(topic))
