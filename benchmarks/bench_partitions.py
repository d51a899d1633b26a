"""Publishing keyed messages to a partitioned topic, against one without partitions: the same
messages, in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from measurement import Measurement
from topic_in_folder import payloads

import pulsarx
from pulsarx import HashingScheme

PARTITIONS = 4
KEYS = 10_000
MANY = 1000


class Side:
    """A topic with a producer and a subscription."""

    def __init__(self, client: pulsarx.Client, topic: str, **options: Any) -> None:
        earliest = pulsarx.InitialPosition.Earliest
        self.consumer = client.subscribe(topic, "worker", initial_position=earliest)
        self.producer: Any = client.create_producer(topic, batching_enabled=True, **options)

    def drain(self, count: int) -> None:
        while count > 0:
            messages = self.consumer.receive_many(MANY, 10_000)
            if not messages:
                raise AssertionError(f"{count} messages did not arrive")
            self.consumer.acknowledge_many(messages)
            count -= len(messages)


@pytest.mark.parametrize("row", ["partitioned_send", "partitioned_send_many"])
def bench_partitioned(measurement: Measurement, scratch: Path, row: str) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    keys = [f"key-{number % KEYS}" for number in range(len(messages))]
    pairs = list(zip(messages, keys))
    parts = [
        (messages[at : at + MANY], keys[at : at + MANY]) for at in range(0, len(messages), MANY)
    ]

    def sending(side: Side) -> Callable[[], None]:
        def path() -> None:
            if row == "partitioned_send_many":
                for some, their_keys in parts:
                    side.producer.send_many(some, keys=their_keys)
                return
            send = side.producer.send_async
            for message, key in pairs:
                send(message, None, partition_key=key)
            side.producer.flush()

        return path

    with pulsarx.Client(scratch / row, durability="os") as client:
        client.admin.topics.create_partitioned_topic("partitioned", PARTITIONS)
        sides = [
            Side(client, "plain"),
            Side(client, "partitioned", hashing_scheme=HashingScheme.Murmur3_32Hash),
        ]
        published = 0

        def drain() -> None:
            nonlocal published
            for side in sides:
                side.drain(published)
            published = len(messages)

        measurement.pairs(
            row,
            *map(sending, sides),
            before=drain,
            floor_count=len(messages),
            path_count=len(messages),
            names=("without partitions", "with 4 of them"),
        )
