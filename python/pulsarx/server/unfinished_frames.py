"""The number of bytes that all connections of a service hold together of frames that are not whole
yet."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# A hundred of the largest at once. Who sends so many goes on with each of them.
UNFINISHED_MAX = 512 << 20


class UnfinishedFrames:
    """In any thread. Beyond the bound those go that have sent nothing of theirs for longest."""

    def __init__(self, drop: Callable[[Any], object], size_max: int = UNFINISHED_MAX) -> None:
        """drop: called with a connection that is to be hung up on, in any thread."""
        self._drop = drop
        self._size_max = size_max
        self._lock = Lock()
        self._sizes: dict[Any, int] = {}  # of connections; in the order in which they were heard
        self._size = 0

    def settle(self, connection: Any, size: int) -> None:
        """The connection holds so many bytes now."""
        dropped = []
        with self._lock:
            self._size += size - self._sizes.pop(connection, 0)
            if size:
                self._sizes[connection] = size
            while self._size > self._size_max:
                oldest = next(iter(self._sizes))
                self._size -= self._sizes.pop(oldest)
                dropped.append(oldest)
        for each in dropped:
            self._drop(each)
