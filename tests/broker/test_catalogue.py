from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from plain_files import PlainFiles
from simulated_files import SimulatedFiles

from pulsarx.broker.catalogue import Catalogue
from pulsarx.broker.catalogue_file import catalogue_file_encode
from pulsarx.broker.data_directory import DataDirectory
from pulsarx.broker.memory_directory import MemoryDirectory
from pulsarx.errors import (
    AlreadyClosed,
    CatalogueError,
    FolderError,
    FolderOwnedError,
    ForkedError,
    NewerFormatError,
    NotAllowedError,
    StorageError,
    StorageFullError,
)

FILES = PlainFiles(flush=False)
Child = Callable[..., "subprocess.Popen[str]"]
TOPIC = "persistent://public/default/"


def open_folder(path: Path, **options: Any) -> tuple[DataDirectory, Catalogue]:
    directory = DataDirectory.open(str(path), files=options.pop("files", FILES))
    return directory, Catalogue.open(directory, **options)


def read_folder(path: Path) -> Catalogue:
    return Catalogue.open(DataDirectory.open(str(path), files=FILES, read_only=True))


def create(catalogue: Catalogue, name: str) -> int:
    topic_id = catalogue.allocate_id()
    return catalogue.commit([{"op": "create_topic", "topic": TOPIC + name, "topic_id": topic_id}])


def commits(path: Path) -> list[Path]:
    return sorted((path / "catalogue").glob("*.commit"))


def checkpoints(path: Path) -> list[Path]:
    return sorted((path / "catalogue").glob("*.checkpoint"))


@pytest.fixture(params=["folder", "memory"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    if request.param == "memory":
        yield Catalogue.open(MemoryDirectory())
        return
    directory, opened = open_folder(tmp_path)
    yield opened
    opened.close()
    directory.close()


def test_a_new_folder_has_public_default_and_epoch_one(catalogue: Catalogue) -> None:
    assert catalogue.epoch == catalogue.state.epoch == catalogue.state.number == 1
    assert catalogue.namespace_policies("public/default") == {}
    assert catalogue.namespace_policies("public/other") is None
    assert catalogue.topic_names() == []


def test_life_of_a_topic(catalogue: Catalogue) -> None:
    name = TOPIC + "x"
    topic_id, ledger, next_ledger, cursor = (catalogue.allocate_id() for _ in range(4))
    catalogue.commit(
        [
            {"op": "create_topic", "topic": name, "topic_id": topic_id, "properties": {"a": "b"}},
            {"op": "add_ledger", "topic": name, "ledger_id": ledger, "uuid": "u1", "slot": 3},
            {"op": "create_subscription", "topic": name, "name": "s", "cursor_id": cursor},
        ]
    )
    before = catalogue.topic(name)
    assert before is not None
    assert (before.ledgers[0].slot, before.ledgers[0].state) == (3, "open")
    end = {"entry_count": 5, "message_count": 7, "size": 9, "first_publish_ms": 1}
    end |= {"last_publish_ms": 2, "sealed_ms": 3}
    catalogue.commit(
        [
            {"op": "seal_ledger", "topic": name, "ledger_id": ledger, **end},
            {"op": "add_ledger", "topic": name, "ledger_id": next_ledger, "uuid": "u2"},
            {"op": "set_topic_policy", "topic": name, "policy": "ttl", "value": 4},
        ]
    )
    topic = catalogue.topic(name)
    assert topic is not None
    assert before.ledgers[0].state == "open"  # whoever holds a record keeps its view
    sealed = topic.ledgers[0]
    assert (sealed.state, sealed.message_count, sealed.uuid, sealed.slot) == ("sealed", 7, "u1", -1)
    assert topic.policies == {"ttl": 4}
    assert topic.subscriptions["s"].cursor_id == cursor
    catalogue.commit(
        [
            {"op": "remove_ledgers", "topic": name, "ledger_ids": [ledger]},
            {"op": "remove_subscription", "topic": name, "name": "s"},
            {"op": "set_topic_policy", "topic": name, "policy": "ttl", "value": None},
        ]
    )
    topic = catalogue.topic(name)
    assert topic is not None
    assert [one.ledger_id for one in topic.ledgers] == [next_ledger]
    assert not topic.subscriptions and not topic.policies
    catalogue.commit([{"op": "delete_topic", "topic": name}])
    assert catalogue.topic(name) is None
    assert catalogue.allocate_id() > cursor


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "no such"},
        {"no": "op"},
        "text",
        {"op": "create_topic", "topic": TOPIC + "y"},
        {"op": "create_topic", "topic": TOPIC + "x", "topic_id": 100},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 1},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 0},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": True},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 2**70},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 100, "new": 1},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 100, "properties": []},
        {"op": "create_topic", "topic": "x", "topic_id": 100},
        {"op": "create_topic", "topic": "persistent://public/none/y", "topic_id": 100},
        {"op": "create_namespace", "namespace": "none/x"},
        {"op": "create_namespace", "namespace": "public/default"},
        {"op": "create_namespace", "namespace": "public"},
        {"op": "create_tenant", "tenant": "public"},
        {"op": "open_epoch", "epoch": 1},
        {"op": "delete_topic", "topic": TOPIC + "y"},
        {"op": "add_ledger", "topic": TOPIC + "x", "ledger_id": 100, "uuid": "u", "state": "?"},
        {"op": "remove_ledgers", "topic": TOPIC + "x", "ledger_ids": [100]},
        {"op": "remove_ledgers", "topic": TOPIC + "x", "ledger_ids": "no"},
        {"op": "remove_subscription", "topic": TOPIC + "x", "name": "s"},
        {"op": "set_partition_count", "topic": TOPIC + "x", "partition_count": 3},
        {"op": "set_namespace_policy", "namespace": "public/default", "policy": "p", "value": {1}},
        {"op": "set_namespace_policy", "namespace": "a/b", "policy": "p", "value": 1},
        {"op": "set_namespace_policy", "namespace": "a/b", "policy": "p", "value": float("nan")},
    ],
)
def test_what_does_not_fit_is_refused_whole(catalogue: Catalogue, operation: Any) -> None:
    create(catalogue, "x")
    before = catalogue.state.document()
    fine = {"op": "create_topic", "topic": TOPIC + "fine", "topic_id": catalogue.allocate_id()}
    with pytest.raises(CatalogueError, match="nothing was written") as caught:
        catalogue.commit([fine, operation])
    assert str(caught.value).count("Pulsar error") == 1
    assert catalogue.state.document() == before
    catalogue.commit([fine])


