"""Facts about acknowledgements that the catalogue keeps beside cursors: what seeks, closings and
kills leave of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support.clients import OpenClient
from transaction_steps import backlog, taken

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx.broker.transactions import coordinator as coordinating
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
from pulsarx.testing import inspect


def consumer_of(client: pulsarx.Client, topic: str = "t", name: str = "s") -> Any:
    return client.subscribe(topic, name, initial_position=InitialPosition.Earliest)


def acknowledged(client: pulsarx.Client, count: int = 3, topic: str = "t") -> Any:
    """A consumer whose messages a transaction has acknowledged."""
    consumer = consumer_of(client, topic)
    client.create_producer(topic).send_many([b"%d" % number for number in range(count)])
    with client.new_transaction() as transaction:
        for each in consumer.receive_many(count, 0):
            consumer.acknowledge(each, transaction=transaction)
    return consumer


def kept(client: pulsarx.Client) -> list[Any]:
    """What the catalogue keeps beside cursors."""
    ended = inspect(client).broker.runtime.catalogue.state.ended
    return [row for each in ended.values() for row in each.acknowledged]


def test_a_seek_in_a_session_without_transactions_holds(open_client: OpenClient) -> None:
    """It was undone at the next opening of the topic, and the messages were lost."""
    client = open_client()
    acknowledged(client)
    client.close()
    client = open_client()
    consumer_of(client).seek(MessageId.earliest)
    client.close()
    assert taken(consumer_of(open_client())) == [b"0", b"1", b"2"]


def test_a_seek_holds_when_the_topic_is_unloaded(open_client: OpenClient) -> None:
    client = open_client()
    consumer = acknowledged(client)
    consumer.seek(MessageId.earliest)
    consumer.close()
    client.admin.topics.unload("t")
    assert taken(consumer_of(client)) == [b"0", b"1", b"2"]


def test_a_closed_folder_keeps_nothing_beside_cursors(open_client: OpenClient) -> None:
    client = open_client()
    acknowledged(client)
    assert len(kept(client)) == 1
    client.close()
    client = open_client()
    assert kept(client) == []
    assert backlog(client, "t") == 0


def killed_before_it_is_applied(folder: Path) -> None:
    """A process that is killed when the catalogue has a commit, and its cursor not."""
    child = os.fork()
    if child == 0:
        TransactionCoordinator._apply = lambda *_: os.kill(  # type: ignore[method-assign]
            os.getpid(), signal.SIGKILL
        )
        acknowledged(pulsarx.Client(folder, durability="os"), topic="b")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_seek_forgets_nothing_of_other_subscriptions(
    folder: Path, open_client: OpenClient
) -> None:
    """It forgot what was committed in topics that were not opened since a kill."""
    killed_before_it_is_applied(folder)
    client = open_client()
    acknowledged(client, topic="a").seek(MessageId.earliest)
    client.close()
    client = open_client()
    assert taken(consumer_of(client, "b")) == []
    assert kept(client) != []
    client.close()
    assert kept(open_client()) == []


def test_a_cursor_that_cannot_be_flushed_stops_no_others(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinating, "SETTLED_AT", 1)
    client = open_client()
    acknowledged(client)
    (subscription,) = inspect(client).broker.runtime.transactions._unsettled.values()

    class Poisoned:
        def __init__(self, tracker: Any) -> None:
            self.tracker = tracker

        def __getattr__(self, name: str) -> Any:
            return getattr(self.tracker, name)

        def flush(self) -> None:
            raise errors.StorageError(detail="its file cannot be written")

    tracker = subscription.tracker
    subscription.tracker = Poisoned(tracker)
    for end in ("commit", "abort"):
        transaction = client.new_transaction()
        client.create_producer("other").send(b"a", transaction=transaction)
        getattr(transaction, end)()
    assert len(kept(client)) == 1
    subscription.tracker = tracker
