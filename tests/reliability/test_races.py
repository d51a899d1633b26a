"""Threads that overlap in native code: nothing is lost in any of these scenes, and under the thread
sanitizer (`make test-long LONG_ARGS='--only thread-sanitizer'`) no access races. It finds each race
that is planted."""

from __future__ import annotations

from pathlib import Path

import pytest
from race_scenes import SCENES
from seeds import scaled


@pytest.mark.parametrize("name", SCENES)
def test_threads_that_overlap_lose_nothing(name: str, tmp_path: Path) -> None:
    scene, count = SCENES[name]
    scene(tmp_path / "data", scaled(count))
