"""Several consumers on one subscription against an Exclusive one, and delayed messages due at once.

The same messages for every type: 100 bytes, in batches of which each has about as many keys as
messages. One thread gives the consumers turns of about TURN messages: receive, data, acknowledge.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from measurement import Measurement, Sizes, shown
from topic_in_folder import payloads

import pulsarx

KEYS = 10_000
TURN = 100
DELAY_MS = 3_600_000

Types = pulsarx.ConsumerType


class Consumers:
    """A topic of its own with some consumers on one subscription."""

    def __init__(
        self, client: pulsarx.Client, topic: str, kind: Any, count: int, *, batched: bool = True
    ) -> None:
        self.members = [
            client.subscribe(
                topic, "workers", kind, initial_position=pulsarx.InitialPosition.Earliest
            )
            for _ in range(count)
        ]
        self.producer = client.create_producer(topic, batching_enabled=batched)
        self.batched = batched
        self.turns = [TURN] * count

    def publish(self, messages: list[bytes], keys: list[str]) -> None:
        if self.batched:
            for at in range(0, len(messages), 1000):
                self.producer.send_many(messages[at : at + 1000], keys=keys[at : at + 1000])
            return
        send = self.producer.send_async
        for message, key in zip(messages, keys):
            send(message, None, partition_key=key)

    def one_by_one(self, count: int) -> None:
        """Receive and acknowledge exactly count messages, the consumers in turns."""
        left = count
        shares = [0] * len(self.members)
        for member in cycle(range(len(self.members))):
            consumer = self.members[member]
            receive, acknowledge = consumer.receive, consumer.acknowledge
            at_most = min(self.turns[member], left)
            try:
                for taken in range(at_most):  # noqa: B007
                    message = receive(0)
                    message.data()
                    acknowledge(message)
            except pulsarx.Timeout:
                at_most = taken
            left -= at_most
            shares[member] += at_most
            if left == 0:
                break
        # Keys are not spread quite evenly. Who never took what its keys bring would fall behind.
        self.turns = [max(len(shares) * TURN * share // count, 1) for share in shares]

    def in_lists(self, count: int) -> None:
        """The same with receive_many and acknowledge_many."""
        left = count
        for member in cycle(range(len(self.members))):
            messages = self.members[member].receive_many(self.turns[member], 0)
            self.members[member].acknowledge_many(messages)
            left -= len(messages)
            if left == 0:
                return


@contextmanager
def client_on(folder: Path, **options: Any) -> Iterator[pulsarx.Client]:
    client = pulsarx.Client(folder, durability="os", **options)
    try:
        yield client
    finally:
        client.close()
        shutil.rmtree(folder)


class Pair:
    """The same messages for an Exclusive subscription and for several consumers of another type."""

    def __init__(self, client: pulsarx.Client, sizes: Sizes, kind: Any, count: int, name: str):
        chance = random.Random(1)
        self.count = sizes.messages
        self.messages = payloads(self.count, 100)
        self.keys = [f"key-{chance.randrange(KEYS)}" for _ in self.messages]
        batched = name == "batched"
        self.one = Consumers(client, f"{name}-one", Types.Exclusive, 1, batched=batched)
        self.several = Consumers(client, f"{name}-several", kind, count, batched=batched)
        self.rounds = max(sizes.rounds // 3, 1)

    def publish(self) -> None:
        self.one.publish(self.messages, self.keys)
        self.several.publish(self.messages, self.keys)

    def ratio(self, call: Callable[[Consumers, int], None]) -> float:
        """Several against one, the median of a few rounds behind a first: for a note."""
        found = []
        for _ in range(1 + self.rounds):
            self.publish()
            began = time.perf_counter()
            call(self.one, self.count)
            between = time.perf_counter()
            call(self.several, self.count)
            found.append((time.perf_counter() - between) / (between - began))
        return statistics.median(found[1:])


def compare(measurement: Measurement, row: str, scratch: Path, kind: Any, count: int) -> None:
    with client_on(scratch / row) as client:
        pair = Pair(client, measurement.sizes, kind, count, "batched")
        measurement.pairs(
            row,
            lambda: pair.one.one_by_one(pair.count),
            lambda: pair.several.one_by_one(pair.count),
            before=pair.publish,
            floor_count=pair.count,
            path_count=pair.count,
            names=("Exclusive", kind.name),
        )
        listed = pair.ratio(Consumers.in_lists)
        single = Pair(client, measurement.sizes, kind, count, "single").ratio(Consumers.one_by_one)
        measurement.add_note(f"without batches {single:.3g} times")
        measurement.add_note(f"with receive_many({TURN}) and acknowledge_many {listed:.3g} times")


def bench_shared(measurement: Measurement, scratch: Path) -> None:
    compare(measurement, "dispatch_shared", scratch, Types.Shared, 4)


def bench_key_shared(measurement: Measurement, scratch: Path) -> None:
    compare(measurement, "dispatch_key_shared", scratch, Types.KeyShared, 16)


def bench_key_shared_many(measurement: Measurement, scratch: Path) -> None:
    with client_on(scratch / "many") as client:
        pair = Pair(client, measurement.sizes, Types.KeyShared, 16, "batched")
        pair.ratio(Consumers.one_by_one)  # finds what each consumer's share is
        measurement.pairs(
            "dispatch_key_shared_many",
            lambda: pair.one.in_lists(pair.count),
            lambda: pair.several.in_lists(pair.count),
            before=pair.publish,
            floor_count=pair.count,
            path_count=pair.count,
            names=("Exclusive", "KeyShared"),
        )


def bench_delayed(measurement: Measurement, scratch: Path) -> None:
    """The dispatcher knows them when their time comes: that they are due costs, and delivery."""
    number = measurement.sizes.delayed
    messages = payloads(number, 100)
    clock = pulsarx.ManualClock()
    moved: list[float] = []
    with client_on(scratch / "delayed", clock=clock) as client:
        plain = Consumers(client, "plain", Types.Shared, 1, batched=False)
        delayed = Consumers(client, "delayed", Types.Shared, 1, batched=False)

        def publish() -> None:
            due_ms = clock.now_ms() + DELAY_MS
            for message in messages:
                plain.producer.send_async(message, None)
                delayed.producer.send_async(message, None, deliver_at=due_ms)
            assert not delayed.members[0].has_message()

        def become_due() -> None:
            began = time.perf_counter()
            clock.advance(DELAY_MS / 1000)
            moved.append((time.perf_counter() - began) / number)
            delayed.one_by_one(number)

        measurement.pairs(
            "dispatch_delayed",
            lambda: plain.one_by_one(number),
            become_due,
            before=publish,
            rounds=measurement.sizes.delayed_rounds,
            warmup_rounds=0,
            floor_count=number,
            path_count=number,
            names=("undelayed", "delayed"),
        )
        measurement.add_note(f"{shown(statistics.median(moved))} of it for becoming due")
