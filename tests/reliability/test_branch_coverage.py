"""The tests of the core take 95 % of its branches: what `make coverage` tells, as one test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcov") is None, reason="install gcc, which brings gcov")
def test_the_tests_of_the_core_take_its_branches() -> None:
    """It builds in a mode of its own: minutes the first time."""
    command = [sys.executable, str(ROOT / "tools" / "branches.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
