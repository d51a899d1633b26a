"""A topic as a user has it: a client on a folder, a producer, a durable subscription attached."""

from __future__ import annotations

import shutil
from pathlib import Path

import pulsarx


class TopicInFolder:
    """Closes the client and deletes the folder at the end of its `with` block."""

    def __init__(
        self, folder: Path, *, durability: str = "os", batching: bool = True, keep: bool = False
    ) -> None:
        self.folder = folder
        self.keep = keep
        self.client = pulsarx.Client(folder, durability=durability)
        earliest = pulsarx.InitialPosition.Earliest
        self.consumer = self.client.subscribe("measured", "worker", initial_position=earliest)
        self.producer = self.client.create_producer("measured", batching_enabled=batching)

    def drain(self, count: int) -> None:
        """Receive and acknowledge exactly count messages."""
        while count > 0:
            messages = self.consumer.receive_many(min(count, 1000), 10_000)
            if not messages:
                raise AssertionError(f"{count} messages did not arrive")
            self.consumer.acknowledge_many(messages)
            count -= len(messages)

    def publish(self, payloads: list[bytes]) -> None:
        for at in range(0, len(payloads), 1000):
            self.producer.send_many(payloads[at : at + 1000])

    def __enter__(self) -> TopicInFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        if not self.keep:
            shutil.rmtree(self.folder)


class DrainBefore:
    """Receives what the turn before has published; the first call finds nothing."""

    def __init__(self, topic: TopicInFolder, count: int) -> None:
        self.topic = topic
        self.count = count
        self.published = False

    def __call__(self) -> None:
        if self.published:
            self.topic.drain(self.count)
        self.published = True


def payloads(count: int, size: int) -> list[bytes]:
    """Distinct objects of distinct content."""
    return [b"%0*d" % (size, number) for number in range(count)]
