"""Serves the topics of a client's folder over TCP, in Pulsar's binary protocol."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import threading
from weakref import WeakSet

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.work_pool import WorkPool
from pulsarx.broker.broker import Broker
from pulsarx.closing import Closing
from pulsarx.server.served_connection import READ_SIZE, ServedConnection
from pulsarx.server.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.clock import Timer

DEFAULT_PORT = 6650
KEEP_ALIVE_MS = 30_000  # a client that is silent for so long is asked whether it is there
THREADS_MAX = 16  # that do what clients ask for
_BACKLOG = 1024  # connections that are not accepted yet
_PARTING_SECONDS = 5.0  # how long clients may take their last answers

_log = logging.getLogger("pulsarx")


def serve(
    client: Client,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    allow_anonymous: bool = False,
) -> BrokerService:
    """Let programs with any client of Pulsar use the folder of a client, until the service or the
    last client of the folder in this process is closed.

    host, port: where to listen; port 0 takes a free one. allow_anonymous: listen on another address
    than loopback, where nobody is asked who he is.
    InvalidConfiguration: such an address without it. ConnectError: it cannot be listened to there.
    """
    return BrokerService(client, host, port, allow_anonymous=allow_anonymous)


class BrokerService:
    """Listens from when it is made until it is closed. Any thread may call."""

    def __init__(
        self,
        client: Client,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        allow_anonymous: bool = False,
    ) -> None:
        """See serve."""
        client._require_writable("serve")
        broker: Any = client._broker
        if not isinstance(broker, Broker):
            raise errors.OperationNotSupported("serve: the client has no folder of its own")
        self._process = os.getpid()
        self._client = client  # which is closed when it is forgotten
        self._broker = broker
        self._closing = Closing()
        self._listener = _listener(host, port, allow_anonymous)
        address = self._listener.getsockname()
        self.host: str = address[0]
        self.port: int = address[1]
        self.read_buffer = memoryview(bytearray(READ_SIZE))
        self.pool = WorkPool(THREADS_MAX, "pulsarx-connection")
        self.loop = _new_loop()
        self._ending = asyncio.Event()
        self._gone = asyncio.Event()  # all connections have
        self._connections: set[ServedConnection] = set()  # of the loop's thread
        self._ended = threading.Event()  # the loop has
        self._timer: Timer | None = None
        self._thread = threading.Thread(target=self._run, name="pulsarx-network", daemon=True)
        control_plane.perform(self._open, (), lambda _: self._close())

    def _open(self) -> None:
        try:
            self._broker.state.require_open()
            self.server = Server(self._broker, verbs=False)
            self._thread.start()
        except BaseException:
            self._listener.close()
            self.loop.close()
            raise
        self._broker.on_close.append(self._close_with_broker)
        _services.add(self)

    @property
    def service_url(self) -> str:
        """What a client of Pulsar opens, where the address is not one for all of a host's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"pulsar://{host}:{self.port}"

    # The loop -------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(_tell_exception)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()
            self._ended.set()

    async def _serve(self) -> None:
        listening = await self.loop.create_server(
            lambda: ServedConnection(self), sock=self._listener, backlog=_BACKLOG
        )
        self._look_later()
        await self._ending.wait()
        listening.close()
        if self._timer is not None:
            self._timer.cancel()
        for each in list(self._connections):
            each.end()
        if not self._connections:
            self._gone.set()
        try:
            await asyncio.wait_for(self._gone.wait(), _PARTING_SECONDS)
        except TimeoutError:
            for each in list(self._connections):
                each.abort()
            await self._gone.wait()

    def opened(self, connection: ServedConnection) -> None:
        """A client has connected. By the loop."""
        self._connections.add(connection)
        self.pool.grow()
        if self._ending.is_set():
            connection.end()

    def forget(self, connection: ServedConnection) -> None:
        """Its connection has ended, and its session is closed. By the loop."""
        self._connections.discard(connection)
        if self._ending.is_set() and not self._connections:
            self._gone.set()

    def _look_later(self) -> None:
        due_ms = self._broker.runtime.clock.now_ms() + KEEP_ALIVE_MS // 2
        self._timer = self._broker.runtime.clock.call_at(due_ms, self._look_soon)

    def _look_soon(self) -> None:
        self._call(self._look)

    def _look(self) -> None:
        if self._ending.is_set():
            return
        for each in list(self._connections):
            each.look()
        self._look_later()

    def _call(self, callback: Any) -> None:
        """In any thread."""
        try:
            self.loop.call_soon_threadsafe(callback)
        except RuntimeError:
            pass  # it has ended

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Do what clients have asked for up to now, answer, and hang up. The folder stays open.
        Idempotent; in a forked child, which serves nobody, nothing."""
        if os.getpid() != self._process:
            return
        self._closing.close(self._close, None)

    def _close_with_broker(self) -> None:
        self._closing.finish(self._close, None)

    def _close(self) -> None:
        """A call of the control plane."""
        self._call(lambda: self._ending.set())
        self._ended.wait()
        self._listener.close()
        self.pool.close()
        self.server.close()
        if self._close_with_broker in self._broker.on_close:
            self._broker.on_close.remove(self._close_with_broker)

    def abandon(self) -> None:
        """In a forked child: its copies of the connections would keep them open. By number, as
        nobody else may close them there: what waits for them is the parent's."""
        descriptors = [each.descriptor() for each in self._connections]
        for each in (self._listener.fileno(), *descriptors):
            if each >= 0:
                os.close(each)
        self._listener.detach()

    def __enter__(self) -> BrokerService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _abandon_services() -> None:
    for each in list(_services):
        each.abandon()


_services: WeakSet[BrokerService] = WeakSet()  # those that were opened
os.register_at_fork(after_in_child=_abandon_services)


def _listener(host: str, port: int, allow_anonymous: bool) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        if not allow_anonymous and not ipaddress.ip_address(address[0]).is_loopback:
            raise errors.InvalidConfiguration(
                f"listen on {host}: anybody who reaches that address could read and write the "
                "folder; use a loopback address, or allow anonymous clients"
            )
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        raise errors.ConnectError(f"listen on {host}:{port}: {error}") from error


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _tell_exception(_: object, context: dict[str, Any]) -> None:
    _log.error("the network loop: %s", context["message"], exc_info=context.get("exception"))
