"""What Spark does with a stream reader, done by hand: without a session, batch by batch."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from spark_steps import send

import pulsarx
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.stream_offsets import of_spark, to_spark

EARLIEST = {"startingOffsets": "earliest"}


class Steps:
    """A stream reader and the steps Spark does with it, batch by batch."""

    def __init__(self, folder: Path, **options: str) -> None:
        made = PulsarxDataSource({"root": str(folder), "columns": "value", **options})
        self.reader = made.streamReader(made.schema())
        self.offset = self.reader.initialOffset()
        self.limit = self.reader.getDefaultReadLimit()

    def batch(self, limit: Any = None) -> list[bytes]:
        """The next micro-batch; the one before is committed."""
        end = self.reader.latestOffset(self.offset, limit or self.limit)
        if end == self.offset:
            return []
        found = self.read(self.offset, end)
        self.reader.commit(self.offset)
        self.offset = end
        return found

    def read(self, start: Any, end: Any) -> list[bytes]:
        parts = self.reader.partitions(start, end)
        # Tasks get a copy of the reader and of their part.
        reader = pickle.loads(pickle.dumps(self.reader))
        found = []
        for part in pickle.loads(pickle.dumps(parts)):
            for batch in reader.read(part):
                found += batch.column(0).to_pylist()
        return found

    def place(self) -> str:
        """As text, but for what only the first batch says."""
        return json.dumps(to_spark(of_spark(self.offset)))

    def batches(self) -> list[list[bytes]]:
        found = []
        while batch := self.batch():
            found.append(batch)
        return found


def joined(batches: list[list[bytes]]) -> list[bytes]:
    return [value for batch in batches for value in batch]


def numbers(*bounds: int) -> list[bytes]:
    return [b"%d" % number for number in range(*bounds)]


def fill(folder: Path, topic: str, found: list[bytes], **options: Any) -> None:
    with pulsarx.Client(folder, durability="os", **options) as client:
        send(client, topic, found)


def backlog(folder: Path, topic: str, name: str) -> int:
    with pulsarx.Client(folder) as client:
        found = client.admin.topics.stats(topic)["subscriptions"][name]["msg_backlog"]
        return int(found)
