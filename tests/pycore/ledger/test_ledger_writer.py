"""Append, read, find, limits, sealing and group flush of ledger files."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
from pathlib import Path

import ledger_files
import pytest
from child_process import run_program
from ledger_files import append, make_entry, make_ledger
from support.waiting import wait_until

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.testing.faults import fault_plan

DURABILITIES = ["memory", "os", "interval", "sync"]


def place(tmp_path: Path, durability: str) -> Path | None:
    return None if durability == "memory" else tmp_path / "ledger"


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_is_appended_is_read_and_found(tmp_path: Path, durability: str) -> None:
    writer = make_ledger(place(tmp_path, durability), durability=durability)
    count = 3000
    sizes = [8 + number * 37 % 400 for number in range(count)]
    entries = [append(writer, number, sizes[number]) for number in range(count)]
    writer.flush()
    end = writer.slots.read(writer.slot)[2]
    assert writer.slots.read(writer.slot) == (5, 1, writer.end, count, 2 * count, 1)
    file = writer.map()
    check_content(file, end, entries)
    summary = writer.seal()
    assert tuple(summary) == (count, 2 * count, end, 1000, 1000 + count - 1)
    assert writer.slots.read(writer.slot)[5] == 2 and writer.state == "sealed"
    check_content(file, end, entries)
    if durability != "memory":
        sealed = LedgerFile.open(str(tmp_path / "ledger"), 5)
        assert sealed.summary() == summary and sealed.sealed and not sealed.header_damaged
        check_content(sealed, end, entries)
        recovery = sealed.recover()
        assert (recovery.digest, recovery.entry_count, recovery.damaged_entries) == (
            summary.digest,
            count,
            0,
        )


def check_content(file: LedgerFile, end: int, entries: list[bytes]) -> None:
    offset = 4096
    for number, entry in enumerate(entries):
        assert number % 50 or file.find_entry(number, end) == offset
        assert number % 50 or file.find_message(2 * number + 1, end) == offset
        assert number % 50 or file.find_publish_time(1000 + number, end) == offset
        got = file.entry(offset, end)
        assert got is not None
        frame, found, behind = got
        assert (
            found == entry and frame["entry_id"] == number and frame["first_message"] == 2 * number
        )
        assert file.frame(offset, end) == frame
        offset = behind
    assert offset == end and file.entry(end, end) is None
    assert file.find_entry(len(entries), end) == end and file.find_publish_time(10**9, end) == end


def test_times_out_of_order_are_found_exactly(tmp_path: Path) -> None:
    writer = make_ledger(None)
    times = [(number * 7919) % 5000 for number in range(4000)]
    offsets = []
    for time in times:
        offsets.append(
            writer.append(make_entry(b"x" * 300), message_count=1, publish_time_ms=time)[2]
        )
    file = writer.map()
    for wanted in range(0, 5100, 37):
        first = next((n for n, time in enumerate(times) if time >= wanted), None)
        assert file.find_publish_time(wanted, writer.end) == (
            writer.end if first is None else offsets[first]
        )


def test_limits_are_refused_with_nothing_written(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "a", entry_count_max=2)
    append(writer, 0)
    append(writer, 1)
    with pytest.raises(errors.InternalError, match="full"):
        append(writer, 2)
    assert writer.entry_count == 2 and writer.state == "open"
    writer = make_ledger(tmp_path / "b", size_max=10_000)
    append(writer, 0, 50_000)
    with pytest.raises(errors.InternalError, match="full"):
        append(writer, 1)
    assert writer.map().entry(4096, writer.end) is not None
    for bad in (b"", b"\x0e\x01", b"no entry at all"):
        with pytest.raises(ValueError, match="0x0e01"):
            writer.append(bad, message_count=1, publish_time_ms=1)
    with pytest.raises(ValueError):
        writer.append(make_entry(b"x"), message_count=0, publish_time_ms=1)
    with pytest.raises(errors.MessageTooBig):
        make_ledger(None, size_max=1000).append(
            make_entry_fast(1 << 27), message_count=1, publish_time_ms=1
        )
    with pytest.raises(errors.StorageError, match="File exists"):
        make_ledger(tmp_path / "a")


def make_entry_fast(size: int) -> bytes:
    return b"\x0e\x01" + bytes(size - 2)


def test_reading_past_the_end_is_refused(tmp_path: Path) -> None:
    writer = make_ledger(None)
    append(writer, 0)
    end = writer.end
    append(writer, 1)
    file = writer.map()
    assert file.entry(end, end) is None
    for offset, stop in ((end + 8, end), (0, end), (4097, end), (4096, 1 << 50)):
        with pytest.raises(errors.NotAllowedError):
            file.entry(offset, stop)
    with pytest.raises(errors.CorruptDataError):
        file.entry(4096, end - 8)
    assert file.find_entry(1, end) == end


def test_the_map_outlives_the_writer(tmp_path: Path) -> None:
    writer = make_ledger(None)
    for number in range(2000):
        append(writer, number)
    file, end = writer.map(), writer.end
    assert writer.map() is file
    writer.close()
    writer.close()
    with pytest.raises(errors.AlreadyClosed):
        append(writer, 1)
    with pytest.raises(errors.AlreadyClosed):
        writer.seal()
    with pytest.raises(errors.AlreadyClosed):
        make_closed().map()
    del writer
    gc.collect()
    assert file.find_entry(1999, end) < end


def make_closed() -> LedgerWriter:
    writer = make_ledger(None)
    writer.close()
    return writer


def test_sync_publishes_only_what_is_flushed(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="sync")
    append(writer, 0)
    assert writer.slots.read(writer.slot)[2:5] == (4096, 0, 0)
    writer.flush(1)
    assert writer.slots.read(writer.slot)[2:5] == (writer.end, 1, 2)
    assert writer.durable_count == 1 and writer.published_end == writer.end
    append(writer, 1)
    frame = writer.map().frame(writer.durable_end, writer.end)
    assert frame is not None and frame["durable_count"] == 1
    with pytest.raises(errors.NotAllowedError):
        writer.flush(3)


# In a process of its own, as the plan stalls and counts whatever is flushed in it.
ONE_FLUSH = """
import sys, threading
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from ledger_files import make_entry, make_ledger
from support.waiting import wait_until
from pulsarx.testing.faults import fault_plan
rounds, count = 8, 16
writer = make_ledger(Path(sys.argv[1]), durability="sync")
def work(text):
    number = writer.append(make_entry(text), message_count=1, publish_time_ms=1)[0]
    writer.flush(number + 1)
    assert writer.slots.read(writer.slot)[3] > number
