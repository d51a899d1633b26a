"""Hands the `test_` functions of tests/core/test_*.pyx to pytest, fixtures included.

What is stale is compiled when the first of them is collected (compile_modules.py; `make test` has
done it). They call the compiled core, so that one must have been built.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compiled_modules import NotCompiled, compile_stale, imported  # noqa: E402

_met: list[Path] = []  # sources that may be stale


def _as_python_function(function: Any) -> Any:
    """pytest takes only functions written in Python for tests."""

    @functools.wraps(function)
    def test(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return test


class CythonTestModule(pytest.Module):
    """A test_*.pyx."""

    def _getobj(self) -> ModuleType:
        try:
            if _met:
                compile_stale(_met)
                _met.clear()
            module = imported(self.path)
        except NotCompiled as error:
            raise self.CollectError(str(error)) from error
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
