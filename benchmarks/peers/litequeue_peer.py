"""litequeue: put, pop and done on SQLite; a list is put in one transaction of it."""

from __future__ import annotations

from pathlib import Path

from litequeue import LiteQueue
from peers.peer import Peer, chunks


class Litequeue(Peer):
    name = "litequeue"
    ways = ("publish_each", "publish_stream", "consume_each")

    def __init__(self, folder: Path, flushed: bool) -> None:
        folder.mkdir(parents=True)
        self.queue = LiteQueue(folder / "queue.db")
        if flushed:
            self.queue.conn.execute("PRAGMA synchronous=FULL")

    def publish_each(self, payloads: list[bytes]) -> None:
        put = self.queue.put
        for payload in payloads:
            put(payload)

    def publish_stream(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            with self.queue.transaction():
                self.publish_each(chunk)

    def consume_each(self, count: int) -> None:
        pop, done = self.queue.pop, self.queue.done
        for _ in range(count):
            done(pop().message_id)

    def drain(self, count: int) -> None:
        self.queue.conn.execute(f"DELETE FROM {self.queue.table}")

    def settle(self) -> None:
        self.queue.prune()

    def close(self) -> None:
        self.queue.close()
