"""Making a subscription on many topics, whose cursor files are flushed together, with a death at
every call."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from attach_steps import catalogue, folder_of_topics, nothing_stays_open, publish
from crashing_broker import dies_at
from seeds import calls, seeds

import pulsarx
from pulsarx.admin import Admin
from pulsarx.broker.folder.directory_flush import FlushedTogether
from pulsarx.broker.requests import owner_request

__all__ = ["folder_of_topics", "nothing_stays_open"]  # fixtures
assert owner_request  # loaded before files are simulated, which would stay its own

SEEDS = [None, -1, *seeds(2)]
PARTITIONS = [f"persistent://public/default/p-partition-{index}" for index in range(3)]


def subscribe(folder: Path) -> None:
    Admin.at(folder).topics.create_subscription("p", "s")


def cursor_ids(folder: Path) -> list[int]:
    """Of the subscription on each partition that has it."""
    topics = catalogue(folder).state.topics
    found = [topics[name].subscriptions.get("s") for name in PARTITIONS]
    return [each.cursor_id for each in found if each is not None]


def have_files(folder: Path, ids: list[int]) -> bool:
    return all(list((folder / "cursors").glob(f"{each}.*")) for each in ids)


@pytest.mark.standard
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_every_call_leaves_all_cursors_or_no_subscription(
    folder: Path, tmp_path: Path, seed: int | None
) -> None:
    for name in PARTITIONS:  # the subscription of a topic without a ledger has no file
        publish(folder, name)
    shutil.copytree(folder, tmp_path / "before")
    outcomes = set()
    for call in calls(seed, SEEDS):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
        lived = not dies_at(call, seed, folder, lambda: subscribe(folder))
        ids = cursor_ids(folder)
        assert len(ids) == 3 if lived else len(ids) in (0, 3), call
        assert have_files(folder, ids), call
        outcomes.add(len(ids))
        with pulsarx.Client(folder) as client:
            consumer = client.subscribe("p", "s")
            client.create_producer("p").send(b"after")
            assert consumer.receive(60_000).data() == b"after"
        if lived:
            break
    assert outcomes == {0, 3}
    assert call > 20


@pytest.mark.standard
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_every_call_leaves_no_ledger_before_the_cursors_of_its_topic(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int | None
) -> None:
    """Which have no files until then."""
    subscribe(folder)
    assert not have_files(folder, cursor_ids(folder)[:1])
    shutil.copytree(folder, tmp_path / "before")
    outcomes = set()
    for call in calls(seed, SEEDS):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
        lived = not dies_at(call, seed, folder, lambda: publish(folder, PARTITIONS[0]))
        has_ledger = bool(catalogue(folder).state.topics[PARTITIONS[0]].ledgers)
        outcomes.add((has_ledger, have_files(folder, cursor_ids(folder)[:1])))
        with pulsarx.Client(folder) as client:  # the ledger's own file may be lost
            client.subscribe("p", "s")
        assert not [each for each in caplog.records if "cursor" in each.getMessage()], call
        if lived:
            break
    assert outcomes == {(False, False), (False, True), (True, True)}


@pytest.mark.standard
def test_the_sweep_finds_a_missing_flush(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: Any) -> None:
        pass

    monkeypatch.setattr(FlushedTogether, "flush", nothing)
    with pytest.raises(AssertionError):
        test_a_crash_at_every_call_leaves_all_cursors_or_no_subscription(folder, tmp_path, None)
