"""Facts about those who look at a topic in the moment in which a ledger of it appears.

The catalogue tells readers of a ledger before the first entry can be published to it. A look
between the two is forced here by doing it inside the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flow_steps import every_kind, join, publish, waiting_receive
from topic_reading import OpenClient, numbers, payloads, whole_topic

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, MessageId, errors
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.testing import inspect

TWO_ENTRIES = BrokerOptions(managed_ledger_max_entries_per_ledger=2)


def look_when_a_ledger_appears(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, look: Callable[[], Any]
) -> list[Any]:
    """Call look when the catalogue has just told readers of a ledger; what the calls answered."""
    catalogue = inspect(client).catalogue
    commit = Catalogue.commit
    seen: list[Any] = []
    known: set[int] = set()

    def commit_and_look(self: Catalogue, operations: Any) -> int:
        number = commit(self, operations)
        if self is catalogue:
            topics = list(self.state.topics.values())
            fresh = {each.ledger_id for topic in topics for each in topic.ledgers} - known
            known.update(fresh)
            if fresh:
                seen.append(look())
        return number

    monkeypatch.setattr(Catalogue, "commit", commit_and_look)
    return seen


@every_kind
def test_a_consumer_that_looks_while_the_first_ledger_appears_gets_its_messages(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, kind: ConsumerType
) -> None:
    """It used to take the ledger for a sealed one without entries, and never got anything: one of
    1,500 consumers that polled, with futures cancelled meanwhile, stood still like this."""
    client = open_client()
    consumer = join(client, kind)
    seen = look_when_a_ledger_appears(client, monkeypatch, consumer.take_now)
    publish(client, 3)
    assert seen == [None]
    assert payloads(consumer) == numbers(3)


@every_kind
def test_a_future_that_waits_while_the_first_ledger_appears_gets_its_message(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, kind: ConsumerType
) -> None:
    """The futures of such a consumer were never completed."""
    client = open_client()
    consumer = join(client, kind)

    def cancel_one() -> Any:
        assert consumer.receive_async().cancel()
        return consumer.receive_async()

    futures = look_when_a_ledger_appears(client, monkeypatch, cancel_one)
    publish(client, 1)
    assert futures[0].result(60).data() == b"0"


@every_kind
def test_a_look_at_the_ledger_to_come_loses_nothing_of_it(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, kind: ConsumerType
) -> None:
    """A seek to the end and statistics look at the newest ledger, and what they found used to be
    what every reader was given then: nothing came behind the first ledger."""
    client = open_client(broker_options=TWO_ENTRIES)
    consumer = join(client, kind)
    reader = client.create_reader("t", MessageId.earliest)
    held: list[Any] = []  # what a look found stays what it is while somebody has it

    def look() -> None:
        ledger = inspect(client).ledger("t")
        held.append(ledger.span(ledger.ledgers()[-1]))
        client.admin.topics.stats("t")
        reader.has_message_available()

    look_when_a_ledger_appears(client, monkeypatch, look)
    publish(client, 7)
    assert payloads(consumer) == numbers(7)
    assert [reader.read_next(0).data() for _ in range(7)] == numbers(7)
    inspect(client).settle()
    # The last ledger is prepared; one commit may tell of two of them.
    assert 1 < len(held) <= 5


def test_a_ledger_the_catalogue_refused_is_forgotten(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Its file goes, and the next publish opens another."""
    client = open_client()
    consumer = join(client, ConsumerType.Shared)
    producer = client.create_producer("t")

    def refuse(self: Catalogue, operations: Any) -> int:
        raise errors.StorageFullError(detail="no space for the commit")

    with monkeypatch.context() as refusing:
        refusing.setattr(Catalogue, "commit", refuse)
        with pytest.raises(errors.StorageFullError):
            producer.send(b"refused")
    assert not list(folder.glob("**/*.ledger"))
    waiting = waiting_receive(consumer)
    producer.send(b"stored")
    assert waiting.result().data() == b"stored"
    client.close()
    assert whole_topic(open_client()) == [b"stored"]
