"""What tests ask of a topic, and put into it, again and again."""

from __future__ import annotations

from typing import Any

import pulsarx
from pulsarx import MessageId


def backlog(client: pulsarx.Client, subscription: str = "s", topic: str = "t") -> int:
    """How many messages a subscription has not acknowledged."""
    found = client.admin.topics.stats(topic)["subscriptions"][subscription]["msg_backlog"]
    return int(found)


def filled(
    client: pulsarx.Client, count: int = 10, topic: str = "t", begin: int = 0, **described: Any
) -> list[MessageId]:
    """Publish b"0", b"1", ... one by one; `described` are arguments of `send`. The ids."""
    with client.create_producer(topic) as producer:
        return [producer.send(b"%d" % each, **described) for each in range(begin, begin + count)]
