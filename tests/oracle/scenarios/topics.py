"""Scenarios: names, several topics, patterns, deletion, termination, clients."""

from __future__ import annotations

import re
from typing import Any

from world import PATIENCE_MS, World, scenario, text

BAD_NAMES = (
    "", " ", "a/b", "a/b/c/d/e", "persistent://a/b", "persistent://public/default/",
    "http://public/default/x", "persistent:/public/default/x", "public/default/",
    "persistent://public/default/a/b", "://x", "persistent://",
)  # fmt: skip


@scenario(each=BAD_NAMES)
def a_bad_name(world: World, name: str) -> Any:
    client = world.client(operation_timeout_seconds=3)
    earliest = world.pulsar.MessageId.earliest
    return [
        world.outcome(client.create_producer, name),
        world.outcome(client.subscribe, name, "s"),
        world.outcome(client.create_reader, name, earliest),
    ]


@scenario(each=["a-b", "a.b", "a:b", "a=b", "ä", "a b", "a+b", "a%b", "x" * 150])
def a_name_with_signs(world: World, name: str) -> Any:
    client = world.client()
    topic = f"{world.prefix}{name}"
    outcome = world.outcome(client.create_producer, topic)
    return [outcome, world.outcome(client.subscribe, topic, "s")]


@scenario(each=["s", "a/b", "a b", "ä", "a:b", "x" * 150, "..", "a%2Fb"])
def a_subscription_name_with_signs(world: World, name: str) -> Any:
    client = world.client()
    outcome = world.outcome(client.subscribe, world.topic(), name)
    return [outcome, world.admin.subscriptions(world.topic()) == [name]]


@scenario(each=[5, None, b"topic"])
def a_name_of_another_type(world: World, name: Any) -> Any:
    client = world.client()
    return [world.outcome(client.create_producer, name), world.outcome(client.subscribe, name, "s")]


@scenario
def a_namespace_that_is_not_there(world: World) -> Any:
    client = world.client(operation_timeout_seconds=3)
    return world.outcome(client.create_producer, f"persistent://public/{world.prefix}/topic")


@scenario
def a_namespace_of_ones_own(world: World) -> Any:
    client = world.client()
    namespace = f"public/{world.prefix}"
    world.admin.create_namespace(namespace)
    topic = f"persistent://{namespace}/topic"
    consumer = world.subscribe(client, topic=topic)
    world.send(client, [b"1"], topic)
    return world.receive(consumer, 1)


@scenario
def several_topics(world: World) -> Any:
    client = world.client()
    topics = [world.topic(label) for label in "abc"]
    consumer = world.subscribe(client, topic=topics)
    for topic in topics:
        world.send(client, [topic[-1].encode()], topic)
    messages = world.messages(consumer, 3)
    for each in messages:
        consumer.acknowledge(each)
    return sorted([text(each.data()), each.topic_name()[-1]] for each in messages)


@scenario
def several_topics_keep_what_was_not_acknowledged(world: World) -> Any:
    client = world.client()
    topics = [world.topic(label) for label in "ab"]
    for topic in topics:
        world.send(client, [b"1", b"2"], topic)
    consumer = world.subscribe(client, topic=topics)
    for each in world.messages(consumer, 4):
        if each.data() == b"1":
            consumer.acknowledge(each)
    consumer.close()
    return world.receive(world.subscribe(client, topic=topics), 2)


@scenario(each=["empty", "twice", "mixed"])
def a_bad_list_of_topics(world: World, case: str) -> Any:
    topic = world.topic()
    topics: Any = {"empty": [], "twice": [topic, topic], "mixed": [topic, 5]}[case]
    return world.outcome(world.client().subscribe, topics, "s")


@scenario
def a_pattern(world: World) -> Any:
    client = world.client()
    for label in ("red-1", "red-2", "blue"):
        world.send(client, [label.encode()], world.topic(label))
    consumer = world.subscribe(client, topic=re.compile(f"{world.topic('red')}-.*"))
    return sorted(world.receive(consumer, 2))


