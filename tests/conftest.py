"""Gives every test its size, and says which tests have outgrown theirs.

size      run by             what belongs there
quick     make test-quick    what takes milliseconds: the daily work, all areas, under two minutes
standard  make test          what starts processes, kills them, repeats itself; Spark
long      make test-long     what needs hours; tests/long adds campaigns of the other sizes to it

A test is of the size of its folder, FOLDERS, unless a marker says another: `@pytest.mark.standard`.
`pytest` leaves out what is long unless it is asked for, `-m long`.

`pytest -n auto`, as make runs it, gives files of tests to one process more than there are
processors. A file stays in one process, and so does each folder of TOGETHER.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
import seeds
from failure_report import FailureReport
from garbage import Garbage
from process_state import ProcessState

HERE = Path(__file__).resolve().parent
SIZES = ("quick", "standard", "long")
FOLDERS = {"spark": "standard", "benchmarks": "standard", "sharing": "standard"}
ELSEWHERE = "quick"
TOGETHER = ("spark",)  # one session of Spark for all of its files: starting one takes seconds
# Half of the time of a run tests wait: for processes that start or are killed, for the disk.
MORE_WORKERS = 1
MOST_WORKERS = 4  # tests that kill processes and wait for them win nothing by more

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
    elif hasattr(config, "workerinput"):
        items[:] = longest_first(items)


def unit_of(nodeid: str) -> str:
    """What one process runs as a whole: the folder of TOGETHER, or the file of the test."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in file.split("/") if folder in TOGETHER), file)


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Begin with what takes longest, so that no process is left with it alone at the end: folders
    of TOGETHER, then files with standard tests."""
    standard = {unit_of(each.nodeid) for each in items if each.get_closest_marker("standard")}

    def rank(item: pytest.Item) -> int:
        unit = unit_of(item.nodeid)
        return 0 if unit in TOGETHER else 1 if unit in standard else 2

    return sorted(items, key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return min(len(os.sched_getaffinity(0)) + MORE_WORKERS, MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        """In the order of collection. Not `--dist loadgroup`, which changes the names of tests."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)


class Outgrown:
    """Collects what took longer than its size says."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.quick: list[tuple[float, str]] = []
        self.only_quick = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.only_quick &= "quick" in report.keywords
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
    config.pluginmanager.register(Garbage(), "garbage")
    config.pluginmanager.register(ProcessState(), "process state")
    config.pluginmanager.register(FailureReport(), "failure report")
    config.pluginmanager.register(Outgrown(), "outgrown")
    bear_a_busy_machine(config)


def bear_a_busy_machine(config: pytest.Config) -> None:
    """Hypothesis fails an example that takes 0.2 s, and a test whose examples are made slowly. It
    draws the same in each run, but in a campaign."""
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "busy",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not seeds.GIVEN and not config.getoption("--hypothesis-seed", None),
    )
    settings.load_profile("busy")
