"""Facts about a ledger that takes the entries behind a full one: what is in it waits for the full
one to be durable, and readers of the full one are told when that has ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_files import append, make_ledger

from pulsarx import errors
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ledger.ledger_tail import LedgerTail, fence, is_final
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.testing.faults import fault_plan

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

OPEN, SEALED, ENDED = 1, 2, 3


class Switching:
    """Two ledgers of one topic, of which the second takes the entries now."""

    def __init__(self, folder: Path, durability: str, entries: int = 2) -> None:
        self.slots = PublishedEnds.memory(1)
        self.jobs: list[str] = []
        self.lane = JobQueue("lane")
        self.tail = LedgerTail(self, -1, self.lane)
        self.full, self.following = (
            make_ledger(folder / name, durability=durability, slots=self.slots)
            for name in ("full", "following")
        )
        self.tail.switch(self.full)
        for number in range(entries):
            append(self.full, number)
        self.tail.prepare(self.following)
        assert self.tail.switch_to_prepared(self.full, 0)
        assert self.tail.writer is self.following
        append(self.following, 7)

    def settle_left(self) -> None:
        self.jobs.append("settle")

    def prepare(self) -> None:
        self.jobs.append("prepare")

    def state_of(self, writer: LedgerWriter) -> int:
        state: int = self.slots.read(writer.slot)[5]
        return state


def test_the_full_one_takes_nothing_any_more_and_is_settled_in_the_lane(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "os")
    switched.lane.wait()
    assert switched.jobs == ["settle"]
    assert switched.tail.take_left() == [switched.full]
    assert switched.full.state == "fenced"
    with pytest.raises(errors.StorageError):
        append(switched.full, 1)
    assert switched.tail.switch_to_prepared(switched.full, 0)  # another publisher: it is done
    assert not switched.tail.switch_to_prepared(switched.following, 0)  # nothing is prepared
    assert switched.following.state == "open"


def test_its_slot_says_at_once_that_it_has_ended_where_readers_see_what_is_written(
    tmp_path: Path,
) -> None:
    switched = Switching(tmp_path, "os")
    assert is_final(switched.full)
    assert switched.state_of(switched.full) == ENDED
    assert switched.state_of(switched.following) == OPEN


def test_its_slot_says_that_it_has_ended_when_all_of_it_is_durable(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "sync")
    assert not is_final(switched.full)
    assert switched.state_of(switched.full) == OPEN
    switched.full.flush(1)
    assert is_final(switched.full)
    assert switched.state_of(switched.full) == ENDED
    switched.full.seal()
    assert switched.state_of(switched.full) == SEALED


def test_flushing_the_second_makes_the_first_durable_before(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "sync")
    with fault_plan() as plan:
        switched.following.flush()
        assert plan.calls("flush") == 2
    assert switched.full.durable_count == 2
    assert switched.following.published_end == switched.following.end
    assert switched.state_of(switched.full) == ENDED
    append(switched.following, 8)
    with fault_plan() as plan:
        switched.following.flush()
        assert plan.calls("flush") == 1


def test_sealing_the_second_makes_the_first_durable_before(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "sync")
    switched.following.seal()
    assert switched.full.durable_count == 2


@pytest.mark.parametrize("how", ["flush", "seal"])
def test_when_the_first_cannot_be_flushed_nothing_of_the_second_is_published(
    tmp_path: Path, how: str
) -> None:
    switched = Switching(tmp_path, "sync")
    before = switched.following.published_end
    with fault_plan() as plan:
        plan.fail("flush")
        with pytest.raises(errors.LedgerPoisonedError):
            getattr(switched.following, how)()
    assert switched.full.state == switched.following.state == "poisoned"
    assert switched.following.published_end == before
    assert switched.following.durable_count == switched.full.durable_count == 0
    for writer in (switched.following, switched.full):
        with pytest.raises(errors.LedgerPoisonedError):
            writer.flush()
    with pytest.raises(errors.LedgerPoisonedError):
        append(switched.following, 8)


def test_what_fails_in_the_second_leaves_the_first_as_it_is(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "sync")
    with fault_plan() as plan:
        plan.fail("flush", 2)
        with pytest.raises(errors.LedgerPoisonedError):
            switched.following.flush()
    assert switched.full.durable_count == 2
    assert switched.full.seal().entry_count == 2


def test_the_first_is_let_go_when_it_is_sealed(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "os")
    assert switched.following.before is switched.full
    switched.full.seal(flush=False)
    switched.following.forget_before()
    assert switched.following.before is None
    switched.full.close()
    switched.following.flush()


def test_a_slot_that_is_anothers_by_now_is_not_written_to(tmp_path: Path) -> None:
    switched = Switching(tmp_path, "os")
    switched.full.seal(flush=False)
    switched.slots.release(switched.full.slot)
    other = make_ledger(tmp_path / "other", slots=switched.slots)
    assert other.slot == switched.full.slot
    switched.full.close()
    assert switched.state_of(other) == OPEN


def test_a_ledger_that_nothing_follows_never_ends_by_itself(tmp_path: Path) -> None:
    slots = PublishedEnds.memory(1)
    writer = make_ledger(tmp_path / "ledger", durability="sync", slots=slots)
    append(writer, 1)
    fence(writer)
    writer.flush()
    assert slots.read(writer.slot)[5] == OPEN
