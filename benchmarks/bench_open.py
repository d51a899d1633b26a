"""Starting: the import, an empty folder, and folders with ledgers, each in a fresh interpreter.

Run as a program, `bench_open.py <folder>` opens the folder and prints how long it took.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh_process import TREE, print_figures, run_fresh
from measurement import Measurement, Sizes

IMPORT_AND_OPEN = """
import time
began = time.perf_counter()
import pulsarx
imported = time.perf_counter()
import sys
client = pulsarx.Client(sys.argv[1])
opened = time.perf_counter()
print('{"imported": %f, "opened": %f}' % (imported - began, opened - began))
"""
BARE = "print('{}')"
ROOM = 2.0  # times the bytes to be written must be free: a full disk is another test


def fill(folder: Path, size: int, sizes: Sizes) -> None:
    """Publish size bytes in messages of 1 KiB; nothing is acknowledged, so all of it stays."""
    from topic_in_folder import TopicInFolder, payloads

    messages = payloads(1000, 1024)
    calls = max(size // (1024 * len(messages)), 1)
    # Quick sizes do not fill a ledger; closing seals one, so there are several all the same.
    parts = min(4, calls) if sizes.quick else 1
    for part in range(parts):
        with TopicInFolder(folder, keep=True) as topic:
            for _ in range(part * calls // parts, (part + 1) * calls // parts):
                topic.producer.send_many(messages)


@pytest.fixture(scope="module")
def folders(scratch: Path, sizes: Sizes) -> Iterator[tuple[Path, Path]]:
    """A folder and one with ten times as much."""
    wanted = sum(sizes.folder_bytes) * ROOM
    free = shutil.disk_usage(scratch).free
    if free < wanted:
        pytest.fail(f"{wanted / 1e9:.0f} GB must be free for this, and {free / 1e9:.0f} are")
    found = (scratch / "open-smaller", scratch / "open-larger")
    try:
        for folder, size in zip(found, sizes.folder_bytes):
            fill(folder, size, sizes)
        yield found
    finally:
        for folder in found:
            shutil.rmtree(folder, ignore_errors=True)


def described(folder: Path) -> str:
    stored = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    ledgers = sum(1 for size in stored if size >= 64 << 10)
    return f"{sum(stored) / 1e9:.2f} GB in {ledgers} ledgers"


def open_ms(folder: Path) -> dict[str, float]:
    found = run_fresh(__file__, str(folder))
    return {name: value * 1000 for name, value in found.items()}


def bench_large(measurement: Measurement, folders: tuple[Path, Path]) -> None:
    attached: list[float] = []

    def turn() -> float:
        found = open_ms(folders[1])
        attached.append(found["attached"])
        return found["opened"]

    measurement.values("open_large", turn, measurement.sizes.starts)
    measurement.add_note(described(folders[1]))
    measurement.add_note(f"with attaching to its subscription {statistics.median(attached):.3g} ms")


def bench_any_size(measurement: Measurement, folders: tuple[Path, Path]) -> None:
    smaller: list[float] = []
    larger: list[float] = []

    def turn() -> float:
        smaller.append(open_ms(folders[0])["opened"])
        larger.append(open_ms(folders[1])["opened"])
        return larger[-1] / smaller[-1]

    measurement.values("open_any_size", turn, measurement.sizes.starts)
    measurement.add_note(f"{described(folders[0])}: {statistics.median(smaller):.3g} ms")
    measurement.add_note(f"{described(folders[1])}: {statistics.median(larger):.3g} ms")


def bench_import_and_open(measurement: Measurement, scratch: Path) -> None:
    """Of whole processes, from their start to their end, which closes the client. The library lies
    there as pip installs it: the build tree is made of symbolic links."""
    installed = scratch / "installed"
    shutil.copytree(TREE, installed, ignore=shutil.ignore_patterns("__pycache__"))
    figures: dict[str, list[float]] = {"imported": [], "opened": [], "bare": [], "whole": []}
    number = iter(range(1_000_000))

    def whole_ms(*arguments: str) -> float:
        began = time.perf_counter()
        found = run_fresh("-c", *arguments, tree=installed)
        passed = (time.perf_counter() - began) * 1000
        for name, value in found.items():
            figures[name].append(value * 1000)
        return passed

    def turn() -> float:
        empty = scratch / f"empty-{next(number)}"
        empty.mkdir()
        bare = whole_ms(BARE)
        whole = whole_ms(IMPORT_AND_OPEN, str(empty))
        figures["bare"].append(bare)
        figures["whole"].append(whole)
        return whole / bare

    turn()
    measurement.values("import_and_open", turn, 5 * measurement.sizes.starts)
    median = {name: statistics.median(values) for name, values in figures.items()}
    measurement.add_note(
        f"a bare interpreter {median['bare']:.3g} ms, the whole {median['whole']:.3g} ms, in it: "
        f"open after {median['opened']:.3g} ms, the import alone {median['imported']:.3g} ms"
    )


def main(folder: str) -> None:
    import pulsarx

    # What is loaded with the first client and consumer of a process is not measured.
    with tempfile.TemporaryDirectory() as empty:
        client = pulsarx.Client(empty, durability="os")
        client.subscribe("measured", "worker")
        client.close()
    began = time.perf_counter()
    client = pulsarx.Client(folder, durability="os")
    opened = time.perf_counter()
    client.subscribe("measured", "worker")
    attached = time.perf_counter()
    print_figures(opened=opened - began, attached=attached - began)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1])
