"""Facts about messages that become too old in the queue of a consumer beside the owner."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from chunk_entries import chunk_entry
from sharing_process import SharingProcess
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType

PATIENCE_MS = 60_000


@pytest.fixture
def owner(owner: SharingProcess) -> SharingProcess:
    owner.run("from pulsarx.testing import inspect")
    return owner


def publish_old(owner: SharingProcess, *payloads: bytes) -> None:
    """Messages of an hour ago."""
    hour_ago_ms = int(time.time() * 1000) - 3_600_000
    for payload in payloads:
        entry = chunk_entry(payload.decode(), 0, 1, payload, publish_ms=hour_ago_ms)
        owner.run(f"inspect(client).append_entry('t', {entry!r}) and None")


def receive_to(consumer: pulsarx.Consumer, last: bytes) -> list[bytes]:
    found: list[bytes] = []
    while last not in found:
        message = consumer.receive(PATIENCE_MS)
        consumer.acknowledge(message)
        found.append(message.data())
    return found


def total_expired(client: pulsarx.Client) -> int:
    return int(client.admin.topics.stats("t")["subscriptions"]["s"]["total_expired"])


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_what_is_too_old_by_a_new_policy_is_not_handed_out(
    folder: Path, owner: SharingProcess, kind: ConsumerType
) -> None:
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        consumer = client.subscribe("t", "s", kind)
        publish_old(owner, b"0", b"1", b"2")
        assert consumer.receive(PATIENCE_MS).data() == b"0"  # the others are in the queue now
        owner.run("client.admin.topics.set_message_ttl('t', 60)")
        assert client.admin.topics.get_list()  # what the owner had to say before has come
        owner.run("client.create_producer('t').send(b'new') and None")
        assert receive_to(consumer, b"new") == [b"new"]
        assert total_expired(client) == 3
        client.admin.topics.remove_message_ttl("t")
        publish_old(owner, b"3")
        assert receive_to(consumer, b"3") == [b"3"]


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_the_policy_of_a_topic_holds_for_who_comes_later(
    folder: Path, owner: SharingProcess, kind: ConsumerType
) -> None:
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        client.admin.topics.create_subscription("t", "s")
        client.admin.topics.set_message_ttl("t", 60)
        publish_old(owner, b"0")
        owner.run("client.create_producer('t').send(b'new') and None")
        consumer = client.subscribe("t", "s", kind)
        assert receive_to(consumer, b"new") == [b"new"]
        assert total_expired(client) == 1
