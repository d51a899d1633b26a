"""Facts about plans over topics with transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import OpenClient

from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.scan.plan import Planner


def test_a_plan_beside_the_owner_leaves_out_what_is_aborted_while_it_looks(
    open_client: OpenClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends of topics are published at once, so they may be newer than what was read of the
    catalogue."""
    client = open_client()
    producer = client.create_producer("t")
    producer.send(b"0")
    broker = ReadOnlyBroker(str(folder))
    planner = Planner(broker, "t")
    end_of = Planner._end_of

    def aborting(planner: Planner, *given: Any) -> Any:
        transaction = client.new_transaction()
        producer.send(b"aborted", transaction=transaction)
        transaction.abort()
        producer.send(b"1")
        return end_of(planner, *given)

    monkeypatch.setattr(Planner, "_end_of", aborting)
    assert [each.message_count for each in planner.plan()] == [1, 1]
    broker.close()
