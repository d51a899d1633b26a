"""Ends of transactions behind the last commit: written in place, read by others, crashed at every
call, damaged in every byte."""

from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import FILES, commits, create, open_folder, read_folder
from plain_files import PlainFiles
from seeds import seeds
from simulated_files import Crash, SimulatedFiles

from pulsarx.broker.catalogue import changes, end_log
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.log import CatalogueLog
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import (
    CatalogueError,
    FolderOwnedError,
    NewerFormatError,
    StorageError,
    StorageFullError,
)

MANY = 10_000  # transactions that may be used


def opened(path: Path, **options: Any) -> tuple[DataDirectory, Catalogue]:
    directory, catalogue = open_folder(path, **options)
    if not catalogue.state.next_transaction:
        catalogue.commit([changes.reserve_transactions(MANY)])
    return directory, catalogue


def end(catalogue: Catalogue, number: int, *, committed: bool = True, flush: bool = True) -> int:
    def operations(state: CatalogueState) -> list[dict[str, Any]]:
        return [
            changes.end_transaction(
                number,
                committed=committed,
                order=state.last_end + 1,
                ended_ms=1000 + number,
                messages={},
                acknowledged=[[7, [[3, number, 1]], None]],
            )
        ]

    return catalogue.commit(operations, flush=flush)


def ended(catalogue: Catalogue) -> list[int]:
    return list(catalogue.state.ended)


def the_file(path: Path) -> Path:
    (found,) = (path / "catalogue").glob("*.end*")
    return found


def leave(directory: DataDirectory) -> None:
    """As a kill would."""
    directory.close()


