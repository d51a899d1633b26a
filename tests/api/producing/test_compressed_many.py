"""`send_many` of compressed batches, which two threads compress: no message shows it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import FrameType

import pytest
from topic_reading import OpenClient, read_all

from pulsarx import CompressionType, compression, errors

MESSAGES = [b"%06d " % number * 150 for number in range(3000)]  # 1050 bytes each
Codec = Callable[[bytes | memoryview], bytes]

needs_two_processors = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one processor compresses in one thread"
)


class Raised(Exception):
    """By a signal handler."""


class RaisedLikeCtrlC(BaseException):
    """By a signal handler."""


@pytest.fixture
def lz4_becomes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Codec], Codec]]:
    """Has LZ4 compressed by another function; returns the one that it was."""

    def become(codec: Codec) -> Codec:
        codecs = list(compression._COMPRESS)
        was, codecs[1] = codecs[1], codec
        monkeypatch.setattr(compression, "_COMPRESS", tuple(codecs))
        return was

    yield become
    monkeypatch.undo()


@pytest.mark.parametrize("kind", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_batches_of_every_codec_arrive_in_order(open_client: OpenClient, kind: str) -> None:
    client = open_client()
    producer = client.create_producer("t", compression_type=getattr(CompressionType, kind))
    ids = producer.send_many(MESSAGES)
    ids += producer.send_many(MESSAGES[:500], keys=["k"] * 500)
    assert ids == sorted(set(ids), key=lambda each: (each.entry_id(), each.batch_index()))
    messages = read_all(client, "t")
    assert [message.value() for message in messages] == MESSAGES + MESSAGES[:500]
    assert [message.message_id() for message in messages] == ids


@needs_two_processors
def test_two_threads_compress_the_batches_of_one_call(
    open_client: OpenClient, lz4_becomes: Callable[[Codec], Codec]
) -> None:
    threads: set[int] = set()

    def noting(data: bytes | memoryview) -> bytes:
        threads.add(threading.get_ident())
        return lz4(data)

    lz4 = lz4_becomes(noting)
    producer = open_client().create_producer("t", compression_type=CompressionType.LZ4)
    producer.send_many(MESSAGES)
    assert len(threads) >= 2 and threading.get_ident() in threads
    threads.clear()
    producer.send_many([b"x" * 10] * 2500)  # three batches that are no work for two
    assert threads == {threading.get_ident()}


@needs_two_processors
@pytest.mark.parametrize("beside", [True, False])
def test_a_codec_that_fails_leaves_what_came_before(
    open_client: OpenClient, lz4_becomes: Callable[[Codec], Codec], beside: bool
) -> None:
    """In the thread beside, and in the caller's."""
    calls: list[int] = []

    def failing(data: bytes | memoryview) -> bytes:
        if (threading.get_ident() != caller) == beside:
            calls.append(1)
            if len(calls) >= 4:
                raise MemoryError("no room for a codec")
        return lz4(data)

    caller = threading.get_ident()
    lz4 = lz4_becomes(failing)
    client = open_client()
    producer = client.create_producer("t", compression_type=CompressionType.LZ4)
    with pytest.raises(MemoryError, match="no room for a codec") as failed:
        producer.send_many(MESSAGES)
    published = [message.value() for message in read_all(client, "t")]
    assert 0 < len(published) < len(MESSAGES)
    assert published == MESSAGES[: len(published)]
    assert failed.value.__notes__ == [
        f"{len(published)} of {len(MESSAGES)} messages were published"
    ]
    lz4_becomes(lz4)
    producer.send_many(MESSAGES)
    assert [message.value() for message in read_all(client, "t")] == published + MESSAGES


@needs_two_processors
@pytest.mark.parametrize("kind", [Raised, RaisedLikeCtrlC])
def test_an_interrupt_waits_for_the_thread_beside(
    open_client: OpenClient, lz4_becomes: Callable[[Codec], Codec], kind: type[BaseException]
) -> None:
    """The other thread reads the batch; a call that had left would fill it anew beneath."""
    interrupted = threading.Event()
    kept: list[bool] = []

    def raising(data: bytes | memoryview) -> bytes:
        before = bytes(data)
        if threading.current_thread() is threading.main_thread():
            if not interrupted.is_set():
                interrupted.set()
                signal.raise_signal(signal.SIGUSR1)
        elif not kept:
            interrupted.wait(60)
            found = lz4(data)
            kept.append(bytes(data) == before)
            return found
        return lz4(data)

    def handle(number: int, frame: FrameType | None) -> None:
        raise kind

    lz4 = lz4_becomes(raising)
    client = open_client()
    producer = client.create_producer("t", compression_type=CompressionType.LZ4)
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(kind) as raised:
            producer.send_many(MESSAGES)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert kept == [True]
    published = [message.value() for message in read_all(client, "t")]
    assert published == MESSAGES[: len(published)]
    assert len(published) == 0 or kind is Raised
    assert raised.value.__notes__ == [
        f"{len(published)} of {len(MESSAGES)} messages were published"
    ]
    producer.send_many(MESSAGES)
    assert [message.value() for message in read_all(client, "t")] == published + MESSAGES


@needs_two_processors
def test_a_child_forked_within_the_call_does_not_wait_for_the_thread_beside(
    open_client: OpenClient, lz4_becomes: Callable[[Codec], Codec]
) -> None:
    """That thread is the parent's. What the child's call says is read through a pipe."""
    forked = threading.Event()
    child: list[int] = []
    told, telling = multiprocessing.Pipe(duplex=False)

    def forking(data: bytes | memoryview) -> bytes:
        if threading.current_thread() is threading.main_thread():
            if not forked.is_set():
                child.append(os.fork())
                forked.set()
        else:
            forked.wait(60)
        return lz4(data)

    lz4 = lz4_becomes(forking)
    client = open_client()
    producer = client.create_producer("t", compression_type=CompressionType.LZ4)
    try:
        producer.send_many(MESSAGES)
    except BaseException as error:
        if child == [0]:
            tell_and_leave(telling, type(error).__name__)
        raise
    if child == [0]:
        tell_and_leave(telling, "sent")
    assert told.poll(20), "the child hangs"
    assert told.recv() == errors.ForkedError.__name__
    os.waitpid(child[0], 0)
    assert [message.value() for message in read_all(client, "t")] == MESSAGES


def tell_and_leave(telling: Connection, what: str) -> None:
    telling.send(what)
    os._exit(0)
