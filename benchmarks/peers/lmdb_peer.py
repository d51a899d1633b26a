"""LMDB as a queue: ascending keys, appended; what is acknowledged is deleted, which gives its pages
back. In the page cache by a writable map, as its documentation advises where speed is wanted."""

from __future__ import annotations

from pathlib import Path

import lmdb
from peers.peer import Peer, chunks, counts


class Lmdb(Peer):
    """One transaction at a time. flushed: it returns when it is on the device; so does one that
    acknowledges, as an environment has one way to commit."""

    name = "LMDB"

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.environment = lmdb.open(
            str(folder), map_size=4 << 30, sync=flushed, writemap=not flushed
        )
        self.next_key = 0

    def _keys(self, count: int) -> list[bytes]:
        first, self.next_key = self.next_key, self.next_key + count
        return [key.to_bytes(8, "big") for key in range(first, self.next_key)]

    def publish_each(self, payloads: list[bytes]) -> None:
        begin = self.environment.begin
        for key, payload in zip(self._keys(len(payloads)), payloads):
            with begin(write=True) as transaction:
                transaction.put(key, payload, append=True)

    def publish_stream(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            with self.environment.begin(write=True) as transaction:
                for key, payload in zip(self._keys(len(chunk)), chunk):
                    transaction.put(key, payload, append=True)

    def publish_batch(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            items = list(zip(self._keys(len(chunk)), chunk))
            with self.environment.begin(write=True) as transaction:
                transaction.cursor().putmulti(items, append=True)

    def consume_each(self, count: int) -> None:
        begin = self.environment.begin
        for _ in range(count):
            with begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.first()
                cursor.value()
                cursor.delete()

    def consume_batch(self, count: int) -> None:
        for size in counts(count, self.batch):
            with self.environment.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.first()
                for _ in range(size):
                    cursor.value()
                    cursor.delete()

    def close(self) -> None:
        self.environment.close()
