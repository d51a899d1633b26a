"""Publishing to the device: `durability="sync"`, the default, and batching as by default, off."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from floor_build import floors
from measurement import Measurement, shown
from topic_in_folder import DrainBefore, TopicInFolder, payloads

THREADS = 16
# What a message of 100 bytes takes in a ledger: frame, metadata, payload.
RECORD = b"\xa5" * 224


@pytest.fixture
def durable(scratch: Path, request: pytest.FixtureRequest) -> Iterator[TopicInFolder]:
    folder = scratch / request.node.name
    with TopicInFolder(folder, durability="sync", batching=False) as opened:
        yield opened


class WriteAndFlush:
    """The floor: space written with zeros and flushed, as the ledger's; each turn goes on in it."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.offset = 4096
        os.pwrite(self.fd, bytes(size + self.offset), 0)
        os.fsync(self.fd)
        self.write_and_flush = floors().write_and_flush

    def __call__(self, count: int) -> None:
        self.write_and_flush(self.fd, RECORD, self.offset, count)
        self.offset += len(RECORD) * count

    def close(self) -> None:
        os.close(self.fd)
        self.path.unlink()


def bench_send(measurement: Measurement, durable: TopicInFolder) -> None:
    count = measurement.sizes.durable_sends
    messages = payloads(count, 100)
    room = len(RECORD) * count * (measurement.sizes.rounds + 1)
    floor = WriteAndFlush(durable.folder.with_name("durable-floor"), room)

    def path() -> None:
        send = durable.producer.send
        for message in messages:
            send(message)

    try:
        measurement.pairs(
            "durable_send",
            lambda: floor(count),
            path,
            before=DrainBefore(durable, count),
            floor_count=count,
            path_count=count,
            names=("pwrite + fdatasync", "a send"),
        )
    finally:
        floor.close()


class Senders:
    """Sixteen threads that have started and wait for the word; go() returns when all have sent."""

    def __init__(self, topic: TopicInFolder, messages: list[bytes]) -> None:
        self.topic = topic
        self.messages = messages
        self.word = threading.Event()
        self.failures: list[Exception] = []
        self.threads = [threading.Thread(target=self.run) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        self.word.wait()
        send = self.topic.producer.send
        try:
            for message in self.messages:
                send(message)
        except Exception as error:
            self.failures.append(error)

    def go(self) -> None:
        self.word.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def bench_threads(measurement: Measurement, durable: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.thread_sends, 100)
    senders: list[Senders] = []
    drain = DrainBefore(durable, (THREADS + 1) * len(messages))

    def one_thread() -> None:
        send = durable.producer.send
        for message in messages:
            send(message)

    measurement.pairs(
        "durable_threads",
        one_thread,
        lambda: senders[-1].go(),
        before=drain,
        between=lambda: senders.append(Senders(durable, messages)),
        floor_count=len(messages),
        path_count=len(messages) * THREADS,
        names=("a send of one thread", "of sixteen"),
        note=lambda: f"{sys.getswitchinterval() * 1e3:.3g} ms switch interval",
    )


def bench_send_many(measurement: Measurement, durable: TopicInFolder) -> None:
    from peers.lmdb_peer import Lmdb

    transactions = measurement.sizes.transactions
    thousand = payloads(1000, 100)
    log = Lmdb(durable.folder.with_name("lmdb"), flushed=True)
    count = transactions * len(thousand)
    raw = WriteAndFlushThousands(durable.folder.with_name("many-floor"), measurement)

    def append_all() -> None:
        for _ in range(transactions):
            log.publish_batch(thousand)

    def send_all() -> None:
        for _ in range(transactions):
            durable.producer.send_many(thousand)

    try:
        measurement.pairs(
            "durable_many",
            append_all,
            send_all,
            before=DrainBefore(durable, count),
            between=raw,
            floor_count=count,
            path_count=count,
            names=("LMDB, a message", "a message"),
            note=lambda: f"pwrite + fdatasync of as many bytes {shown(raw.fastest())}",
        )
    finally:
        log.close()
        raw.close()


class WriteAndFlushThousands:
    """For the note: what the device itself takes for 1000 messages a flush."""

    def __init__(self, path: Path, measurement: Measurement) -> None:
        self.record = b"\xa5" * 112_000
        self.turns = measurement.sizes.transactions
        self.seconds: list[float] = []
        self.floor = WriteAndFlush(path, len(self.record) * self.turns)

    def __call__(self) -> None:
        began = time.perf_counter()
        self.floor.write_and_flush(self.floor.fd, self.record, 4096, self.turns)
        self.seconds.append(time.perf_counter() - began)

    def fastest(self) -> float:
        """Per message."""
        return min(self.seconds) / self.turns / 1000

    def close(self) -> None:
        self.floor.close()
