"""Listening and the end of it for servers of an event loop, so that whoever was accepted is known
to them, and let go of connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial

from pulsarx._pycore.ground.file_system import hold_low_descriptors
from pulsarx.ground.attempt import insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_REST_SECONDS = 1.0  # after an accept that failed for want of descriptors or memory
_log = logging.getLogger("pulsarx")
_TURNS = 10  # of the loop, in which a connection is made that was accepted


class Listener(socket.socket):
    """A listening socket whose accepted connections have no descriptor of standard input, output or
    error."""

    def accept(self) -> tuple[socket.socket, Any]:
        hold_low_descriptors()
        return super().accept()


def listen(address: Any, family: int, backlog: int) -> Listener:
    """OSError: as of socket.create_server."""
    hold_low_descriptors()
    made = socket.create_server(address, family=family, backlog=backlog)
    return Listener(fileno=made.detach())


class Accepting:
    """Has a loop accept connections, as `create_server` does: uvloop's accepts by itself, and stops
    the process when it closes one that got the descriptor of a standard stream. By the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        make: Callable[[], asyncio.BaseProtocol],
        at_once: int,
    ) -> None:
        """make: the protocol of a connection. at_once: how many are accepted before the loop does
        something else."""
        self._loop = loop
        self._listener = listener
        self._make = make
        self._at_once = at_once
        self._coming: set[asyncio.Future[Any]] = set()
        self._rest: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        loop.add_reader(listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(self._at_once):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.error("no connection can be accepted for a second: %s", error)
                self._rest = self._loop.call_later(_REST_SECONDS, self._go_on)
                self._loop.remove_reader(self._listener.fileno())
                return
            connection.setblocking(False)
            coming = self._loop.create_task(
                self._loop.connect_accepted_socket(self._make, connection)
            )
            self._coming.add(coming)
            coming.add_done_callback(self._has_come)

    def stop(self) -> None:
        """Accept no more, also when a rest is over."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._listener.fileno())

    def _go_on(self) -> None:
        if self._listener.fileno() >= 0:
            insist(partial(self._loop.add_reader, self._listener.fileno(), self._accept))

    def _has_come(self, coming: asyncio.Future[Any]) -> None:
        self._coming.discard(coming)
        if not coming.cancelled() and coming.exception() is not None:
            _log.error("a connection could not be made", exc_info=coming.exception())


async def accept_no_more(listeners: Iterable[socket.socket]) -> None:
    """Before the servers of listeners are closed: asyncio forgets, and leaves open, what it
    accepted just before that. Returns when those connections are made."""
    loop = asyncio.get_running_loop()
    for each in listeners:
        loop.remove_reader(each.fileno())
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def free_from_itself(transport: Any) -> None:
    """Free the transport of a lost connection from its reference to itself. asyncio's refers to
    itself by a method, so it would wait for the collector, which runs its finalizer in Python in
    whatever call of the main thread: what a signal handler raises there is lost."""
    if getattr(transport, "_read_ready_cb", None) is not None:
        transport._read_ready_cb = None
