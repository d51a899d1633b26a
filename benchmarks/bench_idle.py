"""What a client does while nobody asks it for anything: nothing. What many topics and subscriptions
hold meanwhile.

Run as a program, `bench_idle.py <folder> <seconds> <kind> <count>`. Kind client: one that has
published and consumed, with one consumer blocked in receive(). topics: one that has opened so many
topics. subscriptions: one that had a consumer on each of so many subscriptions of a topic. Behind
these, ", kept": producers and consumers are still there. Prints the CPU time of all threads but the
one that waits, and how much memory one of the many holds.
"""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_memory import resident
from fresh_process import print_figures, run_fresh
from measurement import Measurement
from topic_in_folder import TopicInFolder, payloads

import pulsarx
from pulsarx.testing import inspect

# Deadlines armed by the traffic before (flush interval, batch delay) may come due in this time.
SETTLING_SECONDS = 0.5


def bench_idle_client(measurement: Measurement, scratch: Path) -> None:
    folder = scratch / "idle"
    seconds = measurement.sizes.idle_seconds
    threads: list[float] = []

    def turn() -> float:
        found = run_fresh(__file__, str(folder), str(seconds), "client", "1")
        shutil.rmtree(folder)
        threads.append(found["threads"])
        return float(found["others"] * 1e6 / seconds)

    measurement.values("idle", turn, 3)
    measurement.add_note(f"{statistics.median(threads):.0f} threads besides the one that measures")
    measurement.add_note(f"{seconds:g} s, a consumer waiting in receive()")


def bench_idle_topics(measurement: Measurement, scratch: Path) -> None:
    """Each was asked for a producer once, which is closed."""
    folder = scratch / "topics"
    many(measurement, "idle_topics", folder, measurement.sizes.idle_topics, make_topics)


def bench_idle_subscriptions(measurement: Measurement, scratch: Path) -> None:
    """Of one topic, durable, used before; a consumer came and left in this process."""
    folder = scratch / "subscriptions"
    count = measurement.sizes.idle_subscriptions
    many(measurement, "idle_subscriptions", folder, count, make_subscriptions)


def many(
    measurement: Measurement,
    row: str,
    folder: Path,
    count: int,
    make: Callable[[pulsarx.Client, int], None],
) -> None:
    seconds = measurement.sizes.idle_seconds
    with pulsarx.Client(folder, durability="os") as client:
        make(client, count)
    used: list[float] = []

    def turn(kept: str = "") -> float:
        found = run_fresh(__file__, str(folder), str(seconds), row.split("_")[1] + kept, str(count))
        used.append(found["others"] * 1e6 / seconds)
        return float(found["each"])

    measurement.values(row, turn, 3, f"{count} of them, resident, their catalogue counted")
    measurement.add_note(f"with its producer or consumer {turn(', kept'):.4g} bytes")
    measurement.add_note(f"CPU time {max(used):.3g} µs a second")
    shutil.rmtree(folder)


def make_topics(client: pulsarx.Client, count: int) -> None:
    # In one commit of the catalogue: one for each would wait for the disk as often.
    catalogue = inspect(client).catalogue
    catalogue.commit(
        [
            {
                "op": "create_topic",
                "topic": f"persistent://public/default/topic-{number}",
                "topic_id": catalogue.allocate_id(),
            }
            for number in range(count)
        ]
    )


def make_subscriptions(client: pulsarx.Client, count: int) -> None:
    earliest = pulsarx.InitialPosition.Earliest
    client.create_producer("measured").send(b"one message")
    for number in range(count):
        consumer = client.subscribe("measured", f"worker-{number}", initial_position=earliest)
        consumer.acknowledge(consumer.receive())
        consumer.close()


def cpu_seconds() -> dict[str, float]:
    """CPU time of each thread of this process."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        # The first number of schedstat is nanoseconds on a processor.
        text = Path(f"/proc/self/task/{task}/schedstat").read_text()
        found[task] = int(text.split()[0]) * 1e-9
    return found


def main(folder: str, seconds: float, kind: str, count: int) -> None:
    if kind == "client":
        topic = TopicInFolder(Path(folder), keep=True)
        topic.publish(payloads(10_000, 100))
        topic.drain(10_000)
        blocked = threading.Thread(target=receive_until_closed, args=(topic,), daemon=True)
        blocked.start()
        print_figures(**cpu_time_of_others(seconds))
        topic.client.close()
        blocked.join()
        return
    # What is loaded with the first use of a client belongs to nobody.
    with TopicInFolder(Path(f"{folder}-before")) as before:
        before.publish([b"one message"])
        before.drain(1)
    empty = resident()["resident"]
    client = pulsarx.Client(folder, durability="os")
    kept: list[Any] = []
    for number in range(count):
        if kind.startswith("topics"):
            made: Any = client.create_producer(f"topic-{number}")
        else:
            made = client.subscribe("measured", f"worker-{number}")
        if kind.endswith("kept"):
            kept.append(made)
        else:
            made.close()
    gc.collect()
    each = (resident()["resident"] - empty) / count
    print_figures(each=each, **cpu_time_of_others(seconds))
    client.close()


def cpu_time_of_others(seconds: float) -> dict[str, float]:
    """What the threads besides this one use while it sleeps, and how many they are."""
    time.sleep(SETTLING_SECONDS)
    me = str(threading.get_native_id())
    before = cpu_seconds()
    time.sleep(seconds)
    after = cpu_seconds()
    used = {task: now - before.get(task, 0.0) for task, now in after.items()}
    return {"others": sum(used.values()) - used[me], "threads": len(used) - 1}


def receive_until_closed(topic: TopicInFolder) -> None:
    try:
        topic.consumer.receive()
    except pulsarx.AlreadyClosed:
        pass


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
