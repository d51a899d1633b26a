"""Threads that wait, in a process in which one wake may be dropped: `waiting_child.py FOLDER WAY
NUMBER SECONDS`. It wakes a waiting thread some times, and then again and again with one wake of the
event of this number dropped (-1: none). Each time it waits for the very event that the thread has
got what was sent, by a deadline.

Prints `EVENTS lost` or `EVENTS came`: how many events a message wakes, and whether one message did
not come. A drop does nothing where the thread was about to look once more, so it is waited for that
it sleeps, where it does, and tried several times.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
for each in ("core", "sharing", "api", "."):
    sys.path.insert(0, str(HERE.parent / each))

from compiled_modules import imported  # noqa: E402
from planted_code import plant  # noqa: E402
from sharing_process import SharingProcess  # noqa: E402

import pulsarx  # noqa: E402

PATIENCE = 60.0
NOTED_ROUNDS = 3
ROUNDS = 15


class Arrivals:
    """Counts what has come; whoever waits does so for that."""

    def __init__(self) -> None:
        # Of Python: its condition needs no wake of the library.
        self._changed = threading.Condition()
        self._count = 0

    def note(self, *_: object) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def pause_until(self, holds: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not holds() and time.monotonic() < end:
            with self._changed:
                self._changed.wait(0.001)

    def wait(self, count: int, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._count >= count, seconds)


def receiving(client: pulsarx.Client, arrivals: Arrivals) -> None:
    consumer = client.subscribe("t", "s")

    def run() -> None:
        while True:
            consumer.acknowledge(consumer.receive())
            arrivals.note()

    threading.Thread(target=run, daemon=True).start()


def listening(client: pulsarx.Client, arrivals: Arrivals) -> None:
    client.subscribe("t", "s", message_listener=arrivals.note)


def of_two_topics(client: pulsarx.Client, arrivals: Arrivals) -> None:
    consumer = client.subscribe(["t", "u"], "s", pulsarx.ConsumerType.Shared)

    def run() -> None:
        while True:
            consumer.acknowledge(consumer.receive())
            arrivals.note()

    threading.Thread(target=run, daemon=True).start()


WAYS: dict[str, Callable[[pulsarx.Client, Arrivals], None]] = {
    "receive": receiving,
    "durable receive": receiving,
    "listener": listening,
    "two topics": of_two_topics,
    "guest": receiving,
}


def main(folder: str, way: str, number: int, seconds: float) -> None:
    wakes = imported(HERE / "dropped_wakes.pyx")
    plant("pulsarx._core.wait_event", "wait_event_wake", wakes.address_of_wake())
    plant("pulsarx._core.wait_event", "wait_event_wake_one", wakes.address_of_wake_one())
    durability = "sync" if way == "durable receive" else "os"
    owner = SharingProcess(Path(folder), durability="os") if way == "guest" else None
    client = pulsarx.Client(folder, durability=None if owner else durability)
    arrivals = Arrivals()
    WAYS[way](client, arrivals)
    if owner is not None:
        owner.run("producer = client.create_producer('t')")
        send = lambda: owner.run("producer.send(b'x')")  # noqa: E731
    else:
        producer = client.create_producer("t")
        send = lambda: producer.send(b"x")  # noqa: E731
    answer = "came"
    wakes.note_wakes(True)
    for turn in range(1, ROUNDS + 1):
        drops = number >= 0 and turn > NOTED_ROUNDS
        if turn == NOTED_ROUNDS + 1:
            wakes.note_wakes(False)
            wakes.keep_lasting()
        if drops:
            arrivals.pause_until(lambda: wakes.sleeps(number), seconds)
            wakes.drop_next(number)
        threading.Thread(target=send, daemon=True).start()
        if not arrivals.wait(turn, seconds if drops else PATIENCE):
            answer = "lost" if drops else "stuck"
            break
    print(wakes.noted(), answer, flush=True)
    if owner is not None:
        owner.kill()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
