"""The source distribution: all that git tracks, so that it builds and is tested as a clone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
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


@pytest.mark.long
def test_what_is_unpacked_is_built_and_passes_its_tests(tmp_path: Path) -> None:
    """As somebody does who has the archive alone: half an hour on two cores."""
    command = [sys.executable, "setup.py", "-q", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = [each for each in tmp_path.iterdir() if each.is_dir()]
    others = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "MAKE", "MFLAGS")
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(others)}
    done = subprocess.run(
        ["make", "test-quick"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}{done.stderr[-20_000:]}"
