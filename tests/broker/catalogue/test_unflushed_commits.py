"""Facts about commits without a flush: a kill loses none, a power cut takes at most the end of
them, and whatever it leaves, the folder opens and has all that was durable."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from plain_files import PlainFiles
from seeds import calls, seeds
from simulated_files import Crash, SimulatedFiles

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.file import TEMPORARY_SUFFIX
from pulsarx.broker.catalogue.kept_log import keep_log, take_log
from pulsarx.broker.catalogue.log import FLUSHED_ONE_BY_ONE
from pulsarx.broker.folder.copies import BLOCK_SIZE
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.folder_marker import MARKER_NAME
from pulsarx.errors import CatalogueError

TOPIC = "persistent://public/default/"


class Progress:
    """What was done when the power failed."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.durable = 0  # so many of them must be there


def create(catalogue: Catalogue, name: str, *, flush: bool) -> None:
    creation = {"op": "create_topic", "topic": name, "topic_id": catalogue.allocate_id()}
    catalogue.commit([creation], flush=flush)


def work(catalogue: Catalogue, progress: Progress, steps: str) -> None:
    """u: a commit without a flush, c: one with, f: flush, p: checkpoint, x: close."""
    for step in steps:
        if step in "uc":
            progress.begun.append(f"{TOPIC}t{len(progress.begun)}")
            create(catalogue, progress.begun[-1], flush=step == "c")
        elif step == "f":
            catalogue.flush()
        elif step == "p":
            catalogue.checkpoint()
        else:
            catalogue.close()
        if step != "u":
            progress.durable = len(progress.begun)


def run(files: SimulatedFiles, path: str, progress: Progress, steps: str) -> None:
    """k: the owner is killed, and another one comes."""
    for part in steps.split("k"):
        own(files, path, progress, part)


def own(files: SimulatedFiles, path: str, progress: Progress, steps: str) -> None:
    directory = DataDirectory.open(path, files=files)
    try:
        # Long ones collect more commits than are flushed one by one.
        interval = 3 if len(steps) <= FLUSHED_ONE_BY_ONE else 100
        catalogue = Catalogue.open(directory, checkpoint_interval=interval)
        progress.begun = catalogue.topic_names()
        progress.durable = len(progress.begun)  # by the first commit of the owner
        work(catalogue, progress, steps)
    finally:
        directory.close()


def check(path: str, progress: Progress) -> None:
    """A reader finds all that was durable before an owner comes, and the owner the same."""
    reader = DataDirectory.open(path, files=PlainFiles(flush=False), read_only=True)
    before = Catalogue.open(reader).topic_names()
    assert before == progress.begun[: len(before)]
    assert len(before) >= progress.durable
    directory = DataDirectory.open(path, files=PlainFiles(flush=False))
    catalogue = Catalogue.open(directory)
    assert catalogue.topic_names() == before
    create(catalogue, f"{TOPIC}after", flush=False)
    create(catalogue, f"{TOPIC}later", flush=True)
    catalogue.close()
    directory.close()
    again = Catalogue.open(DataDirectory.open(path, files=PlainFiles(flush=False), read_only=True))
    assert again.state == catalogue.state
    assert not list(Path(path, "catalogue").glob("*.unflushed"))


def crashed(root: Path, path: str, crash_at: int, chance: random.Random | None, steps: str) -> Any:
    """Open, do the steps, die at this call, and lose the power; None: it ended before."""
    files = SimulatedFiles(str(root), crash_at=crash_at)
    for each in sorted(root.rglob("*")):
        files.is_durable(str(each))
    progress = Progress()
    try:
        run(files, path, progress, steps)
    except Crash:
        files.power_cut(chance)
        return progress
    return None


MANY = "u" * (FLUSHED_ONE_BY_ONE + 2)
STEPS = (
    "uuucuup", "ucucuf", f"{MANY}cu", "uufuucux", "cuuuu", "uuukuk", "ukuckuu", f"{MANY}ku"
)  # fmt: skip

SEEDS = [None, *seeds(6)]
SEEDS_OF_DAMAGE = seeds(8)


