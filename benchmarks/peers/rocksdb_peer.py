"""RocksDB as a queue: ascending keys, batches by WriteBatch, read by position; what is acknowledged
is deleted, a thousand by DeleteRange. Flushed: WriteOptions.sync for what is published alone."""

from __future__ import annotations

from pathlib import Path

from peers.peer import Peer, chunks, counts
from rocksdict import Options, Rdict, ReadOptions, WriteBatch, WriteOptions


def key(number: int) -> bytes:
    return number.to_bytes(8, "big")


class RocksDb(Peer):
    name = "RocksDB"

    def __init__(self, folder: Path, flushed: bool) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        self.store = Rdict(str(folder), options)
        self.synced, self.unsynced = WriteOptions(), WriteOptions()
        self.synced.sync = flushed
        self.next_key = self.position = 0

    def publish_each(self, payloads: list[bytes]) -> None:
        put, options = self.store.put, self.synced
        for payload in payloads:
            put(key(self.next_key), payload, write_opt=options)
            self.next_key += 1

    def publish_stream(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            batch = WriteBatch(raw_mode=True)
            for number, payload in enumerate(chunk, self.next_key):
                batch.put(key(number), payload)
            self.store.write(batch, write_opt=self.synced)
            self.next_key += len(chunk)

    def consume_each(self, count: int) -> None:
        get, delete, options = self.store.get, self.store.delete, self.unsynced
        for _ in range(count):
            at = key(self.position)
            get(at)
            delete(at, write_opt=options)
            self.position += 1

    def consume_batch(self, count: int) -> None:
        for size in counts(count, self.batch):
            cursor = self.store.iter(ReadOptions())
            cursor.seek(key(self.position))
            for _ in range(size):
                cursor.value()
                cursor.next()
            batch = WriteBatch(raw_mode=True)
            batch.delete_range(key(self.position), key(self.position + size))
            self.store.write(batch, write_opt=self.unsynced)
            self.position += size

    def close(self) -> None:
        self.store.close()
