"""Compacting a topic, against reading it with `read_many`: the same keyed messages, in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from measurement import Measurement
from topic_in_folder import TopicInFolder

import pulsarx
from pulsarx.testing import inspect

ROUNDS = 5
KEYS: dict[str, Callable[[int], int]] = {
    # Half of the messages have a key of their own, the others replace each other.
    "compaction": lambda number: number if number % 2 else number % 1000,
    "compaction_distinct": lambda number: number,
}


@pytest.mark.parametrize("row", KEYS)
def bench_compaction(measurement: Measurement, scratch: Path, row: str) -> None:
    count = measurement.sizes.compacted_messages
    key_of = KEYS[row]
    with TopicInFolder(scratch / row) as topic:
        producer = topic.client.create_producer("keyed", batching_enabled=True)
        for number in range(count):
            key = f"key-{key_of(number)}"
            producer.send_async(b"%0100d" % number, None, partition_key=key)
        producer.flush()

        def read() -> None:
            reader = topic.client.create_reader("keyed", pulsarx.MessageId.earliest)
            left = count
            while left:
                left -= len(reader.read_many(1000, 10_000))
            reader.close()

        def forget() -> None:
            inspect(topic.client).topic("keyed").compaction.forget()

        def compact() -> None:
            topic.client.admin.topics.trigger_compaction("keyed")
            inspect(topic.client).settle()

        measurement.pairs(
            row,
            read,
            compact,
            before=forget,
            rounds=min(ROUNDS, measurement.sizes.rounds),
            floor_count=count,
            path_count=count,
            names=("a message read", "compacted"),
        )
