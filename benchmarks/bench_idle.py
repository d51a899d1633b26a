"""What a client does while nobody asks it for anything: nothing.

Run as a program, `bench_idle.py <folder> <seconds>`: a client that has published and consumed, with
one consumer blocked in receive(); prints the CPU time of all threads but the one that waits.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import threading
import time
from pathlib import Path

from fresh_process import print_figures, run_fresh
from measurement import Measurement

# Deadlines armed by the traffic before (flush interval, batch delay) may come due in this time.
SETTLING_SECONDS = 0.5


def bench_idle_client(measurement: Measurement, scratch: Path) -> None:
    folder = scratch / "idle"
    seconds = measurement.sizes.idle_seconds
    threads: list[float] = []

    def turn() -> float:
        found = run_fresh(__file__, str(folder), str(seconds))
        shutil.rmtree(folder)
        threads.append(found["threads"])
        return float(found["others"] * 1e6 / seconds)

    measurement.values("idle", turn, 3)
    measurement.add_note(f"{statistics.median(threads):.0f} threads besides the one that measures")
    measurement.add_note(f"{seconds:g} s, a consumer waiting in receive()")


def cpu_seconds() -> dict[str, float]:
    """CPU time of each thread of this process."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        # The first number of schedstat is nanoseconds on a processor.
        text = Path(f"/proc/self/task/{task}/schedstat").read_text()
        found[task] = int(text.split()[0]) * 1e-9
    return found


def main(folder: str, seconds: float) -> None:
    from topic_in_folder import TopicInFolder, payloads

    topic = TopicInFolder(Path(folder), keep=True)
    topic.publish(payloads(10_000, 100))
    topic.drain(10_000)
    blocked = threading.Thread(target=receive_until_closed, args=(topic,), daemon=True)
    blocked.start()
    time.sleep(SETTLING_SECONDS)
    me = str(threading.get_native_id())
    before = cpu_seconds()
    time.sleep(seconds)
    after = cpu_seconds()
    used = {task: now - before.get(task, 0.0) for task, now in after.items()}
    print_figures(others=sum(used.values()) - used[me], threads=len(used) - 1)
    topic.client.close()
    blocked.join()


def receive_until_closed(topic: object) -> None:
    import pulsarx

    try:
        topic.consumer.receive()  # type: ignore[attr-defined]
    except pulsarx.AlreadyClosed:
        pass


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
