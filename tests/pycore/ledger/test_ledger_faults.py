"""Full disks, failed writes and failed flushes of ledger files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ledger_files import append, make_ledger
from support.waiting import wait_until

from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.testing.faults import fault_plan

pytestmark = pytest.mark.usefixtures("nothing_forgotten")


def test_a_full_disk_refuses_and_works_again(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger")
    appended = 0
    with fault_plan() as plan:
        plan.fail("allocate", error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageFullError, match="ledger 5"):
            while True:
                append(writer, appended, 8000)
                appended += 1
        assert (
            writer.state == "open"
            and writer.entry_count == appended
            and writer.end <= writer.prepared_end
        )
        with pytest.raises(errors.StorageFullError):
            append(writer, appended, 8000)
        with pytest.raises(errors.StorageFullError):
            writer.seal()
        with pytest.raises(errors.StorageFullError):
            make_ledger(tmp_path / "other")
    assert writer.state == "open" and not (tmp_path / "other").exists()
    append(writer, appended, 8000)
    assert writer.seal().entry_count == appended + 1


def test_when_a_step_does_not_fit_the_exact_need_is_tried(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger")
    with fault_plan() as plan:
        plan.fail("allocate", error=errno.ENOSPC)  # the thread that prepares, which gives up then
        for number in range(5):
            append(writer, number, 8000)
        wait_until(lambda: plan.calls("allocate") == 1)
        plan.fail("allocate", error=errno.ENOSPC)  # a step of the appender's own
        plan.stall("allocate", 3)  # the thread again, which is asked behind the exact need
        append(writer, 5, 60_000)
        assert writer.prepared_end == writer.end
        plan.release()
    assert writer.state == "open"
    assert writer.seal().entry_count == 6


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from ledger_files import append, make_ledger
from pulsarx import errors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
for durability in ("os", "interval", "sync"):
    writer = make_ledger(sys.argv[1] + durability, durability=durability)
    count = 0
    try:
        while True:
            append(writer, count, 4000)
            count += 1
    except errors.StorageFullError:
        pass
    assert 60 < count < 75 and writer.state == "open", (count, writer.state)
    writer.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for more in range(100):
        append(writer, count, 4000)
    assert writer.seal().entry_count == count + 100
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
print("fine")
"""


def test_a_limit_of_the_system_acts_like_a_full_disk(tmp_path: Path) -> None:
    code = [
        sys.executable,
        "-c",
        FULL,
        str(tmp_path) + "/",
        os.path.dirname(os.path.dirname(__file__)),
    ]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("short", [False, True])
def test_a_failed_write_fences(tmp_path: Path, short: bool) -> None:
    writer = make_ledger(tmp_path / "ledger")
    entries = [append(writer, number) for number in range(3)]
    end = writer.end
    with fault_plan() as plan:
        plan.short_write() if short else plan.fail("write", late=True)
        with pytest.raises(
            errors.StorageError, match=r"append 46 bytes to ledger 5.*Input/output error"
        ):
            append(writer, 0)
    assert writer.state == "fenced" and writer.end == end and writer.slots.read(writer.slot)[3] == 3
    with pytest.raises(errors.StorageError):
        append(writer, 4)
    writer.flush()
    assert writer.durable_count == 3
    summary = writer.seal()
    file = LedgerFile.open(str(tmp_path / "ledger"), 5)
    assert summary.entry_count == 3 and file.summary() == summary
    got = file.entry(file.find_entry(2, end), end)
    assert got is not None and got[1] == entries[2]


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_an_entry_that_was_refused_is_not_recovered(
    tmp_path: Path, short: bool, durability: str
) -> None:
    """A write that stored all of an entry and failed all the same: after a kill the entry was
    there, though its producer was told that it is not, and had sent it again."""
    writer = make_ledger(tmp_path / "ledger", durability=durability)
    append(writer, 0)
    with fault_plan() as plan:
        plan.short_write() if short else plan.fail("write", late=True)
        with pytest.raises(errors.StorageError):
            append(writer, 1)
    recovery = LedgerFile.open(str(tmp_path / "ledger"), 5).recover()
    assert (recovery.entry_count, recovery.damaged_entries) == (1, 0)


def test_a_failed_flush_poisons_for_ever(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="sync")
    append(writer, 0)
    writer.flush()
    append(writer, 1)
    with fault_plan() as plan:
        plan.fail("flush")
        with pytest.raises(errors.LedgerPoisonedError, match="flush ledger 5"):
            writer.flush()
        for attempt in (writer.flush, lambda: append(writer, 2), writer.seal):
            with pytest.raises(errors.LedgerPoisonedError):
                attempt()
        assert plan.calls("flush") == 1
    writer.flush(1)
    assert writer.state == "poisoned" and writer.slots.read(writer.slot)[3] == 1
    writer.close()
    assert writer.state == "closed"


