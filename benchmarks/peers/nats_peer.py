"""NATS JetStream by nats-py: a stream in files, a durable pull consumer, publish_async in flights
of a thousand. It flushes every two minutes as it comes, or always."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType
from peers.get import nats_server
from peers.peer import OVER_TCP, Peer, Talker, chunks, counts, free_port, started, stop, wait_until


class Server:
    def __init__(self, folder: Path, flushed: bool) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        store = json.dumps(str(folder / "store"))
        sync = "always" if flushed else '"2m"'
        config = folder / "nats.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nlog_file: {json.dumps(str(folder / 'log'))}\n"
            f"jetstream {{ store_dir: {store}, sync_interval: {sync} }}\n"
        )
        self.process = started([nats_server(), "-c", str(config)])
        wait_until(
            lambda: socket.create_connection(("127.0.0.1", self.port), 1).close(), self.process
        )


async def subscribed(stream: Any, topic: str) -> Any:
    """A pull subscription, with the stream of one subject that it needs."""
    try:
        await stream.add_stream(
            name=topic, subjects=[topic], storage=StorageType.FILE,
            retention=RetentionPolicy.WORK_QUEUE,
        )  # fmt: skip
    except nats.js.errors.BadRequestError:  # the other end has made it
        pass
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=100_000)
    return await stream.pull_subscribe(topic, durable="worker", config=config)


class Nats(Peer):
    name = "NATS JetStream"
    place = OVER_TCP
    ways = ("publish_each", "publish_stream", "consume_each", "consume_batch")

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.server = Server(folder, flushed)
        self.loop = asyncio.new_event_loop()
        self.link = self.run(nats.connect(f"nats://127.0.0.1:{self.server.port}"))
        self.stream = self.link.jetstream()
        self.subscription = self.run(subscribed(self.stream, "measured"))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def publish_each(self, payloads: list[bytes]) -> None:
        async def work() -> None:
            for payload in payloads:
                await self.stream.publish("measured", payload)

        self.run(work())

    def publish_stream(self, payloads: list[bytes]) -> None:
        async def work() -> None:
            for chunk in chunks(payloads, self.batch):
                for payload in chunk:
                    await self.stream.publish_async("measured", payload)
                await self.stream.publish_async_completed()

        self.run(work())

    def consume_each(self, count: int) -> None:
        async def work() -> None:
            left = count
            while left > 0:
                for message in await self.subscription.fetch(min(left, 100), timeout=30):
                    assert message.data
                    await message.ack()
                    left -= 1
            await self.link.flush()

        self.run(work())

    def consume_batch(self, count: int) -> None:
        """Of a work queue each message is acknowledged by itself; a thousand are fetched."""

        async def work() -> None:
            for size in counts(count, self.batch):
                while size > 0:
                    for message in await self.subscription.fetch(size, timeout=30):
                        assert message.data
                        await message.ack()
                        size -= 1
            await self.link.flush()

        self.run(work())

    def drain(self, count: int) -> None:
        self.run(self.stream.purge_stream("measured"))

    def close(self) -> None:
        self.run(self.link.close())
        self.loop.close()
        stop(self.server.process)


class Talk(Talker):
    name = "NATS JetStream"
    between = ("over TCP",)

    def __init__(self, address: str, speaks_first: bool) -> None:
        self.server: Server | None = None
        port = Path(address + ".port")
        if speaks_first:
            self.server = Server(Path(address), flushed=False)
            port.write_text(str(self.server.port))
        self.loop = asyncio.new_event_loop()
        self.sends, self.hears = ("there", "back") if speaks_first else ("back", "there")
        self.loop.run_until_complete(self.open(int(port.read_text())))

    async def open(self, port: int) -> None:
        self.link = await nats.connect(f"nats://127.0.0.1:{port}")
        self.stream = self.link.jetstream()
        await subscribed(self.stream, self.sends)
        self.subscription = await subscribed(self.stream, self.hears)

    def send(self, payload: bytes) -> None:
        self.loop.run_until_complete(self.stream.publish(self.sends, payload))

    def receive(self) -> bytes:
        async def work() -> bytes:
            (message,) = await self.subscription.fetch(1, timeout=60)
            await message.ack()
            return message.data

        return self.loop.run_until_complete(work())

    def close(self) -> None:
        self.loop.run_until_complete(self.link.close())
        if self.server is not None:
            stop(self.server.process)
