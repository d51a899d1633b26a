"""Publishing and receiving on a non-persistent topic, against a persistent one with durability
`os`: the same messages, in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from measurement import Measurement
from topic_in_folder import payloads

import pulsarx

AT_A_TIME = 1000


def bench_non_persistent(measurement: Measurement, scratch: Path) -> None:
    _measure(measurement, scratch, "non_persistent", batching=False)


def bench_non_persistent_batches(measurement: Measurement, scratch: Path) -> None:
    _measure(measurement, scratch, "non_persistent_batches", batching=True)


def _measure(measurement: Measurement, scratch: Path, row: str, batching: bool) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    with pulsarx.Client(scratch / "data", durability="os") as client:

        def passing(topic: str) -> Callable[[], None]:
            consumer = client.subscribe(topic, "worker", receiver_queue_size=AT_A_TIME)
            producer = client.create_producer(
                topic, batching_enabled=batching, batching_max_messages=AT_A_TIME
            )

            def path() -> None:
                send, receive = producer.send_async, consumer.receive
                for at in range(0, len(messages), AT_A_TIME):
                    several = messages[at : at + AT_A_TIME]
                    for message in several:
                        send(message, None)
                    if batching:
                        producer.flush()
                    for _ in several:
                        receive()

            return path

        measurement.pairs(
            row,
            passing("persistent://public/default/measured"),
            passing("non-persistent://public/default/measured"),
            names=("persistent", "non-persistent"),
        )
