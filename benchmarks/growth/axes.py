"""What grows, how far, and what is measured at each point: one function an axis, which runs in a
process of its own and answers nanoseconds of a call or a message, or bytes of memory.

Named `... ns` they are times, named `... B` memory. What a user should expect stands with each
axis, and is printed on docs/growth.md beside the curves.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pulsarx
from pulsarx import ConsumerType, InitialPosition

Found = dict[str, float]
HERE = Path(__file__).resolve().parent
PAYLOAD = b"x" * 100
AT_ONCE = 1000  # messages of a list


@dataclass(frozen=True)
class Axis:
    """points: in their order; the last ones need an hour and a disk, see `large`."""

    name: str
    unit: str
    expect: str
    points: tuple[int, ...]
    measure: Callable[[int, Path], Found]
    large: int = 1 << 62  # points from here on are for a machine with room for them
    bytes_a_point: int = 0  # on the device
    kinds: tuple[str, ...] = field(default=())


def timed(count: int, work: Callable[[], object]) -> float:
    """Nanoseconds of one of so many."""
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / max(count, 1)


def memory() -> int:
    """Bytes of this process that are its own."""
    text = Path("/proc/self/statm").read_text().split()
    return (int(text[1]) - int(text[2])) * resource.getpagesize()


def publish(producer: pulsarx.Producer, count: int, payload: bytes = PAYLOAD) -> None:
    for at in range(0, count, AT_ONCE):
        producer.send_many([payload] * min(AT_ONCE, count - at))


def drain(consumer: pulsarx.Consumer, count: int) -> None:
    while count > 0:
        messages = consumer.receive_many(min(count, AT_ONCE), 60_000)
        consumer.acknowledge_many(messages)
        count -= len(messages)


@contextlib.contextmanager
def opened(folder: Path, **options: object) -> Iterator[pulsarx.Client]:
    with pulsarx.Client(str(folder), durability="os", **options) as client:
        yield client


def subscribed(
    client: pulsarx.Client, topic: str, name: str = "s", **more: object
) -> pulsarx.Consumer:
    return client.subscribe(topic, name, initial_position=InitialPosition.Earliest, **more)


# What is sent -------------------------------------------------------------------------------------


def message_size(size: int, folder: Path) -> Found:
    count = max(100, min(200_000, (64 << 20) // max(size, 100)))
    at_once = max(1, min(AT_ONCE, (4 << 20) // size))
    payloads = [os.urandom(size) for _ in range(at_once)]
    found: Found = {}
    with opened(folder) as client:
        producer = client.create_producer("t")
        consumer = subscribed(client, "t")

        def send() -> None:
            for _ in range(0, count, at_once):
                producer.send_many(payloads)

        def take() -> None:
            left = count - count % -at_once
            while left > 0:
                messages = consumer.receive_many(min(left, at_once), 60_000)
                pulsarx.Message.payloads(messages)
                consumer.acknowledge_many(messages)
                left -= len(messages)

        send()
        take()
        found["publish ns"] = timed(count, send)
        found["consume ns"] = timed(count, take)
    joined = b"".join(payloads)
    place = os.open(folder / "floor", os.O_CREAT | os.O_WRONLY)

    def write() -> None:
        for at in range(0, count, at_once):
            os.pwrite(place, joined, at * size)

    found["a bare pwrite of the same bytes ns"] = timed(count, write)
    os.close(place)
    return found


def keys(count: int, folder: Path) -> Found:
    sent = max(count, 200_000)
    with opened(folder) as client:
        producer = client.create_producer("t")
        consumers = [
            subscribed(client, "t", consumer_type=ConsumerType.KeyShared) for _ in range(4)
        ]

        def send() -> None:
            for at in range(0, sent, AT_ONCE):
                names = [f"{(at + each) * 7919 % count}" for each in range(AT_ONCE)]
                producer.send_many([PAYLOAD] * AT_ONCE, keys=names)

        found = {"publish ns": timed(sent, send)}
        before = memory()
        found["consume by key ns"] = timed(sent, lambda: take_all(consumers, sent))
        found["memory B"] = (memory() - before) / count
        found["compact ns"] = timed(sent, lambda: compact(client))
    return found


def compact(client: pulsarx.Client) -> None:
    client.admin.topics.trigger_compaction("t")
    while client.admin.topics.compaction_status("t")["status"] == "RUNNING":
        time.sleep(0.01)


def take_all(consumers: list[pulsarx.Consumer], count: int) -> None:
    while count > 0:
        for each in consumers:
            messages = each.receive_many(AT_ONCE, 0)
            if messages:
                each.acknowledge_many(messages)
                count -= len(messages)


# What there is ------------------------------------------------------------------------------------


def may_open(count: int) -> bool:
    """Whether this process, and those that it starts, may open so many files at a time."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(count, hard), max(count, hard)))
    except (OSError, ValueError):  # nobody but root may have more
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard >= count
    return True


