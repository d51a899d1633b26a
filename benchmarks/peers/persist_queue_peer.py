"""persist-queue: its SQLiteAckQueue, which has get and ack, and no batches."""

from __future__ import annotations

from pathlib import Path

import persistqueue
from peers.peer import Peer


class PersistQueue(Peer):
    """It has one way to commit, which flushes, what is acknowledged too."""

    name = "persist-queue"
    modes = ("flushed",)
    ways = ("publish_each", "consume_each")

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.queue = persistqueue.SQLiteAckQueue(str(folder), multithreading=True)

    def publish_each(self, payloads: list[bytes]) -> None:
        put = self.queue.put
        for payload in payloads:
            put(payload)

    def consume_each(self, count: int) -> None:
        get, ack = self.queue.get, self.queue.ack
        for _ in range(count):
            item = get(block=False, raw=True)
            ack(id=item["pqid"])

    def settle(self) -> None:
        self.queue.clear_acked_data(max_delete=0, keep_latest=0)

    def close(self) -> None:
        self.queue.close()
