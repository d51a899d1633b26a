"""Hands the `test_` functions of tests/core/test_*.pyx to pytest, fixtures included.

What is stale is compiled when the first of them is collected (compile_modules.py; `make test` has
done it). They call the compiled core, so that one must have been built.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
COMPILER = HERE / "compile_modules.py"
FOR_SANITIZERS = {"LD_PRELOAD", "PYTHONMALLOC"}
sys.path.insert(0, str(HERE))

from compile_modules import library_of  # noqa: E402

_met: list[Path] = []  # sources that may be stale


def _compile_what_was_met() -> None:
    """All at once, for they are compiled in parallel. Raises with all the compilers said."""
    sources = [str(each) for each in _met]
    if not sources:
        return
    # Compilers need no sanitizers, and are twice as slow with them.
    environment = {name: os.environ[name] for name in os.environ if name not in FOR_SANITIZERS}
    result = subprocess.run(
        [sys.executable, str(COMPILER), *sources],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if result.returncode:
        raise pytest.Collector.CollectError(result.stdout)
    _met.clear()


def _imported(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        text = f"{name} compiles but cannot be imported; is the core built? (`make test`)\n{error}"
        raise pytest.Collector.CollectError(text) from error
    return module


def _as_python_function(function: Any) -> Any:
    """pytest takes only functions written in Python for tests."""

    @functools.wraps(function)
    def test(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return test


class CythonTestModule(pytest.Module):
    """A test_*.pyx."""

    def _getobj(self) -> ModuleType:
        _compile_what_was_met()
        module = _imported(self.path.stem, library_of(self.path))
        vars(module).pop("__test__", None)  # Cython's table of doctests; empty, it hides the module
        for name, value in list(vars(module).items()):
            if name.startswith("test_") and callable(value):
                setattr(module, name, _as_python_function(value))
        return module

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        collected = list(super().collect())
        if not collected:
            raise self.CollectError(f"{self.path.name} holds no test_ function")
        return collected


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".pyx" or not file_path.name.startswith("test_"):
        return None
    _met.append(file_path)
    return CythonTestModule.from_parent(parent, path=file_path)
