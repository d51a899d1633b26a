"""Skips tests of packages that are not installed, with a sentence, and nothing else.

They are those of the extras of pyproject.toml. A module of tests that imports one, a test that
does, and a test whose call of PulsarX says that it needs one, need nothing more for it. What needs
one in another process says so: `@pytest.mark.needs("celery")`. Where all are installed this does
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from extras_of_tests import packages_of

IMPORTED = {"PyJWT": "jwt", "protobuf": "google.protobuf", "pulsar-client": "_pulsar"}
WITH = {"_pulsar": "pulsar", "gevent": "greenlet"}  # which come with one package


def imported_name(requirement: str) -> str:
    """What a program imports of a package."""
    package = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return IMPORTED.get(package, package.replace("-", "_"))


def is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor is the package around it
        return False


class MissingPackages:
    """A plugin of pytest."""

    def __init__(self, extras: Iterable[str]) -> None:
        names = {imported_name(each) for each in packages_of(extras)}
        self._names = {each for each in names if not is_installed(each)}
        self._names |= {WITH[each] for each in self._names & set(WITH)}

    def sentence(self, error: BaseException | None) -> str:
        """Why a test that ended with this is skipped; "": it is not."""
        while error is not None:
            if isinstance(error, ModuleNotFoundError) and error.name:
                for each in self._names:
                    if f"{each}.".startswith(f"{error.name}.") or error.name.startswith(f"{each}."):
                        return _sentence(each)
            error = error.__cause__ if isinstance(error, ImportError) else None
        return ""

    @pytest.hookimpl
    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> pytest.Module | None:
        if not self._names:
            return None
        module: ModuleOfTests = ModuleOfTests.from_parent(parent, path=module_path)
        module.missing = self
        return module

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for mark in item.iter_markers("needs"):
            for each in mark.args:
                if not is_installed(each):
                    pytest.skip(_sentence(each))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self) -> Any:
        return (yield from self._skipping())

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Any:
        return (yield from self._skipping())

    def _skipping(self) -> Any:
        try:
            return (yield)
        except ImportError as error:
            if sentence := self.sentence(error):
                pytest.skip(sentence)
            raise


class ModuleOfTests(pytest.Module):
    """One that may import what is not there."""

    missing: MissingPackages

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            if sentence := self.missing.sentence(error.__cause__):
                pytest.skip(sentence, allow_module_level=True)
            raise


def _sentence(name: str) -> str:
    return f"{name} is not installed: `tools/bootstrap test spark` installs all that tests need"
