"""Transactions of the official Java client on a real Pulsar, beside those of PulsarX in a process,
and of the same program on a folder that is served. tests/oracle starts the broker, and gives its
URL with `--pulsar-url` and the jars of a client with `--java-classpath`."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_serve import broker
from measurement import Measurement, shown
from topic_in_folder import payloads
from transacted_folder import BATCH, TransactedFolder

PROGRAM = Path(__file__).parent / "peers" / "Transactions.java"
RUN_SECONDS = 600
ROWS = {
    "real_pulsar_transaction": ("one", False),
    "real_pulsar_transaction_many": ("many", False),
    "real_pulsar_transaction_served": ("one", True),
    "real_pulsar_transaction_many_served": ("many", True),
}


def in_process(folder: Path, kind: str, count: int) -> float:
    """Seconds a transaction."""
    with TransactedFolder(folder) as opened:
        run: Callable[[int], None] = opened.many if kind == "many" else opened.one_by_one
        opened.fill(payloads(2 * count * (BATCH if kind == "many" else 1), 100))
        run(count)
        began = time.perf_counter()
        run(count)
        return (time.perf_counter() - began) / count


@pytest.mark.parametrize("row", ROWS)
def bench_java(
    measurement: Measurement, scratch: Path, request: pytest.FixtureRequest, row: str
) -> None:
    url = request.config.getoption("--pulsar-url")
    classpath = request.config.getoption("--java-classpath")
    if url is None or classpath is None:
        pytest.skip("no --pulsar-url, or no --java-classpath: make oracle measures it")
    kind, is_served = ROWS[row]
    sizes = measurement.sizes
    count = sizes.transactions if kind == "many" else sizes.durable_sends

    def java(at: str) -> float:
        command = ["java", "-Xmx400m", "-cp", classpath, str(PROGRAM), at, kind, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
        if done.returncode:
            raise RuntimeError(f"{PROGRAM.name} on {at}:\n{done.stderr[-2000:]}")
        found: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
        return found

    def here() -> float:
        folder = scratch / row
        if not is_served:
            return in_process(folder, kind, count)
        try:
            with broker("served_folder.py", str(folder), "sync") as served:
                return java(served)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    theirs: list[float] = []
    ours: list[float] = []

    def turn() -> float:
        theirs.append(java(url))
        ours.append(here())
        return theirs[-1] / ours[-1]

    measurement.values(row, turn, sizes.client_rounds)
    texts = (shown(statistics.median(each)) for each in (theirs, ours))
    measurement.add_note("a transaction {} on Pulsar, {} here".format(*texts))
