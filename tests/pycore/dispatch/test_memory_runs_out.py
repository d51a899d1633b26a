"""Memory that runs out while consumers join, receive, acknowledge and leave: the caller is told,
and what dispatchers know of messages stays whole, so that all are delivered in the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from failing_memory import MEMORY_CAN_FAIL, compiled, environment
from seeds import seeds

HERE = Path(__file__).resolve().parent
DRIVER = HERE / "memory_runs_out.py"

pytestmark = [pytest.mark.standard, *MEMORY_CAN_FAIL]

# Functions that are looked at, the nearest first, and failures in a row: once what the library asks
# for itself fails, until the calls are over, and once what Python asks for in its name.
WAYS = ("1,1", "1,1000000", "12,1")
# Of those that are asked for at one place: the first, the last, and one between.
OF_A_PLACE = 3


@pytest.fixture(scope="module")
def failing_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("failing_memory"))


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(
    "kind", ["Shared", "KeyShared", "KeySharedOutOfOrder", "Exclusive", "Failover"]
)
def test_an_allocation_that_fails_loses_no_message(
    failing_memory: Path, kind: str, seed: int
) -> None:
    """Each in turn. Messages used to be in no queue and in no table any more after it: no consumer
    got them until all had been closed, and counts went below zero."""
    command = [sys.executable, str(DRIVER), kind, str(seed), str(OF_A_PLACE), *WAYS]
    done = subprocess.run(
        command,
        env=environment(failing_memory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