def test_what_the_caller_changes_later_changes_nothing(catalogue: Catalogue) -> None:
    properties = {"a": "b"}
    operation = {
        "op": "create_topic",
        "topic": TOPIC + "x",
        "topic_id": 9,
        "properties": properties,
    }
    catalogue.commit([operation])
    properties["a"] = "c"
    topic = catalogue.topic(TOPIC + "x")
    assert topic is not None
    assert topic.properties == {"a": "b"}
    assert catalogue.allocate_id() == 10


def test_partitions_only_become_more(catalogue: Catalogue) -> None:
    name = TOPIC + "p"
    catalogue.commit([{"op": "create_topic", "topic": name, "topic_id": 5, "partition_count": 2}])
    catalogue.commit([{"op": "set_partition_count", "topic": name, "partition_count": 4}])
    for count in (4, 3):
        with pytest.raises(CatalogueError, match="only become more"):
            catalogue.commit(
                [{"op": "set_partition_count", "topic": name, "partition_count": count}]
            )
    with pytest.raises(CatalogueError, match="belong to its partitions"):
        catalogue.commit([{"op": "add_ledger", "topic": name, "ledger_id": 6, "uuid": "u"}])


def test_names_by_namespace(catalogue: Catalogue) -> None:
    catalogue.commit(
        [{"op": "create_tenant", "tenant": "t"}, {"op": "create_namespace", "namespace": "t/n"}]
    )
    other = "non-persistent://t/n/y"
    create(catalogue, "x")
    catalogue.commit([{"op": "create_topic", "topic": other, "topic_id": catalogue.allocate_id()}])
    assert catalogue.topic_names("t/n") == [other]
    assert catalogue.topic_names() == [TOPIC + "x", other]


