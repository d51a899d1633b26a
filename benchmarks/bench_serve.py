"""What a served folder takes over TCP: the official client on it beside the same client on a broker
that does nothing, a load that costs its generator little, and single messages beside what storing
them costs at least."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from floor_build import floors, wire_flight
from fresh_process import TREE, run_fresh
from measurement import Measurement, shown
from wire_load import IN_FLIGHT, Connection, sends

from pulsarx._pycore.ranges.entry_codec import encode_batch

HERE = Path(__file__).parent
CLIENT = str(HERE / "client_cost.py")
LOAD = str(HERE / "wire_load.py")
SIZE = 100
# What a message of that size takes in a ledger: frame, metadata, payload.
RECORD = b"\xa5" * 224
floors_cached = cache(floors)

CLIENT_ROWS = {"serve_send_async": "send_async", "serve_receive": "receive", "serve_send": "send"}
LOAD_ROWS = {"serve_load_1000": 1000, "serve_load_100": 100, "serve_load_1": 1}


@contextmanager
def broker(script: str, *arguments: str) -> Iterator[str]:
    """The URL of a broker in a process of its own."""
    paths = os.pathsep.join(filter(None, [str(TREE), os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="module")
def idle() -> Iterator[str]:
    with broker("idle_broker.py") as url:
        yield url


@pytest.fixture
def served(scratch: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with broker("served_folder.py", str(scratch / request.node.name)) as url:
        yield url


@pytest.mark.parametrize("row", CLIENT_ROWS)
def bench_client(measurement: Measurement, idle: str, served: str, row: str) -> None:
    pytest.importorskip("pulsar", reason="the official client is not installed: pulsar-client")
    sizes = measurement.sizes
    verb = CLIENT_ROWS[row]
    count = sizes.client_sends if verb == "send" else sizes.messages
    ceiling: list[float] = []
    ours: list[float] = []

    def turn() -> float:
        for url, found in ((idle, ceiling), (served, ours)):
            done = run_fresh(CLIENT, "pulsar", url, verb, str(SIZE), str(count))
            found.append(done["elapsed"])
        return ceiling[-1] / ours[-1]

    measurement.values(row, turn, sizes.client_rounds)
    texts = (shown(statistics.median(each)) for each in (ceiling, ours))
    measurement.add_note("a message {} on a broker that does nothing, {} here".format(*texts))


@pytest.mark.parametrize("row", LOAD_ROWS)
def bench_load(measurement: Measurement, served: str, row: str) -> None:
    batch = LOAD_ROWS[row]
    count = max(measurement.sizes.load_messages // (1 if batch > 1 else 100), batch)

    def turn() -> float:
        done = run_fresh(LOAD, served, str(count), str(SIZE), str(batch))
        rate: float = 1 / done["elapsed"]
        return rate

    measurement.values(row, turn, measurement.sizes.client_rounds)


class Sender:
    """Sends single messages to a served folder, whose confirmations it only counts."""

    def __init__(self, url: str, count: int) -> None:
        self._connection = Connection(url)
        self._connection.ask("PRODUCER", producer_id=0, topic="t", request_id=1)
        entry = encode_batch([(bytes(SIZE), {})], producer_name="bench", publish_time_ms=1)
        self._frames = sends(entry, count)
        self._fly = wire_flight().fly

    def send(self) -> float:
        """The seconds in which all are sent and confirmed."""
        began = time.perf_counter()
        self._fly(self._connection.socket.fileno(), self._frames, IN_FLIGHT, False)
        return time.perf_counter() - began

    def send_one(self) -> float:
        began = time.perf_counter()
        self._fly(self._connection.socket.fileno(), self._frames[:1], 1, False)
        return time.perf_counter() - began


class Floor:
    """A file with room for so many records, as the ledger writes them."""

    def __init__(self, path: Path, count: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.pwrite(self._fd, bytes(len(RECORD) * count), 0)
        os.fsync(self._fd)
        self._records = RECORD * count
        self._flushed = 0

    def write(self) -> float:
        """The seconds in which all records are written, one by one."""
        write = floors_cached().write_blocks
        began = time.perf_counter()
        write(self._fd, self._records, len(RECORD), 0, False)
        return time.perf_counter() - began

    def flush_one(self) -> float:
        """The seconds in which one record is written and flushed."""
        flush = floors_cached().write_and_flush
        began = time.perf_counter()
        flush(self._fd, RECORD, self._flushed, 1)
        self._flushed += len(RECORD)
        return time.perf_counter() - began


def bench_flight(measurement: Measurement, served: str, scratch: Path) -> None:
    """Those that come together are stored with one write, and confirmed with one."""
    count = max(measurement.sizes.load_messages // 100, IN_FLIGHT)
    sender, floor = Sender(served, count), Floor(scratch / "flight-floor", count)
    ours: list[float] = []

    def turn() -> float:
        at_least = floor.write()
        ours.append(sender.send() / count)
        return at_least / (ours[-1] * count)

    turn()
    measurement.values("serve_flight", turn, measurement.sizes.client_rounds)
    measurement.add_note(f"a message {shown(statistics.median(ours))}")


def bench_durable(measurement: Measurement, scratch: Path) -> None:
    """The thread that reads a single message flushes and answers it. By turns, as a device is slow
    for a while and quick for a while."""
    count, rounds = measurement.sizes.durable_sends, measurement.sizes.client_rounds
    floor = Floor(scratch / "durable-floor", count * (rounds + 1))
    ours: list[float] = []
    with broker("served_folder.py", str(scratch / "durable"), "sync") as url:
        sender = Sender(url, 1)

        def turn() -> float:
            times = [(floor.flush_one(), sender.send_one()) for _ in range(count)]
            at_least, median = (statistics.median(each) for each in zip(*times, strict=True))
            ours.append(median)
            return median / at_least

        turn()
        measurement.values("serve_durable", turn, rounds)
    measurement.add_note(f"a message {shown(statistics.median(ours))}")
