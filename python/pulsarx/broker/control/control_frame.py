"""Requests and answers on a control socket: four bytes of size (big endian), then one JSON object.

The owner and the asking process use it. Sizes are bounded, and so is the time for a frame.
"""

from __future__ import annotations

try:
    import _socket
except ImportError:
    import socket as _socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.clock import Deadline

sockets = _socket  # the module below `socket`, whose import costs 5 ms
# Before 3.12 Python finishes a type when it is used first; without memory then, it stays half made.
sockets.socket.mro()
FRAME_SIZE_MAX = 1 << 25  # a lease of a million ledgers
_STEP_SIZE = 1 << 16


class FrameError(Exception):
    """The bytes that came are no frame, or did not come in time."""


def frame_send(connection: _socket.socket, document: dict[str, Any], deadline: Deadline) -> None:
    """FrameError: the other end does not read it. ValueError: too large. OSError: it is gone."""
    import json

    data = json.dumps(document, separators=(",", ":")).encode()
    if len(data) > FRAME_SIZE_MAX:
        raise ValueError(f"{len(data)} bytes, more than the {FRAME_SIZE_MAX} that can be sent")
    _limit(connection, deadline)
    try:
        connection.sendall(len(data).to_bytes(4, "big") + data)
    except TimeoutError as error:
        raise FrameError("the other end does not read") from error


def frame_receive(connection: _socket.socket, deadline: Deadline) -> dict[str, Any]:
    """The object that the other end sent. FrameError: it did not. OSError: it is gone."""
    import json

    size = int.from_bytes(_exactly(connection, 4, deadline), "big")
    if not 2 <= size <= FRAME_SIZE_MAX:
        raise FrameError(f"a size of {size}; it is from 2 to {FRAME_SIZE_MAX}")
    try:
        found = json.loads(_exactly(connection, size, deadline))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FrameError("no JSON object")
    return found


def _exactly(connection: _socket.socket, size: int, deadline: Deadline) -> bytes:
    # Memory is taken as bytes arrive, not as the size in front of them says.
    found = bytearray()
    while len(found) < size:
        _limit(connection, deadline)
        try:
            data = connection.recv(min(size - len(found), _STEP_SIZE))
        except TimeoutError as error:
            raise FrameError(f"{len(found)} of {size} bytes came in time") from error
        if not data:
            raise ConnectionResetError(f"the connection ended after {len(found)} of {size} bytes")
        found += data
    return bytes(found)


def _limit(connection: _socket.socket, deadline: Deadline) -> None:
    seconds = deadline.remaining_seconds()
    if seconds is not None and seconds <= 0:
        raise FrameError("it took too long")
    connection.settimeout(seconds)
