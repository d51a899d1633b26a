"""What a million received messages hold in memory while a consumer works on them.

Run as a program, `bench_memory.py <folder> <count>` receives them and prints what they take.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from fresh_process import print_figures, run_fresh
from measurement import Measurement


def bench_held_messages(measurement: Measurement, scratch: Path) -> None:
    from topic_in_folder import TopicInFolder, payloads

    held = measurement.sizes.held
    folder = scratch / "memory"
    with TopicInFolder(folder, keep=True) as topic:
        topic.publish(payloads(held, 100))
    without_files: list[float] = []

    def turn() -> float:
        found = run_fresh(__file__, str(folder), str(held))
        without_files.append(found["anonymous"])
        return float(found["resident"])

    measurement.values("memory", turn, 3)
    measurement.add_note("pages of the mapped ledgers and the list's slots counted")
    measurement.add_note(f"without those pages {statistics.median(without_files):.4g} bytes")
    shutil.rmtree(folder)


def resident() -> dict[str, int]:
    """Bytes of this process in memory; anonymous: without pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
    return {"resident": int(found["VmRSS"]) * 1024, "anonymous": int(found["RssAnon"]) * 1024}


def main(folder: str, count: int) -> None:
    import pulsarx

    client = pulsarx.Client(folder, durability="os")
    consumer: Any = client.subscribe("measured", "worker")
    first = consumer.receive()
    held = []
    before = resident()
    for _ in range(count - 1):
        held.append(consumer.receive())
    after = resident()
    assert first.data() == b"%0100d" % 0 and held[-1].data() == b"%0100d" % (count - 1)
    print_figures(**{name: (after[name] - before[name]) / (count - 1) for name in before})
    del held
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
