"""Facts about consumers that a subscription could not take for want of memory."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.testing import inspect
from pulsarx.topic_name import TopicName

PATIENCE_MS = 60_000
KEYS = 8  # of which a consumer that nobody knows would have some


class Refusing(dict[Any, Any]):
    """Has no memory for one more."""

    def __setitem__(self, key: object, value: object) -> None:
        raise MemoryError


@pytest.mark.parametrize("part", ["_places", "_consumers"])
@pytest.mark.parametrize("kind", ALL_TYPES)
def test_one_that_there_is_no_memory_for_gets_no_message(kind: ConsumerType, part: str) -> None:
    """It had joined, and nobody knew: it got messages, or kept others out."""
    with pulsarx.Client("memory:") as client:
        client.subscribe("t", "s", kind).close()
        topic: Any = inspect(client).broker.topic(TopicName.of("t"))
        subscription: Subscription = topic.subscriptions["s"]
        kept = getattr(subscription, part)
        setattr(subscription, part, Refusing())
        with pytest.raises(MemoryError):
            client.subscribe("t", "s", kind)
        setattr(subscription, part, kept)
        consumer = client.subscribe("t", "s", kind)
        with client.create_producer("t") as producer:
            for number in range(KEYS):
                producer.send(b"%d" % number, partition_key=str(number))
        found = {consumer.receive(PATIENCE_MS).data() for _ in range(KEYS)}
        assert found == {b"%d" % number for number in range(KEYS)}
        (told,) = client.admin.topics.stats("t")["subscriptions"]["s"]["consumers"]
        assert told["unacked_messages"] == KEYS
