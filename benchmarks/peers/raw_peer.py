"""A served folder and Redis Streams without a client library: what was encoded before is sent, 64
messages are unconfirmed, and answers are only counted, by wire_flight. So a server is measured, not
its client."""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any

from floor_build import wire_flight
from peers import redis_peer
from peers.peer import RAW, Peer, stop
from peers.pulsar_client_peer import served
from wire_load import Connection

from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.frames import frame_encode

IN_FLIGHT = 64
RECEIVED_AT_ONCE = 1 << 20
wire_flight_of = functools.cache(wire_flight)


class Raw(Peer):
    place = RAW
    ways = ("publish_flight",)
    link: socket.socket
    process: Any
    answers_by_lines = False

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        """The bytes of each; not timed."""
        raise NotImplementedError

    def publish_flight(self, frames: list[bytes]) -> None:
        wire_flight_of().fly(self.link.fileno(), frames, IN_FLIGHT, self.answers_by_lines)

    def drain(self, count: int) -> None:
        pass

    def close(self) -> None:
        self.link.close()
        stop(self.process)


class RawServed(Raw):
    """Nobody is subscribed, so what is published is deleted."""

    name = "PulsarX, served, raw"

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.process, url = served(folder, flushed)
        connection = Connection(url)
        connection.ask("PRODUCER", producer_id=0, topic="measured", request_id=1)
        self.link = connection.socket

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        return [
            frame_encode(
                "SEND",
                {"producer_id": 0, "sequence_id": number, "num_messages": 1},
                encode_batch([(payload, {})], producer_name="raw", publish_time_ms=1),
            )
            for number, payload in enumerate(payloads)
        ]


class RawRedis(Raw):
    name = "Redis Streams, raw"
    answers_by_lines = True

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.server = redis_peer.Server(folder, flushed)
        self.process = self.server.process
        self.link = socket.create_connection(("127.0.0.1", self.server.port))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        head = b"*5\r\n$4\r\nXADD\r\n$8\r\nmeasured\r\n$1\r\n*\r\n$1\r\nd\r\n"
        return [b"%b$%d\r\n%b\r\n" % (head, len(each), each) for each in payloads]

    def settle(self) -> None:
        self.link.sendall(b"*4\r\n$5\r\nXTRIM\r\n$8\r\nmeasured\r\n$6\r\nMAXLEN\r\n$1\r\n0\r\n")
        answer = self.link.recv(RECEIVED_AT_ONCE)
        assert answer.startswith(b":"), answer
