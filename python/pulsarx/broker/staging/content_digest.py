"""What a write holds, as a number: by it another write under the same name is told."""

from __future__ import annotations

from pulsarx._pycore.ranges.rows_digest import rows_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class ContentDigest:
    """The digest of rows in any order, wherever they are cut. One thread at a time."""

    __slots__ = ("value",)

    def __init__(self, values: Iterable[int] = ()) -> None:
        """values: of digests of other rows, which then are in this one."""
        self.value = sum(values) % 2**64

    def add(self, rows: Any, topic: str, value: str, **columns: str) -> None:
        """Arrow rows for a topic; columns as of SealedLedgerWriter.append_arrow."""
        self.value = (self.value + rows_digest(rows, topic.encode(), value, **columns)) % 2**64

    def text(self, message_count: int) -> str:
        return f"{message_count:x}-{self.value:016x}"
