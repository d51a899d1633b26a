"""Facts about a connection that is served: nothing that came is forgotten, in whatever order the
loop and the pool come to it."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from pulsarx._pycore.ground.work_pool import WorkPool
from pulsarx.server.served_connection import ServedConnection


class Loop:
    """A loop that runs when the test says so."""

    def __init__(self) -> None:
        self._calls: deque[Any] = deque()
        self.failures = 0  # so many calls find no memory

    def call_soon_threadsafe(self, call: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise MemoryError
        self._calls.append(call)

    def run(self, pool: WorkPool) -> None:
        """What is due in the loop and in the pool, until nothing is."""
        assert pool.wait()
        while self._calls:
            self._calls.popleft()()
            assert pool.wait()


class Transport:
    def __init__(self) -> None:
        self.reads = True
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> None:
        return None


class Session:
    """A session that has too much in flight until something lands."""

    is_connected = True
    is_proving = False

    def __init__(self, wake: Any) -> None:
        self.wake = wake
        self.write: Any = None
        self.full = False
        self.lands: Any = None  # called once, right after it was seen to be full

    @property
    def is_full(self) -> bool:
        was_full = self.full
        if was_full and self.lands is not None:
            lands, self.lands = self.lands, None
            lands()
        return was_full

    unfinished_size = 0

    def received(self, data: bytes) -> None:
        self.full = True

    def deliver(self) -> None:
        pass


class Service:
    def __init__(self) -> None:
        self.loop = Loop()
        self.pool = WorkPool(1)
        self.pool.grow()
        self.server = self
        self.read_buffer = memoryview(bytearray(b"a command"))

    def urls(self, host: str) -> tuple[None, None]:
        return None, None

    def open_session(self, write: Any, wake: Any, **_: Any) -> Session:
        made = Session(wake)
        made.write = write
        return made

    def opened(self, connection: Any) -> None:
        pass


@pytest.mark.parametrize("when", ["later", "while reading is about to pause"])
def test_reading_goes_on_when_what_is_in_flight_has_landed(when: str) -> None:
    """Landed between the loop's look at it and the pause, it left the connection unread until
    something else woke it, which nothing had to."""
    service: Any = Service()
    connection = ServedConnection(service)
    transport: Any = Transport()
    connection.connection_made(transport)
    session: Any = connection.session

    def land() -> None:
        session.full = False
        session.wake()
        assert service.pool.wait()  # the pool's step sees that everything is read

    connection.buffer_updated(9)
    assert service.pool.wait()
    assert session.full
    if when == "later":
        service.loop.run(service.pool)
        assert not transport.reads
        land()
    else:
        session.lands = land
    service.loop.run(service.pool)
    assert transport.reads
    service.pool.close()


@pytest.mark.parametrize("failures", [1, 2])
def test_what_is_written_where_memory_runs_out_goes_out_at_the_latest_with_the_next(
    failures: int,
) -> None:
    """The loop was taken for having been asked, and nothing went out any more."""
    service: Any = Service()
    connection = ServedConnection(service)
    transport: Any = Transport()
    connection.connection_made(transport)
    session: Any = connection.session
    service.loop.failures = failures
    if failures == 1:
        session.write(b"1")
    else:
        with pytest.raises(MemoryError):
            session.write(b"1")
        session.write(b"2")
    service.loop.run(service.pool)
    assert b"".join(transport.written) == b"12"[:failures]
    service.pool.close()
