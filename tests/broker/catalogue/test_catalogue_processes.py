"""The catalogue with several writers, interrupted ones and a failing disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import (
    FILES,
    TOPIC,
    append_by_hand,
    commits,
    create,
    open_folder,
    read_folder,
)
from plain_files import PlainFiles
from simulated_files import SimulatedFiles

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import (
    AlreadyClosed,
    CatalogueError,
    FolderOwnedError,
    ForkedError,
    NotAllowedError,
    StorageError,
    StorageFullError,
)

Child = Callable[..., "subprocess.Popen[str]"]


def test_an_older_owner_is_fenced(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    append_by_hand(tmp_path, [{"op": "open_epoch", "epoch": 9}])
    for _ in range(2):
        with pytest.raises(FolderOwnedError, match="epoch 9 was begun"):
            create(catalogue, "x")
    assert len(commits(tmp_path)) == 2


def test_who_joins_needs_the_epoch_of_the_owner(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    helper = Catalogue.join(directory, 1, ids=[catalogue.allocate_id() for _ in range(2)])
    create(helper, "from helper")
    create(catalogue, "from owner")
    with pytest.raises(CatalogueError, match="exists already"):
        create(helper, "from owner")
    helper.refresh()
    assert helper.state == catalogue.state
    with pytest.raises(NotAllowedError, match="no ids left"):
        helper.allocate_id()
    with pytest.raises(FolderOwnedError):
        Catalogue.join(directory, 2)
    directory.close()
    directory, _ = open_folder(tmp_path)
    with pytest.raises(FolderOwnedError):
        create(Catalogue.join(directory, 1, ids=[50]), "late")


def test_an_id_taken_by_another_process_is_refused_or_made_anew(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    mine = catalogue.allocate_id()
    helper = Catalogue.join(directory, 1, ids=[mine])  # a mistake of the owner
    theirs = helper.allocate_id()
    catalogue.commit([{"op": "create_topic", "topic": TOPIC + "a", "topic_id": mine}])
    wanted = {"op": "create_topic", "topic": TOPIC + "b"}
    with pytest.raises(CatalogueError, match="in use"):
        helper.commit([{**wanted, "topic_id": theirs}])
    catalogue.commit([{"op": "create_topic", "topic": TOPIC + "c", "topic_id": 2}])
    helper.commit(lambda state: [{**wanted, "topic_id": state.next_id}])
    topic = helper.topic(TOPIC + "b")
    assert topic is not None
    assert topic.topic_id == 3


def test_a_writer_that_slept_through_two_checkpoints_does_not_win(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    helper = Catalogue.join(directory, 1, ids=[100])
    sleeper = Catalogue.join(directory, 1)
    for number in range(20):
        create(catalogue, f"t{number}")
    assert commits(tmp_path)[0].name > "2".zfill(20)
    assert create(helper, "late") == 22
    helper.refresh()
    catalogue.refresh()
    assert helper.state == catalogue.state == read_folder(tmp_path).state
    assert commits(tmp_path)[0].name > "2".zfill(20)
    # The moment between its link and its looking round: readers must not take the stale file.
    log = sleeper._log
    commit = log.prepare(1, "w", [{"op": "create_tenant", "tenant": "stale"}])
    (tmp_path / "catalogue" / f"{commit.number:020d}.commit").write_bytes(commit.data)
    lagging = sleeper
    lagging.refresh()
    assert lagging.state == catalogue.state == read_folder(tmp_path).state


RACE = """
import sys
from plain_files import PlainFiles
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.catalogue.catalogue import Catalogue
path, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
directory = DataDirectory.open(path, files=PlainFiles(flush=False), read_only=True)
catalogue = Catalogue.join(directory, 1)
print("ready", flush=True)
sys.stdin.readline()
for turn in range(count):
    name = f"persistent://public/default/{who}-{turn}"
    catalogue.commit(
        lambda state: [{"op": "create_topic", "topic": name, "topic_id": state.next_id}]
    )
