"""Redelivery counts and due times of a subscription survive a kill, and go with a seek."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from failing_files import PlainFiles

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore
from pulsarx._pycore.cursor.sections_source import encode_section

IDENTITY = b"cursor 7 of here"
REDELIVERY, DUE = 2, 3


def open_tracker(folder: Path, files: PlainFiles | None = None) -> AckTracker:
    tracker = AckTracker(CursorStore(files or PlainFiles(), str(folder / "7"), IDENTITY))
    for ledger_id in (1, 2, 3):
        tracker.add_ledger(ledger_id)
    return tracker


def test_counts_survive_kills_and_folds_without_anybody_who_tells_them(tmp_path: Path) -> None:
    chance = random.Random(3)
    model: dict[tuple[int, int], int] = {}
    tracker = open_tracker(tmp_path)
    for step in range(3000):
        place = (chance.choice((1, 2, 3)), chance.randrange(200))
        if chance.random() < 0.2:
            tracker.acknowledge_messages(*place)
            model.pop(place, None)
        elif not tracker.is_message_acknowledged(*place):
            model[place] = model.get(place, 0) + 1
            tracker.record_message_redelivery(*place, model[place])
        if step % 400 == 399:
            tracker.abandon()
            tracker = open_tracker(tmp_path)
            assert tracker.damage == ()
        if step % 100 == 0:
            expected = sorted((*place, count) for place, count in model.items())
            assert tracker.redelivery_counts() == expected
    tracker.close()


def test_a_recorded_redelivery_is_flushed_with_the_acknowledgements(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.fold()
    assert not tracker.dirty
    tracker.record_message_redelivery(1, 1, 1)
    assert tracker.dirty
    tracker.close()


def test_due_times_are_kept_until_somebody_takes_them_over(tmp_path: Path) -> None:
    due = [(1, 5, 10**12), (1, 6, 10**12 - 5), (2, 0, 3), (3, 7, 2**62), (9, 0, 1)]
    tracker = open_tracker(tmp_path)
    tracker.set_section(DUE, encode_section(DUE, due))
    tracker.fold()
    tracker.acknowledge_messages(1, 6)
    tracker.seal_ledger(3, 7)
    assert tracker.due_times() == [(1, 5, 10**12), (2, 0, 3)]
    tracker.abandon()
    tracker = open_tracker(tmp_path)
    assert tracker.due_times() == [(1, 5, 10**12), (2, 0, 3), (3, 7, 2**62)]
    tracker.forget_ledgers(2)
    tracker.fold()
    tracker.close()
    assert open_tracker(tmp_path).due_times() == [(2, 0, 3), (3, 7, 2**62)]


def test_a_seek_drops_both_and_a_failed_one_neither(tmp_path: Path) -> None:
    files = PlainFiles()
    tracker = open_tracker(tmp_path, files)
    tracker.set_section(DUE, encode_section(DUE, [(1, 5, 77)]))
    tracker.fold()
    tracker.record_message_redelivery(1, 4, 3)
    files.fail = {"rename"}
    with pytest.raises(errors.StorageError):
        tracker.reset(1, 0)
    assert tracker.redelivery_counts() == [(1, 4, 3)]
    assert tracker.due_times() == [(1, 5, 77)]
    files.fail = set()
    tracker.reset(1, 0)
    assert tracker.redelivery_counts() == tracker.due_times() == []
    tracker.close()
    tracker = open_tracker(tmp_path)
    assert tracker.redelivery_counts() == tracker.due_times() == []
    tracker.record_message_redelivery(1, 4, 1)
    assert tracker.redelivery_counts() == [(1, 4, 1)]
    tracker.close()


@pytest.mark.standard
def test_a_million_due_times_are_a_small_section_and_come_back(tmp_path: Path) -> None:
    due = [(1, at, 1_700_000_000_000 + at // 50) for at in range(1_000_000)]
    tracker = open_tracker(tmp_path)
    tracker.set_section(DUE, encode_section(DUE, due))
    tracker.fold()
    tracker.close()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size < 2_020_000
    assert open_tracker(tmp_path).due_times() == due


def test_a_damaged_count_costs_itself_only(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.fold()
    for message in (4, 9, 20):
        tracker.record_message_redelivery(1, message, 2)
    tracker.acknowledge_messages(1, 0, 2)
    tracker.close()
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[8192 + 16 + 8] ^= 1  # the count of the second record
    path.write_bytes(data)
    tracker = open_tracker(tmp_path)
    assert tracker.redelivery_counts() == [(1, 4, 2), (1, 20, 2)]
    assert tracker.acknowledged_count(1) == 2
    assert "1 damaged records" in tracker.damage[0]
    tracker.close()


def test_a_cursor_without_either_has_the_section_of_ledgers_alone(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.acknowledge_messages(1, 0, 3)
    tracker.fold()
    tracker.close()
    (path,) = tmp_path.iterdir()
    ledgers = bytes.fromhex("00 03  01 03 00  01 00 00  01 00 00")
    snapshot = path.read_bytes()[4096:8192].rstrip(b"\0") + bytes(2)
    assert snapshot == (1).to_bytes(8, "little") + len(ledgers).to_bytes(8, "little") + ledgers
    tracker = open_tracker(tmp_path)
    assert tracker.redelivery_counts() == tracker.due_times() == []
    assert tracker.acknowledged_count(1) == 3
    tracker.close()
