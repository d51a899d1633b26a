"""What a call costs beside the official client on a real Pulsar, as bench_official.py measures it.
tests/oracle starts the broker, and gives its URL with `--pulsar-url`."""

from __future__ import annotations

from pathlib import Path

import pytest
from client_sides import measure_sides
from measurement import Measurement

# What is called, the bytes of a message. Folders have the default durability.
ROWS = {
    "real_pulsar_send_100": ("send", 100),
    "real_pulsar_send_1024": ("send", 1024),
    "real_pulsar_send_10240": ("send", 10240),
    "real_pulsar_send_async_100": ("send_async", 100),
    "real_pulsar_send_async_1024": ("send_async", 1024),
    "real_pulsar_send_async_10240": ("send_async", 10240),
    "real_pulsar_receive_100": ("receive", 100),
    "real_pulsar_receive_1024": ("receive", 1024),
    "real_pulsar_receive_10240": ("receive", 10240),
}


@pytest.mark.parametrize("row", ROWS)
def bench_real_pulsar(
    measurement: Measurement, scratch: Path, request: pytest.FixtureRequest, row: str
) -> None:
    pytest.importorskip("pulsar", reason="the official client is not installed: pulsar-client")
    url = request.config.getoption("--pulsar-url")
    if url is None:
        pytest.skip("no --pulsar-url: make oracle measures it")
    measure_sides(measurement, scratch / row, url, row, *ROWS[row], "sync")