print("done", flush=True)
"""


def test_processes_that_race_lose_no_commit(tmp_path: Path, run_child: Child) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=7)
    children = [run_child(RACE, tmp_path, who, 60) for who in ("a", "b")]
    for child in children:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for turn in range(60):
        name = f"{TOPIC}owner-{turn}"
        catalogue.commit(
            lambda state, name=name: [  # type: ignore[misc]
                {"op": "create_topic", "topic": name, "topic_id": state.next_id}
            ]
        )
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "done\n"
    catalogue.refresh()
    wanted = {f"{TOPIC}{who}-{turn}" for who in ("a", "b", "owner") for turn in range(60)}
    assert set(catalogue.topic_names()) == wanted
    assert catalogue.state.number == 181
    ids = [topic.topic_id for topic in catalogue.state.topics.values()]
    assert sorted(ids) == list(range(1, 181))
    assert read_folder(tmp_path).state == catalogue.state


def test_threads_share_one_catalogue(tmp_path: Path) -> None:
    _, catalogue = open_folder(tmp_path, checkpoint_interval=10)
    failures: list[BaseException] = []

    def work(who: int) -> None:
        try:
            for turn in range(30):
                create(catalogue, f"{who}-{turn}")
                catalogue.topic_names("public/default")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(catalogue.topic_names()) == 120
    assert read_folder(tmp_path).state == catalogue.state


def test_use_after_close_and_after_fork(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            create(catalogue, "x")
        except ForkedError:
            catalogue.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    catalogue.close()
    catalogue.close()
    for use in (catalogue.refresh, catalogue.allocate_id, lambda: create(catalogue, "y")):
        with pytest.raises(AlreadyClosed):
            use()
    directory.close()


def test_a_child_forked_while_a_thread_commits_does_not_hang(tmp_path: Path) -> None:
    """It used to wait for a lock whose holder does not exist in the child."""
    _, catalogue = open_folder(tmp_path)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with catalogue._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        refused = 0
        for use in (catalogue.refresh, catalogue.allocate_id, lambda: create(catalogue, "x")):
            try:
                use()
            except ForkedError:
                refused += 1
        catalogue.close()
        os._exit(refused)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


@pytest.mark.parametrize("call", ["create", "take_name", "read", "flush_directory", "unlink"])
def test_an_interrupted_commit_is_there_or_not_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    files = PlainFiles(flush=False)
    _, catalogue = open_folder(tmp_path, files=files)
    create(catalogue, "before")
    whole = getattr(files, call)

    def interrupted(*arguments: Any, **named: Any) -> None:
        monkeypatch.undo()
        whole(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(files, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(catalogue, "interrupted")
    create(catalogue, "after")
    names = catalogue.topic_names()
    assert names in (
        [TOPIC + "before", TOPIC + "interrupted", TOPIC + "after"],
        [TOPIC + "before", TOPIC + "after"],
    )
    assert read_folder(tmp_path).state == catalogue.state
    assert not list((tmp_path / "catalogue").glob("*.tmp"))


@pytest.mark.parametrize("errno", [5, 28])
def test_a_failing_disk_at_every_call(tmp_path: Path, errno: int) -> None:
    """After a failed call either the commit is not there and the next one works, or none does."""
    poisoned = recovered = 0
    for fail_at in range(1000):
        path = tmp_path / str(fail_at)
        DataDirectory.open(str(path), files=FILES).close()
        files = SimulatedFiles(str(path))
        directory, catalogue = open_folder(path, files=files, checkpoint_interval=3)
        files._fail_at = len(files.calls) + fail_at
        kept: list[str] = []
        unknown: list[str] = []
        for number in range(8):
            name = f"t{number}"
            try:
                create(catalogue, name)
                kept.append(TOPIC + name)
            except StorageError as error:
                if isinstance(error, CatalogueError):
                    unknown.append(TOPIC + name)
                    poisoned += 1
                else:
                    assert isinstance(error, StorageFullError) == (errno == 28) or fail_at >= 0
                    recovered += 1
        assert catalogue.topic_names() == kept
        catalogue.close()
        directory.close()
        found = read_folder(path).topic_names()
        assert found[: len(kept)] == kept
        assert set(found[len(kept) :]) <= set(unknown[:1])
        if files._fail_at >= len(files.calls):
            break
        shutil.rmtree(path)
    else:
        pytest.fail("the sweep did not end")
    assert poisoned and recovered
