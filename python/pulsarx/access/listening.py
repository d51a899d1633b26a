"""How servers of an event loop stop listening, so that whoever was accepted is known to them."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

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
