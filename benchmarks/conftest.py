"""What the benchmarks are handed: how much to measure, a scratch folder, a measurement."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measurement import FULL, QUICK, Measurement, Sizes
from topic_in_folder import TopicInFolder

# On the file system of the clone: the system's folder for temporary files is often memory.
SCRATCH = Path(__file__).resolve().parent / "scratch"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="a few small rounds: figures mean little")
    parser.addoption("--spark-messages", type=int, help="other than 5 million; 4 times it for 20")
    parser.addoption("--pulsar-url", help="of a real Pulsar")
    parser.addoption("--java-classpath", help="of the official Java client")


@pytest.fixture(scope="session")
def sizes(request: pytest.FixtureRequest) -> Sizes:
    found = QUICK if request.config.getoption("--quick") else FULL
    messages = request.config.getoption("--spark-messages")
    if messages:
        found = replace(found, spark_messages=messages, spark_messages_large=4 * messages)
    return found


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder of this run, gone at its end."""
    folder = SCRATCH / f"run-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def measurement(benchmark: Any, sizes: Sizes) -> Measurement:
    return Measurement(benchmark, sizes)


@pytest.fixture
def topic(scratch: Path, request: pytest.FixtureRequest) -> Iterator[TopicInFolder]:
    """durability="os", batching on, a subscription attached."""
    with TopicInFolder(scratch / request.node.name) as opened:
        yield opened
