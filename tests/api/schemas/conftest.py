"""What the tests of schemas share."""

from __future__ import annotations

import pytest

import pulsarx


@pytest.fixture
def client(memory_client: pulsarx.Client) -> pulsarx.Client:
    return memory_client
