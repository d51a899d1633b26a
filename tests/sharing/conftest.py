"""Fixtures of the tests of several processes on one folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing_process import SharingProcess

import pulsarx


@pytest.fixture
def processes() -> Iterator[list[SharingProcess]]:
    """Those that a test starts, which are killed when it ends."""
    started: list[SharingProcess] = []
    yield started
    for each in started:
        each.__exit__(None, None, None)


@pytest.fixture
def owner(folder: Path, processes: list[SharingProcess]) -> SharingProcess:
    """Another process, which owns the folder."""
    made = SharingProcess(folder)
    processes.append(made)
    return made


@pytest.fixture(params=["guest", "owner"])
def client(
    folder: Path, processes: list[SharingProcess], request: pytest.FixtureRequest
) -> Iterator[pulsarx.Client]:
    """Once of a process beside the owner, once of the owner's, which says what is right."""
    options = pulsarx.BrokerOptions(backlog_quota_check_interval_in_seconds=1)
    if request.param == "guest":
        owner = SharingProcess(folder, durability="os")
        processes.append(owner)
        owner.run("client.close()")
        owner.run("options = pulsarx.BrokerOptions(backlog_quota_check_interval_in_seconds=1)")
        owner.run("client = pulsarx.Client(sys.argv[1], durability='os', broker_options=options)")
        with pulsarx.Client(folder) as made:
            yield made
    else:
        with pulsarx.Client(folder, durability="os", broker_options=options) as made:
            yield made
