"""What a served folder takes over TCP: the official client on it beside the same client on a broker
that does nothing, and a load that costs its generator little."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fresh_process import TREE, run_fresh
from measurement import Measurement, shown

HERE = Path(__file__).parent
CLIENT = str(HERE / "client_cost.py")
LOAD = str(HERE / "wire_load.py")
SIZE = 100

CLIENT_ROWS = {"serve_send_async": "send_async", "serve_receive": "receive", "serve_send": "send"}
LOAD_ROWS = {"serve_load_1000": 1000, "serve_load_100": 100, "serve_load_1": 1}


@contextmanager
def broker(script: str, *arguments: str) -> Iterator[str]:
    """The URL of a broker in a process of its own."""
    paths = os.pathsep.join(filter(None, [str(TREE), os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.fixture(scope="module")
def idle() -> Iterator[str]:
    with broker("idle_broker.py") as url:
        yield url


@pytest.fixture
def served(scratch: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with broker("served_folder.py", str(scratch / request.node.name)) as url:
        yield url


@pytest.mark.parametrize("row", CLIENT_ROWS)
def bench_client(measurement: Measurement, idle: str, served: str, row: str) -> None:
    pytest.importorskip("pulsar", reason="the official client is not installed: pulsar-client")
    sizes = measurement.sizes
    verb = CLIENT_ROWS[row]
    count = sizes.client_sends if verb == "send" else sizes.messages
    ceiling: list[float] = []
    ours: list[float] = []

    def turn() -> float:
        for url, found in ((idle, ceiling), (served, ours)):
            done = run_fresh(CLIENT, "pulsar", url, verb, str(SIZE), str(count))
            found.append(done["elapsed"])
        return ceiling[-1] / ours[-1]

    measurement.values(row, turn, sizes.client_rounds)
    texts = (shown(statistics.median(each)) for each in (ceiling, ours))
    measurement.add_note("a message {} on a broker that does nothing, {} here".format(*texts))


@pytest.mark.parametrize("row", LOAD_ROWS)
def bench_load(measurement: Measurement, served: str, row: str) -> None:
    batch = LOAD_ROWS[row]
    count = max(measurement.sizes.load_messages // (1 if batch > 1 else 100), batch)

    def turn() -> float:
        done = run_fresh(LOAD, served, str(count), str(SIZE), str(batch))
        rate: float = 1 / done["elapsed"]
        return rate

    measurement.values(row, turn, measurement.sizes.client_rounds)
