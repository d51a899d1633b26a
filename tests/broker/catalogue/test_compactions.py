"""Facts about the operations of compaction, in the catalogue alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_files import PlainFiles

from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.records import CompactionRecord
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import CatalogueError

TOPIC = "persistent://public/default/t"
UUID = "0" * 32


def result(ledger_id: int, message: int = 5, **fields: Any) -> CompactionRecord:
    values: dict[str, Any] = {
        "ledger_id": ledger_id,
        "uuid": UUID if ledger_id else "",
        "entry_count": 1,
        "message_count": 1,
        "size": 4200,
        "horizon_ledger_id": 2,
        "horizon_entry": 4,
        "horizon_message": message,
        "last": [2, 4, -1],
        "ledgers": [[2, 5]],
        "compacted_ms": 7,
        "duration_ms": 1,
        "removed_count": 4,
    }
    return CompactionRecord(**(values | fields))


class Opened:
    """A catalogue with a topic, opened anew as often as wanted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()
        self.commit(
            changes.create_topic(TOPIC, self.catalogue.allocate_id()),
            changes.add_ledger(TOPIC, self.catalogue.allocate_id(), UUID, 0),
        )

    def open(self) -> None:
        self.directory = DataDirectory.open(str(self.path), files=PlainFiles(flush=False))
        self.catalogue = Catalogue.open(self.directory)

    def again(self) -> CatalogueState:
        """The state as another owner reads it, from a checkpoint."""
        self.catalogue.checkpoint()
        self.catalogue.close()
        self.directory.close()
        self.open()
        return self.catalogue.state

    def commit(self, *operations: dict[str, Any]) -> None:
        self.catalogue.commit(list(operations))

    def begin(self) -> int:
        ledger_id: int = self.catalogue.allocate_id()
        self.commit(changes.begin_compaction(TOPIC, ledger_id, UUID))
        return ledger_id

    def compact(self, **fields: Any) -> int:
        ledger_id = self.begin()
        self.commit(changes.set_compaction(TOPIC, result(ledger_id, **fields)))
        return ledger_id


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path / "data")


def files_to_remove(state: CatalogueState) -> list[int]:
    return sorted(each.ledgers[0][0] for each in state.deletions.values())


def test_a_file_is_to_be_removed_until_it_is_the_result(opened: Opened) -> None:
    ledger_id = opened.begin()
    assert files_to_remove(opened.again()) == [ledger_id]
    opened.commit(changes.set_compaction(TOPIC, result(ledger_id)))
    state = opened.again()
    assert files_to_remove(state) == []
    found = state.topics[TOPIC].compaction
    assert found is not None and found.row() == result(ledger_id).row()
    assert state.next_id > ledger_id


def test_a_result_replaces_the_one_before(opened: Opened) -> None:
    first = opened.compact()
    second = opened.compact(message=9)
    assert files_to_remove(opened.again()) == [first]
    opened.commit(changes.forget_deletions([first]))
    opened.commit(changes.set_compaction(TOPIC, result(0, 11, last=[], ledgers=[])))
    state = opened.again()
    assert files_to_remove(state) == [second]
    assert state.topics[TOPIC].compaction is not None
    opened.commit(changes.remove_compaction(TOPIC))
    assert opened.again().topics[TOPIC].compaction is None


def test_the_file_of_a_deleted_topic_goes_with_it(opened: Opened) -> None:
    ledger_id = opened.compact()
    opened.commit(changes.delete_topic(TOPIC))
    [record] = opened.again().deletions.values()
    assert [each[0] for each in record.ledgers] == [2, ledger_id]


@pytest.mark.parametrize(
    "operation",
    [
        changes.set_compaction(TOPIC, result(77)),  # was not begun
        changes.set_compaction(TOPIC, result(0, 1)),  # goes back
        changes.set_compaction(TOPIC, result(0, 9, ledgers=[[3, 1], [2, 1]])),
        changes.set_compaction(TOPIC, result(0, 9, ledgers=[[3, 0]])),
        changes.set_compaction(TOPIC, result(0, 9, last=["x"])),
        changes.begin_compaction("persistent://public/default/missing", 50, UUID),
        changes.remove_compaction("persistent://public/default/missing"),
    ],
)
def test_what_does_not_fit_is_refused(opened: Opened, operation: dict[str, Any]) -> None:
    opened.compact()
    before = opened.catalogue.state.document()
    with pytest.raises(CatalogueError):
        opened.commit(operation)
    assert opened.catalogue.state.document() == before