def test_all_who_wait_learn_of_a_failed_flush(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="sync")
    outcomes: list[str] = []
    with fault_plan() as plan:
        plan.stall("flush")
        plan.fail("flush", 2)
        append(writer, 0)
        leader = threading.Thread(target=outcome, args=(writer.flush, 1, outcomes))
        leader.start()
        wait_until(plan.stalled)
        append(writer, 1)
        followers = [
            threading.Thread(target=outcome, args=(writer.flush, 2, outcomes)) for _ in range(8)
        ]
        for thread in followers:
            thread.start()
        assert outcomes == []
        plan.release()
        for thread in [leader, *followers]:
            thread.join(60)
    assert sorted(outcomes) == ["LedgerPoisonedError"] * 8 + ["done"]


def outcome(call: object, argument: int, outcomes: list[str]) -> None:
    try:
        call(argument)  # type: ignore[operator]
        outcomes.append("done")
    except errors.PulsarException as error:
        outcomes.append(type(error).__name__)


def test_appends_go_on_while_a_flush_stalls(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="interval")
    with fault_plan() as plan:
        append(writer, 0)
        plan.stall("flush")
        thread = threading.Thread(target=writer.flush)
        thread.start()
        wait_until(plan.stalled)
        for number in range(1, 50):
            append(writer, number)
        assert writer.slots.read(writer.slot)[3] == 50 and writer.durable_count == 0
        plan.release()
        thread.join(60)
    assert writer.durable_count == 1


@pytest.mark.standard
def test_every_failing_call_of_a_ledgers_life(tmp_path: Path) -> None:
    """The n-th call of each operation fails, n = 1, 2, ...: nothing acknowledged is lost."""
    for durability in ("os", "sync"):
        for op in (
            "open",
            "write",
            "allocate",
            "flush",
            "flush_directory",
            "map",
            "punch_hole",
            "zeros",
        ):
            for call in range(1, 60):
                path = tmp_path / f"{durability}-{op}-{call}"
                acknowledged, failed = life(path, durability, op, call)
                check_life(path, acknowledged)
                if not failed:
                    break
            else:
                raise AssertionError(f"{op} never ran out of calls")


def life(path: Path, durability: str, op: str, call: int) -> tuple[list[bytes], bool]:
    acknowledged: list[bytes] = []
    waiting: list[bytes] = []
    failed = False
    with fault_plan() as plan:
        plan.fail(op, call, error=errno.ENOSPC if op == "allocate" else errno.EIO)
        try:
            writer = make_ledger(path, durability=durability, size_max=60_000)
            writer.map()
            for number in range(12):
                waiting.append(append(writer, number, 4000))
                if number % 4 == 3:
                    writer.flush()
                    acknowledged += waiting
                    waiting = []
            writer.seal()
        except errors.StorageError:
            failed = True
        failed = failed or plan.calls(op) >= call
    return acknowledged, failed


def check_life(path: Path, acknowledged: list[bytes]) -> None:
    if not path.exists():
        assert not acknowledged
        return
    file = LedgerFile.open(str(path), 5)
    recovery = file.recover()
    assert recovery.damaged_entries == 0
    offset = 4096
    for entry in acknowledged:
        got = file.entry(offset, recovery.end)
        assert got is not None and got[1] == entry
        offset = got[2]


def test_file_system_says_what_and_where(tmp_path: Path) -> None:
    files = FileSystem()
    path = str(tmp_path / "commit-1")
    files.create(path, b"data")
    assert files.read(path) == b"data" and files.list(str(tmp_path)) == ["commit-1"]
    with pytest.raises(FileExistsError, match="commit-1"):
        files.create(path, b"other")
    with pytest.raises(FileExistsError):
        files.take_name(path, path)
    files.take_name(path, path + "-b")
    files.rename(path + "-b", path + "-c")
    files.unlink(path)
    files.make_directory(str(tmp_path / "folder"))
    files.flush_directory(str(tmp_path))
    assert files.list(str(tmp_path)) == ["commit-1-c", "folder"]
    with pytest.raises(FileNotFoundError):
        files.read(path)
    with fault_plan() as plan:
        plan.fail("rename", error=errno.EXDEV)
        with pytest.raises(OSError) as caught:
            files.rename(path + "-c", path)
        assert caught.value.errno == errno.EXDEV and caught.value.filename2 == path
        plan.fail("flush")
        with pytest.raises(OSError, match="commit-2"):
            files.create(str(tmp_path / "commit-2"), b"x")
