"""What the tests of dead and retry letters do again and again."""

from __future__ import annotations

from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerType

all_types = pytest.mark.parametrize(
    "consumer_type",
    [
        ConsumerType.Exclusive,
        ConsumerType.Failover,
        ConsumerType.Shared,
        ConsumerType.KeyShared,
    ],
    ids=["Exclusive", "Failover", "Shared", "KeyShared"],
)


def publish(client: pulsarx.Client, *contents: bytes, **described: Any) -> None:
    with client.create_producer("t") as producer:
        for content in contents:
            producer.send(content, **described)
