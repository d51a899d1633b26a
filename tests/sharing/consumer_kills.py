"""What processes that publish and consume while they are killed have written down, and what of it
must not be."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from child_process import ChildProcess

import pulsarx
from pulsarx import ConsumerType, InitialPosition

# Publishes and consumes until a line comes, and writes down what it does: what was received (R),
# acknowledged (A), acknowledged with all before it (T), confirmed (C), each with its time. An owner
# waits for the others as long as a slow machine may need.
WORKER = """
import os, random, select, sys, threading, time
from functools import partial
import pulsarx
from pulsarx.processes.owner import arrivals
arrivals.COMING_MS = arrivals.BUSY_MS = 60_000
folder, name, kind, seed = sys.argv[1:5]
chance = random.Random(int(seed))
record = os.open(folder + "." + name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
def say(what, data):
    os.write(record, b"%s %d %s\\n" % (what, time.monotonic_ns(), data))
client = pulsarx.Client(folder, durability="os")
producer = client.create_producer(
    "t", producer_name=name, batching_enabled=True, batching_max_publish_delay_ms=1,
    block_if_queue_full=True)
consumers = []
def subscribe():
    while not consumers:
        try:
            consumers.append(client.subscribe(
                "t", "s", getattr(pulsarx.ConsumerType, kind),
                initial_position=pulsarx.InitialPosition.Earliest,
                receiver_queue_size=chance.choice([1, 10, 1000]),
                negative_ack_redelivery_delay_ms=20))
        except pulsarx.ConsumerBusy:
            time.sleep(0.02)
        except pulsarx.AlreadyClosed:
            return
waiting = threading.Thread(target=subscribe, daemon=True)
waiting.start()
if kind != "Exclusive":
    waiting.join()
print("ready", flush=True)
def sent(result, _, data):
    assert result == pulsarx.Result.Ok, (result, data)
    say(b"C", data)
number = 0
held = []
refuses = kind in ("Shared", "KeyShared")
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(chance.randrange(8)):
        key = "%s-%d" % (name, chance.randrange(5))
        data = b"%s.%d" % (key.encode(), number)
        number += 1
        producer.send_async(data, partial(sent, data=data), partition_key=key)
    if not consumers:
        time.sleep(0.005)
        continue
    for _ in range(chance.randrange(1, 12)):
        try:
            message = consumers[0].receive(5)
        except pulsarx.Timeout:
            break
        say(b"R", message.data())
        draw = chance.random()
        if draw < 0.5:
            consumers[0].acknowledge(message)
            say(b"A", message.data())
        elif draw < 0.53 and refuses:
            consumers[0].negative_acknowledge(message)
        else:
            held.append(message)
    if held and not refuses and chance.random() < 0.1:
        last = max(held, key=lambda each: (
            each.message_id().ledger_id(), each.message_id().entry_id(),
            each.message_id().batch_index()))
        consumers[0].acknowledge_cumulative(last)
        say(b"T", last.data())
        held.clear()
    while held and chance.random() < 0.8:
        message = held.pop(0)
        consumers[0].acknowledge(message)
        say(b"A", message.data())
producer.flush()
for message in held:
    consumers[0].acknowledge(message)
    say(b"A", message.data())
print("end", flush=True)
sys.stdin.readline()
sys.stdin.readline()
client.close()
"""


class Worker(ChildProcess):
    def __init__(self, folder: Path, name: str, kind: str, seed: int) -> None:
        super().__init__(WORKER, folder, name, kind, seed)
        self.name = name
        assert self.line() == "ready"


class Kill:
    """When a process was killed, and whether it was the owner of the folder."""

    def __init__(self, worker: Worker, was_owner: bool) -> None:
        self.name = worker.name
        self.was_owner = was_owner
        self.begun_ns = time.monotonic_ns()
        worker.kill()
        self.done_ns = time.monotonic_ns()


Event = tuple[int, str, str, str]  # time, what, message, who


def events(folder: Path, names: list[str]) -> list[Event]:
    found: list[Event] = []
    for name in names:
        for line in Path(f"{folder}.{name}").read_bytes().splitlines():
            what, at, message = line.decode().split(" ")
            found.append((int(at), what, message, name))
    return sorted(found)


def drained(client: pulsarx.Client, kind: str) -> list[Event]:
    """What was left, which is acknowledged now."""
    start = InitialPosition.Earliest
    consumer = client.subscribe("t", "s", getattr(ConsumerType, kind), initial_position=start)
    found: list[Event] = []
    topics = client.admin.topics
    while topics.stats("t")["subscriptions"]["s"]["msg_backlog"]:
        message = consumer.receive(60_000)
        found.append((time.monotonic_ns(), "R", message.data().decode(), "the last one"))
        consumer.acknowledge(message)
    return found


def check(stored: list[str], found: list[Event], kills: dict[str, Kill], kind: str) -> None:
    """AssertionError: something was lost, stored twice, received out of order, or came again
    although it was acknowledged."""
    assert [each for each, count in Counter(stored).items() if count > 1] == [], "stored twice"
    said = Counter(what for _, what, _, _ in found)
    assert {message for _, what, message, _ in found if what == "C"} <= set(stored), said
    assert set(stored) <= {message for _, what, message, _ in found if what == "R"}, said
    place = {message: at for at, message in enumerate(stored)}
    acknowledged: dict[str, tuple[int, str]] = {}
    received: set[str] = set()
    last: dict[str, int] = {}
    for at, what, message, who in found:
        if what == "A":
            acknowledged.setdefault(message, (at, who))
        elif what == "T":
            for each in stored[: place[message] + 1]:
                acknowledged.setdefault(each, (at, who))
        elif what == "R":
            if message in acknowledged:
                assert may_come_again(*acknowledged[message], at, who, kills), (message, at, who)
                continue
            key, _, number = message.partition(".")
            if message in received:
                continue
            received.add(message)
            if kind != "Shared" and who != "the last one":
                assert last.get(key, -1) <= int(number), f"{message} behind {last[key]}"
            last[key] = max(last.get(key, -1), int(number))


def may_come_again(
    acknowledged_ns: int, by: str, received_ns: int, who: str, kills: dict[str, Kill]
) -> bool:
    """Whether the one that acknowledged it died as an owner did, before or after it, or another one
    may have had it in its queue before."""
    own = kills.get(by)
    owners = [
        each
        for each in kills.values()
        if each.was_owner and acknowledged_ns <= each.begun_ns and each.done_ns <= received_ns
    ]
    if own is None:
        return not owners and who != by
    return not owners or own.begun_ns <= received_ns
