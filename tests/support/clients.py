"""Fixtures of all tests: a folder, a clock that stands still, clients. A folder of tests, or a
module, may have others under these names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from support.forgotten_clients import close_forgotten

OpenClient = Callable[..., pulsarx.Client]


@contextmanager
def clients_of(folder: Path) -> Iterator[OpenClient]:
    """Opens clients of a folder, durability os unless told; closes what is still open."""
    opened: list[pulsarx.Client] = []

    def make(url: Any = None, **options: Any) -> pulsarx.Client:
        options.setdefault("durability", "os")
        client = pulsarx.Client(folder if url is None else url, **options)
        opened.append(client)
        return client

    try:
        yield make
    finally:
        for client in reversed(opened):
            client.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path where a data directory may be made."""
    return tmp_path / "data"


@pytest.fixture
def nothing_forgotten() -> None:
    """For tests that look at what all of the process does. Before other fixtures: by a mark."""
    close_forgotten()


@pytest.fixture
def manual_clock() -> pulsarx.ManualClock:
    return pulsarx.ManualClock()


@pytest.fixture
def open_client(folder: Path) -> Iterator[OpenClient]:
    """As clients_of says."""
    with clients_of(folder) as make:
        yield make


@pytest.fixture
def memory_client() -> Iterator[pulsarx.Client]:
    client = pulsarx.Client("memory:")
    yield client
    client.shutdown()


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    """In memory; what is sent is seen at once."""
    made = pulsarx.Client("memory:", durability="os")
    yield made
    made.shutdown()


@pytest.fixture
def clocked_client(manual_clock: pulsarx.ManualClock) -> Iterator[pulsarx.Client]:
    """In memory, with the manual clock."""
    client = pulsarx.Client("memory:clocked", clock=manual_clock, durability="os")
    yield client
    client.shutdown()
