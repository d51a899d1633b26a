"""Topics of several ledgers, and what their ranges hold, for the tests of planning and reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

import pulsarx
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.read_range import read_range

BEGINNING = (0, 0)
Beside = Callable[[], ReadOnlyBroker]
FULL = "persistent://public/default/t"


def small_ledgers(entry_count: int = 3) -> pulsarx.BrokerOptions:
    return pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=entry_count)


def batches_of(messages: int) -> dict[str, Any]:
    """Options of a producer; 1: no batches."""
    if messages == 1:
        return {"batching_enabled": False}
    return {"batching_enabled": True, "batching_max_messages": messages}


def publish(client: pulsarx.Client, count: int, topic: str = "t", *, batch: int = 1) -> list[bytes]:
    """So many messages, numbered on from what the topic holds, in batches of this size."""
    start = len(whole(client, topic))
    sent = [b"%05d" % number for number in range(start, start + count)]
    producer = client.create_producer(topic, **batches_of(batch))
    for at in range(0, count, batch):
        producer.send_many(sent[at : at + batch])
    producer.close()
    return sent


def whole(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(60_000).data())
    reader.close()
    return found


def tables(ranges: Iterable[LedgerRange], **options: Any) -> list[list[dict[str, Any]]]:
    """Rows of each range."""
    return [
        [row for batch in read_range(each, **options) for row in pa.record_batch(batch).to_pylist()]
        for each in ranges
    ]


def values(ranges: Iterable[LedgerRange], **options: Any) -> list[bytes | None]:
    """Values of all ranges."""
    return [row["value"] for rows in tables(ranges, **options) for row in rows]


def compare_offsets(one: dict[str, Any], other: dict[str, Any]) -> int:
    """-1: nowhere behind the other and somewhere before; 0: the same place; 1: the reverse. A topic
    that only one of them has counts as unread in the other."""
    signs = set()
    for name in one.keys() | other.keys():
        left, right = one.get(name, BEGINNING), other.get(name, BEGINNING)
        if left != right:
            signs.add(-1 if left < right else 1)
    assert len(signs) < 2, f"each is ahead of the other somewhere: {one} and {other}"
    return signs.pop() if signs else 0
