"""Facts about positions that a process beside the owner has found in ledgers that go meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId
from pulsarx.processes.guest.subscription import GuestSubscription

PATIENCE_MS = 60_000


@pytest.fixture
def owner(owner: SharingProcess) -> SharingProcess:
    owner.run("producer = client.create_producer('t')")
    return owner


def truncate_once_found(monkeypatch: pytest.MonkeyPatch, owner: SharingProcess) -> None:
    """The next position that is found is one of a ledger that goes right afterwards."""
    find = GuestSubscription._found

    def find_and_truncate(self: Any, *arguments: Any) -> Any:
        found = find(self, *arguments)
        monkeypatch.undo()
        owner.run("client.admin.topics.truncate('t')")
        owner.run("producer.send(b'new') and None")
        return found

    monkeypatch.setattr(GuestSubscription, "_found", find_and_truncate)


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_seek_to_what_is_truncated_meanwhile_goes_to_what_came(
    folder: Path,
    owner: SharingProcess,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
    is_empty: bool,
) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", kind)
        if not is_empty:
            owner.run("producer.send(b'old') and None")
            consumer.acknowledge(consumer.receive(PATIENCE_MS))
        truncate_once_found(monkeypatch, owner)
        consumer.seek(MessageId.earliest)
        assert consumer.receive(PATIENCE_MS).data() == b"new"


@pytest.mark.parametrize("start", [InitialPosition.Earliest, InitialPosition.Latest])
@pytest.mark.parametrize("kind", ALL_TYPES)
def test_a_subscription_that_is_made_while_its_topic_is_truncated_has_what_came(
    folder: Path,
    owner: SharingProcess,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
    start: InitialPosition,
) -> None:
    owner.run("producer.send(b'old') and None")
    with pulsarx.Client(folder) as client:
        truncate_once_found(monkeypatch, owner)
        consumer = client.subscribe("t", "s", kind, initial_position=start)
        assert consumer.receive(PATIENCE_MS).data() == b"new"
