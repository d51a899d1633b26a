"""EntryRange: a part of one ledger of a cluster's topic, which a task reads."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Spot = tuple[int, int]  # an entry, and how many messages of it lie in front


class EntryRange:
    """Consecutive entries of a ledger, the first and the last maybe in part. A value that pickles.
    For those who put ranges together it has the size and count of a LedgerRange."""

    __slots__ = (
        "topic", "partition", "ledger_id", "first", "end", "size", "columns", "from_ms", "until_ms",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        partition: int,
        ledger_id: int,
        first: Spot,
        end: Spot,
        size: int,
        columns: tuple[str, ...],
        from_ms: int | None = None,
        until_ms: int | None = None,
    ) -> None:
        self.topic: str = topic  # full name; that of the partition
        self.partition: int = partition  # -1: the topic has none
        self.ledger_id: int = ledger_id
        self.first: Spot = first
        self.end: Spot = end  # the first message that is not part of the range
        self.size: int = size  # bytes, about
        self.columns: tuple[str, ...] = columns
        # Only messages published from then on, and before, are read (milliseconds since 1970).
        self.from_ms: int | None = from_ms
        self.until_ms: int | None = until_ms

    @property
    def end_entry(self) -> int:
        """The first entry of which nothing is part of the range."""
        return self.end[0] + (1 if self.end[1] else 0)

    @property
    def message_count(self) -> int:
        """The number of entries: how many messages are in them the cluster does not tell."""
        return self.end_entry - self.first[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return EntryRange, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return (
            f"EntryRange({self.topic!r}, ledger {self.ledger_id}, entries {self.first[0]}.."
            f"{self.end_entry - 1})"
        )
