"""What the tests of the server share: a folder that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Served

from pulsarx.clock import ManualClock


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