@pytest.mark.standard
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", STEPS)
def test_a_power_cut_at_every_call_leaves_all_that_was_durable(
    tmp_path: Path, steps: str, seed: int | None
) -> None:
    print("seed", seed)
    root = tmp_path / "root"
    for crash_at in calls(seed, SEEDS):
        root.mkdir()
        path = str(root / "folder")
        chance = None if seed is None else random.Random(seed * 10_000 + crash_at)
        progress = crashed(root, path, crash_at, chance, steps)
        if progress is None:
            break
        if Path(path, MARKER_NAME).exists():
            check(path, progress)
        else:
            assert not progress.durable
        shutil.rmtree(root)
    assert crash_at > 30


@pytest.mark.standard
@pytest.mark.parametrize("seed", seeds(60))
def test_power_cuts_while_the_next_owner_takes_over_leave_all_that_was_durable(
    tmp_path: Path, seed: int
) -> None:
    """Three owners in a row, each of which may die at any call."""
    print("seed", seed)
    chance = random.Random(seed)
    path = str(tmp_path / "folder")
    names: list[str] = []
    durable = 0
    for _ in range(3):
        files = SimulatedFiles(str(tmp_path), crash_at=chance.randrange(25, 90))
        for each in sorted(tmp_path.rglob("*")):
            files.is_durable(str(each))
        progress = Progress()
        progress.begun, progress.durable = names, durable
        try:
            run(files, path, progress, "".join(chance.choices("uuuuuucfp", k=30)))
        except Crash:
            pass
        files.power_cut(chance)
        names, durable = progress.begun, progress.durable
    check(path, progress)


