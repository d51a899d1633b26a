"""What `pulsarx perf` loads a topic with, and what it says of it; `pulsarx top` beside that."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import TIMEOUT, Owner, invoke, on_terminal, process, rows, start

import pulsarx
from pulsarx import MessageId
from pulsarx.cli.latencies import Figures, Latencies

pytestmark = pytest.mark.standard


def read(folder: Path, topic: str) -> list[Any]:
    with pulsarx.Client(folder) as client:
        return list(client.create_reader(topic, MessageId.earliest))


def line_of(running: subprocess.Popen[str]) -> Any:
    assert running.stdout is not None
    return json.loads(running.stdout.readline())


# perf ---------------------------------------------------------------------------------------------


def test_so_many_messages_are_produced_and_consumed(folder: Path):
    options = ("-m", "501", "-r", "0", "-s", "33", "-n", "3", "-threads", "2", "-z", "lz4")
    (produced,) = rows(invoke(folder, "perf", "produce", "loaded", *options, "-mk", "random"))
    assert produced["total"] is True
    assert (produced["messages"], produced["failures"]) == (501, 0)
    found = read(folder, "loaded")
    assert {len(each.data()) for each in found} == {33}
    assert len(found) == 501 and all(each.has_key() for each in found)
    assert len({each.producer_name() for each in found}) == 3
    command = ("perf", "consume", "loaded", "-sp", "Earliest", "-st", "Shared", "-n", "2")
    (consumed,) = rows(invoke(folder, *command, "-m", "400"))
    assert consumed["messages"] == 400
    (left,) = rows(invoke(folder, "stats", "loaded"))
    assert left["subscriptions"]["sub"]["msg_backlog"] == 101
    for each in (produced, consumed):
        assert each["rate"] > 0
        values = list(each["latency_ms"].values())[1:]
        assert values == sorted(values)


def test_batches_keys_and_entries_are_as_asked(folder: Path):
    def batches(*options: str) -> list[int]:
        command = ("perf", "produce", "-m", "200", "-r", "0", "-b", "10000", *options)
        rows(invoke(folder, *command, "--", (topic := f"t{len(options)}{random.random()}")))
        found = read(folder, topic)
        return [each.message_id().batch_index() for each in found]

    assert set(batches("-db")) == {-1}
    assert set(batches("-bm", "50")) == set(range(50))


def test_a_rate_is_kept_and_told_each_interval(folder: Path):
    running = start(folder, "perf", "produce", "loaded", "-r", "200", "-i", "0.2")
    first, second = line_of(running), line_of(running)
    assert not first["total"] and not second["total"]
    assert second["time_s"] > first["time_s"]
    running.send_signal(signal.SIGINT)
    assert running.stdout is not None
    *_, last = running.stdout
    running.communicate(timeout=TIMEOUT)
    found = json.loads(last)
    assert running.returncode == 130 and found["total"] is True
    assert found["messages"] == len(read(folder, "loaded"))
    assert found["messages"] <= 200 * found["time_s"] + 1


def test_it_ends_after_a_time(folder: Path):
    for command in ("produce", "consume"):
        done = process(folder, "perf", command, "loaded", "-time", "0.3")
        assert rows(done)[-1]["total"] is True


def test_what_goes_wrong_is_told(folder: Path):
    result = invoke(folder, "perf", "produce", "loaded", "-s", str(6 << 20), "-m", "1", "-db")
    assert result.exit_code == 1 and "MessageTooBig" in result.stderr
    result = invoke(folder, "perf", "consume", "loaded", "-n", "2", "-m", "1")
    assert result.exit_code == 1 and "ConsumerBusy" in result.stderr
    assert invoke(folder, "perf", "produce").exit_code == 2


def test_it_loads_a_topic_beside_its_owner(folder: Path, owner: Owner):
    (produced,) = rows(process(folder, "perf", "produce", "orders", "-m", "50", "-r", "0"))
    assert (produced["messages"], produced["failures"]) == (50, 0)
    (read,) = rows(process(folder, "stats", "orders"))
    assert read["messages"] == 55


def test_a_terminal_gets_a_sentence(folder: Path):
    status, shown = on_terminal(folder, "perf", "produce", "loaded", "-m", "10", "-r", "0")
    assert status == 0
    assert "In all: produced 10 messages" in shown and "p99_9" in shown


@pytest.mark.parametrize("spread", [10, 1000, 10_000_000])
def test_percentiles_are_within_a_hundredth(spread: int):
    chosen = random.Random(spread)
    values = sorted(chosen.randrange(spread) for _ in range(10_000))
    several = [Latencies(), Latencies()]
    for number, each in enumerate(values):
        several[number % 2].add(each, 7)
    before, now = Figures([Latencies()]), Figures(several)
    found = now.since(before).fields(2.0)
    assert (found["messages"], found["rate"], found["mbit_s"]) == (10_000, 5000.0, 0.28)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        exact = values[int(share * 10_000) - 1] / 1000
        assert exact <= found["latency_ms"][name] <= exact * 1.01
    assert found["latency_ms"]["mean"] == round(sum(values) / 10_000 / 1000, 3)


# top ----------------------------------------------------------------------------------------------


def test_topics_are_sorted_by_what_is_asked(folder: Path):
    with pulsarx.Client(folder) as client:
        client.create_producer("big").send(b"x" * 100_000)
        client.admin.topics.create_partitioned_topic("parts", 3)
        client.subscribe("parts", "s")
        producer = client.create_producer("parts")
        for _ in range(9):
            producer.send(b"x")

    def names(*options: str) -> list[str]:
        found = rows(invoke("elsewhere", "top", str(folder), "--once", "-i", "0.1", *options))
        return [each["topic"].rpartition("/")[2] for each in found]

    assert names()[:2] == ["parts", "orders"]
    assert names("-s", "size")[0] == "big"
    assert names("-s", "name") == ["big", "orders", "orders-billing-DLQ", "parts"]
    (parts, orders, *_) = rows(invoke(folder, "top", "--once", "-i", "0.1"))
    assert (parts["partitions"], parts["msg_backlog"], parts["subscriptions"]) == (3, 9, 1)
    assert (orders["msg_backlog"], orders["msg_rate_in"]) == (5, 0)
    assert names("-n", "public/default")[0] == "parts"
    assert invoke(folder, "top", "--once", "-n", "public/none").exit_code == 1


def test_rates_are_those_since_the_look_before(folder: Path, owner: Owner):
    running = start(folder, "top", "-s", "in", "-i", "0.1")
    while line_of(running)["msg_rate_in"] is None:
        pass  # of the first look
    owner.send("new")
    while not (found := line_of(running))["msg_rate_in"]:
        owner.send("another")  # one in a long time is a rate of nothing
    assert found["topic"].endswith("/orders")
    assert found["msg_throughput_in"] > found["msg_rate_in"]
    assert found["msg_rate_out"] == 0
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130


def test_what_is_acknowledged_is_a_rate_too(folder: Path):
    running = start(folder, "top", "-s", "out", "-i", "0.1")
    line_of(running)
    with pulsarx.Client(folder) as client:
        client.subscribe("orders", "billing").acknowledge_cumulative(
            client.admin.topics.get_last_message_id("orders")
        )
    while not (found := line_of(running))["msg_rate_out"]:
        pass
    assert found["topic"].endswith("/orders")
    assert (found["msg_backlog"], found["msg_rate_in"]) == (0, 0)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=TIMEOUT)


def test_what_is_looked_at_once_stays_on_the_screen(folder: Path):
    """It was drawn on the other screen, which is left at once, and its rates were not known."""
    status, shown = on_terminal(folder, "top", "--once", "-i", "0.1")
    assert status == 0
    assert "BACKLOG" in shown and "public/default/orders" in shown
    assert "\x1b[?1049h" not in shown
    [row] = [line for line in shown.splitlines() if line.startswith("public/default/orders ")]
    assert " - " not in row


def test_a_look_of_one_interval_tells_the_rates_in_it(folder: Path, owner: Owner):
    for _ in range(20):  # on a busy machine none may be sent between the two looks
        running = start(folder, "top", "-s", "in", "-i", "0.5", "--once")
        while running.poll() is None:
            owner.send("new")
        found = line_of(running)
        running.communicate()
        assert running.returncode == 0
        if found["msg_rate_in"]:
            break
    assert found["msg_rate_in"] > 0


def test_a_terminal_is_drawn_again_and_left_as_it_was(folder: Path):
    status, shown = on_terminal(folder, "top", "-i", "0.1", until="public/default/orders")
    assert status == 130
    assert "BACKLOG" in shown
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1
