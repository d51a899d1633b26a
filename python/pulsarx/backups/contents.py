"""What a copy of a folder holds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Contents:
    """Counts of a folder. A value."""

    topics: int = 0  # partitions one by one
    subscriptions: int = 0
    ledgers: int = 0
    messages: int = 0  # in ledgers; acknowledged ones that are not trimmed among them
    bytes: int = 0  # of all files
    damage: list[str] = field(default_factory=list)  # what cannot be read, and where
