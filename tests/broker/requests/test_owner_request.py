"""ask_owner where nobody owns the folder: this process does, for just the request."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess

import pulsarx
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.owner_lock import OwnerInfo
from pulsarx.broker.requests import owner_request
from pulsarx.broker.requests.owner_request import ask_owner

LISTENER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_ctrl_c_leaves_and_the_owner_for_a_moment_ends_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, it would leave the folder locked for as long as this process lives."""
    folder = tmp_path / "data"
    right = owner_request.perform
    answers = []

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(200_000))  # bytecode, where the main thread would notice
        answers.append(right(*arguments))
        return answers[0]

    pulsarx.Client(folder).close()
    monkeypatch.setattr(owner_request, "perform", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    with pulsarx.Client(folder) as client:
        assert client.admin.topics.get_list("public/default") == ["persistent://public/default/t"]
    assert len(answers) == 1


def test_an_owner_that_dies_late_is_asked_again_until_somebody_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it took: patience begins anew when an owner that was asked is gone."""
    folder = tmp_path / "data"
    monkeypatch.setattr(owner_request, "_PATIENCE_MS", 50)
    whole = owner_request._ask_once
    turns = iter(range(10))

    def ask_once(*arguments: Any) -> Any:
        if next(turns) == 0:
            threading.Event().wait(0.2)
            raise owner_request._Unanswered("gone")
        return whole(*arguments)

    pulsarx.Client(folder, durability="os").close()
    monkeypatch.setattr(owner_request, "_ask_once", ask_once)
    assert ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})["created"]


def test_an_owner_that_comes_just_when_there_was_none_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    whole = DataDirectory.owner
    looks: list[OwnerInfo | None] = []

    def owner(self: DataDirectory) -> OwnerInfo | None:
        looks.append(whole(self) if looks else None)
        return looks[-1]

    with ChildProcess(LISTENER, folder) as other:
        other.line()
        before = sorted(os.listdir(folder / "catalogue"))
        monkeypatch.setattr(DataDirectory, "owner", owner)
        assert ask_owner(folder, "topics.ensure", {"topic": "t", "partitions": 0})["created"]
        assert len(looks) == 2
        # The topic's commit, and no epoch of a second owner.
        assert len(os.listdir(folder / "catalogue")) == len(before) + 1


def test_who_opens_read_only_meanwhile_does_not_become_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to take the folder from the owner for a moment, and keep it."""
    folder = tmp_path / "data"
    right = owner_request.perform
    begun, late = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert late.wait(30)
        return right(*arguments)

    pulsarx.Client(folder).close()
    monkeypatch.setattr(owner_request, "perform", slow)
    arguments = {"topic": "t", "partitions": 0}
    asking = threading.Thread(target=ask_owner, args=(folder, "topics.ensure", arguments))
    asking.start()
    assert begun.wait(30)
    threading.Timer(0.2, late.set).start()
    with pulsarx.Client(folder, read_only=True) as client:
        asking.join()
        assert DataDirectory.open(str(folder), files=FileSystem(), read_only=True).owner() is None
        assert client.admin.topics.get_list("public/default") == ["persistent://public/default/t"]
