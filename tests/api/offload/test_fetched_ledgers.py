"""Facts about ledgers that are fetched from an object store: each once for all who wait for it, and
the next of a reader ahead."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from offload_steps import Store, ids_and_values, offloaded, publish

import pulsarx
from pulsarx import ManualClock, MessageId, errors
from pulsarx.broker.offload.fetched_ledgers import fetched_ledgers
from pulsarx.broker.offload.stored_object import StoredObject

VALUES = [b"m%03d" % number for number in range(75)]  # seven sealed ledgers, and half of one
LIMIT_SECONDS = 60


class Gate:
    """Lets each read of an object begin when it is opened. Counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []  # names of objects
        self.reached = threading.Event()
        self.open = threading.Event()
        self.failure: Exception | None = None
        read_into = StoredObject.read_into

        def gated(stored: StoredObject, *arguments: Any) -> None:
            self.asked.append(stored.location.rpartition("/")[2])
            self.reached.set()
            assert self.open.wait(LIMIT_SECONDS)
            if self.failure is not None:
                raise self.failure
            read_into(stored, *arguments)

        monkeypatch.setattr(StoredObject, "read_into", gated)

    def readers(self, client: pulsarx.Client, count: int) -> list[pulsarx.Reader[bytes]]:
        """Each has read the first ledger, and will ask for the next one."""
        self.open.set()
        made = [client.create_reader("t", MessageId.earliest) for _ in range(count)]
        for each in made:
            for _ in range(10):
                each.read_next(30_000)
        self.open.clear()
        self.reached.clear()
        self.asked.clear()
        return made


@pytest.fixture
def store(tmp_path: Path, manual_clock: ManualClock) -> Store:
    """All sealed ledgers of its topic are in the store alone."""
    made = Store(tmp_path / "data", tmp_path / "store")
    with made.open(manual_clock) as client:
        publish(client, values=VALUES)
        offloaded(client, manual_clock)
        assert len(made.objects()) == 7
    return made


@pytest.fixture
def gate(store: Store, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def in_threads(*calls: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=each) for each in calls]
    for each in threads:
        each.start()
    return threads


