"""Compacting a topic, against reading it with `read_many`: the same keyed messages, in turn."""

from __future__ import annotations

from pathlib import Path

from measurement import Measurement
from topic_in_folder import TopicInFolder, payloads

import pulsarx
from pulsarx.testing import inspect


def bench_compaction(measurement: Measurement, scratch: Path) -> None:
    """Half of the messages have a key of their own, the others replace each other."""
    count = measurement.sizes.messages
    with TopicInFolder(scratch / "topic") as topic:
        producer = topic.client.create_producer("keyed", batching_enabled=True)
        for number, payload in enumerate(payloads(count, 100)):
            key = f"key-{number if number % 2 else number % 1000}"
            producer.send_async(payload, None, partition_key=key)
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
            "compaction", read, compact, before=forget, names=("read_many", "compaction")
        )
