from collections.abc import Callable
from typing import Any

from pulsarx._pycore.publish.entry_publisher import EntryPublisher

class EntryIntake:
    """Publishes the entries of one producer at the other end of a connection. Any thread."""

    def __init__(
        self,
        publisher: EntryPublisher,
        decompress: Callable[[int, bytes, int, int], bytes],
        entry_size_max: int,
        decompressed_size_max: int,
    ) -> None: ...
    def publish(self, entry: bytes, callback: Callable[[Any, Any], object]) -> None: ...
    def settle(self) -> None: ...
    def flush(self) -> None: ...
    def fence(self, reason: str) -> None:
        """Publish nothing from now on."""

    def abandon(self) -> None: ...
