"""Facts about the bytes that an owner sends to another process."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pulsarx
from pulsarx.server.guest_service import GuestService
from pulsarx.testing import inspect

SIZE = 2_000_000


def test_nothing_overtakes_what_the_socket_had_no_room_for(
    folder: Path,
) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        service = GuestService(inspect(client).broker)
        ours, theirs = socket.socketpair()
        service.take(theirs.detach(), 1)
        pause = threading.Event()
        while not service.connections:
            pause.wait(0.01)
        (connection,) = service.connections

        large = bytes(SIZE)
        connection._write(large)
        while not connection._transport.get_write_buffer_size():
            pause.wait(0.01)
        held, goes_on = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            goes_on.wait(60)

        service.loop.call_soon_threadsafe(hold)
        assert held.wait(60)
        found = ours.recv(SIZE)
        connection._write(b"behind it")  # the socket has room, and the loop has the rest
        goes_on.set()
        while len(found) < SIZE + len(b"behind it"):
            found += ours.recv(SIZE)
        assert found == large + b"behind it"
        ours.close()
