"""Facts about crashes that a test makes: what was confirmed is there after each, what was not may
be gone, and every run has the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import pulsarx
from pulsarx.randomness import Randomness
from pulsarx.testing import (
    Crash,
    CrashPlan,
    acknowledged,
    crash_plan,
    fault_plan,
    messages,
    published,
)

ORDERS = [b"%d" % number for number in range(8)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "shop"


def publish(plan: CrashPlan, durability: str = "sync") -> None:
    clock = pulsarx.ManualClock()
    chance = Randomness(1)
    with pulsarx.Client(
        plan.folder, durability=durability, clock=clock, randomness=chance
    ) as client:
        producer = client.create_producer("orders")
        for order in ORDERS:
            producer.send(order)
            plan.note(order)


def lacks(folder: Path, expected: list[bytes]) -> bool:
    """Whether some of these messages are not there."""
    if not expected:
        return False
    with pulsarx.Client(folder) as client:
        try:
            return bool(set(expected) - {each.data() for each in messages(client, "orders")})
        except pulsarx.TopicNotFound:
            return True


def test_what_was_confirmed_survives_kills_and_power_cuts(place: Path):
    with crash_plan(place, seed=1) as plan:
        publish(plan)
        crashes = [(each.kind, each.notes) for each in plan.crashes(40) if not lost(each)]
    assert len(crashes) == 40
    assert {kind for kind, _ in crashes} == {"kill", "power cut"}
    assert {len(notes) for _, notes in crashes} >= {0, len(ORDERS)}


def lost(crash: Crash) -> bool:
    return lacks(crash.folder, crash.notes)


def test_a_program_that_does_not_wait_for_the_device_is_found(place: Path):
    """With durability "os" a message is confirmed before it is flushed."""
    with crash_plan(place, seed=1) as plan:
        publish(plan, durability="os")
        kinds = {each.kind for each in plan.crashes(40) if lost(each)}
    assert kinds == {"power cut"}


@pytest.mark.parametrize("seed", range(5))
def test_twenty_crashes_find_it_with_any_seed(place: Path, seed: int):
    """Most of what is done in a folder makes it, and most power cuts fell there."""
    with crash_plan(place, seed=seed) as plan:
        publish(plan, durability="os")
        assert any(lost(each) for each in plan.crashes())


def test_a_crash_now_goes_beside_the_program(place: Path):
    with crash_plan(place) as plan, pulsarx.Client(place) as client:
        consumer = client.subscribe("orders", "billing")
        producer = client.create_producer("orders")
        producer.send(b"one")
        consumer.acknowledge(consumer.receive(60_000))
        producer.send(b"two")
        crash = plan.kill()
        producer.send(b"three")
        assert consumer.receive(60_000).data() == b"two"
        with pulsarx.Client(crash.folder) as survivor:
            published(survivor, "orders", b"one", b"two", only=True)
            acknowledged(survivor, "orders", "billing", b"one")
            assert survivor.subscribe("orders", "billing").receive(60_000).data() == b"two"
        assert (crash.kind, crash.notes) == ("kill", [])
        assert "behind all" in repr(crash) and str(crash.folder) in repr(crash)


def test_what_is_not_flushed_is_there_or_not(place: Path):
    with crash_plan(place) as plan, pulsarx.Client(place, durability="os") as client:
        producer = client.create_producer("orders")
        client.admin.topics.create_subscription("orders", "billing")
        producer.send(b"one")
        outcomes = {lacks(plan.power_cut().folder, [b"one"]) for _ in range(20)}
    assert outcomes == {True, False}


def test_a_crash_is_in_front_of_an_operation(place: Path):
    with crash_plan(place) as plan:
        with pulsarx.Client(place) as client:
            client.create_producer("orders").send(b"one")
        before, behind = plan.kill("write", 1), plan.kill("write", 3)
        with pytest.raises(ValueError, match="there were"):
            plan.power_cut("write", 10_000)
        with pytest.raises(ValueError, match="there were 0"):
            plan.kill("swim")
    assert "write" in repr(before) and "write" in repr(behind)


def test_the_same_seed_has_the_same_crashes(place: Path):
    with crash_plan(place, seed=7) as plan:
        publish(plan, durability="os")
        first, second = (
            [(repr(each).rpartition(":")[0], contents(each.folder)) for each in plan.crashes()]
            for _ in range(2)
        )
    assert first == second
    assert all("seed 7" in said for said, _ in first)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_may_hold_something_before(place: Path):
    with pulsarx.Client(place) as client:
        client.create_producer("orders").send(b"one")
    with crash_plan(place) as plan:
        with pulsarx.Client(place) as client:
            client.create_producer("orders").send(b"two")
        for crash in plan.crashes(10):
            with pulsarx.Client(crash.folder) as client:
                published(client, "orders", b"one")


@pytest.mark.parametrize("how", ["relative", "link"])
def test_a_folder_has_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "real")
    given = "shop" if how == "relative" else tmp_path / "link" / "shop"
    with crash_plan(given) as plan, pulsarx.Client(given) as client:
        client.create_producer("orders").send(b"one")
        assert not lacks(plan.power_cut().folder, [b"one"])


def test_there_is_one_plan_at_a_time(place: Path):
    with crash_plan(place) as plan:
        with pytest.raises(RuntimeError, match="crash_plan is in force"), fault_plan():
            pass
        publish(plan)
        crash = plan.kill()
        assert not lost(crash)
    assert not crash.folder.exists()
    with pytest.raises(RuntimeError, match="behind the block"):
        plan.power_cut()
    refused = pytest.raises(RuntimeError, match="fault_plan is in force")
    with fault_plan(), refused, crash_plan(place):
        pass
    with pulsarx.Client(place), pytest.raises(RuntimeError, match="is open"), crash_plan(place):
        pass
