"""A folder in which messages are taken from one topic, and others are published because of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pulsarx

BATCH = 100  # messages in and messages out of a large transaction
OUT = ("out-0", "out-1", "out-2")
PAYLOAD = b"\xa5" * 100
PATIENCE_MS = 10_000


class TransactedFolder:
    """Closes the client and deletes the folder at the end of its `with` block."""

    def __init__(self, folder: Path, durability: str = "sync") -> None:
        self.folder = folder
        self.client = pulsarx.Client(folder, durability=durability)
        earliest = pulsarx.InitialPosition.Earliest
        self.consumer = self.client.subscribe("in", "worker", initial_position=earliest)
        self.source = self.client.create_producer("in")
        self.producers = [self.client.create_producer(each, batching_enabled=False) for each in OUT]

    def fill(self, payloads: list[bytes]) -> None:
        for at in range(0, len(payloads), 1000):
            self.source.send_many(payloads[at : at + 1000])

    def one_by_one(self, count: int) -> None:
        """Take a message and publish one, in a transaction, so many times."""
        send = self.producers[0].send
        for _ in range(count):
            message = self.consumer.receive(PATIENCE_MS)
            transaction = self.client.new_transaction()
            send(PAYLOAD, transaction=transaction)
            self.consumer.acknowledge(message, transaction=transaction)
            transaction.commit()

    def many(self, count: int, transacted: bool = True) -> None:
        """Take a hundred messages and publish as many to three topics, so many times."""
        for _ in range(count):
            messages: list[Any] = []
            while len(messages) < BATCH:
                messages += self.consumer.receive_many(BATCH - len(messages), PATIENCE_MS)
            transaction = self.client.new_transaction() if transacted else None
            for at, message in enumerate(messages):
                self.producers[at % len(OUT)].send_async(PAYLOAD, None, transaction=transaction)
                self.consumer.acknowledge(message, transaction=transaction)
            if transaction is None:
                for each in self.producers:
                    each.flush()
            else:
                transaction.commit()

    def __enter__(self) -> TransactedFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        shutil.rmtree(self.folder)
