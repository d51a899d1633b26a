"""Publishing 1 KiB messages, where memory and the page cache set the pace.

The floor writes the same payload bytes in blocks of 128 KiB, a batch's size, out of one buffer.
It gathers nothing, frames nothing and makes no message ids.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from floor_build import floors
from measurement import Measurement, shown
from topic_in_folder import DrainBefore, TopicInFolder, payloads

KIB = 1024
BLOCK = 128 * KIB
LEDGER = 256 * KIB * KIB  # the default size of a ledger


class AllocatedFile:
    """A new file with its space allocated, as ledgers are; what is written goes to fresh pages."""

    def __init__(self, path: Path, size: int) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.posix_fallocate(self.fd, 0, size)

    def close(self) -> None:
        os.close(self.fd)


class ChecksumAndWrite:
    """The floor: each turn sums and writes the data once, further on in an allocated file."""

    def __init__(self, folder: Path, data: bytes, turns: int) -> None:
        folder.mkdir()
        self.file = AllocatedFile(folder / "floor", len(data) * turns)
        self.data = data
        self.offset = 0
        self.write_blocks = floors().write_blocks

    def __call__(self) -> None:
        self.write_blocks(self.file.fd, self.data, BLOCK, self.offset, True)
        self.offset += len(self.data)

    def each_message(self) -> str:
        """For the note: the same with a `pwrite` for every message, in space of its own."""
        began = time.perf_counter()
        self.write_blocks(self.file.fd, self.data, KIB, self.offset, True)
        seconds = (time.perf_counter() - began) / (len(self.data) // KIB)
        return f"a pwrite for each message instead {shown(seconds)}"


def against_checksum_and_write(
    measurement: Measurement,
    topic: TopicInFolder,
    row: str,
    make_path: Callable[[list[bytes]], Callable[[], None]],
) -> None:
    messages = payloads(measurement.sizes.kib_messages, KIB)
    folder = topic.folder.with_name(f"{row}-floor")
    # Two turns more than are measured: the warm-up and the note.
    floor = ChecksumAndWrite(folder, b"".join(messages), measurement.sizes.rounds + 2)
    try:
        measurement.pairs(
            row,
            floor,
            make_path(messages),
            before=DrainBefore(topic, len(messages)),
            floor_count=len(messages),
            path_count=len(messages),
            names=("1 KiB of C", "a message"),
            note=floor.each_message,
        )
    finally:
        floor.file.close()
        shutil.rmtree(folder)


def bench_send_many(measurement: Measurement, topic: TopicInFolder) -> None:
    def make_path(messages: list[bytes]) -> Callable[[], None]:
        lists = [messages[at : at + 1000] for at in range(0, len(messages), 1000)]

        def path() -> None:
            for thousand in lists:
                topic.producer.send_many(thousand)

        return path

    against_checksum_and_write(measurement, topic, "kib_send_many", make_path)


def bench_send(measurement: Measurement, topic: TopicInFolder) -> None:
    def make_path(messages: list[bytes]) -> Callable[[], None]:
        def path() -> None:
            send = topic.producer.send_async
            for message in messages:
                send(message, None)
            topic.producer.flush()

        return path

    against_checksum_and_write(measurement, topic, "kib_send", make_path)


class ColdTurns:
    """Each turn begins with new files on both sides; those of the turn before are deleted."""

    def __init__(self, scratch: Path, message_count: int) -> None:
        self.scratch = scratch / "cold"
        self.some = payloads(min(message_count, 32_768), KIB)
        self.lists = [self.some[at : at + 1000] for at in range(0, len(self.some), 1000)]
        self.data = b"".join(self.some)
        self.repeats = message_count // len(self.some)
        self.files: list[AllocatedFile] = []
        self.topic: TopicInFolder | None = None
        self.write_blocks = floors().write_blocks

    def delete(self) -> None:
        if self.topic is not None:
            self.topic.client.close()
            self.topic = None
        for file in self.files:
            file.close()
        self.files = []
        shutil.rmtree(self.scratch, ignore_errors=True)

    def new_files(self) -> None:
        self.delete()
        self.scratch.mkdir()
        count = -(-self.repeats * len(self.data) // LEDGER)
        self.files = [AllocatedFile(self.scratch / f"floor-{n}", LEDGER) for n in range(count)]

    def new_topic(self) -> None:
        for file in self.files:
            file.close()
        self.files = []
        shutil.rmtree(self.scratch)
        self.topic = TopicInFolder(self.scratch, keep=True)

    def floor(self) -> None:
        a_file = LEDGER // len(self.data)
        for turn in range(self.repeats):
            fd = self.files[turn // a_file].fd
            self.write_blocks(fd, self.data, BLOCK, turn % a_file * len(self.data), False)

    def path(self) -> None:
        assert self.topic is not None
        for _ in range(self.repeats):
            for thousand in self.lists:
                self.topic.producer.send_many(thousand)


def bench_cold(measurement: Measurement, scratch: Path) -> None:
    """A new client in a new folder each turn, which fills more than two ledgers."""
    turns = ColdTurns(scratch, measurement.sizes.cold_messages)
    count = turns.repeats * len(turns.some)

    def note() -> str:
        large = [path for path in turns.scratch.rglob("*") if path.stat().st_size > LEDGER // 8]
        return f"a turn: {count >> 10} MiB into {len(large)} ledgers"

    try:
        measurement.pairs(
            "kib_cold",
            turns.floor,
            turns.path,
            before=turns.new_files,
            between=turns.new_topic,
            rounds=measurement.sizes.cold_rounds,
            warmup_rounds=0,
            floor_count=count,
            path_count=count,
            names=("1 KiB of C", "a message"),
            note=note,
        )
    finally:
        turns.delete()
