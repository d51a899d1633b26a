"""Random histories of an owner and its guests, in one thread of control: a seed says who goes on,
what arrives, who is killed or stopped.

A failure is printed as a plan, which `run_plan` repeats; PULSARX_TEST_SEED repeats the whole run.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import seeds
from counts import counted
from guest_history import History, Plan, new_plan
from shrunk_plan import described, failure_of, shrunk_plan
from simulated_thread import in_simulation
from simulation_bugs import PLANTED, planted

HISTORIES = 500
SEEDS_OF_A_RUN = 1_000_000
COLLECT_EVERY = 10  # histories, which have some hundred files open by then
ENOUGH = 150  # histories, in which each bug is found


def test_histories_keep_what_is_promised() -> None:
    seed = seeds.new_seed()

    def work() -> None:
        for number in range(seeds.scaled(HISTORIES)):
            plan = new_plan(seed * SEEDS_OF_A_RUN + number)
            failure = failure_of(plan)
            if failure is not None:
                raise AssertionError(described(plan, failure)) from failure
            if number % COLLECT_EVERY == 0:
                gc.collect()

    in_simulation(work)
    counted(seeds.scaled(HISTORIES), "histories")


def test_a_seed_repeats_its_history(tmp_path: Path) -> None:
    found = []

    def work() -> None:
        for number in range(2):
            history = History(new_plan(46), tmp_path / f"{number}")
            history.run()
            found.append((history.seen, history.world.scheduler.steps))

    in_simulation(work)
    assert found[0] == found[1]


@pytest.mark.parametrize("bug", PLANTED)
def test_the_simulation_finds(bug: str) -> None:
    found: list[Plan] = []

    def work() -> None:
        with planted(bug):
            for number in range(ENOUGH):
                plan = new_plan(seeds.FIXED * SEEDS_OF_A_RUN + number)
                if failure_of(plan) is not None:
                    print(f"found by history {number + 1}")
                    found.append(plan)
                    return

    in_simulation(work)
    assert found, f"{ENOUGH} histories have not found that {bug}"


def test_a_failing_plan_is_shrunk_to_the_steps_that_matter() -> None:
    plan = Plan(1, {"s0": "Shared"}, False, False, tuple(("stop", at, 0) for at in range(20)))
    short = shrunk_plan(plan, lambda tried: {("stop", 3, 0), ("stop", 11, 0)} <= set(tried.steps))
    assert short.steps == (("stop", 3, 0), ("stop", 11, 0))
