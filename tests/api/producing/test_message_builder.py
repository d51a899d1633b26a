"""Facts about messages that are described step by step."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from topic_reading import Told, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, Result, errors


@pytest.mark.parametrize("batching", [False, True])
def test_everything_said_arrives(memory_client: pulsarx.Client, batching: bool) -> None:
    producer = memory_client.create_producer("t", batching_enabled=batching)
    told = Told()
    for number in range(2):
        message = producer.new_message().value(b"%d" % number).key("k").ordering_key("o")
        message.property("a", "1").properties({"b": "2"}).event_time(5).sequence_id(7 + number)
        message.replication_clusters(["c"]).disable_replication()
        message.send_async(told)
    producer.flush()
    for number, found in enumerate(read_all(memory_client)):
        assert found.data() == b"%d" % number
        assert (found.partition_key(), found.ordering_key()) == ("k", "o")
        assert (found.has_key(), found.has_base64_encoded_key()) == (True, False)
        assert found.key_bytes() == b"k"
        assert found.properties() == {"a": "1", "b": "2"}
        assert (found.event_timestamp(), found.sequence_id()) == (5, 7 + number)
    assert [result for result, _ in told.results] == [Result.Ok] * 2


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("key", [b"\xff\x00\xfe", b"plain", b"x" * 100])
def test_a_key_may_be_bytes(memory_client: pulsarx.Client, batching: bool, key: bytes) -> None:
    producer = memory_client.create_producer("t", batching_enabled=batching)
    for _ in range(2):
        producer.new_message().key_bytes(key).ordering_key(key).value(b"x").send_async(None)
    producer.flush()
    for found in read_all(memory_client):
        assert found.key_bytes() == key
        assert found.has_base64_encoded_key()
        assert found.partition_key() == base64.b64encode(key).decode()
        assert found.ordering_key().encode("utf-8", "surrogateescape") == key


def test_an_empty_key_is_none(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.new_message().key_bytes(b"").value(b"x").send()
    producer.new_message().value(b"x").send()
    for found in read_all(memory_client):
        assert (found.has_key(), found.key_bytes(), found.partition_key()) == (False, b"", "")


def test_nothing_said_is_a_message_without_a_value(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").new_message().send()
    assert read_all(memory_client)[0].has_null_value()


def test_key_shared_goes_by_the_bytes_of_a_key(memory_client: pulsarx.Client) -> None:
    """The same key as text and as bytes is one key."""
    consumers = [
        memory_client.subscribe(
            "t", "s", ConsumerType.KeyShared, initial_position=InitialPosition.Earliest
        )
        for _ in range(3)
    ]
    producer = memory_client.create_producer("t")
    for number in range(20):
        producer.new_message().key(f"k{number}").value(b"x").send()
        producer.new_message().key_bytes(b"k%d" % number).value(b"x").send()
    keys: list[set[bytes]] = []
    for consumer in consumers:
        messages = consumer.receive_many(100, 0)
        keys.append({each.key_bytes() for each in messages})
        assert len(messages) == 2 * len(keys[-1])
    assert sum(map(len, keys)) == len(set.union(*keys)) == 20


@pytest.mark.border(left_out="several topics")
def test_the_partition_goes_by_the_text_of_a_key(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("x", 5)
    producer = memory_client.create_producer("x")
    for number in range(20):
        key = b"\xff%d" % number
        by_bytes = producer.new_message().key_bytes(key).send()
        by_text = producer.send(b"x", partition_key=base64.b64encode(key).decode())
        assert by_bytes.partition() == by_text.partition()


def test_a_delay_is_heeded(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = clocked_client.subscribe("t", "s", ConsumerType.Shared)
    producer = clocked_client.create_producer("t")
    producer.new_message().value(b"1").deliver_after(timedelta(seconds=5)).send()
    producer.new_message().value(b"2").deliver_at(manual_clock.now_ms() + 9000).send()
    assert consumer.receive_many(10, 0) == []
    manual_clock.advance(5)
    assert [each.data() for each in consumer.receive_many(10, 0)] == [b"1"]
    manual_clock.advance(4)
    assert [each.data() for each in consumer.receive_many(10, 0)] == [b"2"]


def test_a_message_is_sent_once(memory_client: pulsarx.Client) -> None:
    message = memory_client.create_producer("t").new_message().value(b"x")
    message.send()
    for again in (message.send, lambda: message.send_async(None)):
        with pytest.raises(errors.NotAllowedError):
            again()
    assert whole_topic(memory_client) == [b"x"]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("key", b"k"),
        ("key", None),
        ("key_bytes", "k"),
        ("ordering_key", 5),
        ("event_time", -1),
        ("event_time", "now"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(
    memory_client: pulsarx.Client, call: str, value: Any
) -> None:
    message = memory_client.create_producer("t").new_message()
    with pytest.raises(ValueError):
        getattr(message, call)(value)


def test_send_itself_takes_text_alone_for_an_ordering_key(memory_client: pulsarx.Client) -> None:
    with pytest.raises(ValueError, match="ordering_key"):
        memory_client.create_producer("t").send(b"x", ordering_key=b"o")


@pytest.mark.border(left_out="dead letters")
def test_a_dead_letter_has_the_key_in_bytes(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    policy = pulsarx.ConsumerDeadLetterPolicy(1)
    consumer = clocked_client.subscribe(
        "t", "s", ConsumerType.Shared, dead_letter_policy=policy, consumer_name="c"
    )
    message = clocked_client.create_producer("t").new_message().value(b"x")
    message.key_bytes(b"\xff").ordering_key(b"\xfe").send()
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(0))
        manual_clock.advance(60)
    consumer.receive_many(1, 0)
    manual_clock.advance(0)
    (letter,) = read_all(clocked_client, "t-s-DLQ")
    assert (letter.key_bytes(), letter.has_base64_encoded_key()) == (b"\xff", True)
    assert letter.ordering_key().encode("utf-8", "surrogateescape") == b"\xfe"
