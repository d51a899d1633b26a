"""A connection in one process: bytes both ways, and a thread that carries them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from client_connection import ClientConnection

from pulsarx import errors
from pulsarx.clock import Deadline
from pulsarx.sessions.server import Server
from pulsarx.wire.protobuf import WireError

PIECES = (1, 3, 5, 4000, 64, 70000)  # sizes of what arrives at a time, in turn

if TYPE_CHECKING:
    from pulsarx.sessions.context import GuestPart


class Pipe:
    """Between a Connection and a session of the server. As a socket would be: bytes come in pieces
    that have nothing to do with frames, and each end is called by one thread."""

    def __init__(
        self, server: Server, timeout_seconds: float, guests: Callable[..., GuestPart] | None = None
    ) -> None:
        self.connection = ClientConnection(self.to_session, self._hang_up, timeout_seconds)
        self._server = server
        self._session = server.open_session(self._to_client, self._wake, guests=guests)
        self._changed = threading.Condition(threading.Lock())
        self._up: deque[bytes] = deque()
        self._down: deque[bytes] = deque()
        self._due = False
        self._moving = False
        self._ended = False
        self._holds = False  # what goes to the client
        self._piece = 0
        self._thread = threading.Thread(target=self._run, name="border-pipe", daemon=True)
        self._thread.start()

    # Either end -----------------------------------------------------------------------------------

    def to_session(self, data: bytes) -> None:
        self._up.append(data)
        self._wake()

    def _to_client(self, data: bytes) -> None:
        self._down.append(data)
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._due = True
            self._changed.notify_all()

    def _hang_up(self) -> None:
        self._ended = True
        self._wake()
        if not self.runs_here():
            self._thread.join(60)
            assert not self._thread.is_alive(), "the pipe is stuck"

    @contextmanager
    def on_the_way(self) -> Iterator[None]:
        """What the session sends inside arrives behind the block. It is sent by then."""
        assert self.wait()
        self._holds = True
        try:
            yield
            assert self.wait()
        finally:
            self._holds = False
            self._wake()
        assert self.wait()

    # As threads that a ManualClock waits for ------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not self._thread.is_alive() or not (self._due or self._moving)

    def runs_here(self) -> bool:
        return threading.current_thread() is self._thread

    def wait(self, deadline: Deadline | None = None) -> bool:
        with self._changed:
            while not self.idle and not self._ended:
                if deadline is not None and deadline.expired():
                    return False
                self._changed.wait(0.05)
        return True

    def busy_with(self) -> list[str]:
        return ["the pipe"]

    # The thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended:
                with self._changed:
                    self._moving = False
                    self._changed.notify_all()
                    while not self._due:
                        self._changed.wait()
                    self._due = False
                    self._moving = True
                self._move()
            self._move()
        except WireError as error:
            self.connection.lost(errors.ConnectError(detail=f"the connection was closed: {error}"))
        except BaseException as error:
            self.connection.lost(errors.InternalError(detail=f"the pipe broke: {error!r}"))
            raise
        finally:
            self._ended = True
            self._session.close()

    def _move(self) -> None:
        while self._up:
            for piece in self._pieces(self._up.popleft()):
                self._session.received(piece)
        self._session.deliver()
        while self._down and not self._holds:
            for piece in self._pieces(self._down.popleft()):
                self.connection.received(piece)

    def _pieces(self, data: bytes) -> list[bytes]:
        found = []
        at = 0
        while at < len(data):
            size = PIECES[self._piece % len(PIECES)]
            self._piece += 1
            found.append(data[at : at + size])
            at += size
        return found
