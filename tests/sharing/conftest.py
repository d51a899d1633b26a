"""Fixtures of the tests of several processes on one folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing_process import SharingProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def processes() -> Iterator[list[SharingProcess]]:
    """Those that a test starts, which are killed when it ends."""
    started: list[SharingProcess] = []
    yield started
    for each in started:
        each.__exit__(None, None, None)
