"""Facts about what the end of a transaction looks at."""

from __future__ import annotations

from typing import Any

import pytest
from support.clients import OpenClient
from transaction_steps import seen, taken

from pulsarx import BrokerOptions, InitialPosition
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.transactions.coordinator import show_on
from pulsarx.testing import inspect

SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=2, default_retention_time_in_minutes=0)


def test_an_end_asks_only_ledgers_with_messages_that_were_aborted(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client(broker_options=SMALL)
    producer = client.create_producer("t", batching_enabled=False)
    for number in range(20):
        producer.send(b"%d" % number)
    transaction = client.new_transaction()
    producer.send(b"never", transaction=transaction)
    asked: list[Any] = []
    counts = ManagedLedger.published_counts

    def noted(self: Any, ledger: Any) -> Any:
        asked.append(ledger.ledger_id)
        return counts(self, ledger)

    ledger = inspect(client).ledger("t")
    transaction.abort()
    ledger.aborted.add([[ledger.ledgers()[-1].ledger_id, 0, 1 << 40]])
    with monkeypatch.context() as patch:
        patch.setattr(ManagedLedger, "published_counts", noted)
        patch.setattr(ledger, "passed_over", None)
        show_on(ledger)
    assert asked == [ledger.ledgers()[-1].ledger_id]


def test_runs_of_ledgers_that_are_gone_are_forgotten(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    producer = client.create_producer("t", batching_enabled=False)
    with pytest.raises(KeyError), client.new_transaction() as transaction:
        producer.send(b"never", transaction=transaction)
        raise KeyError
    for number in range(6):
        producer.send(b"%d" % number)
    assert len(taken(consumer)) == 6
    inspect(client).settle()
    assert inspect(client).ledger("t").aborted.all_passed() == []
    assert b"never" not in seen(client, "t")
