"""The source distribution: all that git tracks, so that it builds and is tested as a clone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from build_mode import ROOT

MADE = {"PKG-INFO", "setup.cfg"}  # by setuptools, beside the folder of what it found


def of_git() -> set[str]:
    """Files that are tracked, or may be."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    safe = ["git", "-c", f"safe.directory={ROOT}"]
    command = [*safe, "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {each for each in result.stdout.splitlines() if (ROOT / each).exists()}


def of_sdist(folder: Path) -> set[str]:
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = (folder / "pulsarx.egg-info" / "SOURCES.txt").read_text().splitlines()
    return {each for each in found if ".egg-info/" not in each} - MADE


def test_an_sdist_has_all_that_git_tracks_and_no_more(tmp_path: Path) -> None:
    tracked, packed = of_git(), of_sdist(tmp_path)
    assert sorted(tracked - packed) == [], "missing in the sdist: see MANIFEST.in"
    assert sorted(packed - tracked) == [], "in the sdist, and not in git"
