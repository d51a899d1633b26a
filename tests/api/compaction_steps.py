"""What tests of compaction do again and again."""

from __future__ import annotations

from typing import Any

import pulsarx
from pulsarx import MessageId
from pulsarx.testing import inspect

Pairs = list[tuple[str | None, bytes]]


def publish(client: pulsarx.Client, pairs: Pairs, topic: str = "t", **options: Any) -> list[Any]:
    """Send keys and values; one batch a call with `batching_enabled=True`. The ids."""
    ids: list[Any] = []
    options.setdefault("batching_max_publish_delay_ms", 60_000)
    options.setdefault("block_if_queue_full", True)
    with client.create_producer(topic, **options) as producer:
        for key, value in pairs:
            keyed = {} if key is None else {"partition_key": key}
            producer.send_async(value, lambda _, message_id: ids.append(message_id), **keyed)
        producer.flush()
    return ids


def compact(client: pulsarx.Client, topic: str = "t") -> dict[str, str]:
    """Compact a topic, and wait for that."""
    client.admin.topics.trigger_compaction(topic)
    inspect(client).settle()
    return client.admin.topics.compaction_status(topic)


def compacted(client: pulsarx.Client, topic: str = "t") -> None:
    assert compact(client, topic) == {"status": "SUCCESS", "last_error": ""}


def read(reader: Any) -> list[Any]:
    """What has_message_available says there is."""
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(60_000))
    return found


def read_compacted(
    client: pulsarx.Client, start: Any = MessageId.earliest, topic: str = "t", **options: Any
) -> list[Any]:
    reader = client.create_reader(topic, start, is_read_compacted=True, **options)
    found = read(reader)
    last = reader.get_last_message_id()
    # Both say the same of what comes.
    if found:
        assert found[-1].message_id() == last
    reader.close()
    return found


def pairs_of(messages: list[Any]) -> Pairs:
    return [
        (message.partition_key() if message.has_key() else None, message.data())
        for message in messages
    ]


def survivors(client: pulsarx.Client, topic: str = "t") -> Pairs:
    return pairs_of(read_compacted(client, topic=topic))


def horizon(client: pulsarx.Client, topic: str = "t") -> Any:
    return client.admin.topics.stats(topic)["compaction"]["horizon"]
