"""What is found in a ledger file that was cut, flipped, or left by a dead owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ledger_files import append, make_ledger

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile, seal_recovered

COUNT = 6


def read_all(file: LedgerFile, end: int) -> dict[int, bytes]:
    """Every entry that can be read, damaged ones passed over."""
    found = {}
    offset = 4096
    while offset < end:
        try:
            got = file.entry(offset, end)
        except errors.CorruptDataError:
            offset = file.pass_damaged(offset, end)
            continue
        assert got is not None
        frame, entry, offset = got
        found[frame["entry_id"]] = entry
    return found


def build(path: Path, durability: str) -> tuple[bytes, list[bytes], list[int]]:
    """The bytes of an unsealed ledger of six entries; the entries; their offsets and the end."""
    writer = make_ledger(path, durability=durability)
    entries = []
    offsets = [writer.end]
    for number in range(COUNT):
        entries.append(append(writer, number))
        if durability != "os":
            writer.flush()
        offsets.append(writer.end)
    writer.close()
    return path.read_bytes()[: offsets[-1] + 256], entries, offsets


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_file_cut_anywhere_in_its_last_entries_keeps_what_is_whole(
    tmp_path: Path, durability: str
) -> None:
    data, entries, offsets = build(tmp_path / "full", durability)
    path = tmp_path / "cut"
    for cut in range(offsets[COUNT - 2], offsets[COUNT] + 8):
        path.write_bytes(data[:cut])
        whole = sum(1 for offset in offsets[1:] if offset <= cut)
        for padded in (False, True):
            if padded:
                with open(path, "ab") as file:
                    file.write(bytes(4096))
                # Entry and padding zeros are the same bytes, cut or not.
                whole = max(
                    whole, sum(1 for offset in offsets[1:] if not data[cut:offset].strip(b"\0"))
                )
            recovery = LedgerFile.open(str(path), 5).recover()
            assert (recovery.entry_count, recovery.end) == (whole, offsets[whole]), (cut, padded)
            assert recovery.damaged_entries == 0
            assert recovery.message_count == 2 * whole
    summary = seal_recovered(str(path), recovery)
    assert summary.entry_count == COUNT and summary.recovered


@pytest.mark.standard
@pytest.mark.parametrize("durability", ["os", "sync"])
@pytest.mark.parametrize("sealed", [False, True])
def test_every_flipped_bit_is_reported_and_never_read(
    tmp_path: Path, durability: str, sealed: bool
) -> None:
    path = tmp_path / "ledger"
    data, entries, offsets = build(path, durability)
    if sealed:
        seal_recovered(str(path), LedgerFile.open(str(path), 5).recover())
        data = path.read_bytes()[: offsets[-1] + 32 + 128 + 8]
    flipped = tmp_path / "flipped"
    flipped.write_bytes(data)
    # Of the header block the sectors that carry something, and of the rest a sample.
    header = [
        *range(64),
        *range(500, 560),
        700,
        *range(1024, 1060),
        1500,
        1600,
        *range(2048, 2112),
        2559,
        4000,
    ]
    with open(flipped, "r+b", buffering=0) as file:
        for at in [*header, *range(4096, len(data))]:
            for bit in range(8):
                file.seek(at)
                file.write(bytes([data[at] ^ (1 << bit)]))
                check_flip(flipped, at, entries, offsets, sealed, durability)
            file.seek(at)
            file.write(data[at : at + 1])


def check_flip(
    path: Path, at: int, entries: list[bytes], offsets: list[int], sealed: bool, durability: str
) -> None:
    file = LedgerFile.open(str(path), 5)
    recovery = file.recover()
    found = read_all(file, recovery.end)
    assert all(entries[number] == entry for number, entry in found.items()), at
    hit = next((n for n in range(COUNT) if offsets[n] <= at < offsets[n + 1]), None)
    intact = set(range(COUNT)) - {hit}
    if hit is None:
        assert set(found) == intact and recovery.damaged_entries == 0, at
        if at < 4096:
            assert file.header_damaged, at
        elif sealed and at < offsets[-1] + 32 + 128:
            with pytest.raises(errors.CorruptDataError):
                file.summary()
        elif not sealed:
            assert recovery.torn_size > 0, at
        return
    assert set(found) == intact, at
    if hit == COUNT - 1 and not sealed and (recovery.damaged_entries == 0):
        assert recovery.entry_count == hit and recovery.torn_size > 0, at
    else:
        assert recovery.damaged_entries == 1, at
        assert recovery.damage[0][0] == hit and recovery.damage[0][2] == offsets[hit], at
        assert recovery.entry_count == COUNT
        if sealed:
            assert file.summary().entry_count == COUNT
            assert recovery.digest != file.summary().digest


def test_flushed_entries_are_never_cut(tmp_path: Path) -> None:
    """Zeros where a flushed entry was are damage: a later frame says it was durable."""
    path = tmp_path / "ledger"
    data, entries, offsets = build(path, "sync")
    for hole in range(COUNT - 1):
        path.write_bytes(
            data[: offsets[hole]]
            + bytes(offsets[hole + 1] - offsets[hole])
            + data[offsets[hole + 1] :]
        )
        file = LedgerFile.open(str(path), 5)
        recovery = file.recover()
        assert recovery.damage == [(hole, 1, offsets[hole], offsets[hole + 1])]
        assert recovery.entry_count == COUNT
        summary = seal_recovered(str(path), recovery)
        again = LedgerFile.open(str(path), 5)
        assert again.summary() == summary and again.damage() == recovery.damage
        assert set(read_all(again, summary.size)) == set(range(COUNT)) - {hole}
        after = again.find_entry(hole, summary.size)
        assert after == offsets[hole + 1]
        path.unlink()


def test_a_hole_of_zeros_is_torn_and_garbage_before_good_entries_is_damage(tmp_path: Path) -> None:
    for durability in ("os", "sync"):
        path = tmp_path / durability
        writer = make_ledger(path, durability=durability)
        offsets = [writer.end]
        for number in range(COUNT):
            append(writer, number)
            offsets.append(writer.end)
        writer.close()
        data = path.read_bytes()[: offsets[-1]]
        path.write_bytes(data[: offsets[2]] + bytes(offsets[3] - offsets[2]) + data[offsets[3] :])
        recovery = LedgerFile.open(str(path), 5).recover()
        assert (recovery.entry_count, recovery.end, recovery.damaged_entries) == (2, offsets[2], 0)
        assert recovery.torn_size > 0
        garbage = b"x" * (offsets[3] - offsets[2])
        path.write_bytes(data[: offsets[2]] + garbage + data[offsets[3] :])
        recovery = LedgerFile.open(str(path), 5).recover()
        # Also in sync: the last group that was flushed is named durable by no later frame.
        assert (recovery.entry_count, recovery.damaged_entries) == (COUNT, 1)


def test_dying_while_a_recovered_file_is_sealed_changes_nothing(tmp_path: Path) -> None:
    """Each call of sealing fails in turn; the next recovery finds the same entries."""
    from pulsarx.testing.faults import fault_plan

    path = tmp_path / "ledger"
    writer = make_ledger(path)
    offsets = [writer.end]
    for number in range(20):
        append(writer, number)
        offsets.append(writer.end)
    writer.close()
    data = path.read_bytes()[: offsets[-1]]
    # Entry 3 is damage, entry 10 a hole: cut there, though valid frames follow.
    data = (
        data[: offsets[3]]
        + b"x" * 8
        + data[offsets[3] + 8 : offsets[10]]
        + bytes(104)
        + data[offsets[10] + 104 :]
    )
    ops = [
        ("write", 1),
        ("write", 2),
        ("write", 3),
        ("flush", 1),
        ("flush", 2),
        ("flush", 3),
        ("allocate", 1),
    ]
    for op, call in ops:
        for short in (False, True) if op == "write" else (False,):
            path.write_bytes(data)
            recovery = LedgerFile.open(str(path), 5).recover()
            assert recovery.entry_count == 10 and recovery.damage == [
                (3, 1, offsets[3], offsets[4])
            ]
            with fault_plan() as plan, pytest.raises(errors.StorageError):
                if short:
                    plan.short_write(call)
                else:
                    plan.fail(op, call)
                seal_recovered(str(path), recovery)
            again = LedgerFile.open(str(path), 5).recover()
            assert (again.entry_count, again.end, again.damage) == (
                10,
                recovery.end,
                recovery.damage,
            ), (op, call)
            summary = seal_recovered(str(path), again)
            assert (
                seal_recovered(str(path), LedgerFile.open(str(path), 5).recover()).entry_count == 10
            )
            sealed = LedgerFile.open(str(path), 5)
            assert sealed.summary() == summary
            assert set(read_all(sealed, summary.size)) == set(range(10)) - {3}


def test_unborn_foreign_newer_and_short_files(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for size in (0, 100, 4096, 70000):
        path.write_bytes(bytes(size))
        file = LedgerFile.open(str(path), 5)
        assert file.unborn and file.recover().unborn and file.recover().entry_count == 0
        with pytest.raises(errors.CorruptDataError):
            file.summary()
        with pytest.raises(errors.CorruptDataError):
            seal_recovered(str(path), file.recover())
    path.write_bytes(b"#!/bin/sh\n" * 1000)
    with pytest.raises(errors.CorruptDataError, match="not a file of PulsarX"):
        LedgerFile.open(str(path), 5)
    data, _, offsets = build(tmp_path / "real", "os")
    path.write_bytes(data[:3000])
    with pytest.raises(errors.CorruptDataError, match="too early"):
        LedgerFile.open(str(path), 5)
    newer = bytearray(data)
    newer[8] = newer[2048 + 8] = 3
    path.write_bytes(newer)
    with pytest.raises(errors.NewerFormatError, match="ledger 5"):
        LedgerFile.open(str(path), 5)
    with pytest.raises(errors.StorageError, match="No such file"):
        LedgerFile.open(str(tmp_path / "missing"), 5)
    both = bytearray(data)
    both[20] ^= 1
    both[2048 + 20] ^= 1
    path.write_bytes(both)
    with pytest.raises(errors.CorruptDataError):
        LedgerFile.open(str(path), 5)


def test_recovery_error_names_ledger_entry_and_offset(tmp_path: Path) -> None:
    data, entries, offsets = build(tmp_path / "ledger", "os")
    broken = bytearray(data)
    broken[offsets[2] + 64 + 10] ^= 1
    path = tmp_path / "broken"
    path.write_bytes(broken)
    file = LedgerFile.open(str(path), 5)
    with pytest.raises(
        errors.CorruptDataError, match=f"entry 2 at offset {offsets[2]} of ledger 5"
    ):
        file.entry(offsets[2], offsets[-1])
    assert os.fspath(path) in str(
        pytest.raises(errors.CorruptDataError, file.entry, offsets[2], offsets[-1]).value
    )
