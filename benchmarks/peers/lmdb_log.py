"""LMDB as a log: ascending keys, appended 1000 a transaction. What a user would pick instead."""

from __future__ import annotations

from pathlib import Path

import lmdb


class LmdbLog:
    """One writer. sync=True: a transaction returns when it is on the device, as a durable send."""

    def __init__(self, folder: Path) -> None:
        self.environment = lmdb.open(str(folder), map_size=4 << 30, sync=True)
        self.next_key = 0

    def append(self, payloads: list[bytes]) -> None:
        first = self.next_key
        self.next_key += len(payloads)
        keys = range(first, self.next_key)
        with self.environment.begin(write=True) as transaction:
            items = [(key.to_bytes(8, "big"), value) for key, value in zip(keys, payloads)]
            transaction.cursor().putmulti(items, append=True)

    def close(self) -> None:
        self.environment.close()
