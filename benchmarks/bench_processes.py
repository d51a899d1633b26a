"""How long a message takes from the process that sends it to the one that receives it, beside what
a byte takes to the other process and back over a Unix socket; and how many a second a process
publishes beside the owner, against the owner itself.

The owner of the folder sends and another process receives, and the other way around; the two are
measured turn by turn with the socket, in the same two processes. Confirmed as `os`: the disk is
another matter. The clock is one for all processes of the machine.

To wake a thread on a core that sleeps takes ten times what it takes on the waker's own, above all
in a virtual machine, and the system places the threads of one pair otherwise than those of the
next, and otherwise than it does the socket's. So the processes have one core together, and then one
each: there the socket's byte takes the same wake-ups.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from fresh_process import TREE
from measurement import Measurement, shown

Placement = tuple[set[int], set[int]]

# Does what the lines of its input say; `exchange` answers each byte of the socket.
OTHER = """
import os, socket, sys, time
folder, descriptor = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, map(int, sys.argv[3].split(",")))
import pulsarx
link = socket.socket(fileno=descriptor)
client = pulsarx.Client(folder, durability="os")
there = client.create_producer("there")
many = client.create_producer("many", batching_enabled=True, block_if_queue_full=True)
here = client.subscribe("here", "s")
print("ready", flush=True)
for line in sys.stdin:
    what, count = line.split()
    taken = []
    for _ in range(int(count)):
        if what == "exchange":
            link.send(link.recv(1))
        elif what == "receive":
            message = here.receive(60000)
            taken.append(time.monotonic_ns() - int(message.data()))
            here.acknowledge(message)
            link.send(b"x")
        elif what == "publish":
            payload, began = bytes(100), time.monotonic_ns()
            for _ in range(int(count)):
                many.send_async(payload, None)
            many.flush()
            taken.append(time.monotonic_ns() - began)
            break
        elif what == "send":
            link.recv(1)
            there.send(b"%d" % time.monotonic_ns())
    print(taken, flush=True)
"""


class Pair:
    """This process, which owns the folder, and another one beside it."""

    def __init__(self, folder: Path, cores: Placement) -> None:
        """cores: those of this process, and of the other one."""
        import pulsarx

        self.before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores[0])  # threads that it starts have the same
        self.client = pulsarx.Client(folder, durability="os")
        self.here = self.client.create_producer("here")
        self.there = self.client.subscribe("there", "s")
        self.many = self.client.create_producer(
            "own", batching_enabled=True, block_if_queue_full=True
        )
        self.link, theirs = socket.socketpair()
        self.other = subprocess.Popen(
            [
                sys.executable, "-c", OTHER, str(folder), str(theirs.fileno()),
                ",".join(map(str, cores[1])),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": str(TREE)}, text=True,
        )  # fmt: skip
        theirs.close()
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.other.stdout is not None
        return self.other.stdout.readline().strip()

    def _ask(self, what: str, count: int) -> None:
        assert self.other.stdin is not None
        self.other.stdin.write(f"{what} {count}\n")
        self.other.stdin.flush()

    def socket_ns(self, count: int) -> float:
        """A byte to the other process and back."""
        self._ask("exchange", count)
        taken = []
        for _ in range(count):
            began = time.monotonic_ns()
            self.link.send(b"x")
            self.link.recv(1)
            taken.append(time.monotonic_ns() - began)
        self._line()
        return statistics.median(taken)

    def from_owner_ns(self, count: int) -> float:
        """A message of the owner to the other process."""
        self._ask("receive", count)
        for _ in range(count):
            self.here.send(b"%d" % time.monotonic_ns())
            self.link.recv(1)
        return statistics.median(json.loads(self._line()))

    def to_owner_ns(self, count: int) -> float:
        """A message of the other process to the owner."""
        self._ask("send", count)
        taken = []
        for _ in range(count):
            self.link.send(b"x")
            message = self.there.receive(60_000)
            taken.append(time.monotonic_ns() - int(message.data()))
            self.there.acknowledge(message)
        self._line()
        return statistics.median(taken)

    def publish_here_ns(self, count: int) -> float:
        """So many messages of 100 bytes of the owner, the last confirmed."""
        payload, began = bytes(100), time.monotonic_ns()
        for _ in range(count):
            self.many.send_async(payload, None)
        self.many.flush()
        return time.monotonic_ns() - began

    def publish_there_ns(self, count: int) -> float:
        """The same of the other process."""
        self._ask("publish", count)
        return json.loads(self._line())[0]

    def close(self) -> None:
        self.other.stdin.close()  # type: ignore[union-attr]
        self.other.wait()
        self.client.close()
        os.sched_setaffinity(0, self.before)


def bench_between_processes(measurement: Measurement, scratch: Path) -> None:
    count = measurement.sizes.round_trips // 10
    every = os.sched_getaffinity(0)
    first, last = {min(every)}, {max(every)}
    places: dict[str, Placement] = {
        "on one core": (first, first),
        "on a core each": (first, last),
        "where the system places them": (every, every),
    }
    notes = []
    ratios: dict[str, list[float]] = {}
    for place, cores in places.items():
        pair = Pair(scratch / place.replace(" ", "-"), cores)
        for way in (pair.socket_ns, pair.from_owner_ns, pair.to_owner_ns):
            way(count)
        found: dict[str, list[float]] = {"socket": [], "from": [], "to": []}
        for _ in range(measurement.sizes.rounds):
            found["socket"].append(pair.socket_ns(count))
            found["from"].append(pair.from_owner_ns(count))
            found["to"].append(pair.to_owner_ns(count))
        pair.close()
        ratios[place] = [
            max(ways) / byte
            for byte, *ways in zip(found["socket"], found["from"], found["to"], strict=True)
        ]
        medians = {name: shown(statistics.median(each) * 1e-9) for name, each in found.items()}
        notes.append(
            f"{place} {statistics.median(ratios[place]):.3g}: from the owner {medians['from']}, "
            f"to it {medians['to']}, the socket {medians['socket']}"
        )
    slower = max(list(places)[:2], key=lambda place: statistics.median(ratios[place]))
    taken = iter(ratios[slower])
    measurement.values("between_processes", lambda: next(taken), measurement.sizes.rounds)
    measurement.add_note("; ".join(notes))


def bench_forwarded_send(measurement: Measurement, scratch: Path) -> None:
    """With batches, as many in flight as a producer has without options."""
    every = os.sched_getaffinity(0)
    pair = Pair(scratch / "forwarded", (every, every))
    count = measurement.sizes.messages
    for way in (pair.publish_here_ns, pair.publish_there_ns):
        way(count)
    rates: dict[str, list[float]] = {"owner": [], "other": []}

    def turn() -> float:
        own, others = pair.publish_here_ns(count), pair.publish_there_ns(count)
        rates["owner"].append(count * 1e9 / own)
        rates["other"].append(count * 1e9 / others)
        return own / others

    measurement.values("forwarded_send", turn, measurement.sizes.rounds)
    pair.close()
    medians = {name: f"{statistics.median(each) / 1e6:.3g}" for name, each in rates.items()}
    measurement.add_note(
        f"million messages a second: the owner {medians['owner']}, beside it {medians['other']}"
    )
