"""What the tests of the admin REST API share: a folder that is administered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from administered import Administered
from chromium import Chromium


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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One for all tests: starting it takes a second."""
    found = Chromium(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def chromium(browser: Chromium) -> Chromium:
    browser.open("about:blank")
    browser.resize(1400, 900)
    return browser
