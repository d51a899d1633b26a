"""AckTracker beside an obviously right model: sets of ordinals."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from failing_files import PlainFiles
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from seeds import scaled

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore

IDENTITY = b"cursor 7 of here"
SIZE = 300  # messages looked at in each ledger of the model


def open_tracker(folder: Path) -> AckTracker:
    return AckTracker(CursorStore(PlainFiles(), str(folder / "7"), IDENTITY))


class ModelLedger:
    """The acknowledged ordinals of one ledger; size is None while it is open."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.size: int | None = None


class TrackerBesideModel(RuleBasedStateMachine):
    """Random calls to both; whatever can be asked must be the same."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledgers: dict[int, ModelLedger] = {}
        self.below = 0
        self.next_id = 3
        self.tracker = self.opened()

    def opened(self) -> AckTracker:
        return open_tracker(self.folder) if self.durable else AckTracker()

    def teardown(self) -> None:
        self.tracker.close()
        shutil.rmtree(self.folder)

    @initialize()
    def start(self) -> None:
        self.add_ledger()

    @rule()
    def add_ledger(self) -> None:
        """A new ledger; the one before it is sealed in the same breath."""
        if self.ledgers:
            newest = max(self.ledgers)
            if self.ledgers[newest].size is None:
                self.seal(newest, SIZE)
        self.ledgers[self.next_id] = ModelLedger()
        self.tracker.add_ledger(self.next_id)
        self.next_id += 2

    def seal(self, ledger_id: int, size: int) -> None:
        ledger = self.ledgers[ledger_id]
        ledger.size = size
        ledger.acknowledged = {at for at in ledger.acknowledged if at < size}
        self.tracker.seal_ledger(ledger_id, size)

    @rule(data=st.data())
    def seal_newest(self, data: st.DataObject) -> None:
        newest = max(self.ledgers)
        if self.ledgers[newest].size is None:
            self.seal(newest, data.draw(st.integers(0, SIZE)))

    @rule(data=st.data(), first=st.integers(0, SIZE), count=st.integers(0, 150) | st.just(1))
    def acknowledge(self, data: st.DataObject, first: int, count: int) -> None:
        ledger_id = data.draw(st.sampled_from(sorted(self.ledgers)))
        ledger = self.ledgers[ledger_id]
        if count == 0 or (ledger.size is not None and first + count > ledger.size):
            if ledger_id >= self.tracker.mark_delete()[0]:
                with pytest.raises(errors.NotAllowedError):
                    self.tracker.acknowledge_messages(ledger_id, first, count)
            return
        count = min(count, SIZE - first)
        if count == 0:
            return
        fresh = set(range(first, first + count)) - ledger.acknowledged
        assert self.tracker.acknowledge_messages(ledger_id, first, count) == len(fresh)
        ledger.acknowledged |= fresh

    @rule(data=st.data(), end=st.integers(0, SIZE))
    def acknowledge_through(self, data: st.DataObject, end: int) -> None:
        ledger_id = data.draw(st.sampled_from(sorted(self.ledgers)))
        size = self.ledgers[ledger_id].size
        if size is not None:
            end = min(end, size)
        self.tracker.acknowledge_messages_through(ledger_id, end)
        for other, ledger in self.ledgers.items():
            if other < ledger_id:
                assert ledger.size is not None
                ledger.acknowledged = set(range(ledger.size))
        self.ledgers[ledger_id].acknowledged |= set(range(end))

    @precondition(lambda self: len(self.ledgers) > 1)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        self.below = data.draw(st.sampled_from(sorted(self.ledgers)))
        self.tracker.forget_ledgers(self.below)
        self.ledgers = {at: ledger for at, ledger in self.ledgers.items() if at >= self.below}

    @rule(data=st.data(), message=st.integers(0, SIZE))
    def reset(self, data: st.DataObject, message: int) -> None:
        ledger_id = data.draw(st.sampled_from(sorted(self.ledgers)))
        size = self.ledgers[ledger_id].size
        if size is not None and message > size:
            with pytest.raises(errors.NotAllowedError):
                self.tracker.reset(ledger_id, message)
            return
        self.tracker.reset(ledger_id, message)
        for other, ledger in self.ledgers.items():
            ledger.acknowledged = set()
            if other < ledger_id:
                assert ledger.size is not None
                ledger.acknowledged = set(range(ledger.size))
        self.ledgers[ledger_id].acknowledged = set(range(message))

    @rule()
    def fold(self) -> None:
        self.tracker.fold()

    @rule()
    def rest(self) -> None:
        self.tracker.rest()

    @rule()
    def flush(self) -> None:
        self.tracker.flush()
        assert not self.tracker.dirty

    @rule(killed=st.booleans())
    def reopen(self, killed: bool) -> None:
        if not self.durable:
            return
        if killed:
            self.tracker.abandon()
        else:
            self.tracker.close()
        self.tracker = self.opened()
        assert self.tracker.damage == ()
        if self.below:
            self.tracker.forget_ledgers(self.below)
        for ledger_id, ledger in self.ledgers.items():
            self.tracker.add_ledger(ledger_id)
            if ledger.size is not None:
                self.tracker.seal_ledger(ledger_id, ledger.size)

    @invariant()
    def same(self) -> None:
        holes = 0
        for ledger_id, ledger in self.ledgers.items():
            held = ledger.acknowledged
            size = SIZE if ledger.size is None else ledger.size
            assert self.tracker.acknowledged_count(ledger_id) == len(held)
            found = set()
            at = 0
            while (at := self.tracker.next_unacknowledged_message(ledger_id, at, size)) < size:
                found.add(at)
                at += 1
            assert set(range(size)) - found == held
            for at in range(0, size, 21):
                assert self.tracker.is_message_acknowledged(ledger_id, at) == (at in held)
            holes += sum(at in held and at > 0 and at - 1 not in held for at in range(SIZE))
        assert self.tracker.hole_count() == holes
        assert self.tracker.mark_delete() == self.mark_delete()

    def mark_delete(self) -> tuple[int, int]:
        position = (self.below, 0)
        for ledger_id, ledger in sorted(self.ledgers.items()):
            at = 0
            while at in ledger.acknowledged:
                at += 1
            position = (ledger_id, at)
            if at != ledger.size:
                break
        return position


class MemoryTrackerBesideModel(TrackerBesideModel):
    durable = False


TestDurable = TrackerBesideModel.TestCase
TestDurable.settings = settings(max_examples=scaled(100), stateful_step_count=40, deadline=None)
TestMemory = MemoryTrackerBesideModel.TestCase
TestMemory.settings = settings(max_examples=scaled(60), stateful_step_count=40, deadline=None)


def test_an_unknown_ledger_is_refused_and_a_forgotten_one_counts_as_acknowledged() -> None:
    tracker = AckTracker()
    tracker.add_ledger(5)
    with pytest.raises(errors.NotAllowedError):
        tracker.acknowledge_messages(4, 0)
    with pytest.raises(errors.NotAllowedError):
        tracker.acknowledge_messages(6, 0)
    tracker.forget_ledgers(5)
    assert tracker.acknowledge_messages(4, 0) == 0
    assert tracker.is_message_acknowledged(4, 99)
    assert not tracker.is_message_acknowledged(6, 0)


def test_a_ledger_that_turns_out_shorter_forgets_acknowledgements_past_its_end() -> None:
    tracker = AckTracker()
    tracker.add_ledger(1)
    tracker.acknowledge_messages(1, 0, 50)
    tracker.acknowledge_messages(1, 70, 50)
    tracker.seal_ledger(1, 80)
    assert tracker.acknowledged_count(1) == 60
    tracker.seal_ledger(1, 40)
    assert tracker.acknowledged_count(1) == 40
    assert tracker.mark_delete() == (1, 40)


def test_everything_after_close_says_so(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    tracker.close()
    tracker.close()
    tracker.flush()
    calls: tuple[Callable[[], object], ...] = (
        tracker.mark_delete,
        tracker.hole_count,
        tracker.fold,
        lambda: tracker.add_ledger(2),
        lambda: tracker.seal_ledger(1, 5),
        lambda: tracker.forget_ledgers(1),
        lambda: tracker.acknowledge_messages(1, 0),
        lambda: tracker.acknowledge_messages_through(1, 1),
        lambda: tracker.is_message_acknowledged(1, 0),
        lambda: tracker.next_unacknowledged_message(1, 0, 9),
        lambda: tracker.acknowledged_count(1),
        lambda: tracker.reset(1, 0),
    )
    for call in calls:
        with pytest.raises(errors.AlreadyClosed):
            call()


@pytest.mark.standard
def test_memory_is_bounded_by_the_window_and_given_back() -> None:
    tracker = AckTracker()
    tracker.add_ledger(1)
    for at in range(0, 1_000_000, 2):
        tracker.acknowledge_messages(1, at + 1)
        if at >= 20_000:
            tracker.acknowledge_messages(1, at - 20_000)
    assert tracker.memory_size() < 20_000
    tracker.acknowledge_messages_through(1, 1_000_000)
    assert tracker.memory_size() < 1_000
    assert tracker.acknowledged_count(1) == 1_000_000


@pytest.mark.standard
def test_a_million_holes_cost_at_most_a_quarter_more_than_a_bit_a_message() -> None:
    tracker = AckTracker()
    tracker.add_ledger(1)
    for at in range(1, 2_000_000, 2):
        tracker.acknowledge_messages(1, at)
    assert tracker.hole_count() == 1_000_000
    assert tracker.memory_size() <= 1.25 * 2_000_000 / 8 + 4096


def test_another_thread_may_flush_while_generations_change(tmp_path: Path) -> None:
    tracker = open_tracker(tmp_path)
    tracker.add_ledger(1)
    done = threading.Event()

    def flush() -> None:
        while not done.is_set():
            tracker.flush()

    thread = threading.Thread(target=flush)
    thread.start()
    for group in range(6000):
        tracker.acknowledge_messages(1, 40 * group)
        if group % 300 == 0:
            tracker.fold()
    tracker.close()
    done.set()
    thread.join()
    again = open_tracker(tmp_path)
    assert again.acknowledged_count(1) == 6000
    assert again.damage == ()
