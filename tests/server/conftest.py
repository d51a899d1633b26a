"""What the tests of the server share: a folder that is served, and a client of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from peer import Peer, serving
from served import Served

import pulsarx
from pulsarx.clock import ManualClock
from pulsarx.sessions.server import Server


@pytest.fixture
def open_served() -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def make(clock: ManualClock | None = None, **options: Any) -> Served:
        made.append(Served(clock, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def served(open_served: Callable[..., Served]) -> Served:
    return open_served()


@pytest.fixture
def peer(client: pulsarx.Client) -> Iterator[Peer]:
    made = Peer(serving(client))
    made.connect()
    yield made
    made.server.close()


@pytest.fixture
def server(client: pulsarx.Client) -> Iterator[Server]:
    found = serving(client)
    yield found
    found.close()
