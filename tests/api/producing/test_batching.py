"""Facts about when a batch is sent, and as what."""

from __future__ import annotations

from topic_reading import Told, batched, numbers, payloads, read_all, whole_topic

import pulsarx
from pulsarx import Result

Clocked = pulsarx.Client


def test_a_batch_is_sent_when_it_has_its_messages(clocked_client: Clocked) -> None:
    producer = batched(clocked_client, batching_max_messages=3)
    for payload in numbers(7):
        producer.send_async(payload, None)
    messages = read_all(clocked_client)
    assert [message.data() for message in messages] == numbers(6)
    ids = [message.message_id() for message in messages]
    assert [(each.entry_id(), each.batch_index()) for each in ids] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]


def test_a_batch_is_sent_when_the_next_message_would_make_it_too_large(
    clocked_client: Clocked,
) -> None:
    producer = batched(clocked_client, batching_max_allowed_size_in_bytes=1000)
    for _ in range(3):
        producer.send_async(b"x" * 400, None)
    assert len(read_all(clocked_client)) == 2


def test_a_message_larger_than_a_batch_goes_alone(clocked_client: Clocked) -> None:
    producer = batched(clocked_client, batching_max_allowed_size_in_bytes=1000)
    for payload in (b"small", b"L" * 5000, b"small"):
        producer.send_async(payload, None)
    producer.flush()
    assert [len(message.data()) for message in read_all(clocked_client)] == [5, 5000, 5]


def test_a_batch_is_sent_when_its_delay_is_over(
    clocked_client: Clocked, manual_clock: pulsarx.ManualClock
) -> None:
    producer = batched(clocked_client, batching_max_publish_delay_ms=10)
    consumer = clocked_client.subscribe("t", "s")
    for payload in numbers(2):
        producer.send_async(payload, None)
    manual_clock.advance(0.009)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    assert consumer.receive(60_000).data() == b"0"
    assert payloads(consumer) == [b"1"]


def test_each_batch_gets_its_whole_delay(
    clocked_client: Clocked, manual_clock: pulsarx.ManualClock
) -> None:
    producer = batched(clocked_client, batching_max_publish_delay_ms=10, batching_max_messages=2)
    consumer = clocked_client.subscribe("t", "s")
    producer.send_async(b"0", None)
    manual_clock.advance(0.005)
    producer.send_async(b"1", None)  # completes the first batch
    producer.send_async(b"2", None)
    manual_clock.advance(0.005)  # the first one's deadline
    assert consumer.receive_many(10, 5000) and payloads(consumer) == []
    manual_clock.advance(0.005)
    assert consumer.receive(60_000).data() == b"2"


def test_a_batch_of_one_is_stored_plain(clocked_client: Clocked) -> None:
    producer = batched(clocked_client)
    told = Told()
    producer.send_async(b"alone", told, properties={"a": "b"}, partition_key="k")
    producer.flush()
    (message,) = read_all(clocked_client)
    assert message.message_id().batch_index() == -1
    assert told.results == [(Result.Ok, message.message_id())]
    assert (message.properties(), message.partition_key()) == ({"a": "b"}, "k")


def test_a_synchronous_send_takes_the_open_batch_with_it(clocked_client: Clocked) -> None:
    producer = batched(clocked_client)
    producer.send_async(b"0", None)
    found = producer.send(b"1")
    assert (found.entry_id(), found.batch_index()) == (0, 1)
    assert whole_topic(clocked_client) == numbers(2)


def test_the_messages_of_a_batch_have_the_time_it_was_begun(
    clocked_client: Clocked, manual_clock: pulsarx.ManualClock
) -> None:
    producer = batched(clocked_client)
    began = manual_clock.now_ms()
    producer.send_async(b"0", None)
    manual_clock.advance(3)
    producer.send_async(b"1", None)
    producer.flush()
    assert {message.publish_timestamp() for message in read_all(clocked_client)} == {began}


def test_flush_of_nothing_returns(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.flush()
    assert whole_topic(memory_client) == []
