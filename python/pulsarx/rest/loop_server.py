"""uvicorn's server in a loop of its own: without signals, without ticks, with bounds."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pulsarx.access.listening import accept_no_more, free_from_itself
from pulsarx.access.tls_transport import TlsTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.access.tls_contexts import TlsContexts
    from pulsarx.rest.guard import Application

READ_SIZE = 2 << 10  # bytes that are read at a time
_IDLE_SECONDS = 30  # how long a connection is kept for the next request
_LOOK_SECONDS = 20.0  # after so long without a byte, either way, a client is dropped
_LEAVING_SECONDS = 1.0  # how long what is answered may take when its client was hung up on
_TURN_SECONDS = 0.01  # between two looks at those that still answer
# In looks: how long the head of a request may take, and its body.
_IDLE_MAX, _BODY_MAX = 3, 6


class LoopServer(uvicorn.Server):
    """Called by the loop, unless a method says otherwise."""

    def __init__(
        self,
        application: Application,
        *,
        connections_max: int,
        head_size_max: int,
        backlog: int,
        parting_seconds: int,
        contexts: TlsContexts | None = None,
    ) -> None:
        """contexts: speak TLS."""
        buffer = memoryview(bytearray(READ_SIZE))

        def make(**options: Any) -> Any:
            made = Buffered(Protocol(connections_max, **options), buffer)
            return made if contexts is None else TlsTransport(made, contexts.current(), buffer)

        super().__init__(
            uvicorn.Config(
                application,
                http=cast("Any", make),
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=backlog,
                timeout_keep_alive=_IDLE_SECONDS,
                h11_max_incomplete_event_size=head_size_max,
            )
        )
        # Here: its thread would load modules behind the call, which hears of no failure then.
        self.config.load()
        self._parting_seconds = parting_seconds
        self._ending = asyncio.Event()

    async def serve(self, listener: Any = None) -> None:
        """Until end is called. listener: a socket that listens."""
        await self._serve([listener])

    async def main_loop(self) -> None:
        await self._ending.wait()

    async def shutdown(self, sockets: Any = None) -> None:
        await accept_no_more(sockets or ())
        for each in (*self.servers, *(sockets or ())):
            each.close()
        try:
            async with asyncio.timeout(self._parting_seconds):
                await self._hang_up()
        except TimeoutError:
            for each in list(self.server_state.connections):
                each.transport.abort()
            await self._leave()
        self.servers.clear()  # they refer to this, and to the loop

    async def _leave(self) -> None:
        """Wait for the tasks of connections that were hung up on. One that is cancelled is told of
        in the log as a failure, so that is done to those alone that do not leave by themselves."""
        try:
            async with asyncio.timeout(_LEAVING_SECONDS):
                await self._hang_up()
        except TimeoutError:
            for each in list(self.server_state.tasks):
                each.cancel()
            await self._hang_up()

    async def _hang_up(self) -> None:
        """Let each connection answer what it was asked, and end."""
        told: set[Any] = set()
        while self.server_state.connections or self.server_state.tasks:
            for each in self.server_state.connections - told:
                told.add(each)
                each.shutdown()
            await asyncio.sleep(_TURN_SECONDS)

    def end(self) -> None:
        """Answer what was asked, and hang up."""
        self._ending.set()

    def descriptors(self) -> list[int]:
        """The descriptors of the sockets of all connections. In any thread."""
        found = []
        for each in list(self.server_state.connections):
            transport: Any = each.transport
            sock = None if transport is None else transport.get_extra_info("socket")
            if sock is not None:
                found.append(sock.fileno())
        return found


class Buffered(asyncio.BufferedProtocol):
    """Reads for a connection into a buffer that all of them share. Called by the loop."""

    def __init__(self, protocol: Protocol, buffer: memoryview) -> None:
        self._protocol = protocol
        self._buffer = buffer
        self._transport: Any = None
        self.eof_received: Callable[[], bool | None] = protocol.eof_received
        self.pause_writing: Callable[[], None] = protocol.pause_writing
        self.resume_writing: Callable[[], None] = protocol.resume_writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._protocol.connection_made(transport)  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)
        free_from_itself(self._transport)
        self._transport = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        self._protocol.data_received(bytes(self._buffer[:size]))


class Protocol(H11Protocol):
    """A connection, which is dropped when its client does not go on. Called by the loop."""

    _numbers = itertools.count()
    _timer: asyncio.TimerHandle | None = None
    _is_dropped = False
    _was_heard = True
    _last_cycle: object = None
    _unsent = 0
    _idle_looks = _body_looks = 0

    def __init__(self, connections_max: int, **options: Any) -> None:
        super().__init__(**options)
        self._connections_max = connections_max
        self._number = next(self._numbers)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Of TlsTransport, when the client has proved that it has the certificate.
        name = partial(transport.get_extra_info, "certificate_name")
        self.app_state: dict[str, Any] = {**self.app_state, "certificate_name": name}
        self._look_later()
        connections: set[Any] = self.connections
        there = [each for each in connections if not each._is_dropped]
        if len(there) > self._connections_max:
            # Clients that ask nothing cannot keep out others.
            idle = [each for each in there if not each.is_active]
            min(idle, key=lambda each: each._number).drop()

    @property
    def is_active(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def drop(self) -> None:
        """Hang up at once."""
        self._is_dropped = True
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # uvicorn leaves its own where the connection was reset.
        for each in (self._timer, self.timeout_keep_alive_task):
            if each is not None:
                each.cancel()

    def data_received(self, data: bytes) -> None:
        self._was_heard = True
        super().data_received(data)
        if self.is_active and self.cycle.body:
            self.flow.pause_reading()  # until it is asked for

    def resume_writing(self) -> None:
        # The client took what had filled the buffer, which may be as full again at the next look.
        self._was_heard = True
        super().resume_writing()

    def _unsupported_upgrade_warning(self) -> None:
        """It is answered as if it had not asked; anybody could fill the log with it."""

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(_LOOK_SECONDS, self.look)

    def look(self) -> None:
        """Drop a client that sends or takes nothing, or too slowly."""
        unsent = self.transport.get_write_buffer_size()
        is_active = self.is_active
        sends_body = is_active and self.cycle.more_body
        is_waited_for = unsent > 0 or not is_active or sends_body
        goes_on = self._was_heard or unsent < self._unsent
        began = self.cycle is not self._last_cycle  # a request, since the last look
        self._last_cycle = self.cycle
        self._idle_looks = 0 if is_active or began else self._idle_looks + 1
        self._body_looks = self._body_looks + 1 if sends_body else 0
        self._was_heard, self._unsent = False, unsent
        if (
            (is_waited_for and not goes_on)
            or self._idle_looks >= _IDLE_MAX
            or self._body_looks >= _BODY_MAX
        ):
            self.transport.abort()
        else:
            self._look_later()
