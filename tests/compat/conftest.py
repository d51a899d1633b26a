"""Programs under the alias, each in a process of its own: what is imported there stays there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pulsarx

PATIENCE_SECONDS = 60

Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., Ran]:
    """Runs Python with these arguments in an empty folder."""

    def run(*arguments: str, **environment: str) -> Ran:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    return run


@pytest.fixture
def program(python: Callable[..., Ran]) -> Callable[[str], list[str]]:
    """Runs a program that must end well; the lines it prints."""

    def run(text: str) -> list[str]:
        ran = python("-c", text)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    return run
