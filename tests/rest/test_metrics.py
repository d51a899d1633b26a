"""`/metrics`, in the text format of Prometheus, under the names that Pulsar has."""

from __future__ import annotations

import re
from typing import Any

from administered import Administered

import pulsarx
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.broker.topics.counted_rates import LOOK_MS, Rates
from pulsarx.clock import ManualClock
from pulsarx.rest.metrics import Figures, rendered

SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (-?[\d.e+-]+)')


def samples(administered: Administered, query: str = "") -> dict[str, dict[str, float]]:
    """By metric, the values by labels but the cluster. Each metric is in one block, below its
    type."""
    reply = administered.ask("GET", f"//metrics{query}")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, dict[str, float]] = {}
    current = ""
    for line in reply.body.splitlines():
        if line.startswith("# TYPE "):
            current = line.split()[2]
            assert current not in found
            found[current] = {}
            continue
        parts = SAMPLE.fullmatch(line)
        assert parts, line
        assert parts[1] == current
        labels = parts[2].replace('cluster="standalone"', "").strip(",")
        assert labels not in found[current]
        found[current][labels] = float(parts[3])
    return found


def labels(topic: str = "t", *more: str) -> str:
    full = f"persistent://public/default/{topic}"
    return ",".join(['namespace="public/default"', f'topic="{full}"', *more])


def test_figures_of_topics_and_subscriptions_are_told(administered: Administered):
    client = administered.client
    consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
    producer = client.create_producer("t")
    for _ in range(5):
        producer.send(b"x")
    consumer.acknowledge(consumer.receive(60_000))
    found = samples(administered)
    topic, subscription = labels(), labels("t", 'subscription="s"')
    for name, value in {
        "pulsar_subscriptions_count": 1,
        "pulsar_producers_count": 1,
        "pulsar_consumers_count": 1,
        "pulsar_msg_backlog": 4,
        "pulsar_in_messages_total": 5,
        "pulsar_publish_rate_limit_times": 0,
        "pulsarx_storage_held_by_leases_size": 0,
    }.items():
        assert found[name][topic] == value, name
    stored = client.admin.topics.stats("t")["storage_size"]
    assert found["pulsar_storage_size"][topic] == stored
    for name, value in {
        "pulsar_subscription_back_log": 4,
        "pulsar_subscription_unacked_messages": 4,
        "pulsar_subscription_blocked_on_unacked_messages": 0,
        "pulsar_subscription_consumers_count": 1,
        "pulsar_out_messages_total": 5,
    }.items():
        assert found[name][subscription] == value, name
    assert found["pulsar_topics_count"]['namespace="public/default"'] == 1
    assert found["pulsar_broker_msg_backlog"][""] == 4
    assert not found["pulsar_consumer_unacked_messages"]


def test_readers_are_subscriptions(administered: Administered):
    client = administered.client
    client.create_producer("t").send_many([b"x"] * 10)
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    found = samples(administered)
    (name,) = found["pulsar_subscription_back_log"]
    assert 'subscription="reader-' in name
    assert found["pulsar_subscription_back_log"][name] == 1
    assert found["pulsar_subscriptions_count"][labels()] == 1
    assert found["pulsar_consumers_count"][labels()] == 1
    reader.close()
    assert not samples(administered).get("pulsar_subscription_back_log")


def test_backlogs_count_entries_as_those_of_pulsar(administered: Administered):
    client = administered.client
    client.subscribe("t", "s").close()
    client.create_producer("t").send_many([b"x"] * 10)
    found = samples(administered)
    assert found["pulsar_subscription_back_log"][labels("t", 'subscription="s"')] == 1
    assert found["pulsar_msg_backlog"][labels()] == found["pulsar_broker_msg_backlog"][""] == 1
    assert found["pulsar_in_messages_total"][labels()] == 10


def test_figures_of_consumers_are_told_when_asked_for(administered: Administered):
    client = administered.client
    consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared, consumer_name="c")
    client.create_producer("t").send(b"x")
    consumer.receive(60_000)
    found = samples(administered, "?consumers=true")
    own = labels("t", 'subscription="s"', 'consumer_name="c"', 'consumer_id="0"')
    assert found["pulsar_consumer_unacked_messages"][own] == 1
    assert found["pulsar_out_messages_total"][own] == 1


