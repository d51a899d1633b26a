"""Acknowledging in any order: what it costs, what it holds, and how fast it is there again.

Run as a program: `bench_acknowledge.py holes <folder> <count>` acknowledges every second of 2 count
messages and is killed; `reopen <folder>` attaches and prints how long it took; `state <folder>
<count>` prints what acknowledging every second message holds in memory.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fresh_process import print_figures, run_fresh
from measurement import Measurement
from topic_in_folder import TopicInFolder, payloads

BLOCK = 1000


def received(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += consumer.receive_many(1000)
    return found


def acknowledge_seconds(consumer: Any, messages: list[Any]) -> float:
    """Whoever acknowledges a message has just worked on it, so it is near.

    Walking through a million objects in disorder is not what is measured: the empty loop costs two
    to three times of what all of an acknowledgement in order does.
    """
    acknowledge = consumer.acknowledge
    seconds = 0.0
    for at in range(0, len(messages), BLOCK):
        block = messages[at : at + BLOCK]
        for message in block:
            message.redelivery_count()
        began = time.perf_counter()
        for message in block:
            acknowledge(message)
        seconds += time.perf_counter() - began
    return seconds


def bench_random_order(measurement: Measurement, topic: TopicInFolder) -> None:
    count = measurement.sizes.held
    sent = payloads(1000, 100) * (count // 1000)
    chance = random.Random(1)
    each: dict[str, list[float]] = {"in order": [], "random": []}

    def turn() -> float:
        for name, seconds in each.items():
            topic.publish(sent)
            messages = received(topic.consumer, count)
            if name == "random":
                chance.shuffle(messages)
            seconds.append(acknowledge_seconds(topic.consumer, messages))
        return each["random"][-1] / each["in order"][-1]

    turn()  # the cursor's tail grows to its size
    measurement.values("acknowledge_random", turn, 5)
    for name, seconds in each.items():
        measurement.add_note(f"{name} {sorted(seconds)[len(seconds) // 2] / count * 1e9:.0f} ns")
    measurement.add_note(f"in blocks of {BLOCK} messages that were just looked at")


def filled(folder: Path, count: int) -> None:
    with TopicInFolder(folder, keep=True) as topic:
        topic.publish(payloads(1000, 20) * (count // 1000))


def bench_state(measurement: Measurement, scratch: Path) -> None:
    folder = scratch / "state"
    count = 2 * measurement.sizes.held

    def turn() -> float:
        filled(folder, count)
        found = run_fresh(__file__, "state", str(folder), str(count))
        shutil.rmtree(folder)
        return float(found["bytes"])

    measurement.values("acknowledge_state", turn, 3)
    measurement.add_note(f"{count // 2} holes among {count} messages")


def bench_reopen(measurement: Measurement, scratch: Path) -> None:
    folder = scratch / "holes"
    count = 2 * measurement.sizes.held
    filled(folder, count)
    path = os.pathsep.join(sys.path)
    killed = subprocess.run(
        [sys.executable, __file__, "holes", str(folder), str(count)],
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.returncode
    opened: list[float] = []

    def turn() -> float:
        found = run_fresh(__file__, "reopen", str(folder))
        assert found["backlog"] == 0, found
        opened.append(found["opened"] * 1000)
        return float(found["both"] * 1000)

    measurement.values("acknowledge_reopen", turn, measurement.sizes.starts)
    measurement.add_note(f"the folder alone {sorted(opened)[len(opened) // 2]:.3g} ms")
    shutil.rmtree(folder)


def attached(folder: str) -> tuple[Any, Any]:
    import pulsarx

    client = pulsarx.Client(folder, durability="os")
    return client, client.subscribe("measured", "worker")


def main_holes(folder: str, count: int) -> None:
    _, consumer = attached(folder)
    messages = received(consumer, count)[1::2]
    random.Random(3).shuffle(messages)
    for message in messages:
        consumer.acknowledge(message)
    os.kill(os.getpid(), signal.SIGKILL)


def main_reopen(folder: str) -> None:
    import pulsarx

    # What is loaded with the first consumer of a process is not measured.
    with tempfile.TemporaryDirectory() as empty:
        attached(empty)[0].close()
    began = time.perf_counter()
    client = pulsarx.Client(folder, durability="os")
    opened = time.perf_counter()
    consumer = client.subscribe("measured", "worker")
    both = time.perf_counter() - began
    # Of the first messages every second one is delivered: the odd ones were acknowledged.
    found = [consumer.receive().message_id().batch_index() % 2 for _ in range(100)]
    print_figures(opened=opened - began, both=both, backlog=sum(found))
    client.close()


def main_state(folder: str, count: int) -> None:
    from bench_memory import resident

    client, consumer = attached(folder)
    order = list(range(1, count, 2))
    random.Random(3).shuffle(order)
    messages = received(consumer, count)
    before = resident()["anonymous"]
    for at in order:
        consumer.acknowledge(messages[at])
    print_figures(bytes=(resident()["anonymous"] - before) / count)
    client.close()


if __name__ == "__main__":
    if sys.argv[1] == "reopen":
        main_reopen(sys.argv[2])
    else:
        {"holes": main_holes, "state": main_state}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
