"""SQLite as a queue: one table, write-ahead log. Flushed: synchronous=FULL for what is published;
the connection that consumes has NORMAL, as its documentation advises with the log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from peers.peer import Peer, chunks, counts

PUT = "INSERT INTO messages (payload) VALUES (?)"
TAKE = "DELETE FROM messages WHERE id = (SELECT min(id) FROM messages) RETURNING payload"
LOOK = "SELECT id, payload FROM messages ORDER BY id LIMIT ?"


class Sqlite(Peer):
    name = "SQLite WAL"

    def __init__(self, folder: Path, flushed: bool) -> None:
        folder.mkdir(parents=True)
        self.writer, self.reader = (
            self._connection(folder / "queue.db", synchronous)
            for synchronous in ("FULL" if flushed else "NORMAL", "NORMAL")
        )
        self.writer.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, payload BLOB)")

    @staticmethod
    def _connection(path: Path, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        return connection

    def publish_each(self, payloads: list[bytes]) -> None:
        execute = self.writer.execute
        for payload in payloads:
            execute(PUT, (payload,))

    def publish_stream(self, payloads: list[bytes]) -> None:
        execute = self.writer.execute
        for chunk in chunks(payloads, self.batch):
            execute("BEGIN IMMEDIATE")
            for payload in chunk:
                execute(PUT, (payload,))
            execute("COMMIT")

    def publish_batch(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            self.writer.execute("BEGIN IMMEDIATE")
            self.writer.executemany(PUT, [(payload,) for payload in chunk])
            self.writer.execute("COMMIT")

    def consume_each(self, count: int) -> None:
        execute = self.reader.execute
        for _ in range(count):
            assert execute(TAKE).fetchall()

    def consume_batch(self, count: int) -> None:
        for size in counts(count, self.batch):
            self.reader.execute("BEGIN IMMEDIATE")
            rows = self.reader.execute(LOOK, (size,)).fetchall()
            self.reader.execute("DELETE FROM messages WHERE id <= ?", (rows[-1][0],))
            self.reader.execute("COMMIT")
            assert len(rows) == size

    def close(self) -> None:
        self.reader.close()
        self.writer.close()
