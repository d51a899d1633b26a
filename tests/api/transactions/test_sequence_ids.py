"""Facts about sequence ids of transactions, with deduplication."""

from __future__ import annotations

from typing import Any

import pytest
from support.clients import OpenClient
from transaction_steps import seen

import pulsarx
from pulsarx import BrokerOptions, MessageId, errors

NOTHING = MessageId()
OPTIONS = BrokerOptions(broker_deduplication_enabled=True)


@pytest.fixture
def client(open_client: OpenClient) -> pulsarx.Client:
    return open_client(broker_options=OPTIONS)


def producer_of(client: pulsarx.Client) -> Any:
    return client.create_producer("t", producer_name="p")


@pytest.mark.parametrize("goes", ["stays", "leaves"])
def test_a_message_of_an_open_transaction_is_no_duplicate_yet(
    client: pulsarx.Client, goes: str
) -> None:
    """It was answered as one; an abort of the first one lost it then."""
    producer = producer_of(client)
    first, second = client.new_transaction(), client.new_transaction()
    producer.send(b"5", sequence_id=5, transaction=first)
    assert producer.send(b"5", sequence_id=5, transaction=first) == NOTHING
    if goes == "leaves":
        producer.close()
        producer = producer_of(client)
    with pytest.raises(errors.TransactionConflict, match="sequence id 5"):
        producer.send(b"5", sequence_id=5)
    with pytest.raises(errors.TransactionConflict, match="sequence id 5"):
        producer.send(b"5", sequence_id=5, transaction=second)
    second.abort()
    first.abort()
    assert producer.send(b"5!", sequence_id=5) != NOTHING
    assert seen(client, "t") == [b"5!"]


def test_an_abort_takes_back_down_to_what_others_stored(client: pulsarx.Client) -> None:
    """It took back the ids of plain and of committed messages as well: they were stored twice."""
    producer = producer_of(client)
    first, second = client.new_transaction(), client.new_transaction()
    producer.send(b"1", sequence_id=1, transaction=first)
    producer.send(b"2", sequence_id=2)
    producer.send(b"3", sequence_id=3, transaction=second)
    producer.send(b"4", sequence_id=4, transaction=first)
    second.commit()
    first.abort()
    for number in (2, 3):
        assert producer.send(b"again", sequence_id=number) == NOTHING
    assert producer.send(b"4!", sequence_id=4) != NOTHING
    assert seen(client, "t") == [b"2", b"3", b"4!"]


def test_the_last_sequence_id_is_none_of_an_aborted_message(client: pulsarx.Client) -> None:
    producer = producer_of(client)
    for topic in (producer, client.create_producer("plain")):
        topic.send(b"0", sequence_id=3)
        transaction = client.new_transaction()
        topic.send(b"1", sequence_id=7, transaction=transaction)
        assert topic.last_sequence_id() == 7
        transaction.abort()
        assert topic.last_sequence_id() == 3


def test_what_is_written_down_leaves_out_open_transactions(open_client: OpenClient) -> None:
    client = open_client(broker_options=OPTIONS)
    producer = producer_of(client)
    aborted, committed = client.new_transaction(), client.new_transaction()
    producer.send(b"0", sequence_id=1)
    producer.send(b"1", sequence_id=2, transaction=committed)
    producer.send(b"2", sequence_id=3)
    producer.send(b"3", sequence_id=4, transaction=aborted)
    deduplication = pulsarx.testing.inspect(client).topic("t").deduplication
    deduplication.snapshot()
    assert deduplication.highest() == {"p": 3}
    committed.commit()
    deduplication.snapshot()
    assert deduplication.highest() == {"p": 3}
    aborted.abort()
    client.close()
    client = open_client(broker_options=OPTIONS)
    producer = producer_of(client)
    assert producer.send(b"2", sequence_id=2) == NOTHING
    assert producer.send(b"3!", sequence_id=4) != NOTHING
    assert seen(client, "t") == [b"0", b"1", b"2", b"3!"]
