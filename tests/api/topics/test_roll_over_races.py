"""Facts about looking at a topic while its ledgers roll over: nobody is told of damage or refused
anything because of that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chunk_entries import chunk_entry
from damaged_ledgers import Owner, data_of, receive_all
from topic_reading import OpenClient, whole_topic
from type_steps import publish, statistics

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.testing import inspect

ONE_ENTRY = BrokerOptions(managed_ledger_max_entries_per_ledger=1)


def look_around(client: pulsarx.Client, name: str = "passing") -> None:
    """Everything that finds a position."""
    client.create_reader("t", MessageId.latest).close()
    reader = client.create_reader("t", MessageId.earliest)
    reader.seek(MessageId.latest)
    reader.has_message_available()
    reader.seek(1)
    assert receive_all(reader)[1] == []
    reader.close()
    client.subscribe("t", name, ConsumerType.Shared).unsubscribe()
    client.admin.topics.stats("t")


def test_a_ledger_that_the_catalogue_has_just_named_can_be_looked_at(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its writer was known it was taken for a sealed one without a byte, and remembered as
    that: `find below offset 0: out of range`, and its messages never came."""
    client = open_client(broker_options=ONE_ENTRY)
    client.admin.topics.create_non_partitioned_topic("t")
    catalogue = inspect(client).catalogue
    commit = type(catalogue).commit
    seen: list[str] = []

    def commit_and_look(self: Any, operations: Any) -> int:
        number = commit(self, operations)
        [record] = self.state.topics.values()
        for ledger in record.ledgers:
            if ledger.state != "sealed" and ledger.state not in seen:
                seen.append(ledger.state)
                look_around(client)
        return number

    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    monkeypatch.setattr(type(catalogue), "commit", commit_and_look)
    publish(client, "0", "1", "2")
    inspect(client).settle()
    assert seen == ["open", "prepared"]
    assert whole_topic(client) == [b"0", b"1", b"2"]
    assert data_of(receive_all(consumer)[0]) == ["0", "1", "2"]


def test_statistics_leave_out_a_subscription_that_goes_meanwhile(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`AlreadyClosed: the subscription's state is closed`."""
    client = open_client()
    stays, goes = (client.subscribe("t", name) for name in ("stays", "goes"))
    original = Subscription.statistics

    def leave_first(self: Subscription) -> dict[str, Any]:
        if self.name == "goes":
            goes.unsubscribe()
        return original(self)

    monkeypatch.setattr(Subscription, "statistics", leave_first)
    assert list(client.admin.topics.stats("t")["subscriptions"]) == ["stays"]
    stays.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_subscription_at_the_end_stays_there_when_an_empty_ledger_goes(
    open_client: OpenClient, durable: bool
) -> None:
    """It began with the first message of the topic."""
    client = open_client()
    publish(client, "0", "1")
    client.close()
    client = open_client()
    topic = inspect(client).topic("t")
    topic.ledger.open_writer()
    position = topic.ledger.end_position()
    with topic.ledger.lock:
        topic.ledger.begin_attach()
        topic.ledger.end_attach()
    inspect(client).settle()
    assert topic.ledger.end_position()[0] < position[0]
    if durable:
        topic.create_subscription("s", position)
    else:
        topic._create_non_durable("s", position)
    assert statistics(client)["msg_backlog"] == 0


def test_beside_the_owner_a_ledger_is_found_whose_slot_is_anothers_by_now(folder: Path) -> None:
    with Owner(folder, 1) as owner:
        owner.publish("0")
        with pulsarx.Client(folder, read_only=True) as client:
            reader = client.create_reader("t", MessageId.earliest)
            assert reader.read_next(0).data() == b"0"
            ledger = inspect(client).ledger("t")
            [record] = ledger.ledgers()
            assert record.state == "open" and ledger.span(record).is_growing
            owner.publish("1", "2", "3")
            assert ledger.locate(MessageId(-1, record.ledger_id, 0))[2] == 1
            reader._core.dispatcher.move(record.ledger_id, 0)
            messages, told = receive_all(reader)
            assert (data_of(messages), told) == (["0", "1", "2", "3"], [])


@pytest.mark.standard
def test_threads_that_look_while_ledgers_roll_over_are_refused_nothing(
    open_client: OpenClient,
) -> None:
    client = open_client(durability="interval", broker_options=ONE_ENTRY)
    keep = client.subscribe("t", "keep")
    failures: list[BaseException] = []
    done = threading.Event()

    def until_done(look: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                look()
        except BaseException as failure:
            failures.append(failure)

    def tell() -> None:
        client.admin.topics.stats("t")

    threads = [
        threading.Thread(target=until_done, args=[look])
        for look in (lambda: look_around(client, "a"), lambda: look_around(client, "b"), tell)
    ]
    for thread in threads:
        thread.start()
    try:
        publish(client, *(str(number) for number in range(150)))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert data_of(receive_all(keep)[0]) == [str(number) for number in range(150)]


def test_an_entry_of_a_clock_far_ahead_is_stored(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ledger that was made for it was too old for it: one after the other was made."""
    reader = memory_client.create_reader("t", pulsarx.MessageId.earliest)
    roll_over = ManagedLedger.roll_over
    times: list[int] = []

    def counted(self: ManagedLedger, writer: Any) -> None:
        times.append(1)
        assert len(times) < 5
        roll_over(self, writer)

    monkeypatch.setattr(ManagedLedger, "roll_over", counted)
    year_2100_ms = 4_102_444_800_000
    entry = chunk_entry("p-0", 0, 1, b"x", publish_ms=year_2100_ms)
    inspect(memory_client).append_entry("t", entry)
    assert reader.read_next(0).publish_timestamp() == year_2100_ms
    memory_client.create_producer("t").send(b"y")
    assert reader.read_next(0).data() == b"y"
