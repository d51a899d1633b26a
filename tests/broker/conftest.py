"""Lets the tests of this folder share the modules beside them, in child processes as well."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from range_topics import Beside
    from support.clients import OpenClient

    import pulsarx

_HERE = os.path.dirname(os.path.abspath(__file__))
if _HERE not in sys.path:
    sys.path.insert(0, _HERE)


@pytest.fixture
def run_child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python program in a process of its own; what is left of it is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: object) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def client(open_client: OpenClient) -> pulsarx.Client:
    """Its ledgers have three entries each."""
    from range_topics import small_ledgers

    return open_client(broker_options=small_ledgers())


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """Opens the folder as another process would. (A client here that is read_only shares the
    owner's broker.)"""
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    opened: list[ReadOnlyBroker] = []

    def make() -> ReadOnlyBroker:
        opened.append(ReadOnlyBroker(str(tmp_path / "data")))
        return opened[-1]

    yield make
    for broker in opened:
        broker.close()
