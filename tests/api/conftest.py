"""What the tests of the API share: a folder, a clock that stands still, clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient

import pulsarx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path where a data directory may be made."""
    return tmp_path / "data"


@pytest.fixture
def many() -> int:
    """Messages enough for threads to get into each other's way."""
    return 20_000


@pytest.fixture
def manual_clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


@pytest.fixture
def open_client(folder: Path) -> Iterator[OpenClient]:
    """Opens clients of the folder, durability os unless told; closes what is still open."""
    opened: list[pulsarx.Client] = []

    def make(url: Any = None, **options: Any) -> pulsarx.Client:
        options.setdefault("durability", "os")
        client = pulsarx.Client(folder if url is None else url, **options)
        opened.append(client)
        return client

    yield make
    for client in reversed(opened):
        client.shutdown()


@pytest.fixture
def memory_client() -> Iterator[pulsarx.Client]:
    client = pulsarx.Client("memory:")
    yield client
    client.shutdown()


@pytest.fixture
def clocked_client(manual_clock: pulsarx.ManualClock) -> Iterator[pulsarx.Client]:
    """In memory, with the manual clock."""
    client = pulsarx.Client("memory:clocked", clock=manual_clock, durability="os")
    yield client
    client.shutdown()
