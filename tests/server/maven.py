"""What Maven fetches for tests of programs in Java."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FETCH_SECONDS = 900


def libraries(project: Path, to: Path) -> Path:
    """What the pom.xml of a folder depends on. Skips the test where it cannot be had."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("there is no Java, or no Maven, here")
    command = ["mvn", "-B", "-q", "-f", str(project / "pom.xml"), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={to}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS)
    if done.returncode:
        pytest.skip(f"Maven does not fetch what {project.name} needs: {done.stdout[-500:]}")
    return to
