"""Facts about processes and threads that open a folder at the same time, the first one among them.
Each order was found by four workers that opened a new folder while one of them was killed."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from child_process import ChildProcess

import pulsarx
from pulsarx.broker.folder import data_directory

OWNER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"one")
print("open")
sys.stdin.readline()
client.close()
"""


def test_a_folder_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, as data whose marker is missing."""
    pulsarx.Client(tmp_path / "f").close()
    read = data_directory.marker_read
    looks: list[Any] = []

    def not_yet(files: Any, path: str) -> Any:
        looks.append(path)
        return None if len(looks) == 1 else read(files, path)

    monkeypatch.setattr(data_directory, "marker_read", not_yet)
    with pulsarx.Client(tmp_path / "f") as client:
        client.create_producer("t").send(b"one")
    assert len(looks) > 1


def test_a_folder_whose_owner_has_published_nothing_yet_is_opened_beside_it(
    tmp_path: Path,
) -> None:
    """The owner makes the file `ends` after it has taken the lock."""
    folder = tmp_path / "f"
    with ChildProcess(OWNER, folder) as owner:
        assert owner.line() == "open"
        ends = folder / "ends"
        ends.rename(tmp_path / "ends")
        with pulsarx.Client(folder, read_only=True) as client:
            assert client.admin.topics.get_list("public/default") == [
                "persistent://public/default/t"
            ]
            (tmp_path / "ends").rename(ends)
            assert client.admin.topics.stats("t")["messages"] == 1


def test_a_folder_that_its_owner_is_just_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is taken before there is a marker."""
    folder = tmp_path / "f"
    read = data_directory.marker_read
    opening = data_directory.DataDirectory.open
    looks: list[bool] = []

    def open_it(path: str, *, read_only: bool = False, **options: Any) -> Any:
        looks.append(read_only)
        missing = read_only and looks.count(True) == 1
        monkeypatch.setattr(data_directory, "marker_read", lambda *_: None if missing else read(*_))
        return opening(path, read_only=read_only, **options)

    with ChildProcess(OWNER, folder) as owner:
        assert owner.line() == "open"
        monkeypatch.setattr(data_directory.DataDirectory, "open", open_it)
        with pulsarx.Client(folder) as client:
            assert client.admin.topics.stats("t")["messages"] == 1
    assert looks[:4] == [False, True, False, True]


def test_a_folder_is_opened_while_another_thread_loads_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "logging", ModuleType("logging"))
    client = pulsarx.Client(tmp_path / "f")
    client.create_producer("t").send(b"one")
    monkeypatch.setitem(sys.modules, "logging", logging)
    client.close()
