"""Facts about calls that fail or are cut short: others go on, and nothing is kept back."""

from __future__ import annotations

import errno
import gc
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sleeping_thread import until_asleep

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan


@contextmanager
def struck_asleep() -> Iterator[None]:
    """Sends SIGALRM to this thread when it sleeps."""
    caller = threading.current_thread()

    def strike() -> None:
        until_asleep(caller)
        assert caller.ident is not None
        signal.pthread_kill(caller.ident, signal.SIGALRM)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()


class Called:
    """A callback of send_async that counts."""

    def __init__(self, expected: int) -> None:
        self.left = expected
        self.all = threading.Event()

    def __call__(self, result: Any, message_id: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.all.set()


def test_a_full_queue_that_refuses_a_send_empties_by_itself(folder: Path) -> None:
    """What had gone out for that send was flushed by nobody: the producer stayed full."""
    with pulsarx.Client(folder) as client:
        producer = client.create_producer(
            "t", max_pending_messages=10, block_if_queue_full=False, batching_max_messages=100
        )
        called = Called(10)
        for _ in range(10):
            producer.send_async(b"x", called)
        with pytest.raises(errors.ProducerQueueIsFull):
            producer.send(b"more")
        assert called.all.wait(60)


def test_a_send_many_that_is_refused_confirms_what_was_sent_before(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        called = Called(1)
        producer.send_async(b"a", called)
        with pytest.raises(errors.MessageTooBig):
            producer.send_many([bytes(6 << 20)])
        assert called.all.wait(60)


def test_a_callback_may_raise_anything(folder: Path) -> None:
    """SystemExit ended the thread of the callbacks, and every later flush waited for ever."""

    def leave(result: Any, message_id: Any) -> None:
        raise SystemExit

    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        called = Called(1)
        producer.send_async(b"a", leave)
        producer.flush()
        producer.send_async(b"b", called)
        producer.flush()
        assert called.all.is_set()


def test_a_signal_whose_handler_returns_ends_no_wait_for_a_future(folder: Path) -> None:
    """`result` raised TimeoutError at the first signal."""
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        seen: list[int] = []

        def handler(number: int, frame: Any) -> None:
            seen.append(number)
            if len(seen) == 3:
                threading.Thread(target=producer.send, args=(b"x",)).start()

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        try:
            assert consumer.receive_async().result(timeout=60).data() == b"x"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert len(seen) >= 3


def test_a_callback_may_close_what_is_being_closed(folder: Path) -> None:
    """Both waited for each other."""
    client = pulsarx.Client(folder)
    producer = client.create_producer("t")
    closing = threading.Event()

    def close_too(result: Any, message_id: Any) -> None:
        assert closing.wait(60)
        client.close()

    producer.send_async(b"x", close_too)
    closer = threading.Thread(target=client.close)
    closer.start()
    while "closed=True" not in repr(client):
        pass
    closing.set()
    closer.join(60)
    assert not closer.is_alive()


def test_messages_taken_before_a_ledger_that_does_not_open_are_given(folder: Path) -> None:
    """They were taken and shown to nobody."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
    with pulsarx.Client(folder, broker_options=options) as client:
        producer = client.create_producer("t")
        for number in range(6):
            producer.send(b"%d" % number)
    with pulsarx.Client(folder, broker_options=options) as client:
        reader = client.create_reader("t", MessageId.earliest)
        first = reader.read_next(60_000)
        with fault_plan() as plan:
            plan.fail("open", error=errno.EMFILE, sticky=True)
            found = reader.read_many(10, 0)
            with pytest.raises(errors.StorageError):
                reader.read_many(10, 0)
        found = [first, *found, *reader.read_many(10, 0)]
        assert [each.data() for each in found] == [b"%d" % number for number in range(6)]


def test_an_owner_that_cannot_announce_itself_locks_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder stayed locked for as long as the process lived."""

    def refuse(*_: object) -> None:
        raise errors.StorageFullError(detail="announce: no space left")

    with monkeypatch.context() as patched:
        patched.setattr(DataDirectory, "announce", refuse)
        with pytest.raises(errors.StorageFullError):
            pulsarx.Client(folder)
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"x")


def test_a_refused_unsubscribe_leaves_dead_letters_as_they_were(
    folder: Path, manual_clock: pulsarx.ManualClock
) -> None:
    """A message beyond its redeliveries was neither delivered nor given up after that."""
    with pulsarx.Client(folder, clock=manual_clock) as client:
        consumer = client.subscribe(
            "t",
            "s",
            consumer_type=pulsarx.ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            negative_ack_redelivery_delay_ms=1000,
            dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1),
        )
        client.create_producer("t").send(b"x")
        with fault_plan() as plan:
            for operation in ("write", "allocate", "flush", "rename"):
                plan.fail(operation, error=errno.ENOSPC, sticky=True)
            with pytest.raises(errors.StorageError):
                consumer.unsubscribe()
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive(1000))
            manual_clock.advance(2)
        letters = client.create_reader("t-s-DLQ", MessageId.earliest)
        assert letters.read_next(60_000).data() == b"x"


