"""Gives every test its size, and says which tests have outgrown theirs.

size      run by             what belongs there
quick     make test-quick    what takes milliseconds: the daily work, all areas, under two minutes
standard  make test          what starts processes, kills them, repeats itself; Spark
long      make test-long     what needs hours; tests/long adds campaigns of the other sizes to it

A test is of the size of its folder, FOLDERS, unless a marker says another: `@pytest.mark.standard`.
`pytest` leaves out what is long unless it is asked for, `-m long`.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SIZES = ("quick", "standard", "long")
FOLDERS = {"spark": "standard", "benchmarks": "standard"}
ELSEWHERE = "quick"

# What is longer is remarked on, and fails nothing: the machine may have been busy.
QUICK_TEST_SECONDS = 2.0
ALL_QUICK_SECONDS = 120.0


class SizeError(pytest.UsageError):
    """A test that is of two sizes."""


def size_of(item: pytest.Item) -> str:
    """The one marker it has; raises SizeError for two."""
    named = {mark.name for mark in item.iter_markers() if mark.name in SIZES}
    if len(named) > 1:
        raise SizeError(f"{item.nodeid} is both {' and '.join(sorted(named))}")
    if named:
        return named.pop()
    parts = item.path.relative_to(HERE).parts if item.path.is_relative_to(HERE) else ("",)
    return FOLDERS.get(parts[0], ELSEWHERE)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the tests in an order that this seed says, to find those that lean on others"
    parser.addoption("--random-order", type=int, metavar="SEED", help=text)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(size_of(item))
    seed = config.getoption("--random-order")
    if seed is not None:
        random.Random(seed).shuffle(items)


class Outgrown:
    """Collects what took longer than its size says."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.quick: list[tuple[float, str]] = []
        self.only_quick = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.only_quick = all(item.get_closest_marker("quick") for item in session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "quick" in report.keywords and report.duration > QUICK_TEST_SECONDS:
            self.quick.append((report.duration, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        seconds = time.monotonic() - self.began
        if self.only_quick and seconds > ALL_QUICK_SECONDS:
            text = f"quick tests took {seconds:.0f} s, more than {ALL_QUICK_SECONDS:.0f}"
            terminalreporter.line(f"REMINDER: {text}; the longest belong to standard")
        for duration, name in sorted(self.quick, reverse=True)[:10]:
            text = f"{name} is quick and took {duration:.1f} s"
            terminalreporter.line(f"REMINDER: {text}; mark it standard if it does so again")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Outgrown(), "outgrown")
