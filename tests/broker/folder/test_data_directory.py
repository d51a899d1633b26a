from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_files import PlainFiles

from pulsarx.broker.folder import data_directory
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.folder_marker import marker_bytes
from pulsarx.broker.folder.memory_directory import MemoryDirectory
from pulsarx.clock import Deadline
from pulsarx.errors import (
    AlreadyClosed,
    CorruptDataError,
    FolderError,
    FolderOwnedError,
    ForkedError,
    NewerFormatError,
    StorageError,
    StorageFullError,
)

FILES = PlainFiles(flush=False)
Child = Callable[..., "subprocess.Popen[str]"]

OWN = """
import sys
from plain_files import PlainFiles
from pulsarx.broker.folder.data_directory import DataDirectory
directory = DataDirectory.open(sys.argv[1], files=PlainFiles(), now_ms=77)
directory.announce(5, "/some/socket")
print("owned", flush=True)
sys.stdin.readline()
"""


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def open_owned(path: Path) -> DataDirectory:
    return DataDirectory.open(str(path), files=FILES)


def test_a_missing_folder_is_made_with_those_above(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    first = open_owned(folder)
    assert sorted(os.listdir(folder)) == ["LOCK", "PULSARX", "catalogue", "cursors", "ledgers"]
    assert len(first.folder_id) == 32
    first.close()
    first.close()
    second = open_owned(folder)
    assert second.folder_id == first.folder_id
    assert open_owned(tmp_path / "other").folder_id != first.folder_id


def test_paths(tmp_path: Path) -> None:
    directory = open_owned(tmp_path)
    assert directory.ledger_path(0x1234) == f"{tmp_path}/ledgers/34/4660.ledger"
    assert directory.cursor_path(9, 2) == f"{tmp_path}/cursors/9.2"
    for ledger_id in (3, 259, 4):
        Path(directory.prepare_ledger_path(ledger_id)).touch()
    Path(directory.cursor_path(9, 2)).touch()
    for stray in (
        "ledgers/03/x.ledger",
        "ledgers/03/5",
        "ledgers/y",
        "cursors/1.cursor",
        "cursors/a.b.cursor",
    ):
        (tmp_path / stray).touch()
    found = dict(directory.ledger_files())
    assert found == {one: directory.ledger_path(one) for one in (3, 259, 4)}
    assert list(directory.cursor_files()) == [(9, 2, directory.cursor_path(9, 2))]


def test_unknown_files_are_set_aside_and_never_replace_one_another(tmp_path: Path) -> None:
    directory = open_owned(tmp_path)
    for text in ("first", "second", "third"):
        path = Path(directory.prepare_ledger_path(3))
        path.write_text(text)
        directory.set_aside(str(path))
        assert not path.exists()
    kept = [path.read_text() for path in (tmp_path / "orphans").iterdir()]
    assert sorted(kept) == ["first", "second", "third"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for read_only in (True, False):
        with pytest.raises(FolderError, match="is a file"):
            DataDirectory.open(str(tmp_path / "file"), files=FILES, read_only=read_only)
        with pytest.raises(FolderError):
            DataDirectory.open(str(tmp_path / "file" / "x"), files=FILES, read_only=read_only)
        with pytest.raises(FolderError):
            DataDirectory.open("a\0b", files=FILES, read_only=read_only)


def test_a_folder_of_other_things_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_text("x")
    with pytest.raises(FolderError, match=r"not empty.*holiday\.jpg"):
        open_owned(tmp_path)
    assert os.listdir(tmp_path) == ["holiday.jpg"]


def test_data_without_its_marker_is_refused_untouched(tmp_path: Path) -> None:
    directory = open_owned(tmp_path)
    Path(directory.prepare_ledger_path(3)).touch()
    directory.close()
    (tmp_path / "PULSARX").unlink()
    with pytest.raises(FolderError, match="marker PULSARX is missing"):
        open_owned(tmp_path)
    assert not (tmp_path / "PULSARX").exists()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_format_is_refused(tmp_path: Path, read_only: bool) -> None:
    (tmp_path / "PULSARX").write_bytes(marker_bytes(2, "0" * 32))
    with pytest.raises(NewerFormatError, match="format 2"):
        DataDirectory.open(str(tmp_path), files=FILES, read_only=read_only)


def test_every_damage_of_the_marker_is_noticed(tmp_path: Path) -> None:
    open_owned(tmp_path).close()
    marker = tmp_path / "PULSARX"
    whole = marker.read_bytes()
    copy = whole[4096:]
    assert whole == copy + bytes(4096 - len(copy)) + copy
    damaged = [copy[:size] for size in range(len(copy))] + [b"\xff" * 100]
    for position in range(len(copy)):
        flipped = copy[:position] + bytes([copy[position] ^ 1]) + copy[position + 1 :]
        damaged.append(flipped + bytes(4096 - len(copy)) + flipped)
    for data in damaged:
        marker.write_bytes(data)
        with pytest.raises(CorruptDataError, match="PULSARX is damaged in both copies"):
            open_owned(tmp_path)
        assert marker.read_bytes() == data


def test_one_copy_of_the_marker_is_enough_and_the_owner_writes_both(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One bit made a folder of whole ledgers unusable."""
    open_owned(tmp_path).close()
    marker = tmp_path / "PULSARX"
    whole = marker.read_bytes()
    size = len(whole) - 4096
    damaged = [whole[:at] for at in range(size, len(whole))]
    damaged += [whole + b"x", bytes(4096) + whole[4096:], whole[:4096] + bytes(size)]
    for position in (*range(size + 10), *range(4090, len(whole))):
        damaged.append(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    for data in damaged:
        marker.write_bytes(data)
        DataDirectory.open(str(tmp_path), files=FILES, read_only=True).close()
        assert marker.read_bytes() == data
        caplog.clear()
        open_owned(tmp_path).close()
        assert marker.read_bytes() == whole
        assert "PULSARX is damaged" in caplog.text
    caplog.clear()
    open_owned(tmp_path).close()
    assert not caplog.text


@pytest.mark.parametrize("operation", ["create", "rename"])
def test_a_marker_that_cannot_be_mended_is_no_failure(tmp_path: Path, operation: str) -> None:
    open_owned(tmp_path).close()
    marker = tmp_path / "PULSARX"
    whole = marker.read_bytes()
    marker.write_bytes(whole[:100])

    class Full(PlainFiles):
        def create(
            self, path: str, data: bytes, exclusive: bool = True, flush: bool = True
        ) -> None:
            if operation == "create" and path.endswith(".tmp"):
                raise OSError(errno.ENOSPC, "No space left on device", path)
            super().create(path, data, exclusive, flush)

        def rename(self, source: str, target: str) -> None:
            if operation == "rename":
                raise OSError(errno.EIO, "Input/output error", source)
            super().rename(source, target)

    DataDirectory.open(str(tmp_path), files=Full()).close()
    open_owned(tmp_path).close()
    assert marker.read_bytes() == whole
    assert not list(tmp_path.glob("*.tmp"))


def test_read_only_needs_a_data_directory_and_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="does not exist"):
        DataDirectory.open(str(tmp_path / "none"), files=FILES, read_only=True)
    with pytest.raises(FolderError, match="not a PulsarX data directory"):
        DataDirectory.open(str(tmp_path), files=FILES, read_only=True)
    assert os.listdir(tmp_path) == []
    open_owned(tmp_path).close()
    before = tree(tmp_path)
    reader = DataDirectory.open(str(tmp_path), files=FILES, read_only=True)
    assert reader.owner() is None
    for forbidden in (lambda: reader.announce(1), lambda: reader.prepare_ledger_path(1)):
        with pytest.raises(FolderError, match="read-only"):
            forbidden()
    reader.close()
    assert tree(tmp_path) == before


def test_a_second_opening_in_this_process_is_refused(tmp_path: Path) -> None:
    first = open_owned(tmp_path)
    with pytest.raises(FolderOwnedError, match=f"this process already .pid {os.getpid()}"):
        open_owned(tmp_path)
    first.close()
    open_owned(tmp_path).close()
    lost = open_owned(tmp_path)
    del lost  # given up in another thread: Python in a finalizer could be cut by a signal
    deadline = Deadline(10_000)
    while True:
        try:
            open_owned(tmp_path)
            return
        except FolderOwnedError:
            assert deadline.remaining_ms()


def test_a_second_process_is_refused_until_the_owner_is_killed(
    tmp_path: Path, run_child: Child
) -> None:
    child = run_child(OWN, tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "owned\n"
    with pytest.raises(FolderOwnedError, match=rf"pid {child.pid}, epoch 5.*read_only=True"):
        open_owned(tmp_path)
    reader = DataDirectory.open(str(tmp_path), files=FILES, read_only=True)
    owner = reader.owner()
    assert owner is not None
    assert (owner.pid, owner.epoch, owner.started_ms) == (child.pid, 5, 77)
    assert owner.control_socket == "/some/socket"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert reader.owner() is None
    mine = open_owned(tmp_path)
    owner = mine.owner()
    assert owner is not None
    assert (owner.pid, owner.epoch, owner.control_socket) == (os.getpid(), 0, "")


FORK = """
import os, sys
from plain_files import PlainFiles
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import ForkedError
directory = DataDirectory.open(sys.argv[1], files=PlainFiles())
child = os.fork()
if child == 0:
    try:
        directory.announce(1)
        answer = "not refused"
    except ForkedError:
        answer = "refused"
    directory.close()
    print(answer, os.getpid(), flush=True)
    sys.stdin.readline()
    os._exit(0)
sys.stdin.readline()
"""


def test_a_process_that_is_just_started_keeps_no_lock_for_who_closes(tmp_path: Path) -> None:
    """Between fork and exec it has all descriptors; threads start programs at any moment."""
    first = open_owned(tmp_path)
    inherited = os.dup(first._lock_descriptor)
    try:
        first.close()
        open_owned(tmp_path).close()
    finally:
        os.close(inherited)


def test_a_forked_child_keeps_no_lock_for_a_dead_owner(tmp_path: Path, run_child: Child) -> None:
    owner = run_child(FORK, tmp_path)
    assert owner.stdout is not None
    answer, child_pid = owner.stdout.readline().split()
    try:
        assert answer == "refused"
        with pytest.raises(FolderOwnedError, match=f"pid {owner.pid}"):
            open_owned(tmp_path)  # the child's close gave nothing up
        owner.kill()
        owner.wait()
        os.kill(int(child_pid), 0)
        open_owned(tmp_path).close()
    finally:
        os.kill(int(child_pid), signal.SIGKILL)


def test_use_after_close(tmp_path: Path) -> None:
    for directory in (open_owned(tmp_path), MemoryDirectory("x")):
        directory.close()
        with pytest.raises(AlreadyClosed):
            directory.check_usable()
        with pytest.raises(AlreadyClosed):
            directory.announce(1)


def test_a_memory_directory_names_no_file() -> None:
    directory = MemoryDirectory("x", now_ms=3)
    assert directory.ledger_path(1) is directory.cursor_path(1, 1) is directory.ends_path is None
    assert directory.prepare_ledger_path(1) is None
    assert not list(directory.ledger_files())
    assert not list(directory.cursor_files())
    directory.announce(4)
    owner = directory.owner()
    assert owner is not None
    assert (owner.pid, owner.epoch) == (os.getpid(), 4)
    child = os.fork()
    if child == 0:
        try:
            directory.check_usable()
        except ForkedError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


UNPRIVILEGED = """
import errno, fcntl, json, struct  # a Python of root alone cannot be read any more afterwards
import os, sys
from plain_files import PlainFiles
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.errors import FolderError
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
path = sys.argv[1]
for place in (path, path + "/new"):
    try:
        DataDirectory.open(place, files=PlainFiles())
        print("opened")
    except FolderError as error:
        print(error)
reader = DataDirectory.open(path, files=PlainFiles(), read_only=True)
print("topics", len(Catalogue.open(reader).state.topics), reader.owner())
"""


def test_a_folder_one_may_not_write_opens_read_only(run_child: Child) -> None:
    with tempfile.TemporaryDirectory() as folder:
        open_owned(Path(folder)).close()
        for above, _, names in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(above, name), 0o444)
            os.chmod(above, 0o555)
        child = run_child(UNPRIVILEGED, folder)
        lines = child.communicate(timeout=60)[0].splitlines()
        os.chmod(folder, 0o755)
    assert "Permission denied" in lines[0]
    assert "read_only=True" in lines[0]
    assert "Permission denied" in lines[1]
    assert lines[2] == "topics 0 None"


class FullDevice(PlainFiles):
    """Has no room for the call of this number that makes something."""

    def __init__(self, call: int) -> None:
        super().__init__(flush=False)
        self.left = call

    def take(self, path: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        self.take(path)
        super().make_directory(path, mode)

    def create(self, path: str, data: bytes, exclusive: bool = True, flush: bool = True) -> None:
        self.take(path)
        super().create(path, data, exclusive, flush)

    def take_name(self, source: str, target: str) -> None:
        self.take(target)
        super().take_name(source, target)


class SeenFiles(PlainFiles):
    """Sees the permissions of each folder when it was only just made."""

    def __init__(self) -> None:
        super().__init__(flush=False)
        self.modes: dict[str, int] = {}

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        super().make_directory(path, mode)
        self.modes[path] = os.stat(path).st_mode & 0o777


def test_a_new_folder_is_private_from_its_first_moment(tmp_path: Path) -> None:
    """Rights were taken away after it was made: a kill in between left them for ever."""
    files = SeenFiles()
    folder = tmp_path / "above" / "shop"
    before = os.umask(0o022)
    try:
        DataDirectory.open(str(folder), files=files).close()
    finally:
        os.umask(before)
    assert files.modes.pop(str(folder)) == 0o700
    assert len(files.modes) > 2 and set(files.modes.values()) == {0o755}


def test_a_new_folder_on_a_full_device_is_a_full_device(tmp_path: Path) -> None:
    """The advice was to make it writable, or to open it with read_only=True."""
    call = 0
    while True:
        call += 1
        files = FullDevice(call)
        try:
            DataDirectory.open(str(tmp_path / str(call)), files=files).close()
        except StorageFullError as error:
            assert error.errno == errno.ENOSPC and "writable" not in str(error)
            open_owned(tmp_path / str(call)).close()  # once there is room
        else:
            assert files.left > 0
            break
    assert call > 5  # the folder, what is in it, the marker and its name


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_what_the_device_or_a_limit_refuses_is_not_said_to_be_a_matter_of_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(path: str) -> int:
        raise OSError(error, os.strerror(error), path)

    with monkeypatch.context() as patch:
        patch.setattr(data_directory, "owner_lock_take", refuse)
        with pytest.raises(StorageError) as told:
            open_owned(tmp_path / "f")
    assert isinstance(told.value, StorageFullError) == (error == errno.ENOSPC)
    assert os.strerror(error) in str(told.value) and "writable" not in str(told.value)
    open_owned(tmp_path / "f").close()
