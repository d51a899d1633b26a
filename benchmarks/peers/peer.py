"""What a peer of the comparison is: a log or queue with the same few functions as every other one.

Each publishes and consumes as its own documentation advises. A message is bytes; what consumes has
the bytes in hand before it acknowledges. Page cache: what is published outlives the process.
Flushed: it is on the device. An acknowledgement outlives the process; where a peer can leave it
unflushed, it does, as after a power failure the message only comes again.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

BATCH, BATCH_BYTES = 1000, 1 << 20
PR_SET_PDEATHSIG = 1
MODES = ("page cache", "flushed")
IN_PROCESS, OVER_TCP, RAW = "in process", "over TCP", "over TCP, without a client library"
PUBLISH = ("publish_each", "publish_stream", "publish_batch")
CONSUME = ("consume_each", "consume_batch")
FLIGHT = "publish_flight"  # one by one, 64 unconfirmed: of those in raw_peer.py
WAYS = (*PUBLISH, FLIGHT, *CONSUME)


class Missing(Exception):
    """Why a peer cannot be had here."""


class Peer:
    """The defaults: a peer that knows no batches has none of these ways in `ways`."""

    name = ""
    place = IN_PROCESS
    ways: tuple[str, ...] = (*PUBLISH, *CONSUME)
    modes: tuple[str, ...] = MODES
    batch = BATCH  # messages confirmed or acknowledged together; set by who opens it

    def __init__(self, folder: Path, flushed: bool) -> None:
        """Open it on an empty folder, and start its server where it has one."""
        raise NotImplementedError

    def publish_each(self, payloads: list[bytes]) -> None:
        """Each is confirmed before the next."""
        raise NotImplementedError

    def publish_stream(self, payloads: list[bytes]) -> None:
        """A call for each; as many as a batch has are confirmed together."""
        self.publish_each(payloads)

    def publish_batch(self, payloads: list[bytes]) -> None:
        """A batch a call."""
        self.publish_stream(payloads)

    def consume_each(self, count: int) -> None:
        """Each is acknowledged by a call of its own."""
        raise NotImplementedError

    def consume_batch(self, count: int) -> None:
        """A batch is received, and acknowledged at once."""
        self.consume_each(count)

    def drain(self, count: int) -> None:
        """Get rid of so many that were published; not timed."""
        self.consume_batch(count)

    def settle(self) -> None:
        """What is done aside from time to time, as deleting the acknowledged; not timed."""

    def close(self) -> None:
        """Stop all that was started."""


class Talker:
    """One end of a conversation, for the latency of a hand-over. Two open the same address, the
    first with speaks_first=True, in another thread or process than the second."""

    name = ""
    between: tuple[str, ...] = ()  # "threads", "processes", "over TCP"
    bound = False  # not a queue, but what a queue is built on

    def __init__(self, address: str, speaks_first: bool) -> None:
        raise NotImplementedError

    def send(self, payload: bytes) -> None:
        raise NotImplementedError

    def receive(self) -> bytes:
        """Wait for a message, and acknowledge it."""
        raise NotImplementedError

    def turn(self) -> AbstractContextManager[object]:
        """What is in force while messages go to and fro, where others take turns in this
        process."""
        return nullcontext()

    def close(self) -> None:
        pass


def batch_of(size: int) -> int:
    """A thousand messages of that size, or as many as are a MiB, by the hundred."""
    return min(BATCH, BATCH_BYTES // size // 100 * 100)


def chunks(payloads: list[bytes], size: int) -> Iterator[list[bytes]]:
    for at in range(0, len(payloads), size):
        yield payloads[at : at + size]


def counts(count: int, size: int) -> Iterator[int]:
    while count > 0:
        yield min(count, size)
        count -= size


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(
    command: list[str], environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A server that ends with this process, however it ends."""
    prctl = ctypes.CDLL(None).prctl
    return subprocess.Popen(
        command, env=environment, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    )


def wait_until(answers: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Until a server that was started answers; OSError: it does not yet."""
    until = time.monotonic() + 30
    while True:
        try:
            answers()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > until:
                stop(process)
                raise Missing(f"its server does not answer: {error}") from error
            time.sleep(0.02)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
