"""Reads a topic to its end."""

from __future__ import annotations

from typing import Any

import pulsarx


def numbers(count: int, start: int = 0) -> list[bytes]:
    """b"0", b"1" ..."""
    return [b"%d" % number for number in range(start, start + count)]


def drain(consumer: Any) -> list[Any]:
    """All messages a consumer has now, unacknowledged."""
    found: list[Any] = []
    while messages := consumer.receive_many(1000, 0):
        found += messages
    return found


def payloads(consumer: Any) -> list[bytes]:
    return [message.data() for message in drain(consumer)]


def whole_topic(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    """Every payload a topic holds, oldest first."""
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    found: list[bytes] = []
    while messages := reader.read_many(1000, 0):
        found += [message.data() for message in messages]
    reader.close()
    return found
