"""Transactions on the device, `durability="sync"`: what they cost beside the same without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder, payloads
from transacted_folder import BATCH, TransactedFolder

SIZE = 100


@pytest.fixture
def folder(scratch: Path, request: pytest.FixtureRequest) -> Iterator[TransactedFolder]:
    with TransactedFolder(scratch / request.node.name) as opened:
        yield opened


def bench_one(measurement: Measurement, folder: TransactedFolder, scratch: Path) -> None:
    count = measurement.sizes.durable_sends
    messages = payloads(count, SIZE)
    with TopicInFolder(scratch / "alone", durability="sync", batching=False) as alone:

        def floor() -> None:
            send = alone.producer.send
            for message in messages:
                send(message)

        measurement.pairs(
            "transaction",
            floor,
            lambda: folder.one_by_one(count),
            before=DrainBefore(alone, count),
            between=lambda: folder.fill(messages),
            floor_count=count,
            path_count=count,
            names=("a durable send", "a transaction"),
        )


def bench_many(measurement: Measurement, folder: TransactedFolder) -> None:
    turns = measurement.sizes.transactions
    messages = payloads(turns * BATCH, SIZE)

    def fill() -> None:
        folder.fill(messages)

    measurement.pairs(
        "transaction_many",
        lambda: folder.many(turns, transacted=False),
        lambda: folder.many(turns),
        before=fill,
        between=fill,
        floor_count=turns,
        path_count=turns,
        names=("without", "in a transaction"),
    )
