"""Modules of the tests that are written in Cython: compiled when they are stale, and imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from compile_modules import library_of

COMPILER = Path(__file__).resolve().parent / "compile_modules.py"
FOR_SANITIZERS = {"LD_PRELOAD", "PYTHONMALLOC"}


class NotCompiled(Exception):
    """The text is all that the compilers, or the import, said."""


def compile_stale(sources: Sequence[Path]) -> None:
    """In a process of its own, which compiles them in parallel."""
    # Compilers need no sanitizers, and are twice as slow with them.
    environment = {name: os.environ[name] for name in os.environ if name not in FOR_SANITIZERS}
    result = subprocess.run(
        [sys.executable, str(COMPILER), *map(str, sources)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode:
        raise NotCompiled(result.stdout)


def imported(source: Path) -> ModuleType:
    """The module of a source that is compiled."""
    name = source.stem
    spec = importlib.util.spec_from_file_location(name, library_of(source))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NotCompiled(
            f"{name} compiles but cannot be imported; is the core built? (`make test`)\n{error}"
        ) from error
    return module


def compiled_module(source: Path) -> ModuleType:
    """The module of a source."""
    compile_stale([source])
    return imported(source)
