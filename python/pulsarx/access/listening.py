"""How servers of an event loop stop listening, so that whoever was accepted is known to them, and
let go of connections."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from typing import Any

_TURNS = 10  # of the loop, in which a connection is made that was accepted


async def accept_no_more(listeners: Iterable[socket.socket]) -> None:
    """Before the servers of listeners are closed: asyncio forgets, and leaves open, what it
    accepted just before that. Returns when those connections are made."""
    loop = asyncio.get_running_loop()
    for each in listeners:
        loop.remove_reader(each.fileno())
    await connections_made()


async def connections_made() -> None:
    """Return when the connections are made that the loop has accepted."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def free_from_itself(transport: Any) -> None:
    """Of a connection that is lost. asyncio's transport refers to itself by a method, so it would
    wait for the collector, which runs its finalizer in Python in whatever call of the main thread:
    what a signal handler raises there is lost."""
    if getattr(transport, "_read_ready_cb", None) is not None:
        transport._read_ready_cb = None