def topics(count: int, folder: Path) -> Found:
    if not may_open(count + 200):  # each has an open ledger
        return {}
    names = [f"t{each}" for each in range(count)]
    found: Found = {}
    with opened(folder) as client:
        client.create_producer("first").send(PAYLOAD)
        before = memory()
        producers: list[pulsarx.Producer] = []
        found["create ns"] = timed(
            count, lambda: producers.extend(client.create_producer(each) for each in names)
        )
        for each in producers:
            each.send(PAYLOAD)
        found["memory B"] = (memory() - before) / count
        some = producers[:: max(1, count // 1000)]
        turns = max(1, 20_000 // len(some))
        found["publish ns"] = timed(
            turns * len(some), lambda: [each.send(PAYLOAD) for _ in range(turns) for each in some]
        )
    with contextlib.ExitStack() as stack:
        kept: list[pulsarx.Producer] = []

        def again() -> None:
            client = stack.enter_context(opened(folder))
            kept.append(client.create_producer(names[-1]))
            kept[0].send(PAYLOAD)

        found["open the folder, publish once ns"] = timed(1, again)
    return found


def subscriptions(count: int, folder: Path) -> Found:
    sent = max(1000, min(20_000, 200_000 // count))
    with opened(folder) as client:
        producer = client.create_producer("t")
        before = memory()
        consumers = [subscribed(client, "t", f"s{each}") for each in range(count)]
        found = {"the first message ns": timed(1, lambda: producer.send(PAYLOAD))}
        for each in consumers:
            drain(each, 1)
        found["memory B"] = (memory() - before) / count
        found["publish ns"] = timed(sent, lambda: publish(producer, sent))
        found["consume ns"] = timed(sent * count, lambda: [drain(each, sent) for each in consumers])
    return found


def backlog(count: int, folder: Path) -> Found:
    measured = min(count, 100_000)
    with opened(folder) as client:
        producer = client.create_producer("t")
        subscribed(client, "t").close()
        producer.send(PAYLOAD)
        publish(producer, count - measured)
        found = {"publish ns": timed(measured, lambda: publish(producer, measured))}
    with contextlib.ExitStack() as stack:
        kept: list[pulsarx.Consumer] = []

        def again() -> None:
            client = stack.enter_context(opened(folder))
            kept.append(subscribed(client, "t"))
            kept[0].receive(60_000)

        before = memory()
        found["open the folder, receive once ns"] = timed(1, again)
        found["memory B"] = memory() - before
        found["consume ns"] = timed(measured - 1, lambda: drain(kept[0], measured - 1))
    return found


def holes(count: int, folder: Path) -> Found:
    unlimited = pulsarx.BrokerOptions(
        max_unacked_messages_per_consumer=0, max_unacked_messages_per_subscription=0
    )
    with opened(folder, broker_options=unlimited) as client:
        producer = client.create_producer("t")
        consumer = subscribed(client, "t", consumer_type=ConsumerType.Shared)
        publish(producer, 2 * count)
        before = memory()
        taken: list[pulsarx.Message] = []
        while len(taken) < 2 * count:
            taken += consumer.receive_many(AT_ONCE, 60_000)
        odd = taken[1::2]
        taken.clear()

        def acknowledge() -> None:
            for each in odd:
                consumer.acknowledge(each)

        found = {"acknowledge every other one ns": timed(count, acknowledge)}
        odd.clear()
        found["memory B"] = max(memory() - before, 0) / count
        consumer.close()
        found["close ns"] = timed(1, client.close)
    with contextlib.ExitStack() as stack:
        kept: list[pulsarx.Consumer] = []

        def again() -> None:
            client = stack.enter_context(opened(folder))
            kept.append(subscribed(client, "t", consumer_type=ConsumerType.Shared))
            kept[0].receive(60_000)

        found["open the folder, receive once ns"] = timed(1, again)
        found["consume the rest ns"] = timed(count - 1, lambda: drain(kept[0], count - 1))
    return found


# Who uses it --------------------------------------------------------------------------------------


def consumers(count: int, folder: Path) -> Found:
    sent = 100_000
    found: Found = {}
    kinds = {
        "Shared ns": ConsumerType.Shared, "Key_Shared ns": ConsumerType.KeyShared,
        "Failover ns": ConsumerType.Failover,
    }  # fmt: skip
    names = [f"{each}" for each in range(AT_ONCE)]
    with opened(folder) as client:
        for name, kind in kinds.items():
            producer = client.create_producer(name.split()[0])
            members = [
                subscribed(client, name.split()[0], consumer_type=kind) for _ in range(count)
            ]
            for _ in range(0, sent, AT_ONCE):
                producer.send_many([PAYLOAD] * AT_ONCE, keys=names)
            found[name] = timed(sent, partial(take_all, members, sent))
            for each in members:
                each.close()
    return found


def threads(count: int, folder: Path) -> Found:
    found: Found = {}
    for durability, sent in (("os", 100_000), ("sync", 2000)):
        place = folder / durability
        with pulsarx.Client(str(place), durability=durability) as client:
            producers = [client.create_producer("t", batching_enabled=False) for _ in range(count)]
            share = sent // count

            def work(producer: pulsarx.Producer, share: int = share) -> None:
                for _ in range(share):
                    producer.send(PAYLOAD)

            def all_of_them(producers: list[pulsarx.Producer] = producers) -> None:
                running = [threading.Thread(target=work, args=(each,)) for each in producers]
                for each in running:
                    each.start()
                for each in running:
                    each.join()

            name = "publish ns" if durability == "os" else "publish, flushed ns"
            found[name] = timed(share * count, all_of_them)
    return found


SENDER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t")
producer.send(b"warm")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2]) // 1000):
    producer.send_many([b"x" * 100] * 1000)
print("done", flush=True)
sys.stdin.readline()
"""


def processes(count: int, folder: Path) -> Found:
    sent = max(2, 400 // count) * 1000
    with opened(folder), contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", SENDER, str(folder), str(sent)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
            )
            for _ in range(count)
        ]  # fmt: skip

        def heard(word: str) -> None:
            for each in running:
                assert each.stdout is not None
                assert each.stdout.readline().strip() == word

        def told() -> None:
            for each in running:
                assert each.stdin is not None
                each.stdin.write("\n")
                each.stdin.flush()

        def go() -> None:
            told()
            heard("done")

        heard("ready")
        found = {"publish ns": timed(sent * count, go)}
        told()
    return found


def connections(count: int, folder: Path) -> Found:
    if not may_open(count + 200):
        return {}
    served = str(HERE.parent / "served_folder.py")
    with subprocess.Popen(
        [sys.executable, served, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        first = Wire(url)
        before = resident(server.pid)
        others = [Wire(url) for _ in range(count - 1)]
        found = {"memory B": max(resident(server.pid) - before, 0) / max(count - 1, 1)}
        first.begin()
        first.send(2000)
        found["publish, 64 unconfirmed ns"] = timed(20_000, lambda: first.send(20_000))
        for each in (first, *others):
            each.socket.close()
        assert server.stdin is not None
        server.stdin.close()
    return found


def resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(text[1]) - int(text[2])) * resource.getpagesize()


class Wire:
    """A connection that says what a client says, and little else."""

    def __init__(self, url: str) -> None:
        from wire_load import Connection

        self._connection = Connection(url)
        self.socket: socket.socket = self._connection.socket
        self._sequence_id = 0

    def begin(self) -> None:
        self._connection.ask("PRODUCER", producer_id=0, topic="t", request_id=1)

    def send(self, count: int) -> None:
        from pulsarx._pycore.ranges.entry_codec import encode_entry
        from pulsarx.wire.frames import frame_encode

        entry = encode_entry(PAYLOAD, producer_name="p", sequence_id=0, publish_time_ms=1)
        confirmed = sent = 0
        while confirmed < count:
            frames = []
            while sent < min(count, confirmed + 64):
                values = {"producer_id": 0, "sequence_id": self._sequence_id, "num_messages": 1}
                frames.append(frame_encode("SEND", values, entry))
                self._sequence_id += 1
                sent += 1
            if frames:
                self.socket.sendall(b"".join(frames))
            confirmed += sum(name == "SEND_RECEIPT" for name, _, _ in self._connection.hear())


AXES = (
    Axis(
        "message size", "bytes", "From 1 KiB on a message costs what its bytes cost; below, what a "
        "message costs.", (16, 100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 5 << 20), message_size,
    ),
    Axis(
        "topics", "topics of a folder", "Up to some hundreds a message costs the same; "
        "with more, the caches of the processor miss. Opening the folder reads what exists, so "
        "it takes longer.", (1, 10, 100, 1000, 10_000, 100_000), topics,
        large=100_000,
    ),
    Axis(
        "subscriptions", "subscriptions of one topic", "Publishing costs the same: messages are "
        "stored once. Each subscription reads for itself. The first message of a topic makes the "
        "cursor of each.", (1, 10, 100, 1000), subscriptions,
    ),
    Axis(
        "consumers", "consumers of one subscription, in one thread", "A message costs the same; "
        "with many, each has fewer at a time.", (1, 4, 16, 64), consumers,
    ),
    Axis(
        "keys", "different keys", "Consuming by key costs the same. Compaction keeps a record of "
        "each key in memory while it runs.", (10, 1000, 100_000, 1_000_000, 10_000_000), keys,
        large=10_000_000,
    ),
    Axis(
        "backlog", "messages that wait", "Flat: publishing, opening and receiving do not look at "
        "what waits.", (1000, 100_000, 1_000_000, 10_000_000, 100_000_000), backlog,
        large=100_000_000, bytes_a_point=160,
    ),
    Axis(
        "threads", "threads with a producer each", "One thread at a time publishes into a topic; "
        "with a flush each, threads share flushes.", (1, 2, 4, 8, 16, 32, 64), threads,
    ),
    Axis(
        "processes", "processes that publish into one folder", "The owner stores what all of them "
        "send: more than there are cores bring nothing.", (1, 2, 4, 8, 16, 32), processes,
    ),
    Axis(
        "connections", "connections to one server", "A message costs the same, however many "
        "others are connected.", (1, 10, 100, 1000, 5000), connections,
    ),
    Axis(
        "holes", "holes in what is acknowledged", "Acknowledging and consuming cost the same; "
        "closing and opening write and read what there is, some bytes of memory a hole.",
        (1000, 10_000, 100_000, 1_000_000), holes,
    ),
)  # fmt: skip
