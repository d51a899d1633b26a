"""Threads that overlap in native code: nothing is lost in any of these scenes, and under the thread
sanitizer (`make test-long LONG_ARGS='--only thread-sanitizer'`) no access races. It finds each race
that is planted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from planted_code import CAN_PLANT, REASON
from race_child import IN_THE_LIBRARY, PLANTED
from race_scenes import SCENES, UNDER_SANITIZER
from seeds import scaled

CHILD = Path(__file__).resolve().parent / "race_child.py"


@pytest.mark.parametrize("name", SCENES)
def test_threads_that_overlap_lose_nothing(name: str, tmp_path: Path) -> None:
    scene, count = SCENES[name]
    scene(tmp_path / "data", scaled(count))


@pytest.mark.long
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_race_is_found(bug: str) -> None:
    if not UNDER_SANITIZER:
        pytest.skip("it is for the campaign thread-sanitizer, with the library built for that")
    if bug == IN_THE_LIBRARY and not CAN_PLANT:
        pytest.skip(REASON)
    # It is told here, and not to who runs the campaign.
    options = re.sub(r"log_path=[^:]*", "log_path=stderr", os.environ["TSAN_OPTIONS"])
    environment = os.environ | {"TSAN_OPTIONS": options}
    command = [sys.executable, str(CHILD), bug]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert "WARNING: ThreadSanitizer" in done.stderr, done.stderr
    assert bug in done.stderr
