"""Facts about dead letters that wait for the thread that publishes them: they take no memory but
that of their entries, whatever was decompressed, decrypted or put together of those before."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from encryption_steps import write_keys
from letter_steps import all_types
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import BrokerOptions, CompressionType, ConsumerDeadLetterPolicy, ConsumerType
from pulsarx.testing import inspect

pytestmark = pytest.mark.standard

MIB = 1 << 20
SIZE = 4 * MIB
COUNT = 16
ENTRIES = ["single", "batch", "chunks", "encrypted", "encrypted chunks"]


@contextmanager
def growing_at_most(size: int) -> Iterator[None]:
    """Of what Python objects take, payloads among them."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= size


def options_of(entries: str) -> dict[str, Any]:
    found: dict[str, Any] = {"compression_type": CompressionType.ZLib}
    if entries == "batch":
        found |= {"batching_enabled": True, "batching_max_allowed_size_in_bytes": 2 * SIZE}
    if "chunks" in entries:
        found |= {"chunking_enabled": True, "compression_type": CompressionType.NONE}
    return found


def publish(client: pulsarx.Client, entries: str, keys: dict[str, Any]) -> list[bytes]:
    if keys:
        keys = {**keys, "encryption_key": "key"}
    with client.create_producer("t", **options_of(entries), **keys) as producer:
        if entries == "batch":
            sent = [b"%7d" % number + bytes(SIZE // 2) for number in range(2 * COUNT)]
            for at in range(0, len(sent), 2):
                producer.send_many(sent[at : at + 2])
        else:
            sent = [b"%7d" % number + bytes(SIZE) for number in range(COUNT)]
            for each in sent:
                producer.send(each)
    return sent


@all_types
@pytest.mark.parametrize("entries", ENTRIES)
def test_letters_that_wait_are_kept_as_they_are_stored(
    open_client: OpenClient, tmp_path: Path, consumer_type: ConsumerType, entries: str
) -> None:
    """A consumer that gave up a backlog of compressed entries had all of them decompressed."""
    largest = MIB if "chunks" in entries else 5 * MIB
    client = open_client("memory:", broker_options=BrokerOptions(max_message_size=largest))
    keys = {"crypto_key_reader": write_keys(tmp_path / "mine")} if "encrypted" in entries else {}
    consumer = client.subscribe(
        "t", "s", consumer_type, receiver_queue_size=1, consumer_name="c", **keys,
        dead_letter_policy=ConsumerDeadLetterPolicy(1),
    )  # fmt: skip
    sent = publish(client, entries, keys)
    go_on = threading.Event()
    inspect(client).post(go_on.wait)
    with growing_at_most(5 * SIZE):
        for _ in range(2):
            for each in sent:
                message = consumer.receive(60_000)
                assert message.data() == each
                del message
            consumer.redeliver_unacknowledged_messages()
        with pytest.raises(pulsarx.Timeout):
            consumer.receive(0)
        go_on.set()
        inspect(client).settle()
    assert whole_topic(client, "t-s-DLQ") == sent
    [subscription] = client.admin.topics.stats("t")["subscriptions"].values()
    assert subscription["msg_backlog"] == 0
