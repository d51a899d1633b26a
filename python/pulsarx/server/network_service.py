"""A TCP port: the loop that carries the bytes of all connections, and the threads that do what
they ask for."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket

from pulsarx import errors
from pulsarx._pycore.ground.file_system import hold_low_descriptors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.ground.work_pool import WorkPool
from pulsarx.access.access import Access
from pulsarx.access.connection_bound import connections_max
from pulsarx.access.listening import Accepting, Listener, accept_no_more, listen
from pulsarx.access.tls_contexts import TlsContexts
from pulsarx.access.tls_transport import TlsTransport
from pulsarx.ground.attempt import insist
from pulsarx.ground.fork import at_fork
from pulsarx.server.served_connection import READ_SIZE, ServedConnection, call_in_loop
from pulsarx.server.unfinished_frames import UNFINISHED_MAX, UnfinishedFrames
from pulsarx.sessions.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from pulsarx.access.service_settings import ServiceSettings
    from pulsarx.broker.broker import Broker
    from pulsarx.clock import Timer

KEEP_ALIVE_MS = 30_000  # a client that is silent for so long is asked whether it is there
THREADS_MAX = 16  # that do what clients ask for
_BACKLOG = 1024  # connections that are not accepted yet
_ACCEPTED_AT_ONCE = 16  # by asyncio, before any of them is told of
_PARTING_SECONDS = 5.0  # how long clients may take their last answers

_log = logging.getLogger("pulsarx")


class NetworkService:
    """Listens from when it is made until it is closed, or its broker. Made and closed by calls of
    the control plane."""

    def __init__(self, broker: Broker, settings: ServiceSettings) -> None:
        """See serve."""
        self.process: int = os.getpid()
        self._broker = broker
        self._advertised = settings.advertised_address
        self._access: Access | None = None
        if settings.access is not None:
            self._access = Access(settings.access, broker.catalogue, broker.runtime.clock)
        self._contexts = None if settings.tls is None else TlsContexts(settings.tls)
        # None: there is no such port.
        self._plain: Listener | None = None
        self._secure: Listener | None = None  # with TLS
        try:
            if settings.port is not None:
                self._plain = _listener(settings, settings.port)
            if settings.tls_port is not None:
                self._secure = _listener(settings, settings.tls_port)
        except BaseException:
            self._close_listeners()
            raise
        address = self._listeners()[0].getsockname()
        self.host: str = address[0]
        self.port: int | None = _port_of(self._plain)
        self.tls_port: int | None = _port_of(self._secure)
        self.read_buffer: memoryview[int] = memoryview(bytearray(READ_SIZE))
        self.pool: WorkPool = WorkPool(THREADS_MAX, "pulsarx-connection")
        self.loop: AbstractEventLoop = new_loop()
        self._ending = asyncio.Event()
        self._gone = asyncio.Event()  # all connections have
        self.connections: dict[ServedConnection, None] = {}  # of the loop's thread; oldest first
        self._connections_max = connections_max()
        self._parting: set[ServedConnection] = set()  # those that had to go, until they are gone
        self._is_full = False
        self.unfinished: UnfinishedFrames = UnfinishedFrames(self._drop)
        self._closing = Lock()
        self._ended = Event()  # the loop has
        self._timer: Timer | None = None
        try:
            broker.state.require_open()
            self.server: Server = Server(
                broker,
                verbs=False,
                access=self._access,
                listeners=settings.advertised_listeners,
            )
            OwnThread(self._run, "pulsarx-network").start()
        except BaseException:
            self._close_listeners()
            self.loop.close()
            raise
        broker.on_close.append(self.close)
        _services.add(self)

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
        accepting = [
            Accepting(self.loop, listener, make, _ACCEPTED_AT_ONCE)
            for listener, make in ((self._plain, self._open), (self._secure, self._open_tls))
            if listener is not None
        ]
        self._look_later()
        await self._ending.wait()
        for listened in accepting:
            listened.stop()
        await accept_no_more(self._listeners())
        if self._timer is not None:
            self._timer.cancel()
        for each in list(self.connections):
            each.end()
        self._settle_end()
        try:
            await asyncio.wait_for(self._gone.wait(), _PARTING_SECONDS)
        except TimeoutError:
            for each in list(self.connections):
                each.abort()
            await self._gone.wait()

    def _open(self) -> ServedConnection:
        return ServedConnection(self, sends_itself=True)

    def _open_tls(self) -> TlsTransport:
        assert self._contexts is not None
        return TlsTransport(ServedConnection(self), self._contexts.current(), self.read_buffer)

    def urls(self, host: str) -> tuple[str | None, str | None]:
        """Under which clients reach this service: without TLS, and with it. host: the address of
        this end of a connection."""
        name = self._advertised or host
        name = f"[{name}]" if ":" in name else name
        return (
            None if self.port is None else f"pulsar://{name}:{self.port}",
            None if self.tls_port is None else f"pulsar+ssl://{name}:{self.tls_port}",
        )

    def opened(self, connection: ServedConnection) -> None:
        """A client has connected. By the loop."""
        self.connections[connection] = None
        self.pool.grow()
        if self._ending.is_set():
            connection.end()
        elif len(self.connections) > self._connections_max:
            self._make_room(connection)

    def _make_room(self, connection: ServedConnection) -> None:
        """There are more connections than may be. The oldest client goes that has not proved who it
        is, so that such clients cannot keep out others; where there is none, the one that came."""
        if not self._is_full:
            self._is_full = True
            _log.warning(
                "there are more than %d connections, half of the files that the process may open: "
                "some are hung up on. Raise the limit (ulimit -n) and serve anew",
                self._connections_max,
            )
        for each in self.connections:
            if not each.is_known:
                break
        else:
            each = connection
        del self.connections[each]
        self._parting.add(each)
        each.abort()

    def _drop(self, connection: ServedConnection) -> None:
        """All connections together hold too much of frames that are not whole. In any thread."""
        _log.warning(
            "a connection was closed: all together hold more than %d bytes of frames that are not "
            "whole, and it has sent nothing of its own for longest",
            UNFINISHED_MAX,
        )
        self._call(connection.abort)

    def forget(self, connection: ServedConnection) -> None:
        """Its connection has ended, and its session is closed. By the loop."""
        self.connections.pop(connection, None)
        self._parting.discard(connection)
        self._is_full = self._is_full and len(self.connections) >= self._connections_max
        self._settle_end()

    def _settle_end(self) -> None:
        if self._ending.is_set() and not self.connections and not self._parting:
            self._gone.set()

    def _look_later(self) -> None:
        due_ms = self._broker.runtime.clock.now_ms() + KEEP_ALIVE_MS // 2
        self._timer = self._broker.runtime.clock.call_at(due_ms, self._look_soon)

    def _look_soon(self) -> None:
        self._call(self._look)

    def _look(self) -> None:
        if self._ending.is_set():
            return
        insist(self._look_later)  # first: whatever comes of this one
        now_ms = self._broker.runtime.clock.now_ms()
        for each in list(self.connections):
            each.look(now_ms)

    def _call(self, callback: Any) -> None:
        """In any thread."""
        call_in_loop(self.loop, callback)

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Do what clients have asked for up to now, answer, and hang up. The broker stays open.
        Idempotent; in a forked child, which serves nobody, nothing."""
        if os.getpid() != self.process:
            return
        with self._closing:
            self._call(self._ending.set)
            self._ended.wait()
            self._close_listeners()
            self.pool.close()
            self.server.close()
            if self._access is not None:
                self._access.close()
            if self.close in self._broker.on_close:
                self._broker.on_close.remove(self.close)

    def _listeners(self) -> list[Listener]:
        return [each for each in (self._plain, self._secure) if each is not None]

    def _close_listeners(self) -> None:
        for each in self._listeners():
            each.close()

    def abandon(self) -> None:
        """In a forked child: its copies of the connections would keep them open. By number, as
        nobody else may close them there: what waits for them is the parent's."""
        descriptors = [each.descriptor() for each in (*self.connections, *self._parting)]
        for each in (*(listener.fileno() for listener in self._listeners()), *descriptors):
            if each >= 0:
                os.close(each)
        for listener in self._listeners():
            listener.detach()


_services = WeakList()  # those that were opened
at_fork(__name__, abandon=_services)


def _port_of(listener: Listener | None) -> int | None:
    return None if listener is None else int(listener.getsockname()[1])


def _listener(settings: ServiceSettings, port: int) -> Listener:
    host = settings.host
    welcomes_all = settings.allow_anonymous or settings.access is not None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        if not welcomes_all and not ipaddress.ip_address(address[0]).is_loopback:
            raise errors.InvalidConfiguration(
                detail=f"listen on {host}: anybody who reaches that address could read and write "
                "the folder; use a loopback address, have clients prove who they are, or allow "
                "anonymous clients"
            )
        return listen(address, family, _BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise errors.ConnectError(detail=f"listen on {host}:{port}: {error}") from error


def new_loop() -> asyncio.AbstractEventLoop:
    hold_low_descriptors()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def tell_exception(_: object, context: dict[str, Any]) -> None:
    _log.error("the network loop: %s", context["message"], exc_info=context.get("exception"))