def test_a_consumer_closed_while_its_listener_is_paused_is_let_go(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", message_listener=lambda *_: None)
        consumer.pause_message_listener()
        reference = weakref.ref(consumer)
        consumer.close()
        client.create_producer("t").send(b"x")
        del consumer
        inspect(client).settle()
        inspect(client).listener_pool.wait()
        gc.collect()
        assert reference() is None


def test_a_flush_that_fails_tells_what_was_durable_before_as_sent(folder: Path) -> None:
    """A message that the flush of another producer had made durable was told as failed."""
    client = pulsarx.Client(folder)
    first, second = client.create_producer("t"), client.create_producer("t")
    told: dict[str, pulsarx.Result] = {}
    held, free = threading.Event(), threading.Event()

    def hold(*_: Any) -> None:
        held.set()
        assert free.wait(60)

    # Callbacks run in the thread that flushes what nobody waits for: it is kept busy.
    first.send_async(b"hold", hold)
    assert held.wait(60)
    first.send_async(b"a", lambda result, _: told.update(a=result))
    second.send(b"b")
    with fault_plan() as plan:
        plan.fail("flush", error=errno.EIO, sticky=True)
        first.send_async(b"c", lambda result, _: told.update(c=result))
        with pytest.raises(errors.StorageError):
            first.send(b"d")
        free.set()
        inspect(client).runtime.completions.wait()
    assert told.pop("a") == pulsarx.Result.Ok
    assert told.pop("c") != pulsarx.Result.Ok
    assert not told
    with pytest.raises(errors.LedgerPoisonedError):
        client.close()


class RaisedError(Exception):
    pass


@pytest.mark.parametrize("take", ["receive", "receive_many", "receive_arrow"])
def test_an_interrupted_call_keeps_no_message_for_a_consumer_without_a_queue(
    folder: Path, take: str
) -> None:
    """receive_many and receive_arrow left their permit behind: the next message went to a consumer
    that did not ask for any, and to nobody else."""

    def handler(number: int, frame: Any) -> None:
        raise RaisedError

    with pulsarx.Client(folder) as client:
        shared = pulsarx.ConsumerType.Shared
        asks = client.subscribe("t", "s", shared, receiver_queue_size=0)
        before = signal.signal(signal.SIGALRM, handler)
        try:
            with pytest.raises(RaisedError), struck_asleep():
                getattr(asks, take)(*[] if take == "receive" else [1])
        finally:
            signal.signal(signal.SIGALRM, before)
        client.create_producer("t").send(b"x")
        other = client.subscribe("t", "s", shared)
        assert other.receive(60_000).data() == b"x"


def test_a_thread_is_no_thread_of_callbacks_by_its_name(folder: Path) -> None:
    """A thread of the user's that was called as that of the callbacks did not wait for a close."""
    client = pulsarx.Client(folder)
    producer = client.create_producer("t")
    held, free = threading.Event(), threading.Event()

    def hold(*_: Any) -> None:
        held.set()
        assert free.wait(60)

    producer.send_async(b"x", hold)
    assert held.wait(60)
    closing = threading.Thread(target=client.close)
    closing.start()
    while "closed=True" not in repr(client):
        pass
    also = threading.Thread(target=client.close, name="pulsarx-callbacks")
    also.start()
    also.join(0.3)
    assert also.is_alive()
    free.set()
    for each in (closing, also):
        each.join(60)
        assert not each.is_alive()


def test_a_callback_waits_for_the_close_of_another_client(folder: Path, tmp_path: Path) -> None:
    """It returned at once, with the folder still open."""
    client, other = pulsarx.Client(folder), pulsarx.Client(tmp_path / "other")
    held, free = threading.Event(), threading.Event()
    closed: list[bool] = []

    def hold(*_: Any) -> None:
        held.set()
        assert free.wait(60)

    def close_other(*_: Any) -> None:
        other.close()
        closed.append(closing.is_alive() and not free.is_set())

    other.create_producer("t").send_async(b"x", hold)
    assert held.wait(60)
    closing = threading.Thread(target=other.close)
    closing.start()
    while "closed=True" not in repr(other):
        pass
    client.create_producer("t").send_async(b"x", close_other)
    threading.Timer(0.3, free.set).start()
    client.close()
    assert closed == [False]
    closing.join(60)


def test_an_interrupted_flush_neither_forgets_a_failure_nor_tells_it_twice(folder: Path) -> None:
    """What had failed was told by no call when the flush was interrupted behind it; or by all."""

    def handler(number: int, frame: Any) -> None:
        raise RaisedError

    client = pulsarx.Client(folder)
    producer = client.create_producer("t")
    held, free = threading.Event(), threading.Event()

    def hold(*_: Any) -> None:
        held.set()
        assert free.wait(60)

    producer.send_async(b"hold", hold)
    assert held.wait(60)
    producer.send_async(b"x", None)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with fault_plan() as plan:
            plan.fail("flush", error=errno.EIO)
            with pytest.raises(RaisedError), struck_asleep():
                producer.flush()  # it waits for the callbacks when the signal comes
    finally:
        signal.signal(signal.SIGALRM, before)
    free.set()
    with pytest.raises(errors.StorageError):
        producer.flush()
    producer.flush()
    with pytest.raises(errors.LedgerPoisonedError):
        client.close()
