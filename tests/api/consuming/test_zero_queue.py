"""Facts about consumers with a receiver queue of 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import numbers

import pulsarx
from pulsarx import ConsumerType

ASKING: dict[str, Callable[[Any], object]] = {
    "receive_many": lambda consumer: consumer.receive_many(1, 0),
    "receive_arrow": lambda consumer: consumer.receive_arrow(1, 0),
    "cancelled future": lambda consumer: consumer.receive_async().cancel(),
    "take_now": lambda consumer: consumer.take_now(),
    "has_message": lambda consumer: consumer.has_message(),
}


@pytest.mark.guest(left_out="messages come later", of="*cancelled future")
@pytest.mark.guest(left_out="messages come later", of="*take_now")
@pytest.mark.parametrize("asking", ASKING.values(), ids=ASKING.keys())
@pytest.mark.parametrize("consumer_type", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_who_asks_no_more_is_given_nothing(
    memory_client: pulsarx.Client,
    consumer_type: ConsumerType,
    asking: Callable[[Any], object],
) -> None:
    """The next message used to go to it all the same, and to wait there until it asked again."""
    idle = memory_client.subscribe("t", "s", consumer_type, receiver_queue_size=0)
    busy = memory_client.subscribe("t", "s", consumer_type)
    asking(idle)
    memory_client.create_producer("t").send_many(numbers(20), keys=[str(n) for n in range(20)])
    busy.receive_many(20, 0)
    consumers = memory_client.admin.topics.stats("t")["subscriptions"]["s"]["consumers"]
    assert consumers[0]["unacked_messages"] == 0
    assert consumers[0]["available_permits"] == 0
