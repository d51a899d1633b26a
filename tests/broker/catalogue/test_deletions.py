"""Facts about the operations that delete and terminate, in the catalogue alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_files import PlainFiles

from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import CatalogueError

TOPIC = "persistent://public/default/t"
UUID = "0" * 32


class Opened:
    """A catalogue that is opened anew as often as wanted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self.directory = DataDirectory.open(str(self.path), files=PlainFiles(flush=False))
        self.catalogue = Catalogue.open(self.directory)

    def again(self) -> CatalogueState:
        """The state as another owner reads it."""
        self.catalogue.close()
        self.directory.close()
        self.open()
        return self.catalogue.state

    def commit(self, *operations: dict[str, Any]) -> None:
        self.catalogue.commit(list(operations))

    def used_topic(self) -> tuple[int, int, int]:
        """Ids of a topic, its ledger and its cursor."""
        ids = tuple(self.catalogue.allocate_id() for _ in range(3))
        topic_id, ledger_id, cursor_id = ids
        self.commit(
            changes.create_topic(TOPIC, topic_id),
            changes.add_ledger(TOPIC, ledger_id, UUID, 0),
            changes.create_subscription(TOPIC, "s", cursor_id, type="Shared", created_ms=0),
        )
        return topic_id, ledger_id, cursor_id


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path / "data")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_files_a_deleted_topic_had_is_remembered(opened: Opened, checkpoint: bool) -> None:
    topic_id, ledger_id, cursor_id = opened.used_topic()
    opened.commit(changes.delete_topic(TOPIC))
    if checkpoint:
        opened.catalogue.checkpoint()
        opened.catalogue.checkpoint()
    state = opened.again()
    assert state.topics == {}
    [record] = state.deletions.values()
    assert record.row() == [topic_id, TOPIC, [[ledger_id, UUID]], [cursor_id]]
    opened.commit(changes.forget_deletions([topic_id]))
    assert opened.again().deletions == {}


def test_a_topic_without_files_leaves_no_record(opened: Opened) -> None:
    opened.commit(changes.create_topic(TOPIC, opened.catalogue.allocate_id()))
    opened.commit(changes.delete_topic(TOPIC))
    assert opened.again().deletions == {}


def test_leases_on_a_deleted_topic_end(opened: Opened) -> None:
    _, ledger_id, _ = opened.used_topic()
    opened.commit(changes.set_lease("j", 1000, {TOPIC: [ledger_id]}, forgotten=[]))
    opened.commit(changes.delete_topic(TOPIC))
    state = opened.again()
    assert state.leases["j"].ledgers == {}
    assert state.leased_from(TOPIC, 0) == CatalogueState().leased_from(TOPIC, 0)


def test_a_terminated_topic_gets_no_ledger(opened: Opened) -> None:
    opened.used_topic()
    opened.commit(changes.terminate_topic(TOPIC))
    opened.catalogue.checkpoint()
    state = opened.again()
    assert state.topics[TOPIC].terminated
    with pytest.raises(CatalogueError, match="terminated"):
        opened.commit(changes.add_ledger(TOPIC, opened.catalogue.allocate_id(), UUID, 0))
    opened.commit(changes.delete_topic(TOPIC))
    opened.commit(changes.create_topic(TOPIC, opened.catalogue.allocate_id()))
    assert not opened.again().topics[TOPIC].terminated


def test_a_partitioned_topic_is_not_terminated_itself(opened: Opened) -> None:
    operation = changes.create_topic(TOPIC, opened.catalogue.allocate_id(), partition_count=2)
    opened.commit(operation)
    with pytest.raises(CatalogueError, match="partitioned"):
        opened.commit(changes.terminate_topic(TOPIC))


def test_nothing_is_deleted_above_what_is_there(opened: Opened) -> None:
    opened.used_topic()
    for operation, why in (
        (changes.delete_namespace("public/default"), "has topic"),
        (changes.delete_tenant("public"), "has namespace"),
        (changes.delete_namespace("public/none"), "no namespace"),
        (changes.delete_tenant("none"), "no tenant"),
        (changes.update_tenant("none", {}), "no tenant"),
        (changes.create_tenant("public", {}), "exists already"),
        (changes.create_namespace("none/x"), "no tenant"),
    ):
        with pytest.raises(CatalogueError, match=why):
            opened.commit(operation)


def test_one_commit_deletes_a_tenant_with_all_that_is_in_it(opened: Opened) -> None:
    opened.used_topic()
    whole = [
        changes.delete_topic(TOPIC),
        changes.delete_namespace("public/default"),
        changes.delete_tenant("public"),
    ]
    for wrong in ([whole[1], whole[0]], [whole[0], whole[2]]):
        with pytest.raises(CatalogueError):
            opened.commit(*wrong)
    opened.commit(*whole)
    state = opened.again()
    assert (state.tenants, state.namespaces, state.topics) == ({}, {}, {})
    opened.commit(changes.create_tenant("public", {}), changes.create_namespace("public/default"))
    assert opened.again().namespaces == {"public/default": {}}
