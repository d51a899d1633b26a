"""What the tests of subscription types do again and again."""

from __future__ import annotations

from typing import Any

import mmh3

import pulsarx
from pulsarx import BatchingType, ConsumerType, InitialPosition

KEY_SHARED = ConsumerType.KeyShared


def join(client: pulsarx.Client, kind: ConsumerType, name: str = "", **options: Any) -> Any:
    """A consumer of subscription s of topic t, which begins at the first message."""
    options.setdefault("initial_position", InitialPosition.Earliest)
    topic = options.pop("topic", "t")
    return client.subscribe(topic, "s", consumer_type=kind, consumer_name=name or None, **options)


def publish(client: pulsarx.Client, *payloads: str, topic: str = "t") -> None:
    """One entry a payload; what is before a `:` is its key."""
    producer = client.create_producer(topic)
    for payload in payloads:
        key, colon, _ = payload.partition(":")
        producer.send(payload.encode(), partition_key=key if colon else None)
    producer.close()


def publish_batch(client: pulsarx.Client, *payloads: str, topic: str = "t") -> None:
    """As publish, all of them in one entry."""
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_type=BatchingType.Default,
        batching_max_publish_delay_ms=86_400_000,
    )
    for payload in payloads:
        key, colon, _ = payload.partition(":")
        producer.send_async(payload.encode(), None, partition_key=key if colon else None)
    producer.close()


def texts(messages: list[Any]) -> list[str]:
    return [message.data().decode() for message in messages]


def take(consumer: Any, most: int = 1000) -> list[str]:
    """What it is given without waiting; not acknowledged."""
    return texts(take_messages(consumer, most))


def take_messages(consumer: Any, most: int = 1000) -> list[Any]:
    found: list[Any] = []
    while len(found) < most and (more := consumer.receive_many(most - len(found), 0)):
        found += more
    return found


def check(consumer: Any) -> None:
    """Permits, queues and keys of the subscription, counted again."""
    assert consumer.dispatcher.check() == []


def statistics(client: pulsarx.Client, topic: str = "t", name: str = "s") -> dict[str, Any]:
    found: dict[str, Any] = client.admin.topics.stats(topic)["subscriptions"][name]
    return found


def slot(key: str) -> int:
    """Where a key is among the 65536 hash slots."""
    return int(mmh3.hash(key, 0, signed=False)) % 65536


def keys_between(first: int, last: int, count: int = 3) -> list[str]:
    """Keys whose slots lie in first..last."""
    found = (f"k{number}" for number in range(1_000_000))
    return [
        key
        for key, _ in zip(
            (key for key in found if first <= slot(key) <= last), range(count), strict=False
        )
    ]