def test_an_end_makes_no_file_and_is_seen_by_everybody(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    reader = read_folder(tmp_path)
    count = len(commits(tmp_path))
    assert not reader.has_new_ends()
    for number in range(5):
        end(catalogue, number)
        assert reader.has_new_ends()
        reader.refresh()
        assert not reader.has_new_ends()
        assert ended(reader) == list(range(number + 1))
        assert reader.state == catalogue.state == read_folder(tmp_path).state
    assert len(commits(tmp_path)) == count
    leave(directory)
    directory, catalogue = opened(tmp_path)
    assert ended(catalogue) == [0, 1, 2, 3, 4]
    assert len(commits(tmp_path)) == count + 1  # that of the epoch, which has them
    assert not list((tmp_path / "catalogue").glob("*.end*"))
    directory.close()


def test_a_commit_repeats_them(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    reader = read_folder(tmp_path)
    end(catalogue, 0)
    end(catalogue, 1)
    create(catalogue, "t")
    the_file(tmp_path).unlink()
    reader.refresh()
    assert reader.state == catalogue.state == read_folder(tmp_path).state
    assert ended(reader) == [0, 1]
    directory.close()


def test_more_than_fit_into_the_file_are_committed(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path, checkpoint_interval=10**6)
    reader = read_folder(tmp_path)
    for number in range(500):
        end(catalogue, number)
        if number % 37 == 0:
            reader.refresh()
            assert reader.state == catalogue.state
    assert 3 <= len(commits(tmp_path)) < 20
    assert the_file(tmp_path).stat().st_size == end_log.FILE_SIZE
    reader.refresh()
    assert reader.state == catalogue.state == read_folder(tmp_path).state
    leave(directory)
    directory, again = opened(tmp_path)
    assert ended(again) == list(range(500))
    directory.close()


def test_one_that_does_not_fit_at_all_is_a_commit(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    many = [[7, [[3, 2 * number, 1] for number in range(10_000)], None]]
    number = catalogue.commit(
        lambda state: [
            changes.end_transaction(
                0,
                committed=True,
                order=state.last_end + 1,
                ended_ms=1,
                messages={},
                acknowledged=many,
            )
        ]
    )
    assert commits(tmp_path)[-1].name == f"{number:020d}.commit"
    assert read_folder(tmp_path).state == catalogue.state
    directory.close()


def test_a_checkpoint_has_them_and_so_have_commits_behind_it(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    reader = read_folder(tmp_path)  # which goes on by commits
    end(catalogue, 0)
    catalogue.checkpoint()
    end(catalogue, 1)
    assert ended(read_folder(tmp_path)) == [0, 1]
    create(catalogue, "t")
    reader.refresh()
    assert reader.state == catalogue.state == read_folder(tmp_path).state
    directory.close()


def test_programs_that_know_no_transactions_refuse_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsarx.broker.catalogue import file

    directory, catalogue = opened(tmp_path)
    catalogue.checkpoint()
    directory.close()
    monkeypatch.setitem(file._READ, "checkpoint", ("1", "2"))
    with pytest.raises(NewerFormatError, match="of version 3"):
        read_folder(tmp_path)


def test_closing_leaves_no_file(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    end(catalogue, 0)
    catalogue.close()
    directory.close()
    assert not list((tmp_path / "catalogue").glob("*.end*"))
    assert ended(read_folder(tmp_path)) == [0]


def test_commits_of_helpers_come_between(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    reader = read_folder(tmp_path)
    end(catalogue, 0)
    helper = Catalogue.join(
        DataDirectory.open(str(tmp_path), files=FILES, read_only=True), catalogue.epoch
    )
    helper.commit([{"op": "create_tenant", "tenant": "of-helper"}])
    end(catalogue, 1)
    reader.refresh()
    assert ended(reader) == [0, 1] and "of-helper" in reader.state.tenants
    create(catalogue, "t")
    helper.refresh()
    reader.refresh()
    assert reader.state == catalogue.state == helper.state == read_folder(tmp_path).state
    directory.close()


def test_closing_behind_a_commit_of_a_helper_leaves_no_file(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    end(catalogue, 0, flush=False)
    helper = Catalogue.join(
        DataDirectory.open(str(tmp_path), files=FILES, read_only=True), catalogue.epoch
    )
    helper.commit([{"op": "create_tenant", "tenant": "of-helper"}])
    catalogue.close()
    directory.close()
    assert not list((tmp_path / "catalogue").glob("*.end*"))
    assert ended(read_folder(tmp_path)) == [0]


def test_an_owner_that_was_replaced_writes_none(tmp_path: Path) -> None:
    """It may have been stopped for so long that its lock was taken for one of a dead machine."""
    directory, catalogue = opened(tmp_path)
    end(catalogue, 0)
    log = read_folder(tmp_path)._log
    log.take_over()  # as the next owner does first
    with pytest.raises((CatalogueError, FolderOwnedError)):
        end(catalogue, 1)
    with pytest.raises((CatalogueError, FolderOwnedError)):
        create(catalogue, "t")
    directory.close()
    assert ended(read_folder(tmp_path)) == [0]


def test_an_owner_that_was_replaced_before_its_first_one_writes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, stopped = opened(tmp_path)
    directory.close()
    monkeypatch.setattr(DataDirectory, "check_usable", lambda _: None)
    directory, owner = opened(tmp_path)
    with pytest.raises(FolderOwnedError):
        end(stopped, 0)
    end(owner, 1)
    assert ended(read_folder(tmp_path)) == ended(owner) == [1]
    directory.close()


def test_the_first_one_written_just_before_the_next_epoch_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, stopped = opened(tmp_path)
    directory.close()
    monkeypatch.setattr(DataDirectory, "check_usable", lambda _: None)
    taken_over = CatalogueLog.take_over

    def take_over(log: CatalogueLog) -> None:
        taken_over(log)
        if not ended(stopped):
            end(stopped, 0)  # the next owner has looked, and not committed

    monkeypatch.setattr(CatalogueLog, "take_over", take_over)
    directory, owner = opened(tmp_path)
    assert ended(stopped) == ended(owner) == [0]
    with pytest.raises((CatalogueError, FolderOwnedError)):
        end(stopped, 1)
    end(owner, 2)
    assert ended(read_folder(tmp_path)) == [0, 2]
    leave(directory)
    assert ended(opened(tmp_path)[1]) == [0, 2]


# What readers meet --------------------------------------------------------------------------------


class Reading(PlainFiles):
    """Of a reader that is refused once, or reads while the owner writes."""

    def __init__(self) -> None:
        super().__init__(flush=False)
        self.lists = 0  # until one is refused
        self.before = b""
        self.changed_from = 0  # what comes of the file behind this place was there before

    def list(self, path: str) -> list[str]:
        self.lists -= 1
        if self.lists == 0:
            raise OSError(errno.EMFILE, "as planted", path)
        return super().list(path)

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        data = super().read_at(path, offset, size)
        kept = max(0, self.changed_from - offset)
        return data[:kept] + self.before[offset + kept : offset + size] if self.before else data


def read_by(files: Reading, path: Path) -> Catalogue:
    return Catalogue.open(DataDirectory.open(str(path), files=files, read_only=True))


def test_a_reader_that_was_refused_misses_none(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    files = Reading()
    reader = read_by(files, tmp_path)
    for number in range(4):
        end(catalogue, number)
        files.lists = 1 + number % 2
        with pytest.raises(StorageError):
            reader.refresh()
        reader.refresh()
        assert ended(reader) == ended(catalogue)
    directory.close()


@pytest.mark.parametrize("commit", [False, True])
def test_one_that_is_half_there_is_read_later(tmp_path: Path, commit: bool) -> None:
    directory, catalogue = opened(tmp_path)
    numbers = iter(range(MANY))
    for _ in range(6):  # of which some are left behind all that follow
        end(catalogue, next(numbers))
    size = len(the_file(tmp_path).read_bytes().rstrip(b"\0")) // 6
    for part in range(0, size, 16):
        create(catalogue, f"t{part}")
        for _ in range(3):
            end(catalogue, next(numbers))
        files = Reading()
        reader = read_by(files, tmp_path)
        reader.refresh()
        files.before = the_file(tmp_path).read_bytes()
        if commit:
            create(catalogue, f"u{part}")
        files.changed_from = catalogue._log.ends._at + part
        end(catalogue, next(numbers))
        reader.refresh()
        files.before = b""
        reader.refresh()
        assert ended(reader) == ended(catalogue), part
    directory.close()


def test_a_reader_reads_what_is_new_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, catalogue = opened(tmp_path, checkpoint_interval=10**6)
    reader = read_folder(tmp_path)
    for number in range(300):
        end(catalogue, number)
    reader.refresh()
    reads = []
    decode = end_log.catalogue_file_decode
    monkeypatch.setattr(
        end_log, "catalogue_file_decode", lambda *given: (reads.append(1), decode(*given))[1]
    )
    for number in range(300, 400):
        end(catalogue, number)
        reader.refresh()
    assert ended(reader) == ended(catalogue)
    assert len(reads) <= 4 * 100  # both copies, and one of before the last commit
    directory.close()


# What is damaged ----------------------------------------------------------------------------------


def three_ends(path: Path) -> tuple[bytes, CatalogueState, int]:
    """The bytes of a file of three, the state with them, and where the third begins."""
    directory, catalogue = opened(path)
    sizes = []
    for number in range(3):
        end(catalogue, number)
        data = the_file(path).read_bytes()
        sizes.append(len(data.rstrip(b"\0")))
    leave(directory)
    return data, catalogue.state, -(-sizes[1] // 64) * 64


def test_each_byte_may_be_damaged(tmp_path: Path) -> None:
    data, state, _ = three_ends(tmp_path)
    place = the_file(tmp_path)
    size = len(data.rstrip(b"\0"))
    for at in range(0, size, 3):
        place.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert read_folder(tmp_path).state == state, at
    place.write_bytes(data)
    for at in range(size - 1, 0, -1):  # cut by a kill
        place.write_bytes(data[:at] + bytes(len(data) - at))
        found = read_folder(tmp_path)
        assert ended(found) == list(range(found.state.last_end))


def test_what_is_written_over_in_part_is_no_damage(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    numbers = iter(range(MANY))
    for count in (9, 5, 3, 2, 1, 4, 1):
        for number in (next(numbers) for _ in range(count)):
            catalogue.commit(
                [
                    changes.end_transaction(
                        number,
                        committed=True,
                        order=number + 1,
                        ended_ms=1,
                        messages={},
                        acknowledged=[[7, [[3, each, 1] for each in range(3 * count)], None]],
                    )
                ]
            )
            found = the_file(tmp_path).read_bytes()
            assert not end_log.end_log_fault(directory.folder_id, "file", found)
        create(catalogue, f"t{number}")
    end(catalogue, next(numbers))
    end(catalogue, next(numbers))
    found = the_file(tmp_path).read_bytes()
    damaged = found[:80] + b"?" + found[81:]
    assert "damaged" in end_log.end_log_fault(directory.folder_id, "file", damaged)
    directory.close()


def test_what_is_lost_between_others_is_told(tmp_path: Path) -> None:
    data, _, third = three_ends(tmp_path)
    second = data.index(b'"order":2')
    place = the_file(tmp_path)
    place.write_bytes(data[: second - 100] + bytes(third - second + 100) + data[third:])
    with pytest.raises(CatalogueError, match="end 2 of a transaction"):
        read_folder(tmp_path)


def test_the_last_ones_that_were_not_flushed_may_be_lost(tmp_path: Path) -> None:
    directory, catalogue = opened(tmp_path)
    end(catalogue, 0)
    for number in (1, 2, 3):
        end(catalogue, number, flush=False)
    leave(directory)
    place = the_file(tmp_path)
    data = place.read_bytes()
    first = data.index(b'"order":2') // 64 * 64 - 64
    last = data.index(b'"order":4') // 64 * 64 - 64
    place.write_bytes(data[:first] + bytes(last - first) + data[last:])
    assert ended(read_folder(tmp_path)) == [0]


@pytest.mark.parametrize("kept", [(3,), (4,), (2, 4)])
def test_an_owner_opens_where_ends_that_were_not_flushed_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: tuple[int, ...]
) -> None:
    directory, catalogue = opened(tmp_path)
    end(catalogue, 0)
    for number in (1, 2, 3):
        end(catalogue, number, flush=False)
    leave(directory)
    place = the_file(tmp_path)
    data = place.read_bytes()
    starts = [data.index(b'"order":%d' % order) // 64 * 64 - 64 for order in (2, 3, 4)]
    for order, first, last in zip((2, 3, 4), starts, [*starts[1:], len(data)], strict=True):
        if order not in kept:
            data = data[:first] + bytes(last - first) + data[last:]
    place.write_bytes(data)
    left = [0, 1] if 2 in kept else [0]
    assert ended(read_folder(tmp_path)) == left
    monkeypatch.setattr(end_log.EndLog, "forget_old", lambda *_: None)  # the disk refuses it
    directory, catalogue = opened(tmp_path)
    assert ended(catalogue) == left
    for number in (11, 12, 13):
        end(catalogue, number)
        assert ended(read_folder(tmp_path)) == ended(catalogue) == [*left, *range(11, number + 1)]
    leave(directory)
    directory, catalogue = opened(tmp_path)
    assert ended(catalogue) == [*left, 11, 12, 13]
    directory.close()


def test_flushing_makes_those_durable_that_were_not_flushed(tmp_path: Path) -> None:
    files = SimulatedFiles(str(tmp_path))
    folder = tmp_path / "folder"
    directory, catalogue = opened(folder, files=files)
    for number in range(3):
        end(catalogue, number, flush=False)
    catalogue.flush()
    catalogue.commit([{"op": "create_tenant", "tenant": "t"}], flush=False)
    end(catalogue, 3, flush=False)
    leave(directory)
    files.power_cut(None)
    assert ended(read_folder(folder)) == [0, 1, 2]


# What fails ---------------------------------------------------------------------------------------


class Failing(PlainFiles):
    def __init__(self) -> None:
        super().__init__(flush=False)
        self.write_error = 0
        self.writes_anyway = False
        self.clears_anyway = False

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        if self.write_error:
            if self.writes_anyway and (any(data) or self.clears_anyway):
                super().write_at(path, data, offset, flush)
            raise OSError(self.write_error, "as planted", path)
        super().write_at(path, data, offset, flush)


def test_one_that_there_is_no_room_for_was_not_written(tmp_path: Path) -> None:
    files = Failing()
    directory, catalogue = opened(tmp_path, files=files)
    end(catalogue, 0)
    files.write_error = errno.ENOSPC
    with pytest.raises(StorageFullError):
        end(catalogue, 1)
    assert ended(catalogue) == ended(read_folder(tmp_path)) == [0]
    files.write_error = 0
    end(catalogue, 1, committed=False)
    assert read_folder(tmp_path).state == catalogue.state
    directory.close()


@pytest.mark.parametrize("clears", [False, True])
def test_one_of_which_it_is_not_known_whether_it_was_written_is_the_last(
    tmp_path: Path, clears: bool
) -> None:
    files = Failing()
    files.clears_anyway = clears  # in what is read; the device may have it
    directory, catalogue = opened(tmp_path, files=files)
    end(catalogue, 0)
    files.write_error, files.writes_anyway = errno.EIO, True
    with pytest.raises(CatalogueError, match="Whether it was kept is unknown"):
        end(catalogue, 1)
    files.write_error = 0
    with pytest.raises(CatalogueError, match="Whether it was kept is unknown"):
        create(catalogue, "t")
    directory.close()


# Crashes ------------------------------------------------------------------------------------------

ENDS = 9
FITS = 3  # ends in a file


def run(files: SimulatedFiles, path: str, acknowledged: list[int]) -> None:
    directory = None
    try:
        directory = DataDirectory.open(path, files=files)
        catalogue = Catalogue.open(directory, checkpoint_interval=2)
        if not catalogue.state.next_transaction:
            catalogue.commit([changes.reserve_transactions(MANY)])
        for number in range(ENDS):
            if number not in catalogue.state.ended:
                end(catalogue, number)
            acknowledged.append(number)
            if number % 4 == 3:
                catalogue.commit([{"op": "create_tenant", "tenant": f"t{number}"}])
        catalogue.close()
    finally:
        if directory is not None:
            directory.close()


def check(path: str, acknowledged: list[int]) -> None:
    directory = DataDirectory.open(path, files=PlainFiles(flush=False))
    seen = Catalogue.open(DataDirectory.open(path, files=PlainFiles(flush=False), read_only=True))
    before = ended(seen)
    catalogue = Catalogue.open(directory)
    found = ended(catalogue)
    assert found == before == list(range(len(found)))
    assert len(acknowledged) <= len(found) <= len(acknowledged) + 1
    seen.refresh()
    assert seen.state == catalogue.state
    directory.close()


def sweep(root: Path, seed: int | None) -> int:
    """Crash at the first call, at the second, ... twice each; the number of crashes."""
    for crash_at in range(10_000):
        root.mkdir()
        folder = str(root / "folder")
        acknowledged: list[int] = []
        chance = None if seed is None else random.Random(seed * 10_000 + crash_at)
        files = SimulatedFiles(str(root), crash_at=crash_at)
        try:
            run(files, folder, acknowledged)
            shutil.rmtree(root)
            return crash_at
        except Crash:
            files.power_cut(chance)
        check(folder, acknowledged)
        shutil.rmtree(root)
    raise AssertionError("the sweep did not end")


@pytest.mark.parametrize("seed", [None, *seeds(2)])
def test_a_crash_at_every_call_loses_nothing_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    print("seed", seed)
    monkeypatch.setattr(end_log, "FILE_SIZE", FITS * 2 * 320)
    assert sweep(tmp_path / "root", seed) > 60


class Careless(SimulatedFiles):
    """Does not flush what is written in place: the planted bug that the sweep must find."""

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        super().write_at(path, data, offset, False)


def test_the_sweep_finds_a_missing_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sweep.__globals__, "SimulatedFiles", Careless)
    with pytest.raises(AssertionError):
        sweep(tmp_path / "root", None)