def test_a_thousand_commits_leave_a_short_log(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    for number in range(1000):
        assert create(catalogue, f"t{number}") == number + 2
    # The checkpoint grows, yet stays below what the commits it replaces fill on the device.
    assert len(commits(tmp_path)) <= 300
    assert len(checkpoints(tmp_path)) == 2
    state = catalogue.state
    assert read_folder(tmp_path).state == state
    catalogue.close()
    directory.close()
    directory, again = open_folder(tmp_path)
    assert again.epoch == 2
    assert again.topic_names() == [f"{TOPIC}t{number}" for number in range(1000)]
    assert again.allocate_id() == 1001
    assert not list((tmp_path / "catalogue").glob("*.tmp"))


def test_a_reader_follows_an_owner_through_checkpoints(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    near, far = read_folder(tmp_path), read_folder(tmp_path)
    for number in range(40):
        create(catalogue, f"t{number}")
        assert near.refresh() == catalogue.state.number
        assert near.state == catalogue.state
        if number % 17 == 0:
            far.refresh()
            assert far.state == catalogue.state
    with pytest.raises(FolderError, match="read-only"):
        create(near, "y")
    catalogue.close()
    directory.close()
    near.refresh()
    assert read_folder(tmp_path).state == near.state


def test_every_damage_of_a_commit_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    for number in range(3):
        create(catalogue, f"t{number}")
    directory.close()
    victim = commits(tmp_path)[1]
    whole = victim.read_bytes()
    damaged = [whole[:size] for size in range(len(whole))] + [whole + b"\n"]
    for position in range(len(whole)):
        damaged.append(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    for data in damaged:
        victim.write_bytes(data)
        with pytest.raises(CatalogueError, match=victim.name):
            read_folder(tmp_path)
    with pytest.raises(CatalogueError, match=victim.name):
        open_folder(tmp_path)
    assert victim.read_bytes() == data
    assert len(commits(tmp_path)) == 4
    victim.unlink()
    with pytest.raises(CatalogueError, match=f"{victim.name} is missing"):
        open_folder(tmp_path)
    shutil.copy(commits(tmp_path)[1], victim)
    with pytest.raises(CatalogueError, match=victim.name):
        open_folder(tmp_path)
    victim.write_bytes(whole)
    open_folder(tmp_path)


def test_a_commit_of_another_folder_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        directory, _ = open_folder(tmp_path / name)
        directory.close()
    shutil.copy(commits(tmp_path / "a")[0], commits(tmp_path / "b")[0])
    with pytest.raises(CatalogueError, match="another folder"):
        open_folder(tmp_path / "b")


def test_a_lost_catalogue_beside_data_is_no_new_folder(tmp_path: Path) -> None:
    directory, _ = open_folder(tmp_path)
    Path(directory.prepare_ledger_path(3)).touch()
    directory.close()
    shutil.rmtree(tmp_path / "catalogue")
    for opening in (open_folder, read_folder):
        with pytest.raises(CatalogueError, match="is empty although"):
            opening(tmp_path)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(12):
        create(catalogue, f"t{number}")
    directory.close()
    older, newest = checkpoints(tmp_path)
    newest.write_bytes(newest.read_bytes()[:-5])
    assert read_folder(tmp_path).state == catalogue.state
    older.write_bytes(b"")
    with pytest.raises(CatalogueError, match=newest.name):
        open_folder(tmp_path)


def test_folding_over_a_damaged_checkpoint_keeps_a_whole_one(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(12):
        create(catalogue, f"t{number}")
    directory.close()
    checkpoints(tmp_path)[-1].write_bytes(b"broken")
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(20, 32):
        create(catalogue, f"t{number}")
        assert read_folder(tmp_path).state == catalogue.state


def append_by_hand(path: Path, operations: list[dict[str, Any]]) -> None:
    reader = read_folder(path)
    state = reader.state
    number = state.number + 1
    document: dict[str, Any] = {"number": number, "previous": state.checksum, "epoch": state.epoch}
    document |= {"writer": "w", "operations": operations}
    folder_id = DataDirectory.open(str(path), files=FILES, read_only=True).folder_id
    data, _ = catalogue_file_encode("commit", folder_id, document)
    (path / "catalogue" / f"{number:020d}.commit").write_bytes(data)


@pytest.mark.parametrize(
    "operation",
    [{"op": "from the future"}, {"op": "create_tenant", "tenant": "t", "shape": "round"}],
)
def test_an_operation_of_a_newer_version_is_refused(tmp_path: Path, operation: Any) -> None:
    directory, _ = open_folder(tmp_path)
    append_by_hand(tmp_path, [operation])
    directory.close()
    with pytest.raises(NewerFormatError, match=r"00000000000000000002\.commit.*Upgrade"):
        open_folder(tmp_path)


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
from pulsarx.broker.data_directory import DataDirectory
from pulsarx.broker.catalogue import Catalogue
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
