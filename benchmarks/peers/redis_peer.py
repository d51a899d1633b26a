"""Redis Streams by redis-py and hiredis: XADD, XREADGROUP, XACK, pipelines of a thousand. Its file
of commands is flushed every second, or always."""

from __future__ import annotations

from pathlib import Path

import redis
from peers.get import redis_server
from peers.peer import (
    OVER_TCP,
    Missing,
    Peer,
    Talker,
    chunks,
    counts,
    free_port,
    started,
    stop,
    wait_until,
)

STREAM, GROUP, FIELD = "measured", "worker", b"d"


class Server:
    """On a port of loopback, over a folder."""

    def __init__(self, folder: Path, flushed: bool) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        program, environment = redis_server()
        self.process = started(
            [
                program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder),
                "--appendonly", "yes", "--appendfsync", "always" if flushed else "everysec",
                "--save", "", "--logfile", str(folder / "log"),
            ],
            environment,
        )  # fmt: skip
        link = redis.Redis(port=self.port)

        def answers() -> None:
            try:
                link.ping()
            except redis.ConnectionError as error:
                raise OSError(error) from error

        wait_until(answers, self.process)
        link.close()


class RedisStreams(Peer):
    name = "Redis Streams"
    place = OVER_TCP
    ways = ("publish_each", "publish_stream", "consume_each", "consume_batch")

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.server = Server(folder, flushed)
        self.link = redis.Redis(port=self.server.port)
        self.link.xgroup_create(STREAM, GROUP, id="0", mkstream=True)

    def publish_each(self, payloads: list[bytes]) -> None:
        xadd = self.link.xadd
        for payload in payloads:
            xadd(STREAM, {FIELD: payload})

    def publish_stream(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            pipeline = self.link.pipeline(transaction=False)
            for payload in chunk:
                pipeline.xadd(STREAM, {FIELD: payload})
            pipeline.execute()

    def _read(self, count: int) -> list[bytes]:
        """The ids of so many messages, whose payloads were in hand."""
        ((_, messages),) = self.link.xreadgroup(GROUP, "one", {STREAM: ">"}, count=count)
        return [found for found, fields in messages if fields[FIELD]]

    def consume_each(self, count: int) -> None:
        xack = self.link.xack
        for size in counts(count, 100):
            for found in self._read(size):
                xack(STREAM, GROUP, found)

    def consume_batch(self, count: int) -> None:
        for size in counts(count, self.batch):
            self.link.xack(STREAM, GROUP, *self._read(size))

    def settle(self) -> None:
        self.link.xtrim(STREAM, maxlen=0, approximate=False)

    def close(self) -> None:
        self.link.close()
        stop(self.server.process)


class Talk(Talker):
    """The address is a folder; the second end finds the port in it."""

    name = "Redis Streams"
    between = ("over TCP",)

    def __init__(self, address: str, speaks_first: bool) -> None:
        self.server: Server | None = None
        port = Path(address + ".port")
        if speaks_first:
            self.server = Server(Path(address), flushed=False)
            port.write_text(str(self.server.port))
        self.link = redis.Redis(port=int(port.read_text()))
        self.sends, self.hears = ("there", "back") if speaks_first else ("back", "there")
        self.link.xgroup_create(self.hears, GROUP, id="0", mkstream=True)

    def send(self, payload: bytes) -> None:
        self.link.xadd(self.sends, {FIELD: payload})

    def receive(self) -> bytes:
        found = self.link.xreadgroup(GROUP, "one", {self.hears: ">"}, count=1, block=60_000)
        if not found:
            raise Missing("no message came in a minute")
        ((_, ((number, fields),)),) = found
        self.link.xack(self.hears, GROUP, number)
        return fields[FIELD]

    def close(self) -> None:
        self.link.close()
        if self.server is not None:
            stop(self.server.process)
