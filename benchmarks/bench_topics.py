"""Many topics: creating them one by one, and a consumer of a pattern that all of them match.

Run as a program, `bench_topics.py <folder> <kind> <count>`. Kind create: a producer on each of so
many new topics. pattern: the folder has so many topics, and a consumer of all of them is attached,
whose subscriptions are new. Prints the seconds that took, and the CPU time of all threads.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import time
from pathlib import Path

from bench_idle import make_topics
from fresh_process import print_figures, run_fresh
from measurement import Measurement
from topic_in_folder import TopicInFolder

import pulsarx

PATTERN = re.compile("persistent://public/default/topic-.*")
TURNS = 3


def bench_create_topics(measurement: Measurement, scratch: Path) -> None:
    """Of the main thread, which hands each call over."""
    measure(measurement, "create_topics", scratch / "created", "create")


def bench_pattern_open(measurement: Measurement, scratch: Path) -> None:
    measure(measurement, "pattern_open", scratch / "matched", "pattern")


def measure(measurement: Measurement, row: str, folder: Path, kind: str) -> None:
    count = measurement.sizes.idle_topics
    processor: list[float] = []
    number = itertools.count()

    def turn() -> float:
        # Removed behind all turns: ext4 spares the inodes that were freed in the last minute, and
        # looks for others, which would take half of the time.
        at = folder / str(next(number))
        if kind == "pattern":
            with pulsarx.Client(at, durability="os") as client:
                make_topics(client, count)
        found = run_fresh(__file__, str(at), kind, str(count))
        processor.append(found["processor"])
        return float(found["seconds"])

    folder.mkdir()
    measurement.values(row, turn, TURNS, f"{count} topics, durability os")
    shutil.rmtree(folder)
    measurement.add_note(f"CPU time {min(processor):.3g} s")


def main(folder: str, kind: str, count: int) -> None:
    # What is loaded with the first use of a client belongs to no topic.
    with TopicInFolder(Path(f"{folder}-before")) as before:
        before.publish([b"one message"])
        before.drain(1)
    client = pulsarx.Client(folder, durability="os")
    began, processor = time.perf_counter(), time.process_time()
    if kind == "create":
        kept = [client.create_producer(f"topic-{number}") for number in range(count)]
        made = len(kept)
    else:
        consumer = client.subscribe(PATTERN, "measured")
        made = len(consumer.members())
    seconds, used = time.perf_counter() - began, time.process_time() - processor
    if made != count:
        raise RuntimeError(f"{made} of {count} topics")
    print_figures(seconds=seconds, processor=used)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
