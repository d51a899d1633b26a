"""Facts about the threads of the control plane."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pulsarx._pycore.ground.control_plane import control_plane

PATIENCE_SECONDS = 60
BURST = 40


@pytest.fixture
def held() -> Iterator[None]:
    """As by an open client."""
    control_plane.hold()
    yield
    control_plane.let_go()


def settled(most: int) -> bool:
    """Whether so many threads at most are left soon."""
    pause = threading.Event()
    for _ in range(PATIENCE_SECONDS * 100):
        if control_plane.threads <= most:
            return True
        pause.wait(0.01)
    return False


def test_the_threads_of_a_burst_end(held: None):
    """Each call that began while others were at work left a thread until the last client closed:
    a thousand of asyncio at once, a thousand threads."""
    begun, gate = threading.Semaphore(0), threading.Event()

    def work() -> None:
        begun.release()
        gate.wait()

    for _ in range(3):
        gate.clear()
        for _ in range(BURST):
            control_plane.post(work)
        for _ in range(BURST):
            assert begun.acquire(timeout=PATIENCE_SECONDS)
        assert control_plane.threads >= BURST
        gate.set()
        assert settled(5)
    assert control_plane.perform(threading.current_thread) is not None


def test_calls_go_on_while_threads_end(held: None):
    found: list[int] = []

    def ask() -> None:
        for number in range(200):
            done = threading.Event()
            control_plane.post(done.set)
            assert done.wait(PATIENCE_SECONDS)
            found.append(number)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 12 * 200
    assert settled(5)
