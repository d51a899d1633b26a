"""Facts about ledgers that the catalogue has as prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import TOPIC, create, open_folder, read_folder

from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.errors import CatalogueError

NAME = TOPIC + "t"


class Counts:
    """Stands for a summary."""

    entry_count, message_count, size, first_publish_ms, last_publish_ms = 2, 3, 5000, 1, 2


def sealing(ledger_id: int) -> Any:
    return changes.seal_ledger(NAME, ledger_id, Counts, sealed_ms=9, damaged=False)


def states(catalogue: Catalogue) -> list[tuple[int, str]]:
    return [(each.ledger_id, each.state) for each in catalogue.state.topics[NAME].ledgers]


def prepare(catalogue: Catalogue) -> tuple[int, int]:
    """A topic with an open ledger and a prepared one; their ids."""
    create(catalogue, "t")
    first, second = catalogue.allocate_id(), catalogue.allocate_id()
    catalogue.commit([changes.add_ledger(NAME, first, "u1", 1)])
    catalogue.commit([changes.prepare_ledger(NAME, second, "u2", 2)])
    return first, second


def test_a_prepared_ledger_is_used_sealed_or_removed(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path / "data")
    first, second = prepare(catalogue)
    assert states(catalogue) == [(first, "open"), (second, "prepared")]
    third = catalogue.allocate_id()
    catalogue.commit(
        [
            changes.use_ledger(NAME, second),
            sealing(first),
            changes.prepare_ledger(NAME, third, "u3", 3),
        ]
    )
    assert states(catalogue) == [(first, "sealed"), (second, "open"), (third, "prepared")]
    record = catalogue.state.topics[NAME].ledgers[1]
    assert (record.uuid, record.slot) == ("u2", 2)
    assert read_folder(tmp_path / "data").state == catalogue.state
    catalogue.commit([changes.remove_ledgers(NAME, [third])])
    fourth = catalogue.allocate_id()
    catalogue.commit([changes.prepare_ledger(NAME, fourth, "u4", 3)])
    catalogue.commit([sealing(second), sealing(fourth)])  # it held entries when its owner died
    assert [each[1] for each in states(catalogue)] == ["sealed"] * 3
    directory.close()


@pytest.mark.parametrize(
    "operation",
    [
        changes.add_ledger(NAME, 100, "u", 0),
        changes.prepare_ledger(NAME, 100, "u", 0),
        changes.attach_ledgers(
            "a", 1, attached_ms=1, ledgers={NAME: [[100, "u", 1, 1, 1, 1, 1]]}, forgotten=[]
        ),
        changes.use_ledger(NAME, 2),
        changes.use_ledger(NAME, 100),
        changes.use_ledger(TOPIC + "none", 3),
    ],
)
def test_nothing_comes_behind_a_prepared_ledger(tmp_path: Path, operation: Any) -> None:
    """Readers go from ledger to ledger by their ids."""
    directory, catalogue = open_folder(tmp_path / "data")
    assert prepare(catalogue) == (2, 3)
    with pytest.raises(CatalogueError, match="nothing was written"):
        catalogue.commit([operation])
    assert states(catalogue) == [(2, "open"), (3, "prepared")]
    directory.close()
