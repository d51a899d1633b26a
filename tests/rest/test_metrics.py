"""`/metrics`, in the text format of Prometheus, under the names that Pulsar has."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from administered import Administered
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.broker.topics.counted_rates import LOOK_MS, Rates
from pulsarx.clock import ManualClock, wall_ms
from pulsarx.rest.metric_table import LEVELS
from pulsarx.rest.metrics import Figures, rendered
from pulsarx.testing import fault_plan

FALLING = {each.name for level in LEVELS for each in level.metrics if each.falls}
SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (-?[\d.e+-]+)')


def samples(administered: Administered, query: str = "") -> dict[str, dict[str, float]]:
    """By metric, the values by labels but the cluster. Each metric is in one block, below its
    type."""
    reply = administered.ask("GET", f"//metrics{query}")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, dict[str, float]] = {}
    current = ""
    told = ""
    for line in reply.body.splitlines():
        if line.startswith("# HELP "):
            told = line.split()[2]
            continue
        if line.startswith("# TYPE "):
            current, kind = line.split()[2:]
            assert current == told and current not in found
            is_counter = current.endswith("_total") and current not in FALLING
            assert kind == ("counter" if is_counter else "gauge")
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


def test_what_is_told_is_what_is_declared(open_administered: Any, tmp_path: Path):
    administered: Administered = open_administered(folder=tmp_path)
    client = administered.client
    client.subscribe("t", "s")
    client.create_producer("t").send(b"x")
    found = samples(administered, "?consumers=true")
    for level in LEVELS:
        for each in level.metrics:
            names = {frozenset(re.findall(r'(\w+)="', labels)) for labels in found[each.name]}
            assert frozenset(level.labels) - {"cluster"} in names, each.name
    assert set(found) == {each for level in LEVELS for each in level.names}


def test_the_device_and_the_process_are_told(open_administered: Any, tmp_path: Path):
    administered: Administered = open_administered(folder=tmp_path)
    found = samples(administered)
    free, size = (found[f"pulsarx_storage_{each}_bytes"][""] for each in ("free", "capacity"))
    assert 0 < free <= size == shutil.disk_usage(tmp_path).total
    assert 0 < found["process_open_fds"][""] < found["process_max_fds"][""]
    assert found["process_resident_memory_bytes"][""] > 1 << 20
    assert found["process_cpu_seconds_total"][""] > 0
    assert 0 < found["process_start_time_seconds"][""] < wall_ms() / 1000
    assert list(found["pulsarx_build_info"].values()) == [1]


def test_a_folder_in_memory_has_no_device(administered: Administered):
    found = samples(administered)
    assert not found["pulsarx_storage_free_bytes"] and not found["pulsarx_storage_capacity_bytes"]


def test_the_age_of_the_oldest_message_is_told_of_each_subscription(open_administered: Any):
    clock = ManualClock()
    administered: Administered = open_administered(clock)
    client = administered.client
    client.subscribe("t", "behind").close()
    consumer = client.subscribe("t", "up to date")
    client.create_producer("t").send(b"x")
    consumer.acknowledge(consumer.receive(60_000))
    clock.advance(seconds=90)
    ages = samples(administered)["pulsarx_subscription_backlog_age_seconds"]
    assert ages[labels("t", 'subscription="behind"')] == 90
    assert ages[labels("t", 'subscription="up to date"')] == -1


def test_a_flush_that_failed_is_told_until_the_folder_is_opened_anew(tmp_path: Path):
    failed = "pulsarx_storage_flush_failed"
    administered = Administered(folder=tmp_path, durability="sync")
    producer = administered.client.create_producer("t")
    administered.client.create_producer("other").send(b"x")
    producer.send(b"x")
    assert samples(administered)[failed] == {labels("t"): 0, labels("other"): 0}
    with fault_plan() as plan:
        plan.fail("flush", error=errno.EIO)
        with pytest.raises(errors.LedgerPoisonedError):
            producer.send(b"y")
    found = samples(administered)
    assert found[failed] == {labels("t"): 1, labels("other"): 0}
    assert found["pulsarx_broker_storage_flush_failed"][""] == 1
    with suppress(errors.LedgerPoisonedError):
        administered.close()
    administered = Administered(folder=tmp_path, durability="sync")
    administered.client.create_producer("t").send(b"z")
    assert samples(administered)[failed] == {labels("t"): 0}
    administered.close()


def test_a_commit_of_which_nobody_knows_is_told(tmp_path: Path):
    administered = Administered(folder=tmp_path, durability="sync")
    administered.client.create_producer("t").send(b"x")
    assert samples(administered)["pulsarx_catalogue_failed"][""] == 0
    with fault_plan() as plan:
        plan.fail("flush_directory", error=errno.EIO)
        with pytest.raises(errors.PulsarException):
            administered.client.admin.namespaces.create_namespace("public/new")
    assert samples(administered)["pulsarx_catalogue_failed"][""] == 1
    with suppress(errors.PulsarException):
        administered.close()


def test_damage_that_a_subscription_meets_is_counted(open_administered: Any, tmp_path: Path):
    with pulsarx.Client(str(tmp_path)) as client:
        client.subscribe("t", "s").close()
        producer = client.create_producer("t", batching_enabled=False)
        for _ in range(3):
            producer.send(b"x" * 100)
    (ledger,) = tmp_path.glob("ledgers/*/*.ledger")
    data = bytearray(ledger.read_bytes())
    data[data.index(b"x" * 100, 4096) + 50] ^= 1
    ledger.write_bytes(data)
    administered: Administered = open_administered(folder=tmp_path)
    assert samples(administered)["pulsarx_damage_found_total"][""] == 0
    consumer = administered.client.subscribe("t", "s")
    with pytest.raises(errors.CorruptDataError):
        consumer.receive(60_000)

    def is_told() -> bool:  # of which the log hears last
        found = samples(administered)
        errors_told = found["pulsarx_log_messages_total"]['level="error"']
        return found["pulsarx_damage_found_total"][""] == 1 and errors_told >= 1

    wait_until(is_told)
    assert consumer.receive(60_000).data() == b"x" * 100


def test_damage_of_a_cursor_is_counted(open_administered: Any, tmp_path: Path):
    with pulsarx.Client(str(tmp_path)) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send_many([b"x"] * 3)
        consumer.acknowledge(consumer.receive(60_000))
    for cursor in tmp_path.glob("cursors/*"):
        cursor.write_bytes(b"?" * cursor.stat().st_size)
    administered: Administered = open_administered(folder=tmp_path)
    administered.client.subscribe("t", "s")
    assert samples(administered)["pulsarx_damage_found_total"][""] == 1


@pytest.mark.standard
def test_a_ledger_that_is_gone_with_its_owner_is_counted(open_administered: Any, tmp_path: Path):
    """Its owner died, so it was open."""
    program = (
        "import os, sys, pulsarx\n"
        "client = pulsarx.Client(sys.argv[1])\n"
        "client.create_producer('t').send_many([b'x'] * 3)\n"
        "os._exit(0)\n"
    )
    package = str(Path(pulsarx.__file__).parent.parent)
    environment = os.environ | {"PYTHONPATH": package}
    subprocess.run([sys.executable, "-c", program, tmp_path], env=environment, check=True)
    for ledger in tmp_path.glob("ledgers/*/*.ledger"):
        ledger.unlink()
    administered: Administered = open_administered(folder=tmp_path)
    administered.client.create_producer("t").send(b"y")
    assert samples(administered)["pulsarx_damage_found_total"][""] == 1


def test_what_the_log_says_is_counted_and_said(
    administered: Administered, caplog: pytest.LogCaptureFixture
):
    before = samples(administered)["pulsarx_log_messages_total"]
    logger = logging.getLogger("pulsarx")
    logger.error("one of a test")
    logger.warning("another one")
    logger.info("none that counts")
    found = samples(administered)["pulsarx_log_messages_total"]
    grown = {level: found[level] - before[level] for level in found}
    assert grown == {'level="warning"': 1, 'level="error"': 1, 'level="critical"': 0}
    assert [each.message for each in caplog.records if "one" in each.message][:1] == [
        "one of a test"
    ]
    administered.service.close()
    assert not any(type(each).__name__ == "LogCount" for each in logger.filters)


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
