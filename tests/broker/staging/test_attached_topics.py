"""Which topic a transaction was attached to, told from the catalogue: its record names ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import TOPIC, create, open_folder

from pulsarx.broker.staging.ledger_attachment import was_attached_to

ATTACH = {"op": "attach_ledgers", "application": "a", "batch_id": 0, "attached_ms": 9}


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Any]:
    directory, opened = open_folder(tmp_path)
    for name in ("t", "u", "p-partition-0", "p-partition-1"):
        create(opened, name)
    yield opened
    directory.close()


def attach(catalogue: Any, *topics: str) -> list[int]:
    """One ledger to each of the topics; their ids."""
    ids: list[int] = catalogue.allocate_ids(len(topics))
    ledgers: dict[str, Any] = {TOPIC + name: [] for name in topics}
    for name, each in zip(topics, ids):
        ledgers[TOPIC + name].append([each, f"{each}", 1, 1, 5000, 1, 2])
    batch_id = getattr(catalogue.state.transactions.get("a"), "batch_id", -1) + 1
    catalogue.commit([{**ATTACH, "batch_id": batch_id, "ledgers": ledgers}])
    return ids


def remove(catalogue: Any, topic: str, *ids: int) -> None:
    wanted = {"op": "remove_ledgers", "topic": TOPIC + topic, "ledger_ids": list(ids)}
    catalogue.commit([wanted])


def topics_of_last(catalogue: Any) -> list[str]:
    """Those to which the last attach may have gone."""
    state = catalogue.state
    record = state.transactions["a"]
    names = ("t", "u", "p", "later", "nowhere")
    return [each for each in names if was_attached_to(state, record, TOPIC + each)]


def test_it_is_told_by_ledgers_that_are_there(catalogue: Any) -> None:
    attach(catalogue, "t")
    assert topics_of_last(catalogue) == ["t"]
    attach(catalogue, "u", "u")
    assert topics_of_last(catalogue) == ["u"]
    attach(catalogue, "p-partition-1")
    assert topics_of_last(catalogue) == ["p"]
    attach(catalogue, "t", "u")
    assert topics_of_last(catalogue) == ["t", "u"]


def test_topics_without_any_of_its_ledgers_are_none_of_them_while_one_has_some(
    catalogue: Any,
) -> None:
    (mine,) = attach(catalogue, "t")
    ids = attach(catalogue, "u", "u")
    remove(catalogue, "t", mine)
    remove(catalogue, "u", ids[0])
    assert topics_of_last(catalogue) == ["u"]


def test_where_all_are_removed_it_may_be_every_topic_that_lost_some_of_that_age(
    catalogue: Any,
) -> None:
    (before,) = attach(catalogue, "t")
    remove(catalogue, "t", before)
    (mine,) = attach(catalogue, "u")
    create(catalogue, "later")
    state = catalogue.state
    record = state.transactions["a"]
    remove(catalogue, "u", mine)
    assert topics_of_last(catalogue) == ["u"]
    # What other topics lose later may be behind it.
    for name in ("t", "p-partition-0", "later"):
        (last,) = attach(catalogue, name)
        remove(catalogue, name, last)
    found = [each for each in "tu" if was_attached_to(state, record, TOPIC + each)]
    assert found == ["t", "u"]
    assert was_attached_to(state, record, TOPIC + "p")
    assert not was_attached_to(state, record, TOPIC + "later")
    assert not was_attached_to(state, record, TOPIC + "nowhere")
