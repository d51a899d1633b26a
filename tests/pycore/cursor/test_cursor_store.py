"""Kills, flipped bits, torn records, failing operations: no acknowledgement that was not made."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from failing_files import PlainFiles

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.testing.faults import fault_plan

IDENTITY = b"cursor 7 of here"
HERE = Path(__file__).parent

CHILD = """
import os, random, sys
from failing_files import PlainFiles
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore
tracker = AckTracker(CursorStore(PlainFiles(), sys.argv[1], b"cursor 7 of here"))
tracker.add_ledger(1)
chance = random.Random(int(sys.argv[2]))
order = list(range(200_000))
chance.shuffle(order)
at = 0
while at < len(order):
    some = order[at:at + chance.choice((1, 10, 100))]
    for message in some:
        tracker.acknowledge_messages(1, message)
    at += len(some)
    os.write(1, b"".join(message.to_bytes(4, "little") for message in some))
"""


def open_tracker(folder: Path, files: PlainFiles | None = None) -> AckTracker:
    return AckTracker(CursorStore(files or PlainFiles(), str(folder / "7"), IDENTITY))


def acknowledged(tracker: AckTracker, ledger_id: int, end: int) -> set[int]:
    return {at for at in range(end) if tracker.is_message_acknowledged(ledger_id, at)}


def cursor_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.standard
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_process_loses_no_acknowledgement_that_returned(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path / "7"), str(seed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    told = b""
    while len(told) < 4 * (seed * 40_000 + 3_000):
        told += os.read(child.stdout.fileno(), 65536)
    child.send_signal(signal.SIGKILL)
    told += child.stdout.read()
    child.wait()
    child.stdout.close()
    returned = {int.from_bytes(told[at : at + 4], "little") for at in range(0, len(told) - 3, 4)}
    tracker = open_tracker(tmp_path)
    assert tracker.damage == ()
    held = acknowledged(tracker, 1, 200_000)
    assert returned <= held
    assert len(held - returned) <= 100
    # Killed while it folds it leaves the next generation unfinished, which the next fold replaces.
    whole = [name for name in cursor_files(tmp_path) if not name.endswith(".unfinished")]
    assert len(whole) == 1
    tracker.close()


def small_cursor(folder: Path) -> tuple[dict[int, set[int]], Path]:
    """A cursor with a snapshot and records of every kind, not folded."""
    tracker = open_tracker(folder)
    for ledger_id, size in ((3, 50), (5, 200), (6, 300)):
        tracker.add_ledger(ledger_id)
        tracker.acknowledge_messages(ledger_id, 4, 3)
        tracker.acknowledge_messages(ledger_id, 130 if size > 130 else 40)
        if size < 300:
            tracker.seal_ledger(ledger_id, size)
    tracker.fold()
    tracker.acknowledge_messages_through(5, 0)
    for message in (0, 1, 2, 9, 7, 64, 100, 70, 99):
        tracker.acknowledge_messages(6, message)
    tracker.acknowledge_messages_through(5, 10)
    tracker.acknowledge_messages_through(5, 12)
    tracker.record_message_redelivery(6, 50, 3)
    held = {ledger_id: acknowledged(tracker, ledger_id, 300) for ledger_id in (3, 5, 6)}
    tracker.close()
    (path,) = folder.iterdir()
    return held, path


@pytest.mark.standard
def test_no_flipped_bit_makes_an_acknowledgement(tmp_path: Path) -> None:
    """Every bit of header fields, snapshot, used slots and one more; of the rest every 97th."""
    source = tmp_path / "source"
    source.mkdir()
    held, path = small_cursor(source)
    whole = path.read_bytes()
    assert len(whole) == 3 * 4096
    slots = [at for at in range(8192, len(whole), 16) if any(whole[at : at + 16])]
    assert len(slots) > 5
    used = [*range(96), *range(4096, 4096 + 128), *(at + i for at in slots for i in range(16))]
    noticed = 0
    work = tmp_path / "work"
    work.mkdir()
    bits = [8 * byte + bit for byte in used for bit in range(8)]
    for bit in [*bits, *range(0, 8 * len(whole), 97)]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        for name in cursor_files(work):
            (work / name).unlink()
        (work / path.name).write_bytes(damaged)
        try:
            tracker = open_tracker(work)
        except errors.NewerFormatError:
            continue
        noticed += bool(tracker.damage)
        for ledger_id in (3, 5, 6):
            assert acknowledged(tracker, ledger_id, 300) <= held[ledger_id], bit
        if not tracker.damage:
            assert all(acknowledged(tracker, at, 300) == held[at] for at in (3, 5, 6)), bit
        tracker.close()
    assert noticed > 96 * 8


def test_a_damaged_record_costs_itself_only(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    for group in range(10):
        tracker.acknowledge_messages(1, 40 * group, 33)  # more than a mask: appended
    tracker.close()
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    tail = 8192
    data[tail + 3 * 16] ^= 1  # word 0 of the fourth
    data[tail + 5 * 16 + 8] ^= 2  # the count of the sixth
    data[tail + 7 * 16 : tail + 8 * 16] = bytes(16)  # the eighth never reached the disk
    data[tail + 12 * 16 : tail + 12 * 16 + 8] = b"\x01" * 8  # killed between the words of a record
    path.write_bytes(data)
    tracker = open_tracker(tmp_path)
    held = {40 * group + at for group in (0, 1, 2, 4, 6, 8, 9) for at in range(33)}
    assert acknowledged(tracker, 1, 500) == held
    assert "2 damaged records" in tracker.damage[0]
    for message in (34, 120, 205, 395):
        tracker.acknowledge_messages(1, message)
    held |= {34, 120, 205, 395}
    tracker.close()
    tracker = open_tracker(tmp_path)
    assert acknowledged(tracker, 1, 500) == held
    tracker.fold()
    tracker.close()
    assert open_tracker(tmp_path).damage == ()


def test_a_record_damaged_in_the_mapping_never_says_more_than_what_is_known(tmp_path: Path) -> None:
    """The next acknowledgement of its group makes it whole."""
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 40)
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()[8192:]
    slot = next(at for at in range(0, len(data), 16) if any(data[at : at + 16]))
    with path.open("r+b") as file:
        file.seek(8192 + slot + 8)
        file.write(b"\xff")
    tracker.acknowledge_messages(1, 50)
    tracker.close()
    tracker = open_tracker(tmp_path)
    assert acknowledged(tracker, 1, 99) == {40, 50}
    assert tracker.damage == ()


def test_records_of_another_slot_or_generation_do_not_hold(tmp_path: Path) -> None:
    _, path = small_cursor(tmp_path)
    data = bytearray(path.read_bytes())
    data[8192 + 32 * 16 : 8192 + 33 * 16] = data[8192 + 16 : 8192 + 32]
    path.write_bytes(data)
    assert "1 damaged records" in open_tracker(tmp_path).damage[0]


def test_a_damaged_generation_falls_back_to_the_older_one(tmp_path: Path) -> None:
    files = PlainFiles()
    tracker = open_tracker(tmp_path, files)
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 0, 5)
    files.fail = {"unlink"}
    tracker.fold()
    tracker.acknowledge_messages(1, 7)
    tracker.close()
    assert cursor_files(tmp_path) == ["7.1", "7.2"]
    data = bytearray((tmp_path / "7.2").read_bytes())
    data[4100] ^= 1
    (tmp_path / "7.2").write_bytes(data)
    tracker = open_tracker(tmp_path)
    assert acknowledged(tracker, 1, 10) == {0, 1, 2, 3, 4}
    assert "7.2 " in tracker.damage[0] and "checksum" in tracker.damage[0]
    tracker.fold()
    assert cursor_files(tmp_path) == ["7.2.damaged", "7.3"]
    tracker.delete()
    assert cursor_files(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"\0" * 9000, b"something else" * 900])
def test_a_file_that_is_no_cursor_is_kept_aside_and_redelivers(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "7.4").write_bytes(content)
    tracker = open_tracker(tmp_path)
    assert tracker.damage
    assert tracker.mark_delete() == (0, 0) and not tracker.is_kept
    assert cursor_files(tmp_path) == ["7.4.damaged"]
    tracker.fold()
    assert cursor_files(tmp_path) == ["7.4.damaged", "7.5"]
    assert (tmp_path / "7.4.damaged").read_bytes() == content


def test_a_truncated_file_gives_what_it_still_holds(tmp_path: Path) -> None:
    held, path = small_cursor(tmp_path)
    whole = path.read_bytes()
    for size in (4095, 4200, 8192, 8192 + 40):
        for name in cursor_files(tmp_path):
            (tmp_path / name).unlink()
        path.write_bytes(whole[:size])
        tracker = open_tracker(tmp_path)
        assert tracker.damage
        assert all(acknowledged(tracker, at, 300) <= held[at] for at in held)
        tracker.add_ledger(9)
        tracker.acknowledge_messages(9, 1)
        tracker.close()
        assert open_tracker(tmp_path).is_message_acknowledged(9, 1)


def test_a_cursor_of_another_identity_is_not_taken(tmp_path: Path) -> None:
    small_cursor(tmp_path)
    tracker = AckTracker(CursorStore(PlainFiles(), str(tmp_path / "7"), b"another cursor.."))
    assert "not a cursor file" in tracker.damage[0]
    assert tracker.mark_delete() == (0, 0)


@pytest.mark.parametrize("operation", ["create", "rename", "flush_directory"])
def test_a_failed_fold_changes_nothing_and_works_again(tmp_path: Path, operation: str) -> None:
    files = PlainFiles()
    tracker = open_tracker(tmp_path, files)
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 3)
    files.fail = {operation}
    with pytest.raises(errors.StorageError):
        tracker.fold()
    tracker.acknowledge_messages(1, 5)
    if operation != "flush_directory":
        with pytest.raises(errors.StorageError):
            tracker.reset(1, 1)
        assert acknowledged(tracker, 1, 10) == {3, 5}
        tracker.flush()
    else:
        with pytest.raises(errors.LedgerPoisonedError):
            tracker.flush()
        assert tracker.dirty
    files.fail = set()
    tracker.abandon()
    tracker = open_tracker(tmp_path)
    assert acknowledged(tracker, 1, 10) == {3, 5}
    assert len(cursor_files(tmp_path)) == 1
    tracker.fold()
    tracker.flush()
    tracker.close()


def test_a_full_tail_folds_and_grows_up_to_a_mebibyte(tmp_path: Path) -> None:
    store = CursorStore(PlainFiles(), str(tmp_path / "7"), IDENTITY)
    tracker = AckTracker(store)
    tracker.add_ledger(1)
    sizes = set()
    for group in range(100_000):
        tracker.acknowledge_messages(1, 33 * group + 1)
        sizes.add(store.tail_size)
    assert sorted(sizes) == [4096 * 16**at for at in range(3)]
    assert len(cursor_files(tmp_path)) == 1
    assert tracker.hole_count() == 100_000


@pytest.mark.standard
def test_a_million_holes_survive_a_kill(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    order = list(range(1, 2_000_000, 2))
    random.Random(5).shuffle(order)
    for message in order:
        tracker.acknowledge_messages(1, message)
    tracker.abandon()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size <= 0.3 * 2_000_000 + 1_048_576 + 8192
    tracker = open_tracker(tmp_path)
    assert tracker.hole_count() == tracker.acknowledged_count(1) == 1_000_000


def test_ledgers_far_apart_start_a_new_base(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    for ledger_id in (1 << 30, (1 << 30) + 5):
        tracker.add_ledger(ledger_id)
        tracker.acknowledge_messages(ledger_id, 8)
    tracker.close()
    tracker = open_tracker(tmp_path)
    assert tracker.is_message_acknowledged((1 << 30) + 5, 8)


def test_a_forked_child_cannot_touch_the_cursor(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 1)
    child = os.fork()
    if child == 0:
        tracker.abandon()
        try:
            tracker.acknowledge_messages(1, 2)
        except errors.AlreadyClosed:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    tracker.acknowledge_messages(1, 3)
    tracker.close()
    assert acknowledged(open_tracker(tmp_path), 1, 9) == {1, 3}


def test_unknown_sections_are_refused(tmp_path: Path) -> None:
    small_cursor(tmp_path)
    tracker = open_tracker(tmp_path)
    tracker.set_section(9, b"of the future")
    tracker.fold()
    tracker.close()
    with pytest.raises(errors.NewerFormatError):
        open_tracker(tmp_path)


def test_a_section_that_cannot_be_read_is_refused_although_its_checksum_holds(
    tmp_path: Path,
) -> None:
    tracker = open_tracker(tmp_path)
    tracker.set_section(3, b"due times")
    tracker.fold()
    tracker.close()
    with pytest.raises(errors.CorruptDataError, match=r"7\.1"):
        open_tracker(tmp_path)


def test_an_unfinished_generation_of_a_killed_process_is_written_anew(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 4)
    (tmp_path / "7.2.unfinished").write_bytes(b"x" * 100_000)
    tracker.fold()
    tracker.acknowledge_messages(1, 9)
    tracker.close()
    assert cursor_files(tmp_path) == ["7.2"]
    tracker = open_tracker(tmp_path)
    assert tracker.damage == ()
    assert acknowledged(tracker, 1, 20) == {4, 9}


def test_a_cursor_that_was_folded_on_a_full_device_gives_the_reserve_back(tmp_path: Path) -> None:
    """It counted as spent for ever, so that the folder had none any more."""
    files, reserve = FileSystem(), tmp_path / "reserve"
    files.keep_reserve(str(tmp_path), reserve.name, 1 << 16)
    tracker = AckTracker(CursorStore(files, str(tmp_path / "7"), IDENTITY))
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 3)
    tracker.fold()
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC)
        tracker.acknowledge_messages(1, 5)
        tracker.fold()
    files.fill_reserve()  # as whoever commits something
    assert reserve.stat().st_size == 1 << 16
    assert acknowledged(tracker, 1, 10) == {3, 5}
