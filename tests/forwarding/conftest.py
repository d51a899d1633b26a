"""Fixtures of the tests of the forwarder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forwarded import Centre

import pulsarx


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[pulsarx.Client]:
    client = pulsarx.Client(tmp_path / "edge", durability="os")
    yield client
    client.shutdown()


@pytest.fixture
def open_centre(tmp_path: Path) -> Iterator[Callable[..., Centre]]:
    made: list[Centre] = []

    def make(is_cluster: bool = True, name: str = "centre", **options: Any) -> Centre:
        if is_cluster:
            pytest.importorskip("_pulsar")
        made.append(Centre(tmp_path / name, is_cluster, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(params=["folder", "cluster"])
def centre(open_centre: Callable[..., Centre], request: pytest.FixtureRequest) -> Centre:
    return open_centre(request.param == "cluster")


@pytest.fixture
def cluster(open_centre: Callable[..., Centre]) -> Centre:
    return open_centre()