for turn in range(rounds):
    with fault_plan() as plan:
        plan.stall("flush")
        threads = [
            threading.Thread(target=work, args=(b"%d %d" % (turn, number),))
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        wait_until(plan.stalled)
        wait_until(lambda: writer.entry_count == (turn + 1) * count)
        plan.release()
        for thread in threads:
            thread.join()
        assert plan.calls("flush") == 2, (turn, plan.calls("flush"))
assert writer.durable_count == rounds * count
seen = set()
offset = 4096
while (got := writer.map().entry(offset, writer.end)) is not None:
    seen.add(got[1])
    offset = got[2]
print(len(seen))
"""


def test_one_flush_serves_all_who_wait(tmp_path: Path) -> None:
    """What is appended while a flush runs becomes durable by the next one, however many wait."""
    helpers = Path(ledger_files.__file__).parent
    assert run_program(ONE_FLUSH, tmp_path / "ledger", helpers, helpers.parent) == ["128"]


@pytest.mark.standard
def test_space_is_prepared_ahead_and_given_back(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="interval", size_max=1 << 24)
    assert writer.prepared_end == 65536
    for number in range(400):
        append(writer, number, 20_000)
    assert writer.prepared_end >= writer.end
    summary = writer.seal()
    found = os.stat(tmp_path / "ledger")
    assert found.st_blocks * 512 < summary.size + 65536
    assert LedgerFile.open(str(tmp_path / "ledger"), 5).recover().entry_count == 400


def zeros_are_cached(folder: Path) -> bool:
    code = ["stat", "-f", "-c", "%T", str(folder)]
    kind = subprocess.run(code, capture_output=True, text=True, check=True).stdout.strip()
    return kind in ("ext2/ext3", "xfs", "overlayfs")


@pytest.mark.parametrize("durability", ["os", "interval", "sync"])
def test_prepared_space_is_in_the_page_cache_before_it_is_used(
    tmp_path: Path, durability: str
) -> None:
    """Appends write to folios that are there, and do not make one page after the other."""
    path = tmp_path / "ledger"
    if durability == "os" and not zeros_are_cached(tmp_path):
        pytest.skip("the file system may take new space for what is overwritten")
    writer = make_ledger(path, durability=durability)
    for number in range(3):
        append(writer, number, 20_000)
    wait_until(lambda: writer.prepared_end >= 2 * 65536)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Space that was only allocated is a hole.
        assert os.lseek(descriptor, 65536, os.SEEK_DATA) == 65536
        assert os.lseek(descriptor, 65536, os.SEEK_HOLE) == writer.prepared_end
    finally:
        os.close(descriptor)
    writer.close()


def test_little_is_prepared_ahead_of_what_is_only_cached(tmp_path: Path) -> None:
    """The device may get the zeros before the entries; steps of an appender that does not outrun
    the thread do not double."""
    if not zeros_are_cached(tmp_path):
        pytest.skip("the file system may take new space for what is overwritten")
    writer = make_ledger(tmp_path / "ledger")
    for number in range(32):
        append(writer, number, 8000)
        # The thread is asked for 64 KiB when less than 32 are left.
        wait_until(lambda: writer.prepared_end - writer.end >= 28_000)
        assert writer.prepared_end - writer.end <= 32_768 + 65_536
    assert writer.end > 4 * 65_536 - 8000
    writer.close()


@pytest.mark.parametrize("size", [500, 40_000])
def test_zeros_that_cannot_be_written_cost_no_entry(tmp_path: Path, size: int) -> None:
    """The thread gives up, and the appender has the space that it needs allocated."""
    if not zeros_are_cached(tmp_path):
        pytest.skip("the file system may take new space for what is overwritten")
    writer = make_ledger(tmp_path / "ledger")
    count = next(n for n in range(1, 100) if 4096 + n * (size + 70) > 32768)
    with fault_plan() as plan:
        plan.fail("zeros")
        entries = [append(writer, number, size) for number in range(count)]
        wait_until(lambda: plan.calls("zeros") == 1)
        assert writer.prepared_end == 65536
        entries += [append(writer, number, size) for number in range(count, 5 * count)]
    assert writer.state == "open"
    end = writer.end
    assert writer.seal().entry_count == 5 * count
    check_content(LedgerFile.open(str(tmp_path / "ledger"), 5), end, entries)


def test_space_whose_zeros_were_not_all_written_is_given_back(tmp_path: Path) -> None:
    """It lies behind all that was prepared."""
    if not zeros_are_cached(tmp_path):
        pytest.skip("the file system may take new space for what is overwritten")
    writer = make_ledger(tmp_path / "ledger")
    count = next(n for n in range(1, 100) if 4096 + n * 1070 > 32768)
    with fault_plan() as plan:
        plan.fail("zeros")
        for number in range(count):
            append(writer, number, 1000)
        wait_until(lambda: plan.calls("zeros") == 1)
        summary = writer.seal()
    assert writer.prepared_end == 65536
    found = os.stat(tmp_path / "ledger")
    assert found.st_size == 2 * 65536
    assert found.st_blocks * 512 < summary.size + 16384


def test_space_is_given_back_in_front_of_the_flush(tmp_path: Path) -> None:
    """Which would have the device write the zeros in it."""
    writer = make_ledger(tmp_path / "ledger")
    for number in range(100):
        append(writer, number, 20_000)
    wait_until(lambda: writer.prepared_end > writer.end + 65536)
    with fault_plan() as plan:
        plan.fail("flush")
        with pytest.raises(errors.StorageError, match="seal ledger 5"):
            writer.seal()
    assert writer.state == "poisoned"
    assert os.stat(tmp_path / "ledger").st_blocks * 512 < writer.end + 65536


@pytest.mark.standard
def test_ledgers_closed_while_space_is_prepared(tmp_path: Path) -> None:
    for turn in range(40):
        writer = make_ledger(tmp_path / str(turn), durability="interval")
        for number in range(turn % 7):
            append(writer, number, 30_000)
        if turn % 3 == 0:
            writer.seal()
        if turn % 2 == 0:
            writer.close()
        del writer


def test_slots_are_reused_and_read_by_others(tmp_path: Path) -> None:
    slots = PublishedEnds.create(str(tmp_path / "ends"), 9)
    numbers = [slots.allocate() for _ in range(3000)]
    assert len(set(numbers)) == 3000 and 0 not in numbers
    slots.release(numbers[5])
    assert slots.allocate() == numbers[5]
    writer = make_ledger(tmp_path / "ledger", slots=slots)
    other = PublishedEnds.open(str(tmp_path / "ends"))
    assert other.epoch == 9 and other.find(5) == writer.slot and other.find(6) == 0
    append(writer, 0)
    assert other.read(writer.slot)[2] == writer.end
    assert other.wait(writer.slot, 0, 1000) == writer.end
    assert other.wait(writer.slot, writer.end, 1) == writer.end
    PublishedEnds.create(str(tmp_path / "ends"), 10)
    assert other.epoch_now == 10 and other.find(5) == 0 and other.read(writer.slot)[0] == 0
    with pytest.raises(errors.NotAllowedError):
        other.read(1 << 21)
    with pytest.raises(errors.NotAllowedError):
        other.read(0)


@pytest.mark.parametrize("writable", [True, False])
def test_waiting_for_a_slot_ends_with_the_publish(tmp_path: Path, writable: bool) -> None:
    slots = PublishedEnds.create(str(tmp_path / "ends"), 9)
    writer = make_ledger(None, slots=slots)
    other = PublishedEnds.open(str(tmp_path / "ends"))
    if not writable:
        os.chmod(tmp_path / "ends", 0o444)
        other = PublishedEnds.open(str(tmp_path / "ends"))
    seen: list[int] = []
    ready = threading.Event()

    def wait() -> None:
        ready.set()
        end = 4096
        while end == 4096:
            end = other.wait(writer.slot, 4096, 5000)
        seen.append(end)

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait(60)
    append(writer, 0)
    thread.join(60)
    assert seen == [writer.end]


def test_wrong_types_are_refused(tmp_path: Path) -> None:
    writer = make_ledger(None)
    with pytest.raises(TypeError):
        writer.append("text", message_count=1, publish_time_ms=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        writer.append(None, message_count=1, publish_time_ms=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="16 bytes"):
        make_ledger(None, uuid=b"short")
