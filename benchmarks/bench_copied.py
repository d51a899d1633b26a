"""Publishing beside a loop in C that does the same with the bytes: copies each payload into a block
of a batch's size, sums the block and writes it.

The floor frames nothing, encodes no header and makes no message ids; its file is allocated, as a
ledger's space is, and each turn goes on in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_arrow import ROWS
from bench_kib import BLOCK, KIB, AllocatedFile
from floor_build import floors
from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder, payloads

SMALL = 100


class CopyChecksumAndWrite:
    """The floor: each turn copies, sums and writes the messages once."""

    def __init__(self, folder: Path, messages: list[bytes], turns: int) -> None:
        folder.mkdir()
        self.size = sum(len(each) for each in messages)
        self.file = AllocatedFile(folder / "floor", self.size * turns)
        self.messages = messages
        self.offset = 0
        self.copy_blocks = floors().copy_blocks

    def __call__(self) -> None:
        self.copy_blocks(self.file.fd, self.messages, BLOCK, self.offset)
        self.offset += self.size


def against_copy(
    measurement: Measurement,
    topic: TopicInFolder,
    row: str,
    size: int,
    make_path: Callable[[list[bytes]], Callable[[], object]],
) -> None:
    count = measurement.sizes.messages if size == SMALL else measurement.sizes.kib_messages
    messages = payloads(count, size)
    folder = topic.folder.with_name(f"{row}-floor")
    floor = CopyChecksumAndWrite(folder, messages, measurement.sizes.rounds + 1)
    try:
        measurement.pairs(
            row,
            floor,
            make_path(messages),
            before=DrainBefore(topic, count),
            floor_count=count,
            path_count=count,
            names=(f"{size} bytes of C", "a message"),
        )
    finally:
        floor.file.close()
        shutil.rmtree(folder)


def lists_of(topic: TopicInFolder) -> Callable[[list[bytes]], Callable[[], object]]:
    def make_path(messages: list[bytes]) -> Callable[[], object]:
        lists = [messages[at : at + 1000] for at in range(0, len(messages), 1000)]

        def path() -> None:
            for thousand in lists:
                topic.producer.send_many(thousand)

        return path

    return make_path


def columns_of(topic: TopicInFolder, rows: int) -> Callable[[list[bytes]], Callable[[], object]]:
    def make_path(messages: list[bytes]) -> Callable[[], object]:
        import pyarrow

        column = pyarrow.array(messages, pyarrow.binary())
        whole: Any = pyarrow.record_batch([column], names=["value"])
        batches = [whole.slice(at, rows) for at in range(0, len(messages), rows)]

        def path() -> None:
            for batch in batches:
                topic.producer.send_arrow(batch, value="value")

        return path

    return make_path


def each_of(topic: TopicInFolder) -> Callable[[list[bytes]], Callable[[], object]]:
    def make_path(messages: list[bytes]) -> Callable[[], object]:
        def path() -> None:
            send = topic.producer.send_async
            for message in messages:
                send(message, None)
            topic.producer.flush()

        return path

    return make_path


def bench_lists(measurement: Measurement, topic: TopicInFolder) -> None:
    against_copy(measurement, topic, "copied_send_many", SMALL, lists_of(topic))


def bench_lists_of_kib(measurement: Measurement, topic: TopicInFolder) -> None:
    against_copy(measurement, topic, "copied_send_many_kib", KIB, lists_of(topic))


def bench_columns(measurement: Measurement, topic: TopicInFolder) -> None:
    against_copy(measurement, topic, "copied_send_arrow", SMALL, columns_of(topic, ROWS))


def bench_columns_of_kib(measurement: Measurement, topic: TopicInFolder) -> None:
    against_copy(measurement, topic, "copied_send_arrow_kib", KIB, columns_of(topic, KIB))


def bench_each(measurement: Measurement, topic: TopicInFolder) -> None:
    against_copy(measurement, topic, "copied_send", SMALL, each_of(topic))
