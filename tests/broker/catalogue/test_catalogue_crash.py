"""A crash at every call on files, with every way the device may have kept what was not flushed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from plain_files import PlainFiles
from seeds import seeds
from simulated_files import Crash, SimulatedFiles

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory

TOPIC = "persistent://public/default/"
COMMIT_COUNT = 6


def run(files: SimulatedFiles, path: str, acknowledged: list[str]) -> None:
    """Open and commit; acknowledged has what was done for sure, also when this dies on the way."""
    directory = None
    try:
        directory = DataDirectory.open(path, files=files)
        catalogue = Catalogue.open(directory, checkpoint_interval=2)
        for number in range(COMMIT_COUNT):
            name = f"{TOPIC}t{number}"
            if catalogue.topic(name) is None:
                topic_id = catalogue.allocate_id()
                catalogue.commit([{"op": "create_topic", "topic": name, "topic_id": topic_id}])
            acknowledged.append(name)
        catalogue.close()
    finally:
        if directory is not None:
            directory.close()


def check(path: str, acknowledged: list[str]) -> None:
    directory = DataDirectory.open(path, files=PlainFiles(flush=False))
    catalogue = Catalogue.open(directory)
    found = catalogue.topic_names()
    expected = [f"{TOPIC}t{number}" for number in range(COMMIT_COUNT)]
    assert found == expected[: len(found)]
    assert len(acknowledged) <= len(found) <= len(acknowledged) + 1
    catalogue.commit([{"op": "create_tenant", "tenant": "after"}])
    directory.close()
    reader = DataDirectory.open(path, files=PlainFiles(flush=False), read_only=True)
    assert Catalogue.open(reader).state == catalogue.state


def sweep(root: Path, seed: int | None) -> int:
    """Crash at the first call, at the second, ... until one run ends; the number of crashes."""
    for crash_at in range(10_000):
        root.mkdir()
        files = SimulatedFiles(str(root), crash_at=crash_at)
        acknowledged: list[str] = []
        folder = str(root / "new" / "folder")
        try:
            run(files, folder, acknowledged)
            shutil.rmtree(root)
            return crash_at
        except Crash:
            pass
        chance = None if seed is None else random.Random(seed * 10_000 + crash_at)
        files.power_cut(chance)
        check(folder, acknowledged)
        shutil.rmtree(root)
    raise AssertionError("the sweep did not end")


@pytest.mark.parametrize("seed", [None, *seeds(2)])
def test_a_crash_at_every_call_loses_nothing_acknowledged(tmp_path: Path, seed: int | None) -> None:
    print("seed", seed)
    assert sweep(tmp_path / "root", seed) > 70


class Careless(SimulatedFiles):
    """Does not flush directories: the planted bug that the sweep must find."""

    def flush_directory(self, path: str) -> None:
        self._step("flush_directory", path)


def test_the_sweep_finds_a_missing_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sweep.__globals__, "SimulatedFiles", Careless)
    with pytest.raises(AssertionError):
        sweep(tmp_path / "root", None)
