"""Facts about how large a message, and what is stored of it, may be."""

from __future__ import annotations

import os

import pytest
from topic_reading import ONE_DAY_MS, OpenClient, read_all, whole_topic

import pulsarx
from pulsarx import BatchingType, BrokerOptions, CompressionType, Result, errors
from pulsarx.testing import inspect

LIMIT = 10_000
PADDING = 10_240  # for the metadata of an entry
OPTIONS = BrokerOptions(max_message_size=LIMIT)


def largest_entry(client: pulsarx.Client) -> float:
    """Bytes of the largest entry, with its frame, if all are alike."""
    inspect(client).settle()
    ledgers = client.admin.topics.stats("t")["ledgers"]
    return max(each["size"] / max(each["entries"], 1) for each in ledgers)


@pytest.mark.parametrize("kind", [BatchingType.Default, BatchingType.KeyBased])
@pytest.mark.parametrize("how", ["send_async", "send_many"])
@pytest.mark.parametrize("properties", [None, {"p": "x" * 700}])
def test_a_batch_is_closed_before_it_is_larger_than_a_message_may_be(
    open_client: OpenClient, kind: BatchingType, how: str, properties: dict[str, str] | None
) -> None:
    """An entry was as large as batching_max_allowed_size_in_bytes said, whatever that was, and
    properties were not counted at all."""
    client = open_client(broker_options=OPTIONS)
    producer = client.create_producer(
        "t",
        batching_enabled=True,
        batching_type=kind,
        batching_max_messages=100_000,
        batching_max_allowed_size_in_bytes=1 << 30,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )
    contents = [os.urandom(300) for _ in range(1000)]
    if how == "send_many":
        producer.send_many(contents, properties=[properties] * 1000)
    else:
        for content in contents:
            producer.send_async(content, None, properties=properties)
        producer.flush()
    assert largest_entry(client) <= LIMIT + PADDING
    assert whole_topic(client) == contents
    entries = {each.message_id().entry_id() for each in read_all(client)}
    assert len(entries) <= 1000 * (300 + 750 * bool(properties) + 64) // LIMIT + 2


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_a_message_is_measured_without_its_metadata(
    open_client: OpenClient, batching: bool, size: int
) -> None:
    client = open_client(broker_options=OPTIONS)
    producer = client.create_producer("t", batching_enabled=batching)
    if size > LIMIT:
        with pytest.raises(errors.MessageTooBig):
            producer.send(b"x" * size)
        assert whole_topic(client) == []
    else:
        producer.send(b"x" * size, partition_key="k", properties={"a": "b"})
        assert whole_topic(client) == [b"x" * size]


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("how", ["send", "send_async", "send_many"])
def test_a_message_is_measured_when_it_is_compressed(
    open_client: OpenClient, batching: bool, how: str
) -> None:
    """It was measured before."""
    client = open_client(broker_options=OPTIONS)
    producer = client.create_producer(
        "t", batching_enabled=batching, compression_type=CompressionType.ZLib
    )
    small, large = b"x" * 500_000, os.urandom(2 * LIMIT)
    told: list[Result] = []
    if how == "send":
        producer.send(small)
        with pytest.raises(errors.MessageTooBig):
            producer.send(large)
    elif how == "send_many":
        producer.send_many([b"1", small, b"2"])
        with pytest.raises(errors.MessageTooBig):
            producer.send_many([large])
    else:
        for content in (b"1", small, b"2", large):
            producer.send_async(content, lambda result, _: told.append(result))
            producer.flush() if content is not large else None
        with_error = producer.close
        try:
            with_error()
        except errors.MessageTooBig:
            pass
        assert told == [Result.Ok] * 3 + [Result.MessageTooBig]
    found = whole_topic(client)
    assert small in found and large not in found
    assert largest_entry(client) <= LIMIT + PADDING


@pytest.mark.parametrize("batching", [False, True])
def test_metadata_alone_can_be_too_large(open_client: OpenClient, batching: bool) -> None:
    client = open_client(broker_options=OPTIONS)
    producer = client.create_producer("t", batching_enabled=batching)
    with pytest.raises(errors.MessageTooBig):
        producer.send(b"x", properties={"p": "x" * (LIMIT + PADDING)})
    producer.send(b"y")
    assert whole_topic(client) == [b"y"]
