"""Payloads, ids and keys of messages that were received together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pulsarx
from pulsarx import InitialPosition, Message

Received = Callable[[pulsarx.Client, str], list[Any]]


def of_a_consumer(client: pulsarx.Client, topic: str) -> list[Any]:
    consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    found: list[Any] = []
    while len(found) < 7:
        found += consumer.receive_many(10, 5000)
    return found


def of_a_reader(client: pulsarx.Client, topic: str) -> list[Any]:
    return client.create_reader(topic, pulsarx.MessageId.earliest).read_many(10, 5000)


@pytest.mark.parametrize("received", [of_a_consumer, of_a_reader])
@pytest.mark.parametrize("partitions", [0, 3])
def test_they_are_those_of_each(
    memory_client: pulsarx.Client, received: Received, partitions: int
) -> None:
    if partitions:
        memory_client.admin.topics.create_partitioned_topic("t", partitions)
    with memory_client.create_producer("t", batching_enabled=True) as producer:
        for number in range(5):
            producer.send_async(b"%d" % number, None, partition_key=f"k{number}")
        producer.flush()
        producer.send(None)
    with memory_client.create_producer("t", chunking_enabled=True) as producer:
        producer.send(b"x" * 6_000_000, partition_key="large")
    messages = received(memory_client, "t")
    assert len(messages) == 7
    assert Message.payloads(messages) == [each.data() for each in messages]
    assert Message.ids(messages) == [each.message_id() for each in messages]
    assert Message.keys(messages) == [each.partition_key() for each in messages]
    assert Message.payloads(iter(messages)) == Message.payloads(messages)
    assert {len(each) for each in Message.payloads(messages)} == {0, 1, 6_000_000}


def test_what_is_no_message_is_refused(memory_client: pulsarx.Client) -> None:
    assert Message.payloads([]) == Message.ids([]) == Message.keys([]) == []
    for call in (Message.payloads, Message.ids, Message.keys):
        with pytest.raises(AttributeError):
            call([b"payload"])
