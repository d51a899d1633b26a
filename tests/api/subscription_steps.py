"""What the tests of consumers do again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import OpenClient, numbers, payloads

import pulsarx
from pulsarx import InitialPosition

Kind = Callable[[pulsarx.Client, int], None]


def publish_plain(client: pulsarx.Client, count: int) -> None:
    producer = client.create_producer("t")
    for payload in numbers(count):
        producer.send_async(payload, None)
    producer.flush()
    producer.close()


def publish_batched(client: pulsarx.Client, count: int) -> None:
    producer = client.create_producer("t", batching_max_messages=7)
    producer.send_many(numbers(count))
    producer.close()


both_kinds = pytest.mark.parametrize(
    "publish", [publish_plain, publish_batched], ids=["plain", "batched"]
)


def earliest(client: pulsarx.Client, **options: Any) -> Any:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


def rest_after_reopening(open_client: OpenClient, client: pulsarx.Client) -> list[bytes]:
    """What the subscription delivers to a consumer of a new start of the broker."""
    client.close()
    return payloads(open_client().subscribe("t", "s"))
