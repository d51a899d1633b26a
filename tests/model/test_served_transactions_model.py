"""Random histories of transactions of a client of a network agree with a plain model, however often
its broker is killed: all of one counts or nothing, never twice; and bugs of that kind are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from counts import counted
from seeds import seeds
from served_history import BUGS

HERE = Path(__file__).resolve().parent
STEPS = 40
SESSIONS = 5


def history(
    folder: Path, seed: int, sessions: int, durability: str, *bug: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HERE / "served_history.py"), str(folder / "f"), str(seed),
         str(sessions), str(STEPS), durability, *bug],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
@pytest.mark.parametrize("seed", seeds(3))
def test_each_goes_on_and_counts_whole_or_not_at_all(
    tmp_path: Path, seed: int, durability: str
) -> None:
    done = history(tmp_path, seed, SESSIONS, durability)
    assert done.returncode == 0, done.stdout
    print(done.stdout)
    counted(SESSIONS, "brokers in histories of transactions of a network")


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(tmp_path: Path, bug: str) -> None:
    done = history(tmp_path, 0, 20, "os", bug)
    assert done.returncode == 1 and "AssertionError" in done.stdout, done.stdout
    print(done.stdout[-2000:])
