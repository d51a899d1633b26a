"""What the tests of consumers of several topics do again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pulsarx
from pulsarx import InitialPosition, MessageId

TOPICS = ["a", "b", "c"]


def subscribe(client: pulsarx.Client, topics: list[str] | None = None, **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe(TOPICS if topics is None else topics, "s", **options)


def publish(client: pulsarx.Client, topic: str, count: int) -> list[MessageId]:
    with client.create_producer(topic) as producer:
        return producer.send_many([b"%s%d" % (topic.encode(), number) for number in range(count)])


def of_topic(messages: list[bytes], topic: str) -> list[bytes]:
    return [each for each in messages if each.startswith(topic.encode())]


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Runs work in a thread; the list gets what it returned or raised."""
    result: list[object] = []

    def run() -> None:
        try:
            result.append(work())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result
