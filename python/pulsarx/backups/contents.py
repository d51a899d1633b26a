"""The report of what a copy of a folder holds, and what of it is damaged."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Damage:
    """A place in a folder that is not what was written there. A value.

    what: "entries"; "ledger": all of it, or what it says of itself; "compacted entries" and
    "compacted ledger": of what a compaction left; "cursor"; "sequences": of deduplication;
    "marker", "commit": of these one of two copies, or both; "checkpoint"; "catalogue": it cannot be
    read. file: its path in the folder. messages:
    how many cannot be read; 0 where none is lost, as with a cursor, whose messages come again.
    """

    what: str
    file: str
    text: str  # for people
    topic: str | None = None
    subscription: str | None = None
    ledger_id: int | None = None
    entry_id: int | None = None  # the first one
    entries: int = 0
    offset: int | None = None  # bytes of the file
    size: int = 0  # bytes
    messages: int = 0

    def __str__(self) -> str:
        return self.text


@dataclass
class Contents:
    """Counts of a folder. A value."""

    topics: int = 0  # partitions one by one
    subscriptions: int = 0
    ledgers: int = 0
    messages: int = 0  # in ledgers; acknowledged ones that are not trimmed among them
    missing_messages: int = 0  # of those
    bytes: int = 0  # of all files
    damage: list[Damage] = field(default_factory=list)


@dataclass
class SalvagedTopic:
    """A topic that a salvage has found. A value. messages: in ledgers; acknowledged ones that are
    not trimmed among them."""

    topic: str
    ledgers: int = 0
    messages: int = 0
    subscriptions: list[str] = field(default_factory=list)


@dataclass
class Salvaged(Contents):
    """Counts of a folder that was put together of what is whole of another, whose `damage` is all
    that was left out, or is damaged in both. A value.

    found: each topic. assumed: what no file says any more and was concluded, one sentence each.
    """

    found: list[SalvagedTopic] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
