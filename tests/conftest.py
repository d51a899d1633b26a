"""Gives every test its size.

size      run by             what belongs there
quick     make test-quick    what takes milliseconds: the daily work, all areas, under two minutes
standard  make test          what starts processes, kills them, repeats itself; Spark
long      make test-long     what needs hours; tests/long adds campaigns of the other sizes to it

A test is of the size of its folder, FOLDERS, unless a marker says another: `@pytest.mark.standard`.
`pytest` leaves out what is long unless it is asked for, `-m long`.
"""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import part_events
import pytest

HERE = Path(__file__).resolve().parent
SIZES = ("quick", "standard", "long")
FOLDERS = {"spark": "standard", "benchmarks": "standard", "sharing": "standard"}
ELSEWHERE = "quick"

# What failed or was dropped waits for the garbage collector with its files open, and that comes
# seldom in a large process; from 1024 on some of the standard library takes no file.
MOST_FILES = 300


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


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thirteen thousand tests and their modules are looked through by every collection otherwise:
    half a second, in tests that collect at every call."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    if len(os.listdir("/proc/self/fd")) > MOST_FILES:
        gc.collect()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(size_of(item))
    seed = config.getoption("--random-order")
    if seed is not None:
        random.Random(seed).shuffle(items)


def pytest_configure(config: pytest.Config) -> None:
    part_events.register(config)
    bear_a_busy_machine()


def bear_a_busy_machine() -> None:
    """Hypothesis fails an example that takes 0.2 s, and a test whose examples are made slowly."""
    from hypothesis import HealthCheck, settings

    profile = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("busy", **profile)
    settings.load_profile("busy")
