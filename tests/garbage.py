"""What the collector of garbage has to look through while tests run: tests collect at every call.

Tests and their modules stay until the end, so they are kept apart from what tests make.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest

# What failed or was dropped waits for the collector with its files open, and that comes seldom in a
# large process; from 1024 on some of the standard library takes no file.
FILES_MAX = 300


class Garbage:
    """One for a process of tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        gc.disable()  # all that is made now stays
        try:
            return (yield)
        finally:
            gc.enable()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()

    def pytest_runtest_logfinish(self) -> None:
        if len(os.listdir("/proc/self/fd")) > FILES_MAX:
            gc.collect()
