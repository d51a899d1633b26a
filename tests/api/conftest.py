"""What the tests of the API share."""

from __future__ import annotations

import pytest


@pytest.fixture
def many() -> int:
    """Messages enough for threads to get into each other's way."""
    return 20_000
