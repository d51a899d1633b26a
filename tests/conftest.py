"""Gives every test its size.

size      run by             what belongs there
quick     make test-quick    what takes milliseconds: the daily work, all areas, about two minutes
standard  make test          what starts processes, kills them, repeats itself; Spark
long      make test-long     what needs hours; tests/long adds campaigns of the other sizes to it

A test is of the size of its folder, FOLDERS, unless a marker says another: `@pytest.mark.standard`.
`pytest` leaves out what is long unless it is asked for, `-m long`.
"""

from __future__ import annotations

import random
from pathlib import Path

import part_events
import pytest
import seeds
from failure_report import FailureReport
from garbage import Garbage
from process_state import ProcessState
from support.missing_packages import MissingPackages

pytest_plugins = ["support.clients"]

HERE = Path(__file__).resolve().parent
SIZES = ("quick", "standard", "long")
FOLDERS = dict.fromkeys(("benchmarks", "forwarding", "reliability", "sharing", "spark"), "standard")
ELSEWHERE = "quick"


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


def pytest_configure(config: pytest.Config) -> None:
    part_events.register(config)
    config.pluginmanager.register(MissingPackages(("test", "spark")), "missing packages")
    config.pluginmanager.register(Garbage(), "garbage")
    config.pluginmanager.register(ProcessState(), "process state")
    config.pluginmanager.register(FailureReport(), "failure report")
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
