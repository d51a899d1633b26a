"""What the tests of dead and retry letters do again and again."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_types import ALL_TYPES

import pulsarx

all_types = pytest.mark.parametrize(
    "consumer_type",
    ALL_TYPES,
    ids=["Exclusive", "Failover", "Shared", "KeyShared"],
)


def publish(client: pulsarx.Client, *contents: bytes, **described: Any) -> None:
    with client.create_producer("t") as producer:
        for content in contents:
            producer.send(content, **described)