@pytest.mark.standard
@pytest.mark.parametrize("seed", SEEDS_OF_DAMAGE)
def test_power_cuts_while_what_was_lost_is_set_aside_leave_a_folder_that_opens(
    tmp_path: Path, seed: int
) -> None:
    """The first commit without a flush is damaged, so there is nothing to flush but names."""
    root, path = tmp_path / "root", str(tmp_path / "root" / "folder")
    for crash_at in calls(seed, SEEDS_OF_DAMAGE):
        root.mkdir()
        directory = DataDirectory.open(path, files=PlainFiles(flush=False))
        work(Catalogue.open(directory), Progress(), "cuuu")
        directory.close()
        commits(Path(path))[2].write_bytes(b"")
        chance = random.Random(seed * 10_000 + crash_at)
        if crashed(root, path, crash_at, chance, "") is None:
            break
        assert names_of(Path(path)) == ["t0"]
        shutil.rmtree(root)
    assert crash_at > 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five topics without a flush behind one with; the owner was killed."""
    directory = DataDirectory.open(str(tmp_path), files=PlainFiles(flush=False))
    work(Catalogue.open(directory), Progress(), "cuuuuu")
    directory.close()
    return tmp_path


def commits(folder: Path) -> list[Path]:
    return sorted((folder / "catalogue").glob("*.commit"))


def names_of(folder: Path, *, read_only: bool = False) -> list[str]:
    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False), read_only=read_only)
    try:
        return [each.removeprefix(TOPIC) for each in Catalogue.open(directory).topic_names()]
    finally:
        directory.close()


def test_a_kill_loses_none(folder: Path) -> None:
    assert names_of(folder) == ["t0", "t1", "t2", "t3", "t4", "t5"]


@pytest.mark.parametrize("left", [b"", b"PULSARX COMM", None])
def test_what_a_power_cut_took_is_left_out_and_said_and_kept_aside(
    folder: Path, left: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    lost = commits(folder)[4]
    if left is None:
        lost.unlink()
    else:
        lost.write_bytes(left)
    with caplog.at_level(logging.WARNING, "pulsarx"):
        assert names_of(folder, read_only=True) == ["t0", "t1", "t2"]
    assert "after a power cut" in caplog.text and lost.name in caplog.text
    assert names_of(folder) == ["t0", "t1", "t2"]
    assert len(list((folder / "catalogue").glob("*.lost"))) == (2 if left is None else 3)
    assert names_of(folder) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("copy", [0, 1])
def test_the_next_owner_writes_a_commit_anew_of_which_a_power_cut_left_one_copy(
    folder: Path, copy: int
) -> None:
    """It stayed as it was, so `check` told of damage for ever."""
    commit = commits(folder)[3]
    whole = commit.read_bytes()
    first, second = whole[:BLOCK_SIZE], whole[BLOCK_SIZE:]
    torn = [bytes(BLOCK_SIZE) + second, first + bytes(len(second))][copy]
    commit.write_bytes(torn)
    assert names_of(folder) == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert commit.read_bytes() == whole


@pytest.mark.parametrize("call", ["create", "rename"])
def test_a_commit_that_cannot_be_written_anew_leaves_no_temporary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """It took room of a full disk until the next owner came."""
    commit = commits(folder)[3]
    torn = commit.read_bytes()[:BLOCK_SIZE]
    commit.write_bytes(torn)
    before = sorted((folder / "catalogue").iterdir())

    def refuse(_: PlainFiles, path: str, *rest: Any, **__: Any) -> None:
        Path(path).write_bytes(b"a part")
        patched.undo()  # there is room again for the first commit of the owner
        raise OSError(28, "No space left on device")

    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False))
    with monkeypatch.context() as patched:
        patched.setattr(PlainFiles, call, refuse)
        catalogue = Catalogue.open(directory)
    assert commit.read_bytes() == torn
    left = [path for path in (folder / "catalogue").iterdir() if path not in before]
    assert not [path for path in left if path.name.endswith(TEMPORARY_SUFFIX)]
    assert len(catalogue.topic_names()) == 6
    directory.close()


def test_the_next_owner_makes_many_durable_as_one_file(tmp_path: Path) -> None:
    directory = DataDirectory.open(str(tmp_path), files=PlainFiles(flush=False))
    work(Catalogue.open(directory), Progress(), MANY)
    directory.close()
    assert not list((tmp_path / "catalogue").glob("*.checkpoint"))
    expected = [f"t{number}" for number in range(len(MANY))]
    assert names_of(tmp_path) == expected
    assert len(list((tmp_path / "catalogue").glob("*.checkpoint"))) == 1
    assert names_of(tmp_path, read_only=True) == expected


def test_a_damaged_commit_that_was_flushed_is_refused_as_ever(folder: Path) -> None:
    flushed = commits(folder)[1]
    flushed.write_bytes(b"")
    with pytest.raises(CatalogueError, match=flushed.name):
        names_of(folder)


def test_a_damaged_commit_in_front_of_one_that_was_flushed_is_refused(folder: Path) -> None:
    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False))
    work(Catalogue.open(directory), Progress(), "")
    catalogue = Catalogue.open(directory)
    create(catalogue, f"{TOPIC}unflushed", flush=False)
    create(catalogue, f"{TOPIC}flushed", flush=True)
    create(catalogue, f"{TOPIC}last", flush=False)
    directory.close()
    commits(folder)[-3].write_bytes(b"")
    with pytest.raises(CatalogueError, match=commits(folder)[-3].name):
        names_of(folder)


def test_a_damaged_commit_under_a_checkpoint_is_refused(tmp_path: Path) -> None:
    """The checkpoint was durable, so no power cut took what it says; it is damaged, too."""
    directory = DataDirectory.open(str(tmp_path), files=PlainFiles(flush=False))
    work(Catalogue.open(directory), Progress(), "cupuupuu")
    directory.close()
    newest = sorted((tmp_path / "catalogue").glob("*.checkpoint"))[-1]
    newest.write_bytes(b"")
    commits(tmp_path)[-3].write_bytes(b"")
    with pytest.raises(CatalogueError, match=r"\.(commit|checkpoint) is damaged"):
        names_of(tmp_path)


def test_a_reader_that_left_out_what_was_lost_may_look_again(folder: Path) -> None:
    commits(folder)[4].write_bytes(b"")
    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False), read_only=True)
    reader = Catalogue.open(directory)
    reader.refresh()
    assert names_of(folder) == ["t0", "t1", "t2"]
    reader.refresh()
    assert reader.state.epoch == 2 and len(reader.topic_names()) == 3


def test_a_kept_log_knows_that_what_was_lost_is_set_aside(folder: Path) -> None:
    """An owner that went on with it took commits of the owner before it for lost ones."""
    commits(folder)[4].write_bytes(b"")
    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False), read_only=True)
    reader = Catalogue.open(directory)
    reader.close()
    log = reader.part_with_log()
    assert log is not None
    keep_log(directory, log)
    assert names_of(folder) == ["t0", "t1", "t2"]  # of an owner in another process
    other = DataDirectory.open(str(folder), files=PlainFiles(flush=False))
    create(Catalogue.open(other), f"{TOPIC}new", flush=False)
    other.close()
    directory = DataDirectory.open(str(folder), files=PlainFiles(flush=False))
    taken = take_log(directory)
    assert taken is log
    assert len(Catalogue.open(directory, log=taken).topic_names()) == 4
    directory.close()
    assert names_of(folder) == ["t0", "t1", "t2", "new"]


class Hurried(PlainFiles):
    """Its first listing lacks a commit that is being made meanwhile."""

    listings = 0

    def list(self, path: str) -> list[str]:
        self.listings += 1
        names = sorted(super().list(path))
        return [each for each in names if self.listings > 1 or "5.commit" not in each]


def test_what_a_listing_lacks_that_was_made_meanwhile_is_not_lost(folder: Path) -> None:
    files = Hurried(flush=False)
    directory = DataDirectory.open(str(folder), files=files, read_only=True)
    assert len(Catalogue.open(directory).topic_names()) == 6


def test_a_damaged_commit_after_close_is_refused(tmp_path: Path) -> None:
    directory = DataDirectory.open(str(tmp_path), files=PlainFiles(flush=False))
    work(Catalogue.open(directory), Progress(), "cuux")
    directory.close()
    commits(tmp_path)[-1].write_bytes(b"")
    with pytest.raises(CatalogueError, match=commits(tmp_path)[-1].name):
        names_of(tmp_path)


def test_a_helper_makes_durable_what_the_owner_did_not_flush(tmp_path: Path) -> None:
    files = SimulatedFiles(str(tmp_path))
    path = str(tmp_path / "folder")
    directory = DataDirectory.open(path, files=files)
    owner = Catalogue.open(directory)
    work(owner, Progress(), "uuu")
    helper = Catalogue.join(directory, owner.epoch, ids=owner.allocate_ids(1))
    create(helper, f"{TOPIC}t3", flush=False)  # not the owner, so it flushes all the same
    directory.close()
    files.power_cut(None)
    assert names_of(Path(path)) == ["t0", "t1", "t2", "t3"]


@pytest.mark.parametrize("call", ["create", "flush_file", "flush_directory"])
def test_a_disk_that_refuses_a_flush_refuses_the_commit_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    files = PlainFiles(flush=False)
    directory = DataDirectory.open(str(tmp_path), files=files)
    catalogue = Catalogue.open(directory)
    work(catalogue, Progress(), "uu")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(Exception, match="commit to"):
        patched.setattr(files, call, refuse)
        create(catalogue, f"{TOPIC}refused", flush=True)
    assert [each.removeprefix(TOPIC) for each in catalogue.topic_names()] == ["t0", "t1"]
    create(catalogue, f"{TOPIC}t2", flush=True)
    directory.close()
    assert names_of(tmp_path) == ["t0", "t1", "t2"]


class Careless(SimulatedFiles):
    """Says that it flushed files: the planted bug that the sweep must find."""

    def flush_file(self, path: str) -> None:
        self._step("flush_file", path)


def test_the_sweep_finds_a_missing_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = test_a_power_cut_at_every_call_leaves_all_that_was_durable
    monkeypatch.setitem(sweep.__globals__, "SimulatedFiles", Careless)
    with pytest.raises((AssertionError, CatalogueError)):
        sweep(tmp_path, "ucucuf", None)
