"""PulsarX on a folder, in the process that owns it; and the same by columns."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from peers.peer import Peer, Talker, chunks

import pulsarx

COLUMN_BYTES = 1 << 20
COLUMN_ROWS = 10_000  # at most


class PulsarX(Peer):
    name = "PulsarX"

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.client = pulsarx.Client(folder, durability="sync" if flushed else "os")
        self.consumer = self.client.subscribe(
            "measured", "worker", initial_position=pulsarx.InitialPosition.Earliest
        )
        self.single = self.client.create_producer("measured", batching_enabled=False)
        self.batching = self.client.create_producer(
            "measured", batching_enabled=True, block_if_queue_full=True
        )

    def publish_each(self, payloads: list[bytes]) -> None:
        send = self.single.send
        for payload in payloads:
            send(payload)

    def publish_stream(self, payloads: list[bytes]) -> None:
        send_async = self.batching.send_async
        for chunk in chunks(payloads, self.batch):
            for payload in chunk:
                send_async(payload, None)
            self.batching.flush()

    def publish_batch(self, payloads: list[bytes]) -> None:
        for chunk in chunks(payloads, self.batch):
            self.batching.send_many(chunk)

    def consume_each(self, count: int) -> None:
        acknowledge = self.consumer.acknowledge
        for message in islice(self.consumer, count):
            message.data()
            acknowledge(message)

    def consume_batch(self, count: int) -> None:
        while count > 0:
            messages = self.consumer.receive_many(min(count, self.batch))
            pulsarx.Message.payloads(messages)
            self.consumer.acknowledge_many(messages)
            count -= len(messages)

    def close(self) -> None:
        self.client.close()


class Columns(PulsarX):
    """The columns are made before they are published; received, they are columns too."""

    name = "PulsarX, columns"
    ways = ("publish_batch", "consume_batch")

    def prepare(self, payloads: list[bytes]) -> list[object]:
        """What publish_batch takes here; not timed."""
        import pyarrow

        self.rows = min(COLUMN_ROWS, COLUMN_BYTES // len(payloads[0]))
        whole = pyarrow.record_batch([pyarrow.array(payloads, pyarrow.binary())], names=["value"])
        return [whole.slice(at, self.rows) for at in range(0, len(payloads), self.rows)]

    def publish_batch(self, payloads: list[object]) -> None:  # type: ignore[override]
        for batch in payloads:
            self.batching.send_arrow(batch)

    def consume_batch(self, count: int) -> None:
        while count > 0:
            received = self.consumer.receive_arrow(min(count, self.rows))
            self.consumer.acknowledge_many(received)
            count -= len(received)


class Talk(Talker):
    """The first owns the folder; in another process the second is a guest beside it."""

    name = "PulsarX"
    between = ("threads", "processes")
    shared: pulsarx.Client | None = None  # by the threads of this process

    def __init__(self, address: str, speaks_first: bool) -> None:
        self.owns = speaks_first or self.shared is None
        if self.owns:
            type(self).shared = pulsarx.Client(address, durability="os")
        assert self.shared is not None
        self.client = self.shared
        sends, hears = ("there", "back") if speaks_first else ("back", "there")
        self.producer = self.client.create_producer(sends, batching_enabled=False)
        self.consumer = self.client.subscribe(
            hears, "worker", initial_position=pulsarx.InitialPosition.Earliest
        )

    def send(self, payload: bytes) -> None:
        self.producer.send(payload)

    def receive(self) -> bytes:
        message = self.consumer.receive(60_000)
        self.consumer.acknowledge(message)
        return message.data()

    def close(self) -> None:
        if self.owns:
            type(self).shared = None
            self.client.close()


class Awake(Talk):
    """Both ends keep a core busy while they wait."""

    name = "PulsarX polled"
    between = ("processes",)

    def __init__(self, address: str, speaks_first: bool) -> None:
        super().__init__(address, speaks_first)
        self.address = address
        self.awake = None if speaks_first else self.turn()

    def turn(self) -> pulsarx.Client:
        return pulsarx.Client(self.address, enable_busy_wait=True)

    def close(self) -> None:
        if self.awake is not None:
            self.awake.close()
        super().close()
