"""Facts about those who wait while a call of somebody else fails: what it did before it failed is
not kept from them."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flow_steps import every_kind, join, publish, waiting_receive
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, MessageId, errors
from pulsarx.broker.ledgers.ledger_list import LedgerList
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

WAIT = 60


@pytest.fixture
def disk_full() -> Iterator[None]:
    with fault_plan() as plan:
        for operation in ("write", "allocate", "flush", "rename"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        yield


@every_kind
def test_a_seek_that_fails_wakes_who_waits(
    open_client: OpenClient,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
) -> None:
    """What was not acknowledged comes again by it, and used to stay where it was until the next
    message was published."""
    consumer = join(open_client(), kind)
    publish(open_client(), 1)
    assert consumer.receive().data() == b"0"
    waiting = waiting_receive(consumer)
    ledger_changed = Subscription.ledger_changed

    def change_and_let_sleep(self: Subscription) -> None:
        ledger_changed(self)
        waiting.until_asleep()

    monkeypatch.setattr(Subscription, "ledger_changed", change_and_let_sleep)
    request.getfixturevalue("disk_full")
    with pytest.raises(errors.StorageFullError):
        consumer.seek(MessageId.earliest)
    assert waiting.result().data() == b"0"


def test_a_consumer_that_cannot_join_stops_nobody(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a higher priority that failed to take over used to leave nobody in its place: the one
    before received nothing more until the next came or went."""
    client = open_client()
    consumer = join(client, ConsumerType.Failover, consumer_name="a", priority_level=1)
    publish(client, 1)
    assert consumer.receive().data() == b"0"
    waiting = waiting_receive(consumer)
    span_of = LedgerList.span_of
    failures = iter([errors.StorageError(detail="too many open files")])

    def fail_once(self: LedgerList, ledger_id: int) -> Any:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return span_of(self, ledger_id)

    monkeypatch.setattr(LedgerList, "span_of", fail_once)
    with pytest.raises(errors.StorageError):
        join(client, ConsumerType.Failover, consumer_name="b", priority_level=0)
    assert waiting.result().data() == b"0"
    publish(client, 1, start=1)
    assert consumer.receive(WAIT * 1000).data() == b"1"


def damage_entry(folder: Path, payload: bytes) -> None:
    """Of a ledger that is open: another byte, the checksum of before."""
    for path in folder.rglob("*.ledger"):
        with path.open("r+b") as file:
            at = file.read().find(payload)
            if at >= 0:
                file.seek(at)
                file.write(b"X")


def test_what_was_given_up_before_damage_goes_to_the_dead_letters_at_once(
    open_client: OpenClient, folder: Path
) -> None:
    """It used to wait until its consumer was called once more, which one that stops at damage
    never is."""
    client = open_client()
    consumer = join(client, ConsumerType.Shared, negative_ack_redelivery_delay_ms=0)
    publish(client, 1)
    for _ in range(3):
        consumer.negative_acknowledge(consumer.receive(60_000))
    consumer.close()
    policy = pulsarx.ConsumerDeadLetterPolicy(1, "letters")
    letters = client.subscribe("letters", "s")
    consumer = join(client, ConsumerType.Shared, dead_letter_policy=policy)
    assert consumer.has_message()
    client.create_producer("t").send(b"damaged")
    damage_entry(folder, b"damaged")
    with pytest.raises(errors.CorruptDataError):
        consumer.receive(0)
    assert letters.receive(WAIT * 1000).data() == b"0"


def test_whoever_flushes_tells_those_who_watch(open_client: OpenClient) -> None:
    """A producer that waited for room flushed the messages of all and told nobody but those who
    sleep in receive. Futures and listeners waited for the next flush, and here for a callback."""
    client = open_client(durability="sync")
    consumer = join(client, ConsumerType.Shared)
    go_on, entered = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        entered.set()
        go_on.wait(WAIT)

    try:
        producer = client.create_producer("t", max_pending_messages=1, block_if_queue_full=True)
        producer.send_async(b"0", block)
        assert entered.wait(WAIT)
        assert consumer.receive(WAIT * 1000).data() == b"0"
        told: list[int] = []
        consumer.watch(lambda: told.append(1))
        producer.send_async(b"1", None)
        assert not told
        assert consumer.take_now() is None
        producer.send_async(b"2", None)  # flushes the one before
        assert told
        assert consumer.take_now().data() == b"1"
    finally:
        go_on.set()


def test_a_future_asked_for_while_the_client_closes_ends(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to wait for ever when the client closed between the last look for a message and the
    first call that would have told the future of the end."""
    consumer = memory_client.subscribe("t", "s")
    take_now = consumer.take_now

    def close_behind_the_look() -> Any:
        monkeypatch.undo()
        message = take_now()
        closing = threading.Thread(target=memory_client.close)
        closing.start()
        closing.join(WAIT)
        return message

    monkeypatch.setattr(consumer, "take_now", close_behind_the_look)
    future = consumer.receive_async()
    with pytest.raises(errors.AlreadyClosed):
        future.result(WAIT / 2)


def test_a_reader_beside_an_owner_that_comes_gets_what_it_publishes(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner came between two looks, at who owns the folder and at its catalogue: its ledger was
    taken for one of a dead owner, which ends where it ends."""
    client = open_client()
    client.create_producer("t")
    client.close()
    reading = open_client(read_only=True)
    reader = reading.create_reader("t", MessageId.earliest)
    broker = inspect(reading).broker
    producers: list[Any] = []
    looks = [broker._find_ends, broker.catalogue.refresh]

    def look(number: int) -> Any:
        found = looks[number]()
        if not producers:
            producers.append(None)
            producers.append(open_client().create_producer("t"))
            producers[1].send(b"0")
        return found

    monkeypatch.setattr(broker, "_find_ends", lambda: look(0))
    monkeypatch.setattr(type(broker.catalogue), "refresh", lambda self: look(1))
    reader.has_message_available()
    monkeypatch.undo()
    producers[1].send(b"1")
    assert [reader.read_next(WAIT * 1000).data() for _ in range(2)] == [b"0", b"1"]