def test_the_next_ledger_of_a_reader_that_goes_on_is_fetched_ahead(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    gate.open.set()
    with store.open(manual_clock) as client:
        reader = client.create_reader("t", MessageId.earliest)
        got = [reader.read_next(60_000).data() for _ in range(10)]
        fetched_ledgers.settle()
        assert len(gate.asked) == 1  # it may have been all that is wanted
        got.append(reader.read_next(60_000).data())
        fetched_ledgers.settle()
        assert len(gate.asked) == 3
        got += [reader.read_next(60_000).data() for _ in range(10)]
        fetched_ledgers.settle()
        assert len(gate.asked) == 4
        got += [reader.read_next(60_000).data() for _ in range(len(VALUES) - 21)]
        assert got == VALUES
        assert len(gate.asked) == len(set(gate.asked)) == 7


def test_a_consumer_of_a_shared_subscription_has_it_fetched_ahead_too(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    gate.open.set()
    with store.open(manual_clock) as client:
        consumer = client.subscribe(
            "t", "s", pulsarx.ConsumerType.Shared, receiver_queue_size=1,
            initial_position=pulsarx.InitialPosition.Earliest,
        )  # fmt: skip
        for _ in range(12):
            consumer.acknowledge(consumer.receive(60_000))
        fetched_ledgers.settle()
        assert len(gate.asked) == 3


def test_who_asks_for_a_ledger_that_is_being_fetched_waits_for_it(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    with store.open(manual_clock) as client:
        readers = gate.readers(client, 3)
        got: list[bytes] = []
        threads = in_threads(
            *(lambda each=each: got.append(each.read_next(30_000).data()) for each in readers)
        )
        assert gate.reached.wait(LIMIT_SECONDS)
        gate.open.set()
        for each in threads:
            each.join()
        assert got == VALUES[10:11] * 3
        assert gate.asked.count(gate.asked[0]) == 1


def test_a_failure_reaches_all_who_wait_and_the_next_call_tries_again(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    with store.open(manual_clock) as client:
        readers = gate.readers(client, 2)
        gate.failure = errors.StorageError(detail="read s3://bucket/x: no route to host")
        failures: list[Exception] = []

        def fail(reader: pulsarx.Reader[bytes]) -> None:
            with pytest.raises(errors.StorageError, match="no route to host") as told:
                reader.read_next(30_000)
            failures.append(told.value)

        threads = in_threads(*(lambda each=each: fail(each) for each in readers))
        assert gate.reached.wait(LIMIT_SECONDS)
        gate.open.set()
        for each in threads:
            each.join()
        assert len({id(each) for each in failures}) == 2
        gate.failure = None
        assert [each.read_next(60_000).data() for each in readers] == VALUES[10:11] * 2


def test_what_could_not_be_fetched_ahead_is_fetched_by_its_reader(
    store: Store, manual_clock: ManualClock, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.open.set()
    with store.open(manual_clock) as client:
        reader = client.create_reader("t", MessageId.earliest)
        got = [reader.read_next(60_000).data() for _ in range(10)]
        gate.open.clear()
        gate.reached.clear()
        (thread,) = in_threads(lambda: got.append(reader.read_next(30_000).data()))
        assert gate.reached.wait(LIMIT_SECONDS)
        read_into = StoredObject.read_into

        def second_fails(stored: StoredObject, *arguments: Any) -> None:
            raise errors.StorageError(detail="read s3://bucket/x: no route to host")

        StoredObject.read_into = second_fails  # type: ignore[method-assign]  # the gate restores it
        gate.open.set()
        thread.join()
        fetched_ledgers.settle()
        StoredObject.read_into = read_into  # type: ignore[method-assign]
        got += [reader.read_next(60_000).data() for _ in range(len(VALUES) - 11)]
        assert got == VALUES
    assert "no route" not in caplog.text


def test_closing_the_client_drops_what_is_fetched_ahead(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    gate.open.set()
    client = store.open(manual_clock)
    reader = client.create_reader("t", MessageId.earliest)
    for _ in range(10):
        reader.read_next(30_000)
    read_into = StoredObject.read_into
    reached, go_on = threading.Event(), threading.Event()
    ends: list[BaseException | None] = []

    def second_waits(stored: StoredObject, *arguments: Any) -> None:
        if len(gate.asked) < 2:
            return read_into(stored, *arguments)
        reached.set()
        assert go_on.wait(LIMIT_SECONDS)
        try:
            read_into(stored, *arguments)
            ends.append(None)
        except BaseException as error:
            ends.append(error)
            raise

    StoredObject.read_into = second_waits  # type: ignore[method-assign]  # the gate restores it
    reader.read_next(30_000)
    assert reached.wait(LIMIT_SECONDS)
    client.close()
    go_on.set()
    fetched_ledgers.settle()
    assert [type(each).__name__ for each in ends] == ["Unneeded"]
    StoredObject.read_into = read_into  # type: ignore[method-assign]
    with store.open(manual_clock) as client:
        asked = len(gate.asked)
        assert [value for _, value in ids_and_values(client)] == VALUES
        assert len(gate.asked) == asked + 7  # nothing was kept


# While a ledger is fetched ------------------------------------------------------------------------


def first_ten(
    client: pulsarx.Client, kind: pulsarx.ConsumerType, **more: Any
) -> tuple[pulsarx.Consumer[bytes], list[pulsarx.Message[bytes]]]:
    """A consumer that has received the first ledger."""
    consumer = client.subscribe(
        "t", "s", kind, initial_position=pulsarx.InitialPosition.Earliest, **more
    )
    return consumer, [consumer.receive(60_000) for _ in range(10)]


@pytest.mark.parametrize("kind", [pulsarx.ConsumerType.Shared, pulsarx.ConsumerType.KeyShared])
def test_others_of_its_subscription_go_on_while_a_ledger_is_fetched(
    store: Store, manual_clock: ManualClock, gate: Gate, kind: pulsarx.ConsumerType
) -> None:
    """They waited for the store with the one that had asked."""
    gate.open.set()
    with store.open(manual_clock) as client:
        consumer, got = first_ten(client, kind, receiver_queue_size=1)
        gate.open.clear()
        gate.reached.clear()
        (waiting,) = in_threads(lambda: got.append(consumer.receive(30_000)))
        assert gate.reached.wait(LIMIT_SECONDS)
        others = in_threads(
            lambda: [consumer.acknowledge(each) for each in got[:5]],
            lambda: consumer.acknowledge(got[5].message_id()),
            lambda: client.subscribe("t", "s", kind, receiver_queue_size=1).close(),
            lambda: client.admin.topics.stats("t"),
        )
        for each in others:
            each.join(LIMIT_SECONDS / 4)
        assert not any(each.is_alive() for each in others)
        assert waiting.is_alive()
        gate.open.set()
        waiting.join()
        assert got[-1].data() == VALUES[10]
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 69


@pytest.mark.parametrize("kind", [pulsarx.ConsumerType.Exclusive, pulsarx.ConsumerType.Shared])
def test_ctrl_c_ends_the_wait_for_a_ledger_that_is_fetched(
    store: Store, manual_clock: ManualClock, gate: Gate, kind: pulsarx.ConsumerType
) -> None:
    """It came when the store had answered."""

    def interrupt() -> None:
        assert gate.reached.wait(LIMIT_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    gate.open.set()
    with store.open(manual_clock) as client:
        consumer, got = first_ten(client, kind)
        gate.open.clear()
        gate.reached.clear()
        (thread,) = in_threads(interrupt)
        with pytest.raises(KeyboardInterrupt):
            consumer.receive(30_000)
        thread.join()
        assert not gate.open.is_set()
        gate.open.set()
        got += [consumer.receive(60_000) for _ in range(len(VALUES) - 10)]
        assert [each.data() for each in got] == VALUES


@pytest.mark.parametrize("kind", [pulsarx.ConsumerType.Exclusive, pulsarx.ConsumerType.Shared])
def test_what_is_at_hand_comes_when_the_store_fails_behind_it(
    store: Store, manual_clock: ManualClock, gate: Gate, kind: pulsarx.ConsumerType
) -> None:
    gate.open.set()
    with store.open(manual_clock) as client:
        consumer = client.subscribe(
            "t", "s", kind, initial_position=pulsarx.InitialPosition.Earliest
        )
        gate.failure = errors.StorageError(detail="read s3://bucket/x: no route to host")
        receives: list[Callable[[], Any]] = [
            lambda: consumer.receive_many(100, 0),
            lambda: consumer.receive_arrow(100, 0),
            consumer.batch_receive,
        ]
        for receive in receives:
            assert len(receive()) == 10
            with pytest.raises(errors.StorageError, match="no route to host"):
                receive()
            consumer.redeliver_unacknowledged_messages()
        gate.failure = None
        got: list[bytes] = []
        while messages := consumer.receive_many(1000, 0):
            got += [each.data() for each in messages]
        assert got == VALUES


def test_statistics_fetch_no_ledger_for_a_consumer_with_room(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    """They dispatched what they could, and so fetched what came next; so did a call that had
    messages at hand."""
    gate.open.set()
    with store.open(manual_clock) as client:
        consumer, got = first_ten(client, pulsarx.ConsumerType.Shared, receiver_queue_size=10)
        client.admin.topics.stats("t")
        client.subscribe("t", "s", pulsarx.ConsumerType.Shared).close()
        fetched_ledgers.settle()
        assert len(gate.asked) == 1
        got += [consumer.receive(60_000) for _ in range(len(VALUES) - 10)]
        assert [each.data() for each in got] == VALUES


def test_beside_the_owner_a_store_that_fails_is_asked_once_a_call(
    store: Store, manual_clock: ManualClock, gate: Gate
) -> None:
    """It was asked ten times, with its own time limit each."""
    gate.open.set()
    with pulsarx.Client(store.folder, read_only=True) as client:
        reader = client.create_reader("t", MessageId.earliest)
        got = [reader.read_next(60_000).data() for _ in range(10)]
        gate.asked.clear()
        gate.failure = errors.StorageError(detail="read s3://bucket/x: no route to host")
        with pytest.raises(errors.StorageError, match="no route to host"):
            reader.read_next(30_000)
        assert len(gate.asked) == 1
        gate.asked.clear()
        with pytest.raises(errors.StorageError, match="no route to host"):
            client.create_reader("t", MessageId.latest).seek(reader_id(client))
        assert len(gate.asked) == 1
        gate.failure = None
        got += [reader.read_next(60_000).data() for _ in range(len(VALUES) - 10)]
        assert got == VALUES


def reader_id(client: pulsarx.Client) -> MessageId:
    """An id in the fifth ledger."""
    ledgers = client.admin.topics.stats("t")["ledgers"]
    return MessageId(-1, ledgers[4]["ledger_id"], 3, -1)
