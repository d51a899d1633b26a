"""A topic whose messages are looked at as Arrow columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import pulsarx


class ArrowTopic:
    """A producer and a consumer on a topic of its own."""

    made = 0

    def __init__(self, client: pulsarx.Client, **options: Any) -> None:
        ArrowTopic.made += 1
        self.name = f"arrow-{ArrowTopic.made}"
        self.producer = client.create_producer(self.name, **options)
        self.consumer = client.subscribe(self.name, "s")

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Exactly count messages as rows, checked by Arrow and acknowledged."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            messages = self.consumer.receive_arrow(count - len(found), 5000)
            assert len(messages), f"{len(found)} of {count} arrived"
            batch = pa.record_batch(messages)
            batch.validate(full=True)
            assert len(messages) == batch.num_rows
            found += batch.to_pylist()
            self.consumer.acknowledge_many(messages)
        assert len(self.consumer.receive_arrow(1, 0)) == 0
        return found

    def values(self, count: int) -> list[bytes | None]:
        return [row["value"] for row in self.rows(count)]
