"""Backups, salvaged folders and offloaded ledgers have transactions as readers see them then."""

from __future__ import annotations

from pathlib import Path

import pytest
from offload_steps import Store, ids_and_values, offloaded
from support.killed_owners import left_by_kill

import pulsarx
from pulsarx import InitialPosition, ManualClock, MessageId, backups
from pulsarx.testing import inspect


def read(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """What a new reader, and the subscription, see of it."""
    with pulsarx.Client(folder) as client:
        reader = client.create_reader("t", MessageId.earliest)
        consumer = client.subscribe("in", "s")
        found = reader.read_many(100, 0), consumer.receive_many(100, 0)
        return [each.data() for each in found[0]], [each.data() for each in found[1]]


@pytest.mark.parametrize("how", ["backup", "salvage"])
def test_ends_that_no_commit_has_yet_are_in_it(tmp_path: Path, how: str) -> None:
    """The owner writes them behind the last commit, in place."""
    folder = tmp_path / "data"
    with pulsarx.Client(folder) as client:
        client.create_producer("in").send_many([b"a", b"b", b"c"])
        consumer = client.subscribe("in", "s", initial_position=InitialPosition.Earliest)
        a, b, c = consumer.receive_many(3, 5000)
        producer = client.create_producer("t")
        producer.send(b"plain")
        with client.new_transaction() as transaction:
            producer.send(b"committed", transaction=transaction)
            consumer.acknowledge(a, transaction=transaction)
        aborted, left = client.new_transaction(), client.new_transaction()
        producer.send(b"aborted", transaction=aborted)
        consumer.acknowledge(b, transaction=aborted)
        aborted.abort()
        producer.send(b"open", transaction=left)
        consumer.acknowledge(c, transaction=left)
        assert list((folder / "catalogue").glob("*.ends"))
        if how == "backup":
            backups.backup(folder, tmp_path / "copy")
            assert not backups.check(tmp_path / "copy").damage
        else:  # of what a kill would leave now
            backups.salvage(left_by_kill(client, tmp_path / "killed"), tmp_path / "copy")
        left.commit()
    assert read(tmp_path / "copy") == ([b"plain", b"committed"], [b"b", b"c"])
    assert read(folder) == ([b"plain", b"committed", b"open"], [b"b"])


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_what_is_held_back_is_not_offloaded_and_what_was_aborted_is_passed_over(
    tmp_path: Path, end: str
) -> None:
    store, clock = Store(tmp_path / "data", tmp_path / "store"), ManualClock()
    with store.open(clock) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        producer = client.create_producer("t")
        transaction = client.new_transaction(timeout_millis=3_600_000)
        wanted = []
        for number in range(35):
            is_in = number >= 12 and number % 2 == 0
            producer.send(b"%d" % number, transaction=transaction if is_in else None)
            if not is_in or end == "commit":
                wanted.append(b"%d" % number)
        offloaded(client, clock)
        assert len(store.objects()) == 1  # the ledger in front of its first message
        assert [value for _, value in ids_and_values(client)] == [b"%d" % at for at in range(12)]
        getattr(transaction, end)()
        inspect(client).settle()
        offloaded(client, clock)
        assert len(store.objects()) >= 3
        assert [value for _, value in ids_and_values(client)] == wanted
    with store.open(clock) as client:
        assert [value for _, value in ids_and_values(client)] == wanted
