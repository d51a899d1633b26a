"""A client that speaks in commands, over a socket of its own."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

from served import Served

from pulsarx.server.network_service import KEEP_ALIVE_MS
from pulsarx.wire.commands import EARLIEST, SHARED
from pulsarx.wire.frames import FrameReader, frame_encode

PATIENCE_SECONDS = 60.0
Told = tuple[str, dict[str, Any], bytes]


class Speaker:
    """tls: speak it, on its port."""

    def __init__(self, served: Served, tls: ssl.SSLContext | None = None) -> None:
        service = served.service
        port = service.port if tls is None else service.tls_port
        assert port is not None
        self.socket = socket.create_connection((service.host, port), PATIENCE_SECONDS)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._reader = FrameReader(5 << 20)
        self._told: list[Told] = []

    def say(self, name: str, entry: bytes | None = None, **values: Any) -> None:
        self.socket.sendall(frame_encode(name, values, entry))

    def hear(self) -> Told:
        """The next command; ConnectionError: the broker has hung up."""
        while not self._told:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker has hung up")
            self._told += self._reader.feed(data)
        return self._told.pop(0)

    def greet(self) -> None:
        self.say("CONNECT", client_version="test", protocol_version=20)
        assert self.hear()[0] == "CONNECTED"

    def is_hung_up_on(self) -> bool:
        """Whether the broker hangs up, however much it says before."""
        try:
            while True:
                self.hear()
        except ConnectionError:
            return True

    def subscribe(self, kind: int = SHARED, permits: int = 1000) -> None:
        ids = {"topic": "t", "subscription": "s", "consumer_id": 0, "request_id": 1}
        self.say("SUBSCRIBE", **ids, type=kind, initial_position=EARLIEST)
        assert self.hear()[0] == "SUCCESS"
        self.say("FLOW", consumer_id=0, permits=permits)

    def produce(self) -> None:
        self.say("PRODUCER", topic="t", producer_id=0, request_id=0)
        assert self.hear()[0] == "PRODUCER_SUCCESS"


def looks(served: Served, count: int) -> None:
    """Let half a keep-alive interval pass, so many times, and the service look at its clients."""
    assert served.clock is not None
    for _ in range(count):
        served.clock.advance(KEEP_ALIVE_MS / 2000)
        for _ in range(3):  # the look, what it writes, and what that sends
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), served.network.loop).result()
