"""Ports of servers that leave, and come back to where they were."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path


def port_to_come_back_to() -> int:
    """Return a free port that the system gives to nobody who asks for any: neither to another
    program while ours is down, nor to the client that looks for it there."""
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [each for each in range(10_000, 60_000) if not lowest <= each <= highest]
    ports = ports or list(range(10_000, 60_000))
    first = os.getpid() * 101 % len(ports)  # far from those of processes beside this one
    for port in (*ports[first:], *ports[:first]):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
