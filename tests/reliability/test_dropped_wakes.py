"""A thread that waits is woken for each message, in one process and in several; a wake-up that is
dropped is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compiled_modules import compile_stale
from planted_code import CAN_PLANT, REASON
from seeds import SCALE

HERE = Path(__file__).resolve().parent
CHILD = HERE / "waiting_child.py"
WAYS = ["receive", "listener", "guest"]
WAYS += ["durable receive", "two topics"] if SCALE >= 1 else []
NOBODY = -1
PATIENCE = 60.0  # for what comes
DEADLINE = 2.0  # for what does not: it bounds how long the bug takes, and never fails a good wake

pytestmark = pytest.mark.skipif(not CAN_PLANT, reason=REASON)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_stale([HERE / "dropped_wakes.pyx"])


def wait_in_a_child(folder: Path, way: str, number: int, seconds: float) -> tuple[int, str]:
    """How many events a message wakes there, and whether all came."""
    arguments = [sys.executable, str(CHILD), str(folder), way, str(number), str(seconds)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=10 * PATIENCE)
    assert done.returncode == 0, done.stderr
    events, answer = done.stdout.split()
    return int(events), answer


@pytest.mark.parametrize("way", WAYS)
def test_who_waits_is_woken_for_each_message(way: str, tmp_path: Path) -> None:
    events, answer = wait_in_a_child(tmp_path / "data", way, NOBODY, PATIENCE)
    assert answer == "came"
    assert events


@pytest.mark.parametrize("way", WAYS)
def test_a_wake_up_that_is_dropped_is_noticed(way: str, tmp_path: Path) -> None:
    number, events = 0, 1
    while number < events:
        folder = tmp_path / str(number)
        events, answer = wait_in_a_child(folder, way, number, DEADLINE)
        if answer == "lost":
            print(f"noticed with event {number + 1} of {events}")
            return
        number += 1
    pytest.fail(f"{events} events are woken, and none is missed")
