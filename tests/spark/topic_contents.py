"""What topics hold, read in plain Python, to compare with what Spark says or wrote."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pulsarx


def messages_of(folder: Path, topic: str) -> list[pulsarx.Message]:
    """All messages of a topic without partitions, or of a single partition, in their order."""
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader(topic, pulsarx.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(timeout_millis=60_000))
        return found


def values_of(folder: Path, topic: str) -> list[bytes]:
    return [message.data() for message in messages_of(folder, topic)]


def partitions_of(folder: Path, topic: str, count: int) -> list[list[pulsarx.Message]]:
    return [messages_of(folder, f"{topic}-partition-{index}") for index in range(count)]


def numbers_by_key(messages: list[pulsarx.Message]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        found[message.partition_key()].append(int(message.data()))
    return dict(found)


def staged(folder: Path) -> list[str]:
    """What was left in the staging area."""
    return sorted(str(path.relative_to(folder)) for path in folder.glob("staging/*/*"))


def numbers(rows: list[Any]) -> list[int]:
    """Of rows whose value is a number as text."""
    return [int(row["value"]) for row in rows]
