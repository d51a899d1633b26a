"""What the tests of the admin REST API share: a folder that is administered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from administered import Administered


@pytest.fixture
def open_administered() -> Iterator[Callable[..., Administered]]:
    made: list[Administered] = []

    def make(*arguments: Any, **options: Any) -> Administered:
        made.append(Administered(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def administered(open_administered: Callable[..., Administered]) -> Administered:
    return open_administered()
