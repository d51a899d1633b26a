"""Writers that are killed, readers in other processes, forked children."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ledger_files import append, make_entry, make_ledger
from seeds import scaled, seed_of

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile, seal_recovered
from pulsarx._pycore.ledger.published_ends import PublishedEnds

WRITER = """
import sys
sys.path.insert(0, sys.argv[3])
from ledger_files import append, make_ledger
writer = make_ledger(sys.argv[1], durability=sys.argv[2])
number = 0
while True:
    for _ in range(5):
        append(writer, number, 8 + number * 131 % 3000)
        number += 1
    if sys.argv[2] == "sync":
        writer.flush()
    sys.stdout.write("%d\\n" % number)
    sys.stdout.flush()
"""


@pytest.mark.standard
@pytest.mark.parametrize("durability", ["os", "interval", "sync"])
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, durability: str) -> None:
    seed = seed_of(20240611)
    chance = random.Random(seed)
    for turn in range(scaled(10)):
        path = tmp_path / f"ledger-{turn}"
        here = os.path.dirname(os.path.dirname(__file__))
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), durability, here], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        lines = chance.randrange(1, 60)
        acknowledged = [int(child.stdout.readline()) for _ in range(lines)][-1]
        child.kill()
        rest = child.stdout.read().split(b"\n")[:-1]
        child.wait(60)
        child.stdout.close()
        acknowledged = int(rest[-1]) if rest else acknowledged
        recovery = LedgerFile.open(str(path), 5).recover()
        assert recovery.entry_count >= acknowledged and recovery.damaged_entries == 0, (seed, turn)
        summary = seal_recovered(str(path), recovery)
        file = LedgerFile.open(str(path), 5)
        offset = 4096
        for number in range(summary.entry_count):
            got = file.entry(offset, summary.size)
            assert got is not None
            size = 8 + number * 131 % 3000
            assert got[1][6:] == number.to_bytes(8, "little") * (size // 8) + bytes(number % 8)
            offset = got[2]
        assert offset == summary.size


READER = """
import sys
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.published_ends import PublishedEnds
ends = PublishedEnds.open(sys.argv[1])
slot = ends.find(5)
offset, count, sealed = 4096, 0, False
file = None
while not sealed:
    sealed = ends.read(slot)[5] == 2
    end = ends.read(slot)[2]
    # Another process maps again when the file has grown past its mapping.
    if file is None or end > file.mapped_size:
        file = LedgerFile.open(sys.argv[2], 5)
    while offset < end:
        frame, entry, offset = file.entry(offset, end)
        assert frame["entry_id"] == count
        count += 1
    if not sealed:
        ends.wait(slot, end, 1000)
print(count, offset)
"""


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_reader_in_another_process_sees_whole_entries_only(
    tmp_path: Path, durability: str
) -> None:
    slots = PublishedEnds.create(str(tmp_path / "ends"), 1)
    writer = make_ledger(tmp_path / "ledger", durability=durability, slots=slots)
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path / "ends"), str(tmp_path / "ledger")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    entries = [make_entry(os.urandom(size)) for size in (10, 100, 1000, 10_000, 70_000)]
    for number in range(2000):
        writer.append(entries[number % 5], message_count=1, publish_time_ms=number)
        if durability == "sync" and number % 20 == 0:
            writer.flush()
    summary = writer.seal()
    out, err = reader.communicate(timeout=60)
    assert out.split() == ["2000", str(summary.size)], err


@pytest.mark.standard
def test_a_forked_child_cannot_write_and_does_not_hang(tmp_path: Path) -> None:
    writer = make_ledger(tmp_path / "ledger", durability="interval")
    append(writer, 0)
    stop = threading.Event()

    def work() -> None:
        number = 1
        while not stop.is_set():
            append(writer, number)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            assert forked(writer, tmp_path) == 0
    finally:
        stop.set()
        thread.join(60)
    writer.flush()
    assert writer.seal().entry_count == writer.entry_count


def forked(writer: object, tmp_path: Path) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            for call in (
                lambda: append(writer, 1),
                writer.seal,
                writer.map,
                lambda: writer.prepare(1),
            ):  # type: ignore
                try:
                    call()
                    os._exit(1)
                except errors.ForkedError:
                    pass
            writer.close()  # type: ignore[attr-defined]
            own = make_ledger(tmp_path / f"child-{os.getpid()}", durability="interval")
            for number in range(60):
                append(own, number, 4000)
            own.seal()
            os._exit(0)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
