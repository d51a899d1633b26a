"""`make bench-peers`: the same work by PulsarX and its peers, in alternating rounds of one run.

    PYTHONPATH=benchmarks python -m peers.rounds [--only NAME,...] [--pulsar] [--quick]
                                                 [--rounds COUNT] [--seconds SECONDS] [--write FILE]

Every peer that can be had is opened; then each way takes its turns A B C, C B A, so that noise
slows all of them, and each has either neighbour before it. A turn handles as many messages as take
it about --seconds, and at most 48 MB. The figures, nanoseconds a message of every turn, go to
peers.json; table.py and draw.py show them.
--only: peers whose names begin so, besides PulsarX. --pulsar: a real Pulsar, too, by Maven.
--quick: a few messages, to see that everything runs; nothing is written without --write.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fresh_process import TREE
from machine import described
from peers import get
from peers.peer import (
    FLIGHT,
    IN_PROCESS,
    MODES,
    OVER_TCP,
    PUBLISH,
    WAYS,
    Missing,
    Peer,
    Talker,
    batch_of,
)

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "peers.json"
SCRATCH = HERE.parent / "scratch"
SIZES = (100, 1024, 10240)
POOL = 1000  # distinct payloads
BYTES = 48 << 20
LEAST = 20

# Ours first in each place: the others are compared with it.
PEERS = (
    "pulsarx_peer:PulsarX", "pulsarx_peer:Columns", "bound:Bound", "bound:EmptyCall",
    "chronicle_peer:Chronicle", "lmdb_peer:Lmdb", "rocksdb_peer:RocksDb", "sqlite_peer:Sqlite",
    "litequeue_peer:Litequeue", "persist_queue_peer:PersistQueue", "pulsar_client_peer:Served",
    "redis_peer:RedisStreams", "nats_peer:Nats", "raw_peer:RawServed", "raw_peer:RawRedis",
)  # fmt: skip
REAL_PULSAR = "pulsar_client_peer:RealPulsar"
REAL_TALK = "pulsar_client_peer:RealTalk"
TALKERS = (
    "pulsarx_peer:Talk", "pulsarx_peer:Awake",
    "bound:ThreadQueues", "bound:UnixSocket", "bound:TcpSocket",
    "iceoryx2_peer:Talk", "iceoryx2_peer:Polling", "chronicle_peer:Conversation",
    "pulsar_client_peer:Talk", "redis_peer:Talk", "nats_peer:Talk",
)  # fmt: skip
PLACES = ("threads", "processes", OVER_TCP)

ECHO = """
import sys
from peers import get
get.use_packages()
from peers.rounds import echo, loaded
talker = loaded(sys.argv[1])(sys.argv[2], False)
print("ready", flush=True)
for line in sys.stdin:
    echo(talker, int(line))
