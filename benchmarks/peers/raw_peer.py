"""A served folder and Redis Streams without a client library: what was encoded before is sent, 64
messages are unconfirmed, and answers are only counted. So a server is measured, not its client."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

from peers import redis_peer
from peers.peer import RAW, Peer, stop
from peers.pulsar_client_peer import served
from wire_load import Connection

from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.frames import frame_encode

IN_FLIGHT = 64
RECEIVED_AT_ONCE = 1 << 20
SEND_RECEIPT = b"\x08\x07"  # how such a command begins


class Raw(Peer):
    place = RAW
    ways = ("publish_flight",)
    link: socket.socket
    process: Any

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        """The bytes of each; not timed."""
        raise NotImplementedError

    def take_answers(self, data: bytearray) -> int:
        """Take whole answers from the front; how many confirm a message."""
        raise NotImplementedError

    def publish_flight(self, frames: list[bytes]) -> None:
        sent = confirmed = 0
        data = bytearray()
        while confirmed < len(frames):
            until = min(len(frames), confirmed + IN_FLIGHT)
            if until > sent:
                self.link.sendall(b"".join(frames[sent:until]))
                sent = until
            received = self.link.recv(RECEIVED_AT_ONCE)
            if not received:
                raise OSError(f"{self.name} has hung up")
            data += received
            confirmed += self.take_answers(data)

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

    def take_answers(self, data: bytearray) -> int:
        at = found = 0
        while len(data) - at >= 4:
            end = at + 4 + struct.unpack_from(">I", data, at)[0]
            if end > len(data):
                break
            found += data[at + 8 : at + 10] == SEND_RECEIPT
            at = end
        del data[:at]
        return found


class RawRedis(Raw):
    name = "Redis Streams, raw"

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.server = redis_peer.Server(folder, flushed)
        self.process = self.server.process
        self.link = socket.create_connection(("127.0.0.1", self.server.port))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        head = b"*5\r\n$4\r\nXADD\r\n$8\r\nmeasured\r\n$1\r\n*\r\n$1\r\nd\r\n"
        return [b"%b$%d\r\n%b\r\n" % (head, len(each), each) for each in payloads]

    def take_answers(self, data: bytearray) -> int:
        """Each is an id: $15, its bytes."""
        end = data.rfind(b"\r\n") + 2
        lines = bytes(data[:end]).split(b"\r\n")[:-1] if end > 1 else []
        if any(line.startswith(b"-") for line in lines):
            raise OSError(f"Redis refuses: {lines[0]!r}")
        if len(lines) % 2:  # the id behind its length has not come yet
            end -= len(lines[-1]) + 2
        del data[: max(end, 0)]
        return len(lines) // 2

    def settle(self) -> None:
        self.link.sendall(b"*4\r\n$5\r\nXTRIM\r\n$8\r\nmeasured\r\n$6\r\nMAXLEN\r\n$1\r\n0\r\n")
        answer = self.link.recv(RECEIVED_AT_ONCE)
        assert answer.startswith(b":"), answer
