"""Coverage-guided fuzzing of the targets of fuzz_targets.py, under sanitizers: `make test-long
LONG_ARGS="--only fuzz"`. A finding is kept in build/long/failures."""

from __future__ import annotations

import re
from pathlib import Path

import fuzzing
import pytest
from counts import counted
from fuzz_plants import PLANTS
from fuzz_seeds import seeds_of
from fuzz_targets import TARGETS
from seeds import new_seed, scaled

SECONDS = 180  # of a round
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def built() -> None:
    if why := fuzzing.missing():
        pytest.skip(why)
    fuzzing.build()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str) -> None:
    status, said = fuzzing.fuzz(name, scaled(SECONDS), new_seed())
    print(said[-20_000:])
    if told := re.search(r"stat::number_of_executed_units: +(\d+)", said):
        counted(int(told[1]), "inputs of parsers")
    assert status == 0


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    """In seconds: a missing bounds check from nothing, a wrong value from the seeds."""
    target = PLANTS[bug].target
    if "bounds" not in bug:
        for each in seeds_of(target):
            fuzzing.keep(tmp_path, each)
    status, said = fuzzing.fuzz(target, 120, new_seed(), bug=bug, folder=tmp_path)
    print(said[-20_000:])
    assert status != 0 and "fuzzing.py" in said