talker.close()
"""


def loaded(where: str) -> Any:
    """A class by its module and name; Missing: its package is not there."""
    module, _, name = where.partition(":")
    try:
        return getattr(importlib.import_module(f"peers.{module}"), name)
    except ImportError as error:
        raise Missing(f"not installed: {error.name}") from error


def is_asked_for(peer: Any, only: list[str]) -> bool:
    """Ours always: the others are compared with it."""
    names = ("pulsarx", *(each.lower() for each in only))
    return not only or peer.name.lower().startswith(names)


def wanted(names: tuple[str, ...], only: list[str], skipped: dict[str, str]) -> list[Any]:
    found = []
    for where in names:
        try:
            peer = loaded(where)
        except Missing as error:
            skipped[where.partition(":")[0].removesuffix("_peer")] = str(error)
            continue
        if is_asked_for(peer, only):
            found.append(peer)
    # A served folder is only there for others to be compared with.
    others = {peer.place for peer in found if not peer.name.startswith("PulsarX")}
    return [peer for peer in found if not only or peer.place in {IN_PROCESS, *others}]


def payloads(size: int, count: int) -> list[bytes]:
    pool = [os.urandom(size) for _ in range(min(POOL, count))]
    return (pool * (count // len(pool) + 1))[:count]


class Turns:
    """Those of one peer in one way."""

    def __init__(self, peer: Peer, way: str, size: int, seconds: float) -> None:
        self.peer, self.way, self.size = peer, way, size
        self.found: list[float] = []
        self._resize(LEAST)
        self._turn()  # opens what is opened late
        if seconds:
            self._find_count(seconds)

    def _find_count(self, seconds: float) -> None:
        """Of a turn that takes so long. The last one is of that many: a JVM compiles meanwhile."""
        self._resize(100)
        for _ in range(6):
            taken = self._turn()
            if taken > seconds / 2 or self.count * self.size > BYTES * 0.9:
                break
            self._resize(self.count * min(10, seconds / taken))
        self._resize(self.count * seconds / taken)
        self._turn()

    def _resize(self, count: float) -> None:
        count = max(LEAST, min(int(count), BYTES // self.size))
        self.count = count - count % 1000 if count > 1000 else count
        self.payloads = payloads(self.size, self.count)
        prepare = getattr(self.peer, "prepare", None)
        self.prepared = prepare(self.payloads) if prepare else self.payloads

    def _turn(self) -> float:
        """Seconds of the way alone."""
        gc.collect()
        work = getattr(self.peer, self.way)
        if self.way in (*PUBLISH, FLIGHT):
            began = time.perf_counter()
            work(self.prepared)
            taken = time.perf_counter() - began
            self.peer.drain(self.count)
        else:
            self.peer.publish_batch(self.prepared)
            began = time.perf_counter()
            work(self.count)
            taken = time.perf_counter() - began
        self.peer.settle()
        return taken

    def take(self) -> None:
        self.found.append(self._turn() / self.count)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this run, gone at the end."""
    folder = SCRATCH / f"peers-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Block:
    """All ways of one mode and size. A peer that fails is left out from there on, and named."""

    def __init__(
        self, mode: str, size: int, options: argparse.Namespace, skipped: dict[str, str]
    ) -> None:
        self.mode, self.size, self.options, self.skipped = mode, size, options, skipped
        self.opened: list[Peer] = []

    def _tried(self, peer: Peer, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except Exception as error:
            self.opened.remove(peer)
            where = f"{peer.name}, {self.mode}, {self.size} bytes"
            self.skipped[where] = f"{type(error).__name__}: {error}"
            return None

    def measure(self, classes: list[type[Peer]]) -> dict[str, dict[str, list[float]]]:
        """way, name of the peer: seconds a message of each round."""
        with ExitStack() as stack:
            folder = stack.enter_context(scratch())
            for number, each in enumerate(classes):
                if self.mode in each.modes:
                    try:
                        peer = each(folder / str(number), self.mode == "flushed")
                    except Missing as error:
                        self.skipped[each.name] = str(error)
                        continue
                    stack.callback(peer.close)
                    peer.batch = batch_of(self.size)
                    self.opened.append(peer)
            return {way: self._measure_way(way) for way in WAYS}

    def _measure_way(self, way: str) -> dict[str, list[float]]:
        taking = []
        for peer in [each for each in self.opened if way in each.ways]:
            turns = self._tried(peer, Turns, peer, way, self.size, self.options.seconds)
            taking += [turns] if turns else []
        for number in range(self.options.rounds):
            for turns in taking if number % 2 == 0 else reversed(taking):
                if turns.peer in self.opened:
                    if self.mode == "flushed":
                        # What others have left is not written in this turn. Not in the page cache:
                        # who writes by a map would pay for each page that has become clean.
                        os.sync()
                    self._tried(turns.peer, turns.take)
        found = {turns.peer.name: turns.found for turns in taking if turns.peer in self.opened}
        said = ", ".join(f"{name} {statistics.median(v) * 1e6:.3g}" for name, v in found.items())
        print(f"{self.mode}, {self.size} bytes, {way}, µs: {said}", flush=True)
        return found


def echo(talker: Talker, count: int) -> None:
    for _ in range(count):
        talker.send(talker.receive())


class Conversation:
    """A talker of this thread, and one that echoes, in a thread or in a process of its own."""

    def __init__(self, where: str, between: str, address: str) -> None:
        self.where, self.between, self.address = where, between, address
        talker = loaded(where)
        self.name, self.first = talker.name, talker(address, True)
        self.second: Talker | None = None
        self.process: subprocess.Popen[str] | None = None
        if between == "threads":
            self.second = talker(address, False)
        else:
            paths = f"{HERE.parent}:{TREE}"
            self.process = subprocess.Popen(
                [sys.executable, "-c", ECHO, where, address],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": paths}, text=True,
            )  # fmt: skip
            assert self.process.stdout is not None
            if self.process.stdout.readline().strip() != "ready":
                self.close()
                raise Missing(f"{self.name}: the other process ended")

    def round_trip(self, count: int) -> float:
        """The median, in seconds, of a message of 100 bytes there and back."""
        thread = None
        if self.second is not None:
            thread = threading.Thread(target=echo, args=(self.second, count))
            thread.start()
        elif self.process is not None and self.process.stdin is not None:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        payload, taken = bytes(100), []
        send, receive = self.first.send, self.first.receive
        with self.first.turn():
            for _ in range(count):
                began = time.perf_counter()
                send(payload)
                receive()
                taken.append(time.perf_counter() - began)
        if thread is not None:
            thread.join()
        return statistics.median(taken)

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()
        elif self.second is not None:
            self.second.close()
        self.first.close()


def measure_latency(
    between: str, options: argparse.Namespace, skipped: dict[str, str]
) -> dict[str, list[float]]:
    """name: seconds of a hand-over of each round, half of a round trip."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        opened: list[Any] = []
        talkers = (*TALKERS, REAL_TALK) if options.pulsar else TALKERS
        for number, where in enumerate(talkers):
            try:
                talker = loaded(where)
                bound = where.startswith("bound:")
                if between in talker.between and (bound or is_asked_for(talker, options.only)):
                    address = str(folder / f"{between.replace(' ', '-')}-{number}")
                    own = not issubclass(talker, Talker)
                    opened.append(
                        talker(between, address) if own else Conversation(where, between, address)
                    )
                    stack.callback(opened[-1].close)
            except Missing as error:
                skipped[where.partition(":")[0].removesuffix("_peer")] = str(error)
        found: dict[str, list[float]] = {each.name: [] for each in opened}
        for turn in range(-1, options.rounds):
            for each in opened:
                taken = each.round_trip(options.trips)
                if turn >= 0:
                    found[each.name].append(taken / 2)
    said = ", ".join(f"{name} {statistics.median(v) * 1e6:.3g}" for name, v in found.items())
    print(f"hand-over, {between}, µs: {said}", flush=True)
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--pulsar", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    options.only = [name for name in options.only.split(",") if name]
    options.trips = 500
    if options.quick:
        options.rounds, options.seconds, options.trips = 1, 0, 5
    if options.write is None and not options.quick:
        options.write = FIGURES
    return options


def rounded(found: dict[str, list[float]]) -> dict[str, list[float]]:
    """Nanoseconds, as many digits as they have."""
    return {name: [float(f"{value * 1e9:.4g}") for value in each] for name, each in found.items()}


def main() -> int:
    options = arguments()
    get.use_packages()
    skipped: dict[str, str] = {}
    names = (*PEERS, REAL_PULSAR) if options.pulsar else PEERS
    machine = described("peers")
    began = time.monotonic()
    classes = wanted(names, options.only, skipped)
    places = {peer.name: peer.place for peer in classes}
    figures: dict[str, Any] = {"places": places, "turns": {}, "hand-over": {}}
    for mode in MODES:
        for size in SIZES[:1] if options.quick else SIZES:
            block = Block(mode, size, options, skipped).measure(classes)
            for way, found in block.items():
                row = figures["turns"].setdefault(f"{way}, {mode}", {})
                row[str(size)] = rounded(found)
    over_tcp = any(peer.place == OVER_TCP for peer in classes)
    for between in PLACES if over_tcp else PLACES[:2]:
        figures["hand-over"][between] = rounded(measure_latency(between, options, skipped))
    for name, why in skipped.items():
        print(f"skipped: {name}: {why}", file=sys.stderr)
    about = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"), "rounds": options.rounds,
        "minutes": round((time.monotonic() - began) / 60, 1), "machine": dict(machine),
        "skipped": skipped,
    }  # fmt: skip
    about["machine"]["load after"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    if options.write is not None:
        options.write.write_text(json.dumps(about | figures, indent=1) + "\n", encoding="utf-8")
        print(f"written: {options.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
