"""What the tests of columns share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from arrow_topic import ArrowTopic

import pulsarx


@pytest.fixture
def topic(memory_client: pulsarx.Client) -> Iterator[ArrowTopic]:
    yield ArrowTopic(memory_client)
