"""As much load as a broker takes, with little work of its own: publishes one batch again and again
over a connection, and receives and acknowledges what comes over another.

    python wire_load.py URL MESSAGES SIZE BATCH

Prints the seconds from the first SEND to the last message's arrival, for each message. BATCH 1: by
wire_flight, as commands in Python would cost more than what is measured.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from urllib.parse import urlsplit

from floor_build import wire_flight
from fresh_process import print_figures

from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.wire.commands import EARLIEST, EXCLUSIVE, INDIVIDUAL
from pulsarx.wire.frames import FrameReader, frame_encode

IN_FLIGHT = 64  # batches without a receipt
PERMITS = 100_000
MESSAGE_SIZE_MAX = 5 << 20
WARM_UP = 20  # batches
RECEIVED_AT_ONCE = 1 << 20


class Connection:
    """One connection. One thread reads it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader(MESSAGE_SIZE_MAX)
        self.ask("CONNECT", client_version="load", protocol_version=20)

    def say(self, name: str, **values: object) -> None:
        self.socket.sendall(frame_encode(name, values))

    def hear(self) -> list[tuple[str, dict[str, object], bytes]]:
        data = self.socket.recv(RECEIVED_AT_ONCE)
        if not data:
            raise ConnectionError("the broker has hung up")
        return list(self._reader.feed(data))

    def ask(self, name: str, **values: object) -> None:
        self.say(name, **values)
        told = self.hear()
        while not told:
            told = self.hear()
        if told[0][0] == "ERROR":
            raise RuntimeError(f"{name}: {told[0][1]}")


def publish(connection: Connection, entry: bytes, count: int) -> None:
    """Return when all is confirmed."""
    confirmed = 0
    sent = 0
    while confirmed < count:
        frames = []
        while sent < min(count, confirmed + IN_FLIGHT):
            values = {"producer_id": 0, "sequence_id": sent, "num_messages": 1}
            frames.append(frame_encode("SEND", values, entry))
            sent += 1
        if frames:
            connection.socket.sendall(b"".join(frames))
        confirmed += sum(name == "SEND_RECEIPT" for name, _, _ in connection.hear())


def sends(entry: bytes, count: int) -> list[bytes]:
    """The frames of so many SENDs of producer 0."""
    ids: dict[str, object] = {"producer_id": 0, "num_messages": 1}
    return [frame_encode("SEND", {**ids, "sequence_id": at}, entry) for at in range(count)]


def receive(connection: Connection, count: int, batch: int) -> None:
    """Return when so many batches have come, and were acknowledged."""
    came = 0
    while came < count:
        ids = [values["message_id"] for name, values, _ in connection.hear() if name == "MESSAGE"]
        came += len(ids)
        if ids:
            ack = frame_encode(
                "ACK", {"consumer_id": 0, "ack_type": INDIVIDUAL, "message_ids": ids}
            )
            flow = frame_encode("FLOW", {"consumer_id": 0, "permits": len(ids) * batch})
            connection.socket.sendall(ack + flow)


def main(url: str, messages: int, size: int, batch: int) -> None:
    topic = f"load-{time.time_ns():x}"
    producer, consumer = Connection(url), Connection(url)
    found = {"topic": topic, "request_id": 1}
    producer.ask("PRODUCER", producer_id=0, **found)
    consumer.ask(
        "SUBSCRIBE",
        consumer_id=0,
        subscription="s",
        type=EXCLUSIVE,
        initial_position=EARLIEST,
        **found,
    )
    consumer.say("FLOW", consumer_id=0, permits=PERMITS)
    payloads = [(b"%0*d" % (size, number), {}) for number in range(batch)]
    now_ms = time.time_ns() // 1_000_000
    entry = encode_batch(payloads, producer_name="load", publish_time_ms=now_ms)
    elapsed = 0.0
    flight = wire_flight() if batch == 1 else None
    for batches in (WARM_UP, messages // batch):
        frames = sends(entry, batches) if flight else []
        takes = (consumer.socket.fileno(), batches, True) if flight else (consumer, batches, batch)
        receiver = threading.Thread(target=flight.consume if flight else receive, args=takes)
        began = time.perf_counter()
        receiver.start()
        if flight:
            flight.fly(producer.socket.fileno(), frames, IN_FLIGHT, False)
        else:
            publish(producer, entry, batches)
        receiver.join()
        elapsed = (time.perf_counter() - began) / (batches * batch)
    print_figures(elapsed=elapsed)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
