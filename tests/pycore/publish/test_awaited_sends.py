"""Memory that runs out while the sends of coroutines are told their end: each is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from failing_memory import MEMORY_CAN_FAIL, compiled, environment

DRIVER = Path(__file__).resolve().parent / "awaited_sends.py"

pytestmark = [pytest.mark.standard, *MEMORY_CAN_FAIL]


@pytest.mark.parametrize("is_batch", ["0", "1"])
def test_an_allocation_that_fails_leaves_no_send_untold(tmp_path: Path, is_batch: str) -> None:
    """Each in turn. The send was not pending any more, and those behind it in its batch were told
    by nobody: their coroutines waited for ever."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path / "data"), is_batch],
        env=environment(compiled(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
