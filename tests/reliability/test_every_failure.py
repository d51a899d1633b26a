"""Every call on files and every allocation fails in turn, while messages are published, received
and acknowledged, while owners change, and while folders are copied: what was confirmed is there
afterwards, no call hangs, and all is told by errors that are documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from counts import counted
from failing_memory import MEMORY_CAN_FAIL, compiled, environment
from failure_scenes import SCENES
from planted_failures import PLANTED
from seeds import SCALE, seed_of

HERE = Path(__file__).resolve().parent
DRIVER = HERE / "failing_sweep.py"
# Of some thousands of each scene; in a campaign, each round takes a share of all.
FILE_POINTS = 4
FILE_SHARES = 16
MEMORY_POINTS = 2
MEMORY_SHARES = 64
IN_A_CAMPAIGN = SCALE >= 1
# pyarrow, which writes to the store, ends the process where it has no memory.
MEMORY_SCENES = [each for each in SCENES if each != "offload"]

pytestmark = MEMORY_CAN_FAIL


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("failures")
    return [compiled(folder), compiled(folder, HERE / "failing_files.c")]


def sweep(
    folder: Path, libraries: list[Path], kind: str, scenes: str, points: str, *bug: str
) -> subprocess.CompletedProcess[str]:
    added = environment(*libraries, of_python=kind == "memory")
    return subprocess.run(
        [sys.executable, str(DRIVER), str(folder), kind, scenes, points, *bug],
        env=added,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def points(count: int, shares: int) -> str:
    return f"{seed_of(0) % shares}/{shares}" if IN_A_CAMPAIGN else str(count)


def count(told: str, what: str) -> None:
    print(told)
    counted(sum(map(int, re.findall(r" points, (\d+) struck", told))), what)


@pytest.mark.parametrize("scene", SCENES if IN_A_CAMPAIGN else [",".join(SCENES)])
def test_a_call_on_files_that_fails_loses_nothing(
    tmp_path: Path, libraries: list[Path], scene: str
) -> None:
    """A ledger that could not be looked at was taken for one that is gone, and its messages for
    acknowledged; a folder could not be flushed behind a signal."""
    done = sweep(tmp_path, libraries, "files", scene, points(FILE_POINTS, FILE_SHARES))
    assert done.returncode == 0, done.stdout
    count(done.stdout, "failed calls on files")


@pytest.mark.parametrize("scene", MEMORY_SCENES if IN_A_CAMPAIGN else [",".join(MEMORY_SCENES)])
def test_an_allocation_that_fails_loses_nothing(
    tmp_path: Path, libraries: list[Path], scene: str
) -> None:
    done = sweep(tmp_path, libraries, "memory", scene, points(MEMORY_POINTS, MEMORY_SHARES))
    assert done.returncode == 0, done.stdout
    count(done.stdout, "failed allocations")


# What used to be wrong: the scene, and the faults that showed it.
FOUND = {
    "a ledger that could not be looked at was gone": ("receive", "system:stat", 12),
    "a read that was cut short was the end of a file": ("salvage", "system:read:short", 8),
    "a folder was not flushed behind a signal": ("publish", "system:open:error:EINTR", 6),
    "errors of the system left a salvage as they were": ("salvage", "system:close", 6),
    "what closing refused left a backup half removed": ("back-up", "system:close", 6),
    "the snapshot of a deduplication could not be read": ("recover", "plan:read:error", 8),
    "an owner that refused once lost a producer for good": ("take-over", "plan:map:error", 2),
}


def test_what_was_found_is_not_there_any_more(tmp_path: Path, libraries: list[Path]) -> None:
    columns = zip(*FOUND.values(), strict=True)
    scenes, kinds, counts = (",".join(map(str, each)) for each in columns)
    done = sweep(tmp_path, libraries, kinds, scenes, counts)
    assert done.returncode == 0 and " 0 struck" not in done.stdout, done.stdout


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(tmp_path: Path, libraries: list[Path], bug: str) -> None:
    planted = PLANTED[bug]
    done = sweep(tmp_path, libraries, planted.kind, planted.scene, str(planted.points), bug)
    assert done.returncode == 1 and " left something wrong" in done.stdout, done.stdout
    assert ", 0 left something wrong" not in done.stdout, done.stdout
