"""Measures what one `pulsarx serve` takes, for docs/tuning.md: `capacity.py [FOLDER]`.

Prints a line of the page for each figure. FOLDER: an empty folder on the device that is meant; a
temporary one else. A minute or two.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pulsarx
from pulsarx.backups import check

HERE = Path(__file__).resolve().parent
SECONDS = "5"
TOPICS, CONNECTIONS = 2000, 200


class Server:
    """A `pulsarx serve` of the folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pulsarx", "serve", str(folder), "--port=0", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        self.http_url = self.process.stdout.readline().split()[-1]
        self.start_seconds = time.perf_counter() - began

    def metric(self, name: str) -> float:
        text = urllib.request.urlopen(f"{self.http_url}/metrics").read().decode()
        (line,) = (each for each in text.splitlines() if each.startswith(f"{name}{{"))
        return float(line.rpartition(" ")[2])

    def end(self) -> float:
        """How many seconds it took."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        assert status == 0, status
        return time.perf_counter() - began


def perf(url: str, *arguments: str) -> dict[str, Any]:
    """The last line of `pulsarx perf`."""
    run = subprocess.run(
        [sys.executable, "-m", "pulsarx", "perf", *arguments, "--url", url, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def flush_times(folder: Path, count: int = 200) -> list[float]:
    """Seconds of writing 4 KiB and flushing, of the device alone."""
    path = folder / "flushed"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(descriptor, 0, 4096 * count)
    os.fsync(descriptor)
    found = []
    for number in range(count):
        began = time.perf_counter()
        os.pwrite(descriptor, b"x" * 4096, 4096 * number)
        os.fdatasync(descriptor)
        found.append(time.perf_counter() - began)
    os.close(descriptor)
    path.unlink()
    return found


def load(url: str, size: int) -> float:
    """Messages a second, in and out at the same time, in batches of 1,000."""
    count = 2_000_000_000 // max(size, 1000)
    command = [
        sys.executable,
        str(HERE / "wire_load.py"),
        url,
        str(min(count, 2_000_000)),
        str(size),
    ]
    run = subprocess.run([*command, "1000"], capture_output=True, text=True, check=True)
    return 1 / float(json.loads(run.stdout)["elapsed"])


def said(number: float, digits: int = 2) -> str:
    """With so many digits that mean something."""
    if number <= 0:
        return "0"
    places = digits - len(str(int(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"


def main(folder: Path) -> None:
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    print(f"load before: {os.getloadavg()[0]:.1f}")
    device = statistics.median(flush_times(folder))
    print(f"- The device alone, 4 KiB written and flushed: {said(device * 1000)} ms.")
    in_process = str(folder / "in-process")
    pulsarx.Client(in_process).close()
    found = perf(in_process, "produce", "t", "-r", "0", "-s", "100", "-time", SECONDS)
    print(f"- A program with the folder, 100 bytes, batches: {said(found['rate'])} a second.")
    one = ("-o", "1", "-db", "-r", "0", "-s", "100", "-time", SECONDS)
    found = perf(in_process, "produce", "one", *one)
    print(
        f"- The same, one message at a time, each on the device before the next: "
        f"{said(found['rate'])} a second, median {found['latency_ms']['p50']:.2f} ms."
    )
    many = ("-o", "64", "-db", "-r", "0", "-s", "100", "-time", SECONDS)
    found = perf(in_process, "produce", "many", *many)
    print(f"- The same, 64 under way: {said(found['rate'])} a second.")
    served = folder / "served"
    server = Server(served)
    empty = server.metric("process_resident_memory_bytes")
    print(f"- An idle server: {said(empty / 1e6)} MB.")
    for size in (100, 1024):
        rate = load(server.url, size)
        print(
            f"- `pulsarx serve`, {size:,} bytes, batches of 1,000: {said(rate)} a second in and "
            f"out at the same time, {said(rate * size / 1e6)} MB a second each way."
        )
    before = server.metric("process_resident_memory_bytes")
    files = server.metric("process_open_fds")
    quiet = pulsarx.ConsoleLogger(pulsarx.LoggerLevel.Error)
    with pulsarx.Client(server.url, logger=quiet) as client:
        for number in range(TOPICS):
            client.create_producer(f"many-{number}").close()
    grown = server.metric("process_resident_memory_bytes") - before
    more = server.metric("process_open_fds") - files
    print(
        f"- An open topic that nobody uses: {said(max(grown, 0) / TOPICS / 1e3)} KB, "
        f"{said(max(more, 0) / TOPICS, 1)} files."
    )
    before = server.metric("process_resident_memory_bytes")
    clients = [pulsarx.Client(server.url, logger=quiet) for _ in range(CONNECTIONS)]
    for each in clients:
        each.create_producer("connections")
    grown = server.metric("process_resident_memory_bytes") - before
    print(f"- A connection with a producer: {said(max(grown, 0) / CONNECTIONS / 1e3)} KB.")
    for each in clients:
        each.close()
    began = time.perf_counter()
    urllib.request.urlopen(f"{server.http_url}/metrics").read()
    print(f"- `/metrics` of {TOPICS:,} topics: {said(time.perf_counter() - began)} s.")
    stored = sum(each.stat().st_size for each in served.rglob("*.ledger"))
    ended = server.end()
    print(f"- Ending it, with {said(stored / 1e9)} GB in its folder: {said(ended)} s.")
    server = Server(served)
    print(f"- Starting it on that folder: {said(server.start_seconds)} s until it listens.")
    server.end()
    began = time.perf_counter()
    whole = check(str(served))
    seconds = time.perf_counter() - began
    assert not whole.damage
    print(f"- `pulsarx check`: {said(stored / seconds / 1e9)} GB a second.")


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(dir=HERE))
    try:
        main(place)
    finally:
        if len(sys.argv) == 1:
            shutil.rmtree(place)
