"""Columns instead of messages: 100-byte rows of Arrow record batches, 10,000 rows a call."""

from __future__ import annotations

from typing import Any

from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder, payloads

ROWS = 10_000


def record_batches(values: list[bytes]) -> list[Any]:
    import pyarrow

    column = pyarrow.array(values, pyarrow.binary())
    whole = pyarrow.record_batch([column], names=["value"])
    return [whole.slice(at, ROWS) for at in range(0, len(values), ROWS)]


def row_count(received: Any) -> int:
    """Whatever carries the columns says it in one of the two ways of Arrow libraries."""
    return int(received.num_rows if hasattr(received, "num_rows") else len(received))


def bench_send_arrow(measurement: Measurement, topic: TopicInFolder) -> None:
    values = payloads(measurement.sizes.messages, 100)
    batches = record_batches(values)
    producer = topic.producer

    def path() -> None:
        for batch in batches:
            producer.send_arrow(batch, value="value")

    measurement.units("send_arrow", values, path, before=DrainBefore(topic, len(values)))


def bench_receive_arrow(measurement: Measurement, topic: TopicInFolder) -> None:
    values = payloads(measurement.sizes.messages, 100)
    consumer = topic.consumer

    def path() -> None:
        left = len(values)
        while left > 0:
            received = consumer.receive_arrow(ROWS)
            consumer.acknowledge_many(received)
            left -= row_count(received)

    measurement.units("receive_arrow", values, path, before=lambda: topic.publish(values))
    assert not consumer.has_message()
