"""Facts about transactions whose end failed: nothing of them is seen by half."""

from __future__ import annotations

import contextlib
import errno

import pytest
from support.clients import OpenClient
from transaction_steps import seen

import pulsarx
from pulsarx import errors
from pulsarx.testing import fault_plan
from pulsarx.transaction import TransactionState


def test_a_commit_whose_flush_failed_leaves_nothing_of_it_to_the_next_owner(
    open_client: OpenClient,
) -> None:
    client = open_client(durability="interval")
    producers = {topic: client.create_producer(topic) for topic in ("a", "b")}
    for producer in producers.values():
        producer.send(b"before")
    transaction = client.new_transaction()
    for topic, producer in producers.items():
        producer.send(topic.encode(), transaction=transaction)
    with fault_plan() as plan:
        plan.fail("flush")
        with pytest.raises(errors.StorageError):
            transaction.commit()
    assert [seen(client, topic) for topic in producers] == [[b"before"]] * 2
    with contextlib.suppress(pulsarx.PulsarException):  # the ledger is poisoned
        client.close()
    client = open_client(durability="interval")
    assert [seen(client, topic) for topic in producers] == [[b"before"]] * 2


def test_a_transaction_for_whose_end_there_was_no_room_goes_on(open_client: OpenClient) -> None:
    client = open_client(durability="interval")
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC, sticky=True)
        plan.fail("allocate", error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageFullError):
            transaction.commit()
    assert transaction.state() is TransactionState.OPEN
    producer.send(b"b", transaction=transaction)
    assert seen(client, "t") == []
    transaction.commit()
    assert seen(client, "t") == [b"a", b"b"]


def test_one_that_could_not_be_aborted_in_time_is_not_seen_by_the_next_owner(
    open_client: OpenClient,
) -> None:
    """All that is in a sealed ledger counts, but for what the catalogue says."""
    clock = pulsarx.ManualClock()
    client = open_client(durability="interval", clock=clock)
    producer = client.create_producer("t")
    producer.send(b"before")
    transaction = client.new_transaction(timeout_millis=1000)
    producer.send(b"a", transaction=transaction)
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC, sticky=True)
        plan.fail("allocate", error=errno.ENOSPC, sticky=True)
        clock.advance(2)
        assert transaction.state() is TransactionState.TIME_OUT
        assert seen(client, "t") == [b"before"]
    client.close()
    client = open_client(durability="interval", clock=clock)
    assert seen(client, "t") == [b"before"]
