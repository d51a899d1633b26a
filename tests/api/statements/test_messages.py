"""Statements about messages and producers; each test quotes the words it holds."""

from __future__ import annotations

import re
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from chunk_entries import ChunkWriter
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient, Told, drain, numbers, read_all, whole_topic

import pulsarx
from pulsarx import BatchingType, CompressionType, ConsumerType, MessageId, Result, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

CODECS = [
    CompressionType.LZ4,
    CompressionType.ZLib,
    CompressionType.ZSTD,
    CompressionType.SNAPPY,
]


def stored_bytes(client: pulsarx.Client, topic: str) -> int:
    return sum(int(each["size"]) for each in client.admin.topics.stats(topic)["ledgers"])


def test_the_producer_says_when_a_message_was_published(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """'The timestamp of when the message is published. The timestamp is automatically applied by
    the producer.'"""
    producer = clocked_client.create_producer("t")
    sent = []
    for number in range(3):
        manual_clock.advance(number)
        sent.append(manual_clock.now_ms())
        producer.send(b"x", event_timestamp=1)
    assert [message.publish_timestamp() for message in read_all(clocked_client)] == sent


def test_a_producer_without_a_name_has_the_generated_one_on_its_messages(
    memory_client: pulsarx.Client,
) -> None:
    """'If you do not specify a producer name, the default name is used.'"""
    producers = [memory_client.create_producer("t") for _ in range(2)]
    for producer in producers:
        producer.send(b"x")
    names = [producer.producer_name() for producer in producers]
    assert all(names)
    assert [message.producer_name() for message in read_all(memory_client)] == names


def test_ids_are_places_and_no_two_messages_share_one(memory_client: pulsarx.Client) -> None:
    """'Message ID indicates a message's specific position in a ledger and is unique within a
    Pulsar cluster.'"""
    ids: list[MessageId] = []
    for topic in ("t", "u"):
        for batching in (False, True):
            with memory_client.create_producer(topic, batching_enabled=batching) as producer:
                ids += producer.send_many(numbers(20))
    assert len(set(ids)) == len(ids) == 80
    reader = memory_client.create_reader("t", ids[7], start_message_id_inclusive=True)
    assert reader.read_next(0).message_id() == ids[7]
    assert reader.read_next(0).message_id() == ids[8]


def test_a_sync_send_waits_until_its_message_is_stored(folder: Path) -> None:
    """'The producer waits for an acknowledgment from the broker after sending every message.'"""
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        producer.send(b"warm up")
        returned: list[MessageId] = []
        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            sender = threading.Thread(target=lambda: returned.append(producer.send(b"x")))
            sender.start()
            until_asleep(sender)
            assert sender.is_alive() and returned == []
            plan.release()
            sender.join(60)
        assert [each.entry_id() for each in returned] == [1]


def test_an_async_send_returns_at_once_and_is_told_when_it_is_stored(folder: Path) -> None:
    """'The producer puts a message in a blocking queue and returns immediately. The client library
    sends the message to the broker in the background.'"""
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        producer.send(b"warm up")
        told = Told()

        def send() -> None:
            for payload in numbers(5):
                producer.send_async(payload, told)

        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            sender = threading.Thread(target=send)
            sender.start()
            sender.join(60)
            assert not sender.is_alive()  # while nothing can be flushed
            while not plan.stalled():
                pass
            assert told.results == []
            plan.release()
        producer.flush()
        assert [result for result, _ in told.results] == [Result.Ok] * 5
        assert [message.data() for message in read_all(client)][1:] == numbers(5)


@pytest.mark.parametrize("codec", CODECS, ids=str)
@pytest.mark.parametrize("batching", [False, True])
def test_compression_makes_what_is_stored_smaller(
    memory_client: pulsarx.Client, codec: CompressionType, batching: bool
) -> None:
    """'Message compression can reduce message size by paying some CPU overhead.'"""
    content = b"the same again and again " * 4000
    for topic, kind in (("plain", CompressionType.NONE), ("small", codec)):
        with memory_client.create_producer(
            topic, compression_type=kind, batching_enabled=batching
        ) as producer:
            producer.send_many([content, content])
    assert stored_bytes(memory_client, "plain") > 2 * len(content)
    assert stored_bytes(memory_client, "small") < len(content) / 2


def test_a_consumer_adopts_each_compression_by_itself(memory_client: pulsarx.Client) -> None:
    """'Compression types are stored in the message metadata, so consumers can adopt different
    compression types automatically, as needed.'"""
    consumer = memory_client.subscribe("t", "s")
    producers = [
        memory_client.create_producer("t", compression_type=kind)
        for kind in (CompressionType.NONE, *CODECS)
    ]
    sent = []
    for number in range(20):
        sent.append(b"%d" % number * 1000)
        producers[number % 5].send(sent[-1])
    assert [message.data() for message in drain(consumer)] == sent


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_a_batch_is_deleted_with_its_last_message(kind: ConsumerType) -> None:
    """'a batch is acknowledged when all of its messages are acknowledged by a consumer', 'The batch
    is deleted when all indices of the messages in it are acknowledged.'"""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    with pulsarx.Client("memory:batches", broker_options=options) as client:
        consumer = client.subscribe("t", "s", kind)
        producer = client.create_producer("t")
        for batch in range(2):
            producer.send_many(numbers(4, 4 * batch))
        messages = drain(consumer)
        for number in (7, 3, 1, 0):
            consumer.acknowledge(messages[number])
        inspect(client).settle()
        assert whole_topic(client) == numbers(8)
        consumer.acknowledge(messages[2])
        inspect(client).settle()
        assert whole_topic(client) == numbers(4, 4)


def test_messages_without_a_key_share_a_batch_without_a_key(clocked_client: pulsarx.Client) -> None:
    """'The messages without a key are packed into one batch and this batch has no key.'"""
    producer = clocked_client.create_producer(
        "t", batching_enabled=True, batching_type=BatchingType.KeyBased
    )
    for number, key in enumerate([None, "a", None, "b", "a", None]):
        producer.send_async(b"%d" % number, None, partition_key=key)
    producer.flush()
    found: dict[int, list[tuple[bytes, bool]]] = {}
    for message in read_all(clocked_client):
        entry = message.message_id().entry_id()
        found.setdefault(entry, []).append((message.data(), message.has_key()))
    assert sorted(found.values()) == [
        [(b"0", False), (b"2", False), (b"5", False)],
        [(b"1", True), (b"4", True)],
        [(b"3", True)],
    ]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_an_incomplete_message_expires_after_a_minute_by_default(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """'If the consumer fails to receive all chunks of a message within a specified period, it
    expires incomplete chunks. The default value is 1 minute.'"""
    consumer = clocked_client.subscribe("t", "s", kind)

    def entries_left() -> int:
        found = clocked_client.admin.topics.stats("t")["subscriptions"]["s"]
        return int(found["backlog_entries"])

    ChunkWriter(clocked_client, "t").chunk("a", 0, 2, b"a0", publish_ms=manual_clock.now_ms())
    assert drain(consumer) == []
    manual_clock.advance(59)
    assert entries_left() == 1
    manual_clock.advance(2)
    assert entries_left() == 0


def test_chunks_lie_in_one_ledger_in_order_each_with_what_it_is(
    folder: Path, open_client: OpenClient
) -> None:
    """'The producer splits the original message into chunked messages and publishes them with
    chunked metadata to the broker separately and in order.', 'The broker stores the chunked
    messages in one managed ledger in the same way as that of ordinary messages'."""
    client = open_client(broker_options=pulsarx.BrokerOptions(max_message_size=1000))
    producer = client.create_producer("t", producer_name="p", chunking_enabled=True)
    large = b"".join(b"%05d" % number for number in range(1000))
    before, sent, after = (producer.send(content) for content in (b"before", large, b"after"))
    first = sent.first_chunk_message_id()
    assert first is not None
    ids = [before, first, sent, after]
    assert {each.ledger_id() for each in ids} == {before.ledger_id()}
    count = sent.entry_id() - first.entry_id() + 1
    assert [each.entry_id() for each in ids] == [0, 1, count, count + 1]
    client.close()
    (stored,) = (
        content
        for each in (folder / "ledgers").rglob("*")
        if each.is_file() and b"before" in (content := each.read_bytes())
    )
    # Pulsar's fields 26 to 29: uuid, num_chunks_from_msg, total_chunk_msg_size, chunk_id.
    metadata = rb"\xd2\x01(.)(p.*?)\xd8\x01(.)\xe0\x01\x88\x27\xe8\x01(.)"
    chunks = list(re.finditer(metadata, stored, re.DOTALL))
    assert [each[4] for each in chunks] == [bytes([number]) for number in range(count)]
    assert {each[3] for each in chunks} == {bytes([count])}
    assert len({each[2] for each in chunks}) == 1
    assert len(large) == 0x27 << 7 | 0x08
    bounds = [each.end() for each in chunks] + [len(stored)]
    behind = [stored[start:end] for start, end in pairwise(bounds)]
    parts = [large.find(each[:50]) for each in behind] + [len(large)]
    assert parts[0] == 0
    for each, (start, end) in zip(behind, pairwise(parts), strict=True):
        assert start < end
        assert each.startswith(large[start:end])


def test_chunking_is_refused_on_topics_that_are_not_persistent(
    memory_client: pulsarx.Client,
) -> None:
    """'Chunking is only available for persistent topics.'"""
    memory_client.admin.topics.create_partitioned_topic("non-persistent://public/default/p", 2)
    for name in ("non-persistent://public/default/t", "non-persistent://public/default/p"):
        with pytest.raises(errors.NotAllowedError, match="chunking_enabled must be False"):
            memory_client.create_producer(name, chunking_enabled=True)
        memory_client.create_producer(name).close()
    memory_client.create_producer("t", chunking_enabled=True).close()
