"""Facts about `pulsarx.backups.check`: which damage of a folder it tells, and that it changes
nothing."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from damaged_ledgers import flip, frame_offsets, ledger_paths
from support.killed_owners import left_by_kill

import pulsarx
from pulsarx import BrokerOptions, InitialPosition, errors
from pulsarx.backups import check, restore
from pulsarx.backups.contents import Contents, Damage
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

SMALL = BrokerOptions(
    managed_ledger_max_entries_per_ledger=5,
    broker_deduplication_enabled=True,
    broker_deduplication_entries_interval=2,
)


def opened(folder: Path) -> pulsarx.Client:
    return pulsarx.Client(folder, durability="os", broker_options=SMALL)


def publish(client: pulsarx.Client, count: int) -> None:
    with client.create_producer("t", "p") as producer:
        for number in range(count):
            producer.send(b"%d" % number * 10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sealed ledgers of five entries and one of two, a subscription, its deduplication."""
    path = tmp_path / "f"
    with opened(path) as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        publish(client, 12)
        consumer.acknowledge(consumer.receive())
    return path


def spoil(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def spoil_both_copies(path: Path, at: int) -> None:
    spoil(path, at)
    spoil(path, 4096 + at)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def counted(found: Contents) -> tuple[int, int, int, int, int]:
    return found.topics, found.subscriptions, found.ledgers, found.messages, found.missing_messages


def places(found: Contents) -> list[tuple[Any, ...]]:
    return [(each.what, each.entry_id, each.entries, each.messages) for each in found.damage]


# What is whole ------------------------------------------------------------------------------------


def test_a_whole_folder_has_no_damage_and_stays_as_it_is(folder: Path):
    before = files_of(folder)
    found = check(folder)
    assert counted(found) == (1, 1, 3, 12, 0)
    assert found.damage == []
    assert found.bytes == sum(len(each) for each in before.values())
    assert files_of(folder) == before


def test_it_is_checked_beside_its_owner(folder: Path):
    with opened(folder) as client:
        publish(client, 3)
        assert counted(check(folder)) == (1, 1, 4, 15, 0)
        client.admin.topics.create_partitioned_topic("parts", 3)
        client.subscribe("parts", "s")
        assert counted(check(folder))[:2] == (4, 4)
        assert check(folder).damage == []


KILLED = """
import sys
import pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t")
client.subscribe("t", "s")
for number in range(10):
    producer.send(b"%d" % number)
print("sent")
sys.stdin.readline()
"""


@pytest.mark.standard
def test_another_process_is_the_owner_and_what_its_kill_leaves_is_no_damage(tmp_path: Path):
    with ChildProcess(KILLED, tmp_path / "f") as child:
        assert child.line() == "sent"
        assert counted(check(tmp_path / "f")) == (1, 1, 1, 10, 0)
        child.kill()
    found = check(tmp_path / "f")
    assert counted(found) == (1, 1, 1, 10, 0)
    assert found.damage == []
    (ledger,) = ledger_paths(tmp_path / "f")
    with open(ledger, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")  # behind the last entry
    assert check(tmp_path / "f").damage == []


def test_what_goes_while_it_is_read_is_no_damage(folder: Path):
    with opened(folder) as client:
        seen: list[int] = []

        def delete(done: int, total: int) -> None:
            if not seen:
                client.admin.topics.delete("t", force=True)
                inspect(client).settle()
            seen.append(done)

        publish(client, 1)
        found = check(folder, progress=delete)
    assert seen == sorted(seen)
    assert found.damage == []


def test_a_compacted_topic_is_checked(tmp_path: Path):
    with opened(tmp_path / "f") as client:
        with client.create_producer("t") as producer:
            for number in range(30):
                producer.send(b"%d" % number, partition_key=f"k{number % 3}")
        client.admin.topics.trigger_compaction("t")
        inspect(client).settle()
        assert check(tmp_path / "f").damage == []
        record = inspect(client).catalogue.state.topics["persistent://public/default/t"].compaction
    (path,) = (tmp_path / "f" / "ledgers").rglob(f"{record.ledger_id}.ledger")
    # One copy of its header: nothing said that there was one left.
    spoil(path, 2048 + 20)
    assert places(check(tmp_path / "f")) == [("compacted ledger", None, 0, 0)]
    spoil(path, 2048 + 20)
    flip(path, 1, "payload")
    found = check(tmp_path / "f")
    assert places(found) == [("compacted entries", 1, 1, 1)]
    assert found.missing_messages == 0  # the topic has them
    path.unlink()
    assert places(check(tmp_path / "f")) == [("compacted ledger", None, 0, 3)]


# Damage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["payload", "frame"])
@pytest.mark.parametrize("entry", [0, 2, 4])
def test_a_damaged_entry_is_told_with_its_place(folder: Path, entry: int, place: str):
    path = ledger_paths(folder)[1]
    begin, end = frame_offsets(path)[entry : entry + 2]
    flip(path, entry, place)
    found = check(folder)
    (damage,) = found.damage
    assert damage == Damage(
        "entries",
        os.path.relpath(path, folder),
        damage.text,
        topic="persistent://public/default/t",
        ledger_id=int(path.stem),
        entry_id=entry,
        entries=1,
        offset=begin,
        size=end - begin,
        messages=1,
    )
    assert f"entry {entry} of ledger {path.stem}" in damage.text
    assert counted(found) == (1, 1, 3, 12, 1)


def test_places_of_one_ledger_are_told_apart(folder: Path):
    path = ledger_paths(folder)[0]
    at = frame_offsets(path)
    spoil(path, at[0] + 80)
    spoil(path, at[2] + 20)
    spoil(path, at[3] + 20)
    assert places(check(folder)) == [("entries", 0, 1, 1), ("entries", 2, 2, 2)]


def test_a_damaged_batch_misses_all_its_messages(tmp_path: Path):
    with opened(tmp_path / "f") as client:
        client.create_producer("t").send_many([b"a", b"b", b"c"])
        client.create_producer("t").send(b"d")
    (path,) = ledger_paths(tmp_path / "f")
    flip(path, 0, "payload")
    found = check(tmp_path / "f")
    assert places(found) == [("entries", 0, 1, 3)]
    assert (found.messages, found.missing_messages) == (4, 3)


def test_a_ledger_that_was_cut_misses_the_rest(folder: Path):
    path = ledger_paths(folder)[0]
    os.truncate(path, frame_offsets(path)[3])
    found = check(folder)
    assert [each.what for each in found.damage] == ["ledger", "entries"]
    assert places(found)[1] == ("entries", 3, 2, 2)
    assert found.missing_messages == 2


def test_a_missing_ledger_misses_all(folder: Path):
    path = ledger_paths(folder)[1]
    path.unlink()
    found = check(folder)
    assert places(found) == [("ledger", None, 0, 5)]
    assert found.damage[0].file == os.path.relpath(path, folder)
    assert (found.messages, found.missing_messages) == (12, 5)


def test_a_ledger_of_another_folder_is_told(folder: Path, tmp_path: Path):
    with opened(tmp_path / "g") as client:
        publish(client, 12)
    path, other = ledger_paths(folder)[0], ledger_paths(tmp_path / "g")[0]
    path.write_bytes(other.read_bytes())
    assert places(check(folder)) == [("ledger", None, 0, 5)]


def test_a_header_that_went_costs_no_message(folder: Path):
    path = ledger_paths(folder)[0]
    data = bytearray(path.read_bytes())
    data[:4096] = bytes(4096)
    path.write_bytes(data)
    found = check(folder)
    assert {each.what for each in found.damage} == {"ledger"}
    assert found.missing_messages == 0


def test_what_the_owner_has_open_is_read_too(folder: Path):
    with opened(folder) as client:
        publish(client, 2)
        path = ledger_paths(folder)[-1]
        if path.stat().st_size <= 4096:
            path = ledger_paths(folder)[-2]
        with open(path, "r+b") as file:
            file.seek(4096 + 80)
            file.write(b"\xff\xff")
        found = check(folder)
    assert places(found) == [("entries", 0, 1, 1)]


@pytest.mark.parametrize("what", ["cursor", "missing cursor", "sequences"])
def test_what_else_is_damaged_misses_no_message(folder: Path, what: str):
    (cursor,) = (folder / "cursors").iterdir()
    (sequences,) = (folder / "deduplication").iterdir()
    if what == "missing cursor":
        cursor.unlink()
    else:
        spoil(cursor if what == "cursor" else sequences, 90 if what == "sequences" else 20)
    found = check(folder)
    assert {each.what for each in found.damage} == {what.split()[-1]}
    assert found.missing_messages == 0
    if what != "sequences":
        assert found.damage[0].subscription == "s"


def test_a_damaged_commit_is_told_though_another_file_stands_for_it(folder: Path):
    for number in range(3):  # so that there are two checkpoints
        with opened(folder) as client:
            for each in range(12):
                client.admin.topics.create_non_partitioned_topic(f"more-{number}-{each}")
    (_, checkpoint) = sorted((folder / "catalogue").glob("*.checkpoint"))
    covered = [each for each in (folder / "catalogue").glob("*.commit") if each < checkpoint]
    spoil_both_copies(covered[0], 100)
    (damage,) = check(folder).damage
    assert (damage.what, damage.file) == ("commit", f"catalogue/{covered[0].name}")
    assert len(check(folder).damage) == 1 and check(folder).topics == 37
    spoil(checkpoint, 100)
    assert [each.what for each in check(folder).damage] == ["commit", "checkpoint", "catalogue"]


def test_a_catalogue_that_cannot_be_read_is_damage(folder: Path):
    with opened(folder) as client:
        client.subscribe("other", "s")
    with opened(folder):
        pass
    commit = sorted((folder / "catalogue").glob("*.commit"))[-2]
    spoil_both_copies(commit, 100)
    assert [each.what for each in check(folder).damage] == ["commit", "catalogue"]


def test_a_commit_that_was_not_flushed_and_is_lost_is_no_damage(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """As a snapshot of a volume has it, or a power cut leaves it. It was told as damage, so that
    such a snapshot could not be restored."""
    left = tmp_path / "left"
    with opened(folder) as client:
        client.create_producer("late")
        left_by_kill(client, left)
    (said,) = (left / "catalogue").glob("*.unflushed")
    os.truncate(left / "catalogue" / f"{said.stem}.commit", 0)
    found = check(left)
    assert (found.damage, found.topics) == ([], 1)
    assert "after a power cut" in caplog.text
    assert restore(left, tmp_path / "restored").messages == 12
    said.unlink()  # it was flushed
    assert [each.what for each in check(left).damage] == ["commit", "catalogue"]


def test_a_commit_that_messages_came_behind_is_lost_by_no_power_cut(folder: Path, tmp_path: Path):
    """A topic's ledger comes with a commit that is flushed. Its loss was taken for that of a power
    cut where a commit before it had not been flushed, and a restore left the messages out."""
    left = tmp_path / "left"
    with opened(folder) as client:
        client.create_producer("late").send(b"late")
        left_by_kill(client, left)
    assert list((left / "catalogue").glob("*.unflushed"))
    commits = sorted((left / "catalogue").glob("*.commit"))
    while b"add_ledger" not in commits[-1].read_bytes():  # a ledger may be prepared by now
        commits.pop().unlink()
    os.truncate(commits[-1], 0)
    assert [each.what for each in check(left).damage] == ["commit"]
    with pytest.raises(errors.CorruptDataError):
        restore(left, tmp_path / "restored")


def test_a_commit_of_which_a_power_cut_left_one_copy_is_no_damage(folder: Path, tmp_path: Path):
    left = tmp_path / "left"
    with opened(folder) as client:
        client.create_producer("late")
        left_by_kill(client, left)
    (said,) = (left / "catalogue").glob("*.unflushed")
    os.truncate(left / "catalogue" / f"{said.stem}.commit", 4096)
    assert check(left).damage == []


@pytest.mark.parametrize("copy", [0, 4096])
@pytest.mark.parametrize("what", ["marker", "commit"])
def test_one_damaged_copy_is_told_and_costs_nothing(folder: Path, what: str, copy: int):
    commit = sorted((folder / "catalogue").glob("*.commit"))[-1]
    spoil(folder / "PULSARX" if what == "marker" else commit, copy + 20)
    before = files_of(folder)
    (damage,) = check(folder).damage
    assert damage.what == what and damage.messages == 0
    assert damage.file == ("PULSARX" if what == "marker" else f"catalogue/{commit.name}")
    assert "the other one" in damage.text
    assert files_of(folder) == before
    with opened(folder):
        pass
    assert [each.what for each in check(folder).damage] == ([] if what == "marker" else ["commit"])


def test_commits_of_two_histories_are_told(folder: Path, tmp_path: Path):
    shutil.copytree(folder, tmp_path / "other")
    for path, topic in ((folder, "a"), (tmp_path / "other", "b")):
        for _ in range(2):
            with opened(path) as client:
                client.subscribe(topic, "s")
    last = sorted((folder / "catalogue").glob("*.commit"))[-1]
    shutil.copy(tmp_path / "other" / "catalogue" / last.name, last)
    assert "does not follow" in check(folder).damage[0].text


# What cannot be read ------------------------------------------------------------------------------


def test_a_device_that_fails_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A page that cannot be read would end the process where it is read as memory."""
    refused = ledger_paths(folder)[1]
    preadv = os.preadv

    def fail(descriptor: int, rooms: Any, at: int) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(refused):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(descriptor, rooms, at)

    monkeypatch.setattr(os, "preadv", fail)
    found = check(folder)
    assert places(found) == [("entries", 0, 5, 5)]
    assert "Input/output error" in found.damage[0].text


def test_a_file_that_may_not_be_read_is_no_damage(folder: Path):
    with fault_plan() as plan:
        calls = 0

        def then_refuse(done: int, total: int) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:  # behind the catalogue
                plan.fail("open", call=4, error=errno.EACCES, sticky=True)

        with pytest.raises(errors.StorageError, match="Permission denied"):
            check(folder, progress=then_refuse)


@pytest.mark.parametrize("call", ["open", "fstat", "path.getsize"])
def test_a_call_that_the_system_refuses_is_said_as_one_of_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
):
    """Each of them came out as a bare OSError."""

    def refuse(*_: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{call}", refuse)
        with pytest.raises(errors.StorageError) as told:
            check(folder)
    assert "Input/output error" in str(told.value)


def test_a_process_with_too_many_files_open_finds_no_damage(folder: Path):
    """Each ledger was told as damaged."""
    with fault_plan() as plan:
        plan.fail("open", call=6, error=errno.EMFILE, sticky=True)
        with pytest.raises(errors.StorageError, match="Too many open files"):
            check(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(errors.FolderError):
            check(path)


def test_an_interrupted_check_gives_the_folder_up(folder: Path):
    class Stop(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        check(folder, progress=stop)
    with opened(folder) as client:
        client.admin.topics.delete("t", force=True)


def test_progress_is_told_in_bytes(folder: Path):
    told: list[tuple[int, int]] = []
    check(folder, progress=lambda *each: told.append(each))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0
    assert all(done < total for done, total in told[:-1])


def test_a_ledger_that_goes_while_it_is_opened_is_read_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """As an owner that trims it does."""
    opens = os.open

    def gone(path: Any, *arguments: Any) -> int:
        if str(path).endswith(".ledger"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return opens(path, *arguments)

    monkeypatch.setattr(os, "open", gone)
    assert counted(check(folder)) == (1, 1, 3, 12, 0)
    flip(ledger_paths(folder)[0], 1, "payload")
    assert places(check(folder)) == [("entries", 1, 1, 1)]


def test_a_catalogue_that_is_missing_is_damage(folder: Path):
    for each in (folder / "catalogue").iterdir():
        each.unlink()
    assert [each.what for each in check(folder).damage] == ["catalogue"]
    (folder / "catalogue").rmdir()
    assert [each.what for each in check(folder).damage] == ["catalogue"]


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES])
@pytest.mark.parametrize("what", ["commit", "sequences"])
def test_a_small_file_that_cannot_be_read_is_damage_unless_it_may_not_be(
    folder: Path, what: str, error: int, monkeypatch: pytest.MonkeyPatch
):
    from pulsarx.backups import proof

    decode = proof.catalogue_file_decode

    def refuse(kind: str, folder_id: str, path: str, data: bytes) -> Any:
        if kind == what:
            raise OSError(error, os.strerror(error), path)
        return decode(kind, folder_id, path, data)

    monkeypatch.setattr(proof, "catalogue_file_decode", refuse)
    if error == errno.EACCES:
        with pytest.raises(errors.StorageError, match="Permission denied"):
            check(folder)
    else:
        assert {each.what for each in check(folder).damage} == {what}
