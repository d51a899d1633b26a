"""A part of one ledger file: what a plan consists of, and all that a reader elsewhere needs."""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pulsarx.broker.scan.planned_here import PlannedHere


# Of one task: opening so many small ledgers takes as long as reading 128 MiB of a large one.
RANGES_MAX = 2000


class LedgerRange:
    """Consecutive messages of one ledger of a topic. A value: compares, hashes, pickles.

    Messages are named by their ordinals in the ledger, so a range may begin and end inside a batch.
    The lease is no part of the value, nor what the ranges of a plan share where it was made.
    """

    __slots__ = (
        "topic", "partition", "ledger_id", "path", "uuid", "folder_id",
        "first_message", "end_message", "offset", "end", "columns", "from_ms", "until_ms",
        "merged_at", "merged_size", "location", "lease", "planned",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        partition: int,
        ledger_id: int,
        path: str,
        uuid: str,
        folder_id: str,
        first_message: int,
        end_message: int,
        offset: int,
        end: int,
        columns: tuple[str, ...],
        from_ms: int | None = None,
        until_ms: int | None = None,
        merged_at: int = 0,
        merged_size: int = 0,
        location: str = "",
        lease: tuple[str, int, int, int] | None = None,
    ) -> None:
        self.topic: str = topic  # full name; that of the partition
        self.partition: int = partition  # -1: the topic has none
        self.ledger_id: int = ledger_id  # part of each message id; the file does not know it
        self.path: str = path
        self.uuid: str = uuid  # of the file, 32 hex digits
        self.folder_id: str = folder_id  # of the data directory, 32 hex digits
        self.first_message: int = first_message
        self.end_message: int = end_message  # the first one that is not part of the range
        self.offset: int = offset  # in the file, of the entry with the first message
        self.end: int = end  # in the file, behind the entry with the last one or further on
        self.columns: tuple[str, ...] = columns
        # Only messages published from then on, and before, are read (milliseconds since 1970).
        self.from_ms: int | None = from_ms
        self.until_ms: int | None = until_ms
        # Which bytes of a file of merged ledgers are this one; 0: it has a file to itself.
        self.merged_at: int = merged_at
        self.merged_size: int = merged_size
        # URL of the object that has the same bytes as the file, which may be gone; "": none has.
        self.location: str = location
        # (job, ttl_ms, expires_ms, lowest ledger of the topic in it): a reader renews it.
        self.lease: tuple[str, int, int, int] | None = lease
        # In the process that planned it: told when the range goes where that cannot follow it.
        self.planned: PlannedHere | None = None

    @property
    def message_count(self) -> int:
        """Between times there may be fewer."""
        return self.end_message - self.first_message

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.end - self.offset

    @property
    def is_of_store(self) -> bool:
        """Whether it was planned of an object store: path is then a URL, and there is no folder."""
        return "://" in self.path

    @property
    def folder(self) -> str:
        """The data directory."""
        return self.path.rsplit("/", 3)[0]  # asked for with every small ledger

    def row(self) -> tuple[Any, ...]:
        """Its values, which JSON can hold; the names of all would take longer than the rest."""
        if self.planned is not None:
            self.planned.goes_out()
        return _values_of(self)

    @staticmethod
    def of_row(row: Sequence[Any]) -> LedgerRange:
        """Makes a range of a row that JSON held, where tuples are lists."""
        found = LedgerRange(*row)
        found.columns = tuple(found.columns)
        if found.lease is not None:
            job, ttl_ms, expires_ms, lowest = found.lease
            found.lease = (job, ttl_ms, expires_ms, lowest)
        return found

    def __reduce__(self) -> tuple[type[LedgerRange], tuple[Any, ...]]:
        return LedgerRange, self.row()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LedgerRange) and _values_of(self)[:-1] == _values_of(other)[:-1]

    def __hash__(self) -> int:
        return hash(_values_of(self)[:-1])

    def __repr__(self) -> str:
        return (
            f"LedgerRange({self.topic!r}, ledger {self.ledger_id}, messages "
            f"{self.first_message}..{self.end_message - 1}, {self.size} bytes)"
        )


_values_of: Callable[[LedgerRange], tuple[Any, ...]] = attrgetter(*LedgerRange.__slots__[:-1])


def group_ranges(
    ranges: list[LedgerRange], target_bytes: int, messages_max: int | None = None
) -> list[list[LedgerRange]]:
    """Neighbours put together up to target_bytes, messages_max and RANGES_MAX, in order: one task
    for many small ledgers, also for those of many small topics."""
    groups: list[list[LedgerRange]] = []
    size = count = 0
    for each in ranges:
        size += each.size
        count += each.message_count
        if (
            not groups
            or size > target_bytes
            or (messages_max is not None and count > messages_max)
            or len(groups[-1]) == RANGES_MAX
        ):
            groups.append([])
            size, count = each.size, each.message_count
        groups[-1].append(each)
    return groups
