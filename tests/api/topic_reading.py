"""What the tests of the API do with a topic again and again."""

from __future__ import annotations

import os
import threading
from typing import Any

from support.clients import OpenClient as OpenClient

import pulsarx
from pulsarx import MessageId

ONE_DAY_MS = 86_400_000


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
    return [message.data() for message in read_all(client, topic)]


def read_all(client: pulsarx.Client, topic: str = "t") -> list[Any]:
    """Every message a topic holds."""
    reader = client.create_reader(topic, MessageId.earliest)
    found: list[Any] = []
    while messages := reader.read_many(1000, 0):
        found += messages
    reader.close()
    return found


class Told:
    """A send_async callback that keeps what it was told."""

    def __init__(self) -> None:
        self.results: list[tuple[Any, MessageId | None]] = []
        self.threads: set[int] = set()

    def __call__(self, result: Any, message_id: MessageId | None) -> None:
        self.results.append((result, message_id))
        self.threads.add(threading.get_ident())


def batched(client: pulsarx.Client, **options: Any) -> Any:
    options.setdefault("batching_max_publish_delay_ms", ONE_DAY_MS)
    return client.create_producer("t", batching_enabled=True, **options)


def open_paths() -> list[str]:
    """What the descriptors of this process stand for."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            pass  # the one that listed them
    return found


def read(reader: Any) -> list[bytes]:
    """What a reader has now."""
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(0).data())
    return found
