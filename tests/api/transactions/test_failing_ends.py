"""Facts about ends that fail, and about deadlines of transactions whose end has begun."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.clients import OpenClient
from support.waiting import wait_until
from transaction_steps import seen, taken

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.testing import inspect
from pulsarx.transaction import TransactionState


@pytest.fixture
def clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


@pytest.fixture
def client(open_client: OpenClient, clock: pulsarx.ManualClock) -> pulsarx.Client:
    return open_client(durability="sync", clock=clock)


def failing(error: Exception) -> Any:
    def call(*_: Any, **__: Any) -> None:
        raise error

    return call


def asked_in_vain(error: Exception) -> Any:
    """A commit of the catalogue that fails when it was told what to write."""

    def commit(catalogue: Any, operations: Any, **_: Any) -> None:
        if callable(operations):
            operations(catalogue.state)
        raise error

    return commit


def is_over(client: pulsarx.Client, transaction: Any) -> bool:
    found = inspect(client).broker.runtime.transactions.find(transaction.number)
    return found is None


def begun(client: pulsarx.Client, timeout_ms: int = 1000) -> Any:
    producer = client.create_producer("t")
    transaction = client.new_transaction(timeout_ms)
    producer.send(b"in", transaction=transaction)
    producer.send(b"plain")
    producer.close()
    return transaction


NOT_WRITTEN = errors.StorageError(detail="the disk failed")
NO_ROOM = errors.StorageFullError(detail="no room")


def test_a_commit_that_failed_is_done_at_the_deadline(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It held back its topics for good, unless it was repeated."""
    transaction = begun(client)
    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "commit", asked_in_vain(NOT_WRITTEN))
        with pytest.raises(errors.StorageError):
            transaction.commit()
        clock.advance(1.1)
        inspect(client).broker.runtime.background.wait()
        assert not is_over(client, transaction)
    with pytest.raises(errors.InvalidTxnStatusError, match="COMMITTING"):
        transaction.abort()  # it may be committed
    clock.advance(1.1)
    wait_until(lambda: is_over(client, transaction))
    wait_until(lambda: seen(client, "t") == [b"in", b"plain"])
    transaction.commit()
    assert transaction.state() is TransactionState.COMMITTED


@pytest.mark.parametrize("end", ["abort", "deadline", "close"])
def test_a_commit_that_failed_before_it_was_asked_for_may_be_aborted(
    open_client: OpenClient,
    clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    client, stays = (open_client(durability="sync", clock=clock) for _ in range(2))
    transaction = begun(client)
    with monkeypatch.context() as patch:
        patch.setattr(ManagedLedger, "flush", failing(NOT_WRITTEN))
        with pytest.raises(errors.StorageError):
            transaction.commit()
    if end == "abort":
        transaction.abort()
    elif end == "close":
        client.close()
    else:
        clock.advance(1.1)
        wait_until(lambda: is_over(stays, transaction))
        assert transaction.state() is TransactionState.TIME_OUT
    assert is_over(stays, transaction)
    assert seen(stays, "t") == [b"plain"]


def test_a_commit_that_was_interrupted_is_aborted_at_its_deadline(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = begun(client)
    with monkeypatch.context() as patch:
        patch.setattr(type(transaction), "_send_what_waits", failing(NOT_WRITTEN))
        with pytest.raises(errors.StorageError):
            transaction.commit()
    clock.advance(1.1)
    wait_until(lambda: is_over(client, transaction))
    assert transaction.state() is TransactionState.TIME_OUT
    assert seen(client, "t") == [b"plain"]


def test_an_end_without_room_leaves_it_open_until_the_deadline(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acknowledgements were refused from then on, and there was no deadline any more."""
    source = client.create_producer("in")
    source.send_many([b"0", b"1"])
    consumer = client.subscribe("in", "s", initial_position=InitialPosition.Earliest)
    first, second = consumer.receive_many(2, 0)
    transaction = begun(client)
    consumer.acknowledge(first, transaction=transaction)

    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "commit", asked_in_vain(NO_ROOM))
        with pytest.raises(errors.StorageFullError):
            transaction.commit()
        assert transaction.state() is TransactionState.OPEN
        consumer.acknowledge(second, transaction=transaction)
        with pytest.raises(errors.StorageFullError):
            transaction.commit()
    clock.advance(1.1)
    wait_until(lambda: is_over(client, transaction))
    assert transaction.state() is TransactionState.TIME_OUT
    assert seen(client, "t") == [b"plain"]
    assert taken(consumer) == [b"0", b"1"]


def test_a_deadline_that_is_over_when_there_is_no_room_is_kept(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = begun(client)
    tries = asked_in_vain(NO_ROOM)
    over_ms = clock.now_ms() + 1000
    # It stands still at the deadline, whose work waits for the commit.
    thread = threading.Thread(target=clock.advance, args=(1.1,))

    def slow(*given: Any, **named: Any) -> None:
        if not thread.ident:
            thread.start()
        wait_until(lambda: clock.now_ms() >= over_ms)
        tries(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "commit", slow)
        with pytest.raises(errors.StorageFullError):
            transaction.commit()
    thread.join()
    clock.advance(1.1)  # where the deadline's own end found no room either
    wait_until(lambda: is_over(client, transaction))
    assert transaction.state() is TransactionState.TIME_OUT
    assert seen(client, "t") == [b"plain"]


def test_what_could_not_be_applied_is_applied_later(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsarx.broker.subscriptions.subscription import Subscription

    client.create_producer("in").send(b"0")
    consumer = client.subscribe("in", "s", initial_position=InitialPosition.Earliest)
    transaction = begun(client)
    consumer.acknowledge(consumer.receive(0), transaction=transaction)
    with monkeypatch.context() as patch:
        patch.setattr(Subscription, "abort_transaction", failing(NOT_WRITTEN))
        transaction.abort()
        assert taken(consumer) == []
    clock.advance(1.1)
    wait_until(lambda: taken(consumer) == [b"0"])


def test_an_abort_whose_time_was_over_counts_when_it_is_done(
    client: pulsarx.Client, clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = begun(client)
    coordinator = inspect(client).broker.runtime.transactions
    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "commit", failing(NO_ROOM))
        clock.advance(1.1)
        inspect(client).broker.runtime.background.wait()
        assert coordinator.timeout_count == 0
        assert transaction.state() is TransactionState.TIME_OUT
    clock.advance(1.1)
    wait_until(lambda: is_over(client, transaction))
    assert coordinator.timeout_count == 1


def test_ends_of_others_do_not_wait_for_a_flush(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, go_on, flush = threading.Event(), threading.Event(), ManagedLedger.flush
    first, second = client.new_transaction(), client.new_transaction()
    client.create_producer("slow").send(b"a", transaction=first)
    client.create_producer("quick").send(b"b", transaction=second)

    def waiting(self: Any, **options: Any) -> None:
        if self.name.endswith("slow"):
            slow.set()
            assert go_on.wait(60)
        flush(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ManagedLedger, "flush", waiting)
        thread = threading.Thread(target=first.commit)
        thread.start()
        assert slow.wait(60)
        second.commit()
        go_on.set()
        thread.join()
    assert (seen(client, "slow"), seen(client, "quick")) == ([b"a"], [b"b"])
