"""What a call costs beside the official client, which talks to a broker that does nothing: the CPU
time of the whole process, of the same script with either package. Skipped where it is not
installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client_sides import measure_sides
from fresh_process import TREE
from measurement import Measurement

BROKER = Path(__file__).with_name("idle_broker.py")

# What is called, the bytes of a message, the durability of the folder: "sync" is the default.
ROWS = {
    "official_send_100_os": ("send", 100, "os"),
    "official_send_100": ("send", 100, "sync"),
    "official_send_1024_os": ("send", 1024, "os"),
    "official_send_1024": ("send", 1024, "sync"),
    "official_send_10240_os": ("send", 10240, "os"),
    "official_send_10240": ("send", 10240, "sync"),
    "official_send_async_100_os": ("send_async", 100, "os"),
    "official_send_async_100": ("send_async", 100, "sync"),
    "official_send_async_1024_os": ("send_async", 1024, "os"),
    "official_send_async_1024": ("send_async", 1024, "sync"),
    "official_send_async_10240_os": ("send_async", 10240, "os"),
    "official_send_async_10240": ("send_async", 10240, "sync"),
    "official_receive_100_os": ("receive", 100, "os"),
    "official_receive_100": ("receive", 100, "sync"),
    "official_receive_1024_os": ("receive", 1024, "os"),
    "official_receive_1024": ("receive", 1024, "sync"),
    "official_receive_10240_os": ("receive", 10240, "os"),
    "official_receive_10240": ("receive", 10240, "sync"),
}


@pytest.fixture(scope="session")
def idle_broker() -> Iterator[str]:
    """The URL of a broker that does nothing, in a process of its own."""
    paths = os.pathsep.join(filter(None, [str(TREE), os.environ.get("PYTHONPATH", "")]))
    with subprocess.Popen(
        [sys.executable, str(BROKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        text=True,
    ) as broker:
        assert broker.stdin is not None and broker.stdout is not None
        yield broker.stdout.readline().strip()
        broker.stdin.close()


@pytest.mark.parametrize("row", ROWS)
def bench_official(measurement: Measurement, scratch: Path, idle_broker: str, row: str) -> None:
    pytest.importorskip("pulsar", reason="the official client is not installed: pulsar-client")
    measure_sides(measurement, scratch / row, idle_broker, row, *ROWS[row])
