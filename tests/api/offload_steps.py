"""Steps of the tests of offloading: a topic of small ledgers, an object store that is a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulsarx
from pulsarx import BrokerOptions, ManualClock, MessageId
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.testing import inspect

COUNT = 35
SENT = [b"m%03d" % n for n in range(COUNT)]
LOOK_SECONDS = 60


class Store:
    """A folder as object store, with the data folder that uses it."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder = folder
        self.place = place

    def options(self, **more: Any) -> BrokerOptions:
        given = {
            "offload_url": self.place.as_uri(),
            "managed_ledger_max_entries_per_ledger": 10,
            "managed_ledger_offload_deletion_lag_ms": 0,
        }
        return BrokerOptions(**(given | more))

    def open(self, clock: ManualClock, **more: Any) -> pulsarx.Client:
        return pulsarx.Client(
            self.folder, broker_options=self.options(**more), clock=clock, durability="os"
        )

    def objects(self) -> list[Path]:
        return sorted(self.place.rglob("*.ledger"), key=lambda path: int(path.stem.split("-")[0]))

    def files(self, client: pulsarx.Client) -> int:
        """How many files of sealed ledgers there are."""
        return len(self.sealed(client))

    def sealed(self, client: pulsarx.Client) -> list[Path]:
        """The files of sealed ledgers that are there."""
        topics = inspect(client).catalogue.state.topics.values()
        ids = {each.file_id for topic in topics for each in topic.ledgers if each.state == "sealed"}
        paths = (self.folder / "ledgers").rglob("*.ledger")
        return [path for path in paths if int(path.stem) in ids]


def publish(client: pulsarx.Client, topic: str = "t", values: list[bytes] = SENT) -> None:
    producer = client.create_producer(topic)
    for value in values:
        producer.send(value)
    producer.close()


def offload(client: pulsarx.Client, topic: str = "t", threshold: int = 0) -> dict[str, str]:
    """Offload, and wait for the end of it."""
    client.admin.topics.offload(topic, threshold)
    inspect(client).settle()
    return client.admin.topics.offload_status(topic)


def offloaded(client: pulsarx.Client, clock: ManualClock, topic: str = "t") -> None:
    """Offload, and have the files go."""
    assert offload(client, topic) == {"status": "SUCCESS", "last_error": ""}
    clock.advance(LOOK_SECONDS)


def ids_and_values(client: pulsarx.Client, topic: str = "t") -> list[tuple[str, bytes]]:
    reader = client.create_reader(topic, MessageId.earliest)
    found = []
    while messages := reader.read_many(1000, 0):
        found += [(str(each.message_id()), each.data()) for each in messages]
    reader.close()
    return found


class Fetched:
    """Counts the bytes that are read out of objects."""

    def __init__(self, monkeypatch: Any) -> None:
        self.size = self.calls = 0
        read_into = StoredObject.read_into

        def counted(stored: StoredObject, descriptor: int, parts: Any, *more: Any) -> None:
            self.calls += 1
            self.size += sum(end - begin for begin, end in parts)
            read_into(stored, descriptor, parts, *more)

        monkeypatch.setattr(StoredObject, "read_into", counted)
