"""A folder with a topic `orders`, its subscription `billing`, five messages and a dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Owner

import pulsarx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "events"
    with pulsarx.Client(path) as client:
        client.subscribe("orders", "billing")
        producer = client.create_producer("orders")
        for number in range(5):
            producer.send(b"order %d" % number, {"number": str(number)}, f"key-{number}")
        client.create_producer("orders-billing-DLQ").send(b"dead")
    return path


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    found = Owner(folder)
    yield found
    found.end()
