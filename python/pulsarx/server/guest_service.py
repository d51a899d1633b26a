"""The connections of other processes that use the folder of this one: one loop carries their bytes,
as it does for a TCP port."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from weakref import WeakSet

from pulsarx import errors
from pulsarx._pycore.ground.work_pool import WorkPool
from pulsarx.closing import attempt
from pulsarx.server.network_service import THREADS_MAX, new_loop, tell_exception
from pulsarx.server.served_connection import READ_SIZE, UNSENT_MAX, ServedConnection
from pulsarx.server.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker

_log = logging.getLogger("pulsarx")
_PARTING_SECONDS = 5.0  # how long guests may take their last answers


class GuestService:
    """Serves a broker's guests from its first one on until it is closed, or the broker. Any thread
    but the main one may call."""

    def __init__(self, broker: Broker) -> None:
        self.process = os.getpid()
        self._broker = broker
        self.read_buffer = memoryview(bytearray(READ_SIZE))
        self.pool = WorkPool(THREADS_MAX, "pulsarx-guests")
        self.loop = new_loop()
        self._ending = asyncio.Event()
        self._gone = asyncio.Event()  # all connections have
        self.connections: set[ServedConnection] = set()  # of the loop's thread
        self._closing = threading.Lock()
        self._is_ending = False
        self._ended = threading.Event()  # the loop has
        self._descriptors: dict[int, int] = {}  # of the sockets: the pids at the other end
        self._telling = threading.Lock()  # of what LOCK says of them
        self.server = Server(broker)
        threading.Thread(target=self._run, name="pulsarx-guests", daemon=True).start()
        broker.on_close.append(self.close)
        _services.add(self)

    def take(self, descriptor: int, pid: int) -> None:
        """Serve a guest, whose socket is closed with its connection."""
        self._descriptors[descriptor] = pid
        self._tell_guests()
        sock = socket.socket(fileno=descriptor)
        sock.setblocking(False)

        def connect() -> None:
            self.loop.create_task(self._connect(sock))

        try:
            self.loop.call_soon_threadsafe(connect)
        except RuntimeError:  # it has ended: the guest sees that, and goes to the next owner
            self._descriptors.pop(descriptor, None)
            sock.close()

    def _tell_guests(self) -> None:
        """Have the next owner know whom it is to await. While this one closes that stays."""
        with self._telling:
            if not self._is_ending:
                awaited = self._broker.runtime.arrivals.awaited
                pids = awaited.union(list(self._descriptors.values()))
                self._broker.directory.share(True, tuple(sorted(pids)))

    def has_guests(self) -> bool:
        """Whether another process is served, or is about to be."""
        return bool(self._descriptors)

    # The loop -------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(tell_exception)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()
            self._ended.set()

    async def _serve(self) -> None:
        await self._ending.wait()
        for each in list(self.connections):
            each.end()
        if not self.connections:
            self._gone.set()
        try:
            await asyncio.wait_for(self._gone.wait(), _PARTING_SECONDS)
        except TimeoutError:
            for each in list(self.connections):
                each.abort()
            await self._gone.wait()

    async def _connect(self, sock: socket.socket) -> None:
        descriptor = sock.fileno()
        try:
            await self.loop.connect_accepted_socket(
                lambda: ServedGuest(self, descriptor), sock=sock
            )
        except OSError:
            self._descriptors.pop(descriptor, None)
            sock.close()

    def urls(self, host: str) -> tuple[None, None]:
        """Guests look for no address."""
        return None, None

    def opened(self, connection: ServedConnection) -> None:
        """A guest is served. By the loop."""
        self.connections.add(connection)
        self.pool.grow()
        if self._ending.is_set():
            connection.end()

    def forget(self, connection: ServedConnection) -> None:
        """Its connection has ended, and its session is closed. By the loop."""
        self.connections.discard(connection)
        if self._ending.is_set() and not self.connections:
            self._gone.set()

    def let_go(self, descriptor: int) -> None:
        """The socket is about to be closed. By the loop."""
        self._descriptors.pop(descriptor, None)
        failure = attempt(self._tell_guests)
        if failure is not None:
            _log.error("a process has left: %s", errors.detail_of(failure))

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Do what guests have asked for up to now, answer, and hang up. Idempotent; in a forked
        child nothing."""
        if os.getpid() != self.process:
            return
        with self._telling:
            self._is_ending = True
        with self._closing:
            try:
                self.loop.call_soon_threadsafe(self._ending.set)
            except RuntimeError:
                pass  # it has ended
            self._ended.wait()
            self.pool.close()
            self.server.close()
            if self.close in self._broker.on_close:
                self._broker.on_close.remove(self.close)

    def abandon(self) -> None:
        """In a forked child: its copies of the connections would keep them open when their owner
        has ended. By number, as what waits for them is the parent's."""
        _left_to_parents.append(self)  # its sockets, collected, would close numbers of others
        for each in list(self._descriptors):
            os.close(each)


class ServedGuest(ServedConnection):
    """The connection of another process on this machine."""

    def __init__(self, service: GuestService, descriptor: int) -> None:
        super().__init__(service)
        self._service: Any
        self._descriptor = descriptor

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(UNSENT_MAX)
        self._peer = "another process"
        self.session = self._service.server.open_session(
            self._write, self._work.due, has_room=self._has_room, is_guest=True
        )
        self._service.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._service.let_go(self._descriptor)
        super().connection_lost(error)


_left_to_parents: list[GuestService] = []  # in a forked child
_services: WeakSet[GuestService] = WeakSet()
_making = threading.Lock()


def take_guest(broker: Broker, descriptor: int, pid: int) -> None:
    """Serve the process of a number, a guest of a broker, which becomes the owner of the socket.
    What the control socket calls."""
    with _making:
        found: GuestService | None = getattr(broker, "guest_service", None)
        if found is None:
            found = GuestService(broker)
            broker.guest_service = found
    found.take(descriptor, pid)


def _abandon_services() -> None:
    global _making
    _making = threading.Lock()
    for each in list(_services):
        if os.getpid() != each.process:
            each.abandon()


os.register_at_fork(after_in_child=_abandon_services)
