"""Steps that tests of transactions share."""

from __future__ import annotations

from typing import Any

import pulsarx
from pulsarx import MessageId


def seen(client: pulsarx.Client, topic: str) -> list[bytes]:
    """What a reader sees of a topic, from its first message on."""
    reader = client.create_reader(topic, MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(60_000).data())
    reader.close()
    return found


def taken(consumer: Any, count: int = 1000) -> list[bytes]:
    """What a consumer is given now, acknowledged."""
    found: list[bytes] = []
    while len(found) < count:
        more = consumer.receive_many(count - len(found), 0)
        if not more:
            break
        found += [each.data() for each in more]
        consumer.acknowledge_many(more)
    return found


def backlog(client: pulsarx.Client, topic: str, subscription: str = "s") -> int:
    found: int = client.admin.topics.stats(topic)["subscriptions"][subscription]["msg_backlog"]
    return found
