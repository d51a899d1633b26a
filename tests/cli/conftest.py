"""A folder with a topic `orders`, its subscription `billing`, five messages and a dead letter."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Owner, OwningProcess

import pulsarx
from pulsarx import MessageId


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each test gets a copy of: to make one waits for the disk a dozen times."""
    path = tmp_path_factory.mktemp("made") / "events"
    with pulsarx.Client(path) as client:
        client.subscribe("orders", "billing")
        producer = client.create_producer("orders")
        for number in range(5):
            producer.send(b"order %d" % number, {"number": str(number)}, f"key-{number}")
        client.create_producer("orders-billing-DLQ").send(b"dead")
    return path


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "events"))


@pytest.fixture(scope="session")
def owning_process() -> Iterator[OwningProcess]:
    with OwningProcess() as process:
        yield process


@pytest.fixture
def owner(owning_process: OwningProcess, folder: Path) -> Iterator[Owner]:
    found = Owner(owning_process, folder)
    yield found
    found.end()


@pytest.fixture
def letters(folder: Path) -> Path:
    """order 0 to order 4 are dead letters of a second subscription."""
    with pulsarx.Client(folder) as client:
        dead = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1)
        client.subscribe("orders", "audit")
        consumer = client.subscribe(
            "orders",
            "shipping",
            pulsarx.ConsumerType.Shared,
            initial_position=pulsarx.InitialPosition.Earliest,
            dead_letter_policy=dead,
            negative_ack_redelivery_delay_ms=1,
        )
        left = 5 * 2
        while left:
            consumer.negative_acknowledge(consumer.receive())
            left -= 1
        reader = client.create_reader("orders-shipping-DLQ", MessageId.earliest)
        for _ in range(5):
            reader.read_next()
    return folder
