"""A connection between two processes of the simulation: what stands for a Unix socket, and for the
native end of it. Bytes that were written before a process is killed arrive, as those of a socket
do; how many come at a time is the seed's choice."""

from __future__ import annotations

from collections import deque
from typing import Any

from greenlet import getcurrent
from seeded_scheduler import scheduler

from pulsarx._pycore.ground.owner_link import OwnerLink

READ_MAX = 1 << 18


class End:
    """One end. Stands where a socket does, and where its number does."""

    def __init__(self) -> None:
        self.peer: End = self
        self.came: deque[bytes] = deque()  # and is not read
        self.has_ended = False  # nothing more is sent to it
        self.is_hung_up = False
        self.is_dying = False  # its process: it does one thing more, and tells nobody
        self.reader: Any = None  # the task that waits for what comes

    def fileno(self) -> End:
        return self

    def send(self, data: bytes) -> None:
        if not self.is_hung_up and not self.is_dying and not self.peer.is_hung_up:
            self.peer.came.append(data)

    def shut(self) -> None:
        """As `shutdown`: both ends see the end, behind what was sent."""
        self.peer.has_ended = self.has_ended = True

    def detach(self) -> int:
        return -1

    def close(self) -> None:
        self.is_hung_up = True
        self.peer.has_ended = True

    def take(self) -> bytes:
        """Some of what came, at least one piece."""
        count = 1 if self.is_dying else scheduler().random.randint(1, len(self.came))
        found = b"".join(self.came.popleft() for _ in range(count))
        if len(found) > READ_MAX:
            self.came.appendleft(found[READ_MAX:])
        return found[:READ_MAX]


def connected() -> tuple[End, End]:
    one, other = End(), End()
    one.peer, other.peer = other, one
    return one, other


def shut(end: End) -> None:
    end.shut()


class Link(OwnerLink):
    """The real link over such an end. What is due is sent when its reader goes on, which a seed may
    have wait as it may any thread."""

    def __init__(self, end: Any) -> None:
        super().__init__(-1, end.send)
        self.wire: End = end

    def let_callers_read(self, taker: object) -> None:
        """No caller waits natively here."""

    def wait(self, buffer: Any, reads: bool, timeout_ms: int = -1) -> int:
        end = self.wire
        end.reader = getcurrent()
        while True:
            OwnerLink.wait(self, buffer, False, 0)
            if self.was_asked:
                return 0
            if reads and end.came:
                data = end.take()
                buffer[: len(data)] = data
                return len(data)
            if reads and end.has_ended:
                return -1
            if timeout_ms == 0:
                return 0
            if not scheduler().sleep(lambda: self.is_due(reads), timeout_ms) and timeout_ms > 0:
                return 0

    def is_due(self, reads: bool) -> bool:
        return reads and bool(self.wire.came or self.wire.has_ended)
