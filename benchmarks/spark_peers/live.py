"""A producer beside a running query: a message every 10 ms, whose amount is the time it was sent.

    python -m spark_peers.live STORE PLACE

It goes on until its input ends.

Files, which cannot hold single messages, get ten a time.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from spark_peers.values import value

PERIOD_SECONDS = 0.01
ROWS_OF_A_FILE = 10
SIZE = 100


def topic_sender(place: str) -> Callable[[list[str]], object]:
    import pulsarx

    root, _, topic = place.partition("#")
    producer = pulsarx.Client(root).create_producer(topic)
    return lambda values: [producer.send(each.encode()) for each in values]


def kafka_sender(place: str) -> Callable[[list[str]], object]:
    from confluent_kafka import Producer

    servers, _, topic = place.partition("#")
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})

    def send(values: list[str]) -> None:
        for each in values:
            producer.produce(topic, each)
        producer.flush()

    return send


def parquet_sender(place: str) -> Callable[[list[str]], object]:
    import pyarrow
    import pyarrow.parquet

    folder, number = Path(place), iter(range(1_000_000))

    def send(values: list[str]) -> None:
        part = folder / f".{next(number)}.part"
        keys = [""] * len(values)
        table = pyarrow.table({"key": keys, "value": values})
        pyarrow.parquet.write_table(table, part, compression="none")
        part.rename(part.with_name(f"{part.name[1:]}.parquet"))

    return send


def delta_sender(place: str) -> Callable[[list[str]], object]:
    import pyarrow
    from deltalake import WriterProperties, write_deltalake

    properties = WriterProperties(compression="UNCOMPRESSED")

    def send(values: list[str]) -> None:
        keys = [""] * len(values)
        table = pyarrow.table({"key": keys, "value": values})
        write_deltalake(place, table, mode="append", writer_properties=properties)

    return send


SENDERS = {
    "PulsarX": topic_sender, "Kafka": kafka_sender, "Parquet": parquet_sender,
    "Delta": delta_sender,
}  # fmt: skip


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main(store: str, place: str) -> None:
    send = SENDERS[store](place)
    waiting: list[str] = []
    rows = ROWS_OF_A_FILE if store in ("Parquet", "Delta") else 1
    began = time.monotonic()
    print("ready", flush=True)
    threading.Thread(target=end_with_input, daemon=True).start()
    for number in itertools.count():
        time.sleep(max(began + number * PERIOD_SECONDS - time.monotonic(), 0))
        waiting.append(value(number, SIZE, time.time()))
        if len(waiting) == rows:
            send(waiting)
            waiting.clear()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
