"""Tells the service manager that has started the process, such as systemd, how far it is, as
sd_notify(3) does. `serve` calls.
"""

from __future__ import annotations

import os
import socket
import sys

READY = "READY=1"
STOPPING = "STOPPING=1"


def tell_manager(state: str) -> None:
    """Nothing where no manager asked for it. What fails is said on standard error: the server works
    without."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
            one.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)
    except OSError as error:
        print(f"tell the service manager at {address} {state}: {error}", file=sys.stderr)
