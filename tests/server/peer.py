"""A client that speaks in commands to a session, without a socket between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pulsarx
from pulsarx._pycore.ranges.entry_codec import crc32c, encode_batch, encode_entry
from pulsarx.sessions.server import Server
from pulsarx.testing import inspect
from pulsarx.wire.commands import EARLIEST, SHARED
from pulsarx.wire.frames import FrameReader, frame_encode

Told = tuple[str, dict[str, Any], bytes]


class Peer:
    """A client that speaks in commands, and keeps what it is told."""

    def __init__(self, server: Server, wake: Any = None, **options: Any) -> None:
        """wake: what the session calls in the place of setting `woken`."""
        self.server = server
        self._reader = FrameReader(5 << 20)
        self.told: list[Told] = []
        self.woken = threading.Event()
        self.session = self.server.open_session(self._hear, wake or self.woken.set, **options)

    def another(self) -> Peer:
        """One more, on a connection of its own."""
        made = Peer(self.server)
        made.connect()
        return made

    @contextmanager
    def holding_callbacks(self) -> Iterator[None]:
        """Keep the thread busy in which receipts are flushed and told; they come at the end."""
        free = threading.Event()
        self.server.completions.jobs.post(lambda: free.wait(60))
        try:
            yield
        finally:
            free.set()
            self.server.completions.wait()  # for what flushes
            self.server.completions.wait()  # for what that confirmed

    def _hear(self, data: bytes) -> None:
        self.told += self._reader.feed(data)

    def say(self, name: str, entry: bytes | None = None, **values: Any) -> list[Told]:
        """Send one command; what the broker said up to then, and because of it."""
        self.session.received(frame_encode(name, values, entry))
        self.server.completions.wait()  # for what flushes
        self.server.completions.wait()  # for what that confirmed
        self.session.deliver()
        found, self.told = self.told, []
        return found

    def connect(self) -> None:
        self.say("CONNECT", client_version="test", protocol_version=20)

    def produce(self, *entries: bytes) -> list[Told]:
        self.say("PRODUCER", topic="t", producer_id=0, request_id=0)
        return [told for entry in entries for told in self.send(entry)]

    def send(self, entry: bytes, sequence_id: int = 1) -> list[Told]:
        return self.say("SEND", entry, producer_id=0, sequence_id=sequence_id)

    def subscribe(self, **values: Any) -> list[Told]:
        values.setdefault("type", SHARED)
        values.setdefault("topic", "t")
        given = {"subscription": "s", "consumer_id": 0, "request_id": 1}
        return self.say("SUBSCRIBE", initial_position=EARLIEST, **given, **values)


def serving(client: pulsarx.Client) -> Server:
    return Server(inspect(client).broker)


def entry(payload: bytes, sequence_id: int = 1) -> bytes:
    return encode_entry(payload, producer_name="p", sequence_id=sequence_id, publish_time_ms=1000)


def batch(*payloads: bytes) -> bytes:
    found = [(each, {}) for each in payloads]
    return encode_batch(found, producer_name="p", publish_time_ms=1000)


def packed_entry(
    packed: bytes, compression: int, uncompressed_size: int, messages: int = 0
) -> bytes:
    """An entry of what a client made of its payload. messages: of a batch; 0: it is none."""
    fields = [(2, 0), (3, 1000), (8, compression), (9, uncompressed_size)]
    fields += [(11, messages)] if messages else []
    metadata = b"\x0a\x01p" + b"".join(bytes([at << 3]) + varint(number) for at, number in fields)
    body = len(metadata).to_bytes(4, "big") + metadata + packed
    return b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def names(told: list[Told]) -> list[str]:
    return [each[0] for each in told]