@scenario(each=["none_before", "one_before"])
def a_pattern_finds_new_topics(world: World, case: str) -> Any:
    client = world.client()
    if case == "one_before":
        world.send(client, [b"old"], world.topic("red-0"))
    consumer = world.subscribe(
        client, topic=re.compile(f"{world.topic('red')}-.*"), pattern_auto_discovery_period=1
    )
    if case == "one_before":
        world.receive(consumer, 1)
    world.send(client, [b"new"], world.topic("red-1"))
    return world.receive(consumer, 1)


@scenario
def a_pattern_takes_partitioned_topics(world: World) -> Any:
    client = world.client()
    topic = world.partitioned(3, "red-p")
    consumer = world.subscribe(client, topic=re.compile(f"{world.topic('red')}-.*"))
    world.send(client, [b"%d" % number for number in range(6)], topic)
    return sorted(world.receive(consumer, 6))


@scenario
def a_pattern_over_namespaces(world: World) -> Any:
    pattern = re.compile("persistent://public/.*/topic")
    return world.outcome(world.client(operation_timeout_seconds=3).subscribe, pattern, "s")


@scenario
def deleting_beside_a_producer(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    refused = world.outcome(world.admin.delete, world.topic()) != "ok"
    producer.close()
    return [refused, world.outcome(world.admin.delete, world.topic())]


@scenario
def deleting_beside_a_subscription(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    refused = world.outcome(world.admin.delete, world.topic()) != "ok"
    consumer.close()
    return refused


@scenario
def a_topic_that_is_born_again(world: World) -> Any:
    client = world.client()
    world.send(client, [b"old"])
    world.admin.delete(world.topic())
    world.send(client, [b"new"])
    return world.read(client.create_reader(world.topic(), world.pulsar.MessageId.earliest))


@scenario
def terminating(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    producer.send(b"last")
    world.admin.terminate(world.topic())
    consumer = world.subscribe(client)
    return [world.outcome(producer.send, b"late"), world.receive(consumer, 1)]


@scenario
def unloading(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic())
    producer.send(b"1")
    consumer.acknowledge(consumer.receive(PATIENCE_MS))
    world.settle(lambda: world.admin.backlog(world.topic(), "subscription") == 0)
    world.admin.unload(world.topic())
    producer.send(b"2")
    return world.receive(consumer, 1)


@scenario
def a_closed_client(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    consumer = world.subscribe(client)
    client.close()
    earliest = world.pulsar.MessageId.earliest
    return [
        world.outcome(client.create_producer, world.topic()),
        world.outcome(client.subscribe, world.topic(), "s"),
        world.outcome(client.create_reader, world.topic(), earliest),
        world.outcome(client.get_topic_partitions, world.topic()),
        world.outcome(producer.send, b"x"),
        world.outcome(consumer.receive, 100),
        world.outcome(client.close),
    ]


@scenario
def a_client_that_shuts_down(world: World) -> Any:
    client = world.client()
    producer = client.create_producer(world.topic())
    client.shutdown()
    return [world.outcome(producer.send, b"x"), world.outcome(client.close)]


BAD_CLIENTS: dict[str, dict[str, Any]] = {
    "authentication_text": {"authentication": "token"},
    "timeout_text": {"operation_timeout_seconds": "1"},
    "io_threads_text": {"io_threads": "1"},
    "listener_threads_text": {"message_listener_threads": "1"},
    "lookup_text": {"concurrent_lookup_requests": "1"},
    "log_int": {"log_conf_file_path": 5},
    "statistics_text": {"stats_interval_in_seconds": "1"},
    "tls_int": {"use_tls": 1},
    "logger_int": {"logger": 5},
    "connection_timeout_text": {"connection_timeout_ms": "1"},
    "listener_int": {"listener_name": 5},
}


@scenario(each=BAD_CLIENTS)
def a_bad_argument_of_a_client(world: World, name: str) -> Any:
    return world.outcome(world.pulsar.Client, world.url, **BAD_CLIENTS[name])
