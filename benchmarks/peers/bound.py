"""What nothing that stores messages can beat: checksum and `pwrite` of the same bytes in C, for the
kernel or for the device; and what a hand-over is built on."""

from __future__ import annotations

import os
import queue
import socket
from pathlib import Path

from floor_build import floors
from peers.peer import Peer, Talker

BLOCK = 128 << 10


class Bound(Peer):
    """Into a file that is written again from its begin, so its pages are there already."""

    name = "checksum + pwrite in C"
    ways = ("publish_each", "publish_batch")

    def __init__(self, folder: Path, flushed: bool) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "bound"
        self.flushed = flushed
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        self.floors = floors()

    def prepare(self, payloads: list[bytes]) -> list[bytes]:
        """A message's bytes, those of all of them, and of a batch. The space is written before, as
        a ledger's is."""
        whole = b"".join(payloads)
        os.pwrite(self.fd, bytes(len(whole)), 0)
        os.fsync(self.fd)
        return [payloads[0], whole, whole[: self.batch * len(payloads[0])]]

    def publish_each(self, payloads: list[bytes]) -> None:
        one, whole, _ = payloads
        if self.flushed:
            self.floors.write_and_flush(self.fd, one, 0, len(whole) // len(one))
        else:
            self.floors.write_blocks(self.fd, whole, len(one), 0, True)

    def publish_batch(self, payloads: list[bytes]) -> None:
        one, whole, batch = payloads
        if self.flushed and len(whole) > len(batch):
            self.floors.write_and_flush(self.fd, batch, 0, len(whole) // len(batch))
        else:
            self.floors.write_blocks(self.fd, whole, BLOCK, 0, True)
            if self.flushed:
                os.fdatasync(self.fd)

    def drain(self, count: int) -> None:
        pass

    def close(self) -> None:
        os.close(self.fd)
        self.path.unlink()


class EmptyCall(Peer):
    """Taking a message costs no less from Python: a call of a method that does nothing."""

    name = "an empty call for each"
    ways = ("consume_each",)

    def __init__(self, folder: Path, flushed: bool) -> None:
        self.call = floors().Empty().call

    def publish_batch(self, payloads: list[bytes]) -> None:
        self.payloads = payloads

    def consume_each(self, count: int) -> None:
        call = self.call
        for payload in self.payloads:
            call(payload)

    def close(self) -> None:
        pass


class ThreadQueues(Talker):
    """Two queues of the standard library."""

    name = "queue.SimpleQueue"
    between = ("threads",)
    bound = True
    queues: tuple[queue.SimpleQueue[bytes], ...] = ()

    def __init__(self, address: str, speaks_first: bool) -> None:
        if speaks_first:
            type(self).queues = (queue.SimpleQueue(), queue.SimpleQueue())
        sends, hears = self.queues if speaks_first else reversed(self.queues)
        self.send, self.receive = sends.put, hears.get  # type: ignore[method-assign]


class BareSocket(Talker):
    """A socket of a kind; the first waits for the second to connect when it first sends."""

    bound = True
    family = socket.AF_UNIX

    def where(self, address: str) -> str | tuple[str, int]:
        return address + ".socket"

    def __init__(self, address: str, speaks_first: bool) -> None:
        self.listener: socket.socket | None = None
        self.link: socket.socket | None = None
        if speaks_first:
            self.listener = socket.socket(self.family)
            self.listener.bind(self.where(address))
            self.listener.listen(1)
        else:
            self.link = socket.socket(self.family)
            self.link.connect(self.where(address))
            self.prepare(self.link)

    def prepare(self, link: socket.socket) -> None:
        pass

    def send(self, payload: bytes) -> None:
        if self.link is None:
            assert self.listener is not None
            self.link, _ = self.listener.accept()
            self.prepare(self.link)
        self.link.sendall(payload)

    def receive(self) -> bytes:
        assert self.link is not None
        return self.link.recv(1 << 16)

    def close(self) -> None:
        for each in (self.link, self.listener):
            if each is not None:
                each.close()


class UnixSocket(BareSocket):
    name = "a Unix socket, nothing stored"
    between = ("processes",)


class TcpSocket(BareSocket):
    name = "a TCP socket, nothing stored"
    between = ("over TCP",)
    family = socket.AF_INET

    def where(self, address: str) -> tuple[str, int]:
        path = Path(address + ".port")
        if not path.exists():
            from peers.peer import free_port

            path.write_text(str(free_port()))
        return "127.0.0.1", int(path.read_text())

    def prepare(self, link: socket.socket) -> None:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
