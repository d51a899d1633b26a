"""The topic of which tests take backups."""

from __future__ import annotations

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId


def publish(client: pulsarx.Client, first: int, end: int, topic: str = "t") -> None:
    with client.create_producer(topic, batching_enabled=False) as producer:
        for number in range(first, end):
            producer.send(b"%d" % number)


def subscribed(client: pulsarx.Client) -> pulsarx.Consumer:
    return client.subscribe(
        "t", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
    )


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def read(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    reader = client.create_reader(topic, MessageId.earliest)
    return [each.data() for each in reader]