def test_the_work_is_cut_into_slices(administered: Administered):
    """Publishers of the process want the interpreter meanwhile."""
    client = administered.client
    consumers = [client.subscribe(f"t{number}", "s") for number in range(40)]
    pauses = [0]

    def pause() -> None:
        pauses[0] += 1

    def look() -> tuple[int, int, int]:
        figures = Figures(
            administered.server.broker, administered.server.per_second, consumers=False, pause=pause
        )
        figures.gather()
        gathered, pauses[0] = pauses[0], 0
        lines = b"".join(rendered(figures, pause)).count(b"\n")
        return gathered, pauses[0], lines

    gathered, rendering, lines = control_plane.perform(look)
    assert gathered >= len(consumers) // 2
    assert rendering >= lines // 100


def test_names_are_escaped(administered: Administered):
    name = 'a"b\\c'
    administered.client.subscribe(name, 's"')
    found = samples(administered)
    escaped = labels('a\\"b\\\\c', 'subscription="s\\""')
    assert found["pulsar_subscription_back_log"][escaped] == 0


def test_topics_that_keep_nothing_are_told(administered: Administered):
    name = "non-persistent://public/default/t"
    consumer = administered.client.subscribe(name, "s")
    administered.client.create_producer(name).send(b"x")
    consumer.receive(60_000)
    found = samples(administered)
    topic = f'namespace="public/default",topic="{name}"'
    assert found["pulsar_in_messages_total"][topic] == 1
    assert found["pulsar_out_messages_total"][f'{topic},subscription="s"'] == 1
    assert found["pulsar_msg_backlog"][topic] == 0


def test_topics_that_are_not_open_are_counted_and_not_opened(administered: Administered):
    topics = administered.client.admin.topics
    for name in ("a", "b"):
        topics.create_non_partitioned_topic(name)
    topics.create_partitioned_topic("p", 3)
    for name in ("a", "b"):
        topics.unload(name)
    found = samples(administered)
    assert found["pulsar_topics_count"]['namespace="public/default"'] == 5
    assert (
        samples(administered)["pulsar_broker_topics_count"] == found["pulsar_broker_topics_count"]
    )


def test_counters_outlive_the_removal_of_what_was_counted(administered: Administered):
    client = administered.client
    producer = client.create_producer("t")
    for _ in range(3):
        producer.send(b"x")
    client.admin.topics.truncate("t")
    producer.send(b"x")
    found = samples(administered)
    assert found["pulsar_in_messages_total"][labels()] == 4


def test_rates_are_those_of_the_time_between_two_looks(open_administered: Any):
    clock = ManualClock()
    administered: Administered = open_administered(clock)
    client = administered.client
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for _ in range(120):
        producer.send(b"x")
    for _ in range(60):
        consumer.receive(60_000)
    clock.advance(LOOK_MS / 1000)
    found = samples(administered)
    assert found["pulsar_rate_in"][labels()] == 4
    assert found["pulsar_rate_out"][labels()] == 2
    clock.advance(LOOK_MS / 1000)
    clock.advance(LOOK_MS / 1000)
    assert samples(administered)["pulsar_rate_in"][labels()] == 0
    stats = administered.get("/persistent/public/default/t/stats")
    assert (stats["msgRateIn"], stats["msgInCounter"]) == (0, 120)


def test_a_counter_that_begins_anew_has_a_rate():
    rates = Rates(0)
    rates.look(10_000, {"t": (100,)})
    assert rates.per_second(20_000, "t", 200) == (10,)  # since the beginning
    rates.look(20_000, {"t": (200,)})
    assert rates.per_second(30_000, "t", 300) == (10,)  # since the first look
    assert rates.per_second(30_000, "t", 40) == (2,)  # it was opened again
    assert rates.per_second(30_000, "new", 40) == (2,)


def test_a_page_says_whether_the_folder_is_open(administered: Administered):
    assert administered.ask("GET", "//status.html").body == "OK"


def test_the_api_is_described(administered: Administered):
    found = administered.get("//openapi.json")
    assert found["openapi"].startswith("3.")
    ids = [each["operationId"] for path in found["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids)) > 150
    stats = found["paths"]["/admin/v2/{domain}/{tenant}/{namespace}/{topic}/stats"]["get"]
    assert [each["name"] for each in stats["parameters"] if each["in"] == "path"] == [
        "domain",
        "tenant",
        "namespace",
        "topic",
    ]
