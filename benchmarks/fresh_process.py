"""Runs a part of a benchmark in an interpreter of its own, and reads the figures it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TREE = HERE.parent / "build" / "tree"


def run_fresh(*arguments: str, tree: Path = TREE) -> dict[str, Any]:
    """`python *arguments`; its last line is a JSON object."""
    # Where this interpreter finds the library, that one shall: not everybody has it installed.
    paths = [str(tree), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # An installed library has its byte code; compiling it anew takes longer than importing it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)[:80]} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_figures(**figures: float) -> None:
    """What the process run by run_fresh ends with."""
    print(json.dumps(figures))
