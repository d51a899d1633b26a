"""A TCP connection of a client: the thread of the loop carries its bytes, and threads of a pool do
what they ask for, as that may wait for the disk.

Reading pauses while what came is not done, not answered or not taken by the client; delivering
pauses while the client does not take it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from pulsarx._pycore.ground.work_pool import SerialWork
from pulsarx._pycore.wire.command_output import SocketOutput
from pulsarx.wire.protobuf import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.work_pool import WorkPool
    from pulsarx.server.unfinished_frames import UnfinishedFrames
    from pulsarx.sessions.server import Server
    from pulsarx.sessions.session import Session

    class ServiceHost(Protocol):
        """The service of a connection, as the connection sees it."""

        loop: asyncio.AbstractEventLoop
        pool: WorkPool
        server: Server
        unfinished: UnfinishedFrames
        read_buffer: memoryview  # of all connections: the loop fills it, and it is emptied at once

        def urls(self, host: str) -> tuple[str | None, str | None]: ...
        def opened(self, connection: ServedConnection) -> None: ...
        def forget(self, connection: ServedConnection) -> None: ...


READ_SIZE = 64 << 10  # bytes that are read at a time
GREETING_READ_SIZE = 8 << 10  # as that, until CONNECT has come
CAME_MAX = 1 << 20  # bytes that came and are not done: nothing more is read
UNSENT_MAX = 1 << 20  # bytes that the client has not taken: nothing more is delivered
_STEP_SIZE = 256 << 10  # bytes that are done before other connections have their turn
# In looks of the service, which come twice in a keep-alive interval.
_PING_AFTER, _SILENT_MAX, _GREETING_MAX, _PARTING_MAX = 2, 4, 3, 2

_log = logging.getLogger("pulsarx")


class ServedConnection(asyncio.BufferedProtocol):
    """Called by the loop, unless a method says otherwise."""

    def __init__(self, service: ServiceHost, sends_itself: bool = False) -> None:
        """sends_itself: its transport sends bytes as they are, so they may go past it."""
        self._service = service
        self._sends_itself = sends_itself
        self._loop = service.loop
        self._work = SerialWork(service.pool, self._step, "a connection")
        self._transport: Any = None
        self._peer = ""
        # What came
        self._came: deque[bytes] = deque()
        self._came_size = 0  # bytes, ever
        self._done_size = 0  # of them, those that are done
        self._unfinished_size = 0  # of those, what belongs to a frame that is not whole yet
        self._reads = True
        self._is_ending = False  # nothing more is to be read
        self._is_lost = False  # there is no transport any more
        self._is_broken = False  # what came is not to be done
        self._is_done = False  # the session is closed
        # What goes
        self._output = SocketOutput(self._ask_flush, self._work.due, UNSENT_MAX)
        self._is_blocked = False  # the client does not take what it is sent
        # Between two looks
        self._was_heard = True
        self._taken_size = 0
        self._silent_looks = self._parting_looks = self._age = 0

    # The transport --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(UNSENT_MAX)
        self._peer = _shown(transport.get_extra_info("peername"))
        address = transport.get_extra_info("sockname")
        service_url, service_url_tls = self._service.urls(address[0] if address else "localhost")
        self.session: Session = self._service.server.open_session(
            self._output.put,
            self._work.due,
            output=self._output,
            service_url=service_url,
            service_url_tls=service_url_tls,
            # Of TlsTransport, when the client has proved that it has the certificate.
            certificate_name=lambda: transport.get_extra_info("certificate_name"),
            host=_host_of(transport.get_extra_info("peername")),
        )
        if self._sends_itself:
            self._output.begin(self.descriptor())
        self._service.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._service.read_buffer
        return buffer if self.session.is_connected else buffer[:GREETING_READ_SIZE]

    def buffer_updated(self, size: int) -> None:
        self._was_heard = True
        self._came_size += size
        self._came.append(bytes(self._service.read_buffer[:size]))
        self._work.due_now()
        self._settle_reading()

    def eof_received(self) -> None:
        """The transport closes."""

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._output.end()
        self.session.lose()
        self._work.due()
        if self._is_done:
            self._service.forget(self)

    def pause_writing(self) -> None:
        self._is_blocked = True
        self._output.block(True)
        self._settle_reading()

    def resume_writing(self) -> None:
        self._is_blocked = False
        self._output.block(False)
        self._settle_reading()

    def _settle_reading(self) -> None:
        waiting = self._came_size - self._done_size
        wanted = not (
            self._is_ending
            or self._is_lost
            or self._is_blocked
            or self.session.is_full
            or waiting >= (CAME_MAX if self.session.is_connected else 1)
        )
        if wanted == self._reads or self._transport.is_closing():
            return
        self._reads = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
            # What made it pause may have ended since it was looked at, and the step that ended it
            # have seen that everything is read: another one looks again.
            self._work.due()

    # The session ----------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Do what came, and deliver; True: there is more. In a thread of the pool, one at a
        time."""
        if self._is_done:
            return False
        self._output.hold()
        try:
            return self._hold_step()
        finally:
            self._output.release()

    def _hold_step(self) -> bool:
        """See _step; what is written is sent behind it."""
        try:
            more = not self._is_broken and self._do_some()
        except WireError as error:
            _log.warning("the connection from %s was closed: %s", self._peer, error)
            self._is_broken = True
        except Exception:
            _log.exception("the connection from %s was closed, because of a bug", self._peer)
            self._is_broken = True
        is_idle = not self._came or self.session.is_proving
        if self._is_broken or ((self._is_lost or self._is_ending) and is_idle):
            self._came.clear()
            self._service.unfinished.settle(self, 0)
            self.session.close()
            self._is_done = True
            self._call(self._finish)
            return False
        if not self._reads or self.session.is_full:
            self._call(self._settle_reading)
        return more

    def _do_some(self) -> bool:
        if self._came and not self.session.is_proving:
            data = self._take_came()
            self.session.received(data)
            self._done_size += len(data)
        unfinished = self.session.unfinished_size
        if unfinished != self._unfinished_size:
            self._unfinished_size = unfinished
            self._service.unfinished.settle(self, unfinished)
        if not self._is_lost:
            self.session.deliver()
        return bool(self._came) and not self.session.is_proving

    def _take_came(self) -> bytes:
        """Return what came, up to what is done in one step."""
        data = self._came.popleft()
        if not self._came:
            return data
        pieces, size = [data], len(data)
        while self._came and size < _STEP_SIZE:
            pieces.append(self._came.popleft())
            size += len(pieces[-1])
        return b"".join(pieces)

    def _finish(self) -> None:
        if self._is_lost:
            self._service.forget(self)
        else:
            self._flush()
            self._transport.close()  # connection_lost comes when what was written is taken

    # What goes ------------------------------------------------------------------------------------

    def _ask_flush(self) -> None:
        """In any thread."""
        self._call(self._flush)

    def _call(self, callback: Any) -> None:
        """In any thread."""
        call_in_loop(self._loop, callback)

    def _flush(self) -> None:
        is_open = not self._is_lost and not self._transport.is_closing()
        rest = self._output.take(is_open and not self._transport.get_write_buffer_size())
        if rest and is_open:
            self._transport.write(rest)

    # Life -----------------------------------------------------------------------------------------

    def look(self, now_ms: int) -> None:
        """Ask a client that is silent whether it is there, and drop one that is not; the same for
        one whose proof of who it is has expired."""
        self._age += 1
        unsent = 0 if self._is_lost else self._transport.get_write_buffer_size()
        if self._was_heard or not (self._reads or self._is_blocked) or unsent < self._taken_size:
            self._silent_looks = 0
        else:
            self._silent_looks += 1
        self._was_heard, self._taken_size = False, unsent
        if self._is_lost:
            return
        if self._is_done:
            self._parting_looks += 1
        if (
            self._silent_looks >= _SILENT_MAX
            or self._parting_looks >= _PARTING_MAX
            or (self._age >= _GREETING_MAX and not self.session.is_connected)
            or not self.session.proof.check(now_ms)
        ):
            self.abort()
        elif self._silent_looks == _PING_AFTER and self.session.is_connected:
            self.session.ping()

    def end(self) -> None:
        """Do what came, answer, and hang up."""
        self._is_ending = True
        self._settle_reading()
        self._work.due()

    @property
    def is_known(self) -> bool:
        """Whether the client has said CONNECT, and proved who it is where it is asked that."""
        return self.session.is_connected

    def descriptor(self) -> int:
        """The descriptor of its socket; -1: it is closed."""
        found: int = -1 if self._is_lost else self._transport.get_extra_info("socket").fileno()
        return found

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Have a loop call something soon; nothing where it has ended. In any thread."""
    try:
        try:
            loop.call_soon_threadsafe(callback)
        except MemoryError:
            loop.call_soon_threadsafe(callback)  # once more: nobody else may ask for it
    except RuntimeError:
        pass  # and all its transports with it


def _host_of(address: Any) -> str:
    return str(address[0]) if address else ""


def _shown(address: Any) -> str:
    """HOST:PORT of a socket's address."""
    if not address:
        return "?"
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
