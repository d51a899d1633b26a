"""Ledgers that nobody reads before they are sealed: their entries are written in blocks."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from ledger_files import append, make_ledger

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx.testing.faults import fault_plan

BLOCK_MIN, BLOCK_MAX = 65536, 2097152
# A frame and an entry of so many bytes with it end where the first block does, and next to it.
FILLS = BLOCK_MIN - 4096 - 64 - 6


def staged(folder: Path) -> LedgerWriter:
    return make_ledger(folder / "staged", staged=True, uuid=bytes(range(16)))


def entries_of(path: Path, end: int) -> list[bytes]:
    file = LedgerFile.open(str(path), 5)
    found, offset = [], 4096
    while (read := file.entry(offset, end)) is not None:
        found.append(bytes(read[1]))
        offset = read[2]
    return found


@pytest.mark.parametrize(
    "sizes",
    [
        [40],
        [FILLS - 8, 40, 40],
        [FILLS, 40],
        [FILLS + 8, 40],
        [1_000_000, 40, 3_000_000, 5_000_000, 40],
        [100_000] * 90,
        random.Random(1).choices([8, 500, 20_000, 65_536, 131_072, 400_000], k=120),
        random.Random(2).choices([8, 500, 4000], k=3000),
    ],
    ids=lambda sizes: f"{len(sizes)} of {max(sizes)}",
)
def test_the_file_is_that_of_a_ledger_that_is_not_staged(tmp_path: Path, sizes: list[int]) -> None:
    plain = make_ledger(tmp_path / "plain", uuid=bytes(range(16)))
    writer = staged(tmp_path)
    for number, size in enumerate(sizes):
        assert append(writer, number, size) == append(plain, number, size)
    assert writer.end == plain.end
    assert writer.seal(flush=False) == plain.seal(flush=False)
    whole = [(tmp_path / name).read_bytes().rstrip(b"\0") for name in ("staged", "plain")]
    assert whole[0] == whole[1] and len(whole[0]) > sum(sizes)


def test_a_staged_ledger_is_written_in_few_calls(tmp_path: Path) -> None:
    """Blocks double up to 2 MiB, each at a multiple of its size: one folio of the page cache."""
    with fault_plan() as plan:
        writer = staged(tmp_path)
        before = plan.calls("write")
        for number in range(2500):
            append(writer, number, 4000)
        # 64 KiB twice, 128 KiB, ... 1 MiB, 2 MiB and what makes 10 MB full of these.
        assert plan.calls("write") - before == 2 + 4 + (writer.end - BLOCK_MAX) // BLOCK_MAX
        writer.seal(flush=False)
    assert len(entries_of(tmp_path / "staged", writer.end)) == 2500


@pytest.mark.parametrize("failure", ["error", "short", "late"])
@pytest.mark.parametrize("size", [4000, 70_000, 300_000])
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_a_failed_write_loses_nothing_that_was_taken(
    tmp_path: Path, failure: str, size: int, call: int
) -> None:
    """The entry whose write fails is refused, and with it all others; what is in front of it is in
    the file once it is sealed."""
    writer = staged(tmp_path)
    taken: list[bytes] = []
    with fault_plan() as plan:
        if failure == "short":
            plan.short_write(call)
        else:
            plan.fail("write", call, late=failure == "late")
        with pytest.raises(errors.StorageError, match=r"append .* ledger 5.*Input/output error"):
            while True:
                taken.append(append(writer, len(taken), size))
    assert writer.state == "fenced" and writer.entry_count == len(taken)
    with pytest.raises(errors.StorageError):
        append(writer, 0)
    with fault_plan() as plan:
        plan.fail("write")
        with pytest.raises(errors.StorageError, match="seal ledger 5"):
            writer.seal(flush=False)
    assert writer.state == "fenced"
    assert writer.seal(flush=False).entry_count == len(taken)
    assert entries_of(tmp_path / "staged", writer.end) == taken
    assert LedgerFile.open(str(tmp_path / "staged"), 5).summary().entry_count == len(taken)


def test_a_full_disk_at_the_end_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    writer = staged(tmp_path)
    taken = [append(writer, number, 9000) for number in range(20)]
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC)
        with pytest.raises(errors.StorageFullError, match="seal ledger 5"):
            writer.seal(flush=False)
    assert writer.state == "open"
    taken.append(append(writer, 20, 9000))
    assert writer.seal(flush=False).entry_count == 21
    assert entries_of(tmp_path / "staged", writer.end) == taken


def test_a_flush_writes_what_waits(tmp_path: Path) -> None:
    writer = staged(tmp_path)
    taken = [append(writer, number, 9000) for number in range(20)]
    writer.flush()
    assert writer.durable_count == 20
    assert entries_of(tmp_path / "staged", writer.end) == taken
    taken += [append(writer, number, 9000) for number in range(20, 500)]
    writer.seal(flush=False)
    assert entries_of(tmp_path / "staged", writer.end) == taken


def test_a_failed_write_of_a_flush_is_told(tmp_path: Path) -> None:
    writer = staged(tmp_path)
    append(writer, 0)
    with fault_plan() as plan:
        plan.fail("write")
        with pytest.raises(errors.StorageError, match="flush ledger 5"):
            writer.flush()
    assert writer.state == "poisoned" and writer.durable_count == 0


def test_closing_writes_nothing(tmp_path: Path) -> None:
    writer = staged(tmp_path)
    append(writer, 0)
    with fault_plan() as plan:
        writer.close()
        assert plan.calls("write") == 0
    assert (tmp_path / "staged").read_bytes()[4096:].strip(b"\0") == b""
