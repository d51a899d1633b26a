"""Consumers and readers in a for loop."""

from __future__ import annotations

import threading

import pytest

import pulsarx
from pulsarx import MessageId, errors


def published(client: pulsarx.Client, topic: str, *values: bytes) -> None:
    with client.create_producer(topic) as producer:
        producer.send_many(list(values))


def test_a_reader_iterates_up_to_the_end_and_goes_on_from_there(memory_client: pulsarx.Client):
    reader = memory_client.create_reader("orders", MessageId.earliest)
    assert list(reader) == []
    published(memory_client, "orders", b"one", b"two")
    assert [message.data() for message in reader] == [b"one", b"two"]
    published(memory_client, "orders", b"three")
    assert [message.data() for message in reader] == [b"three"]


def test_breaking_off_an_iteration_loses_nothing(memory_client: pulsarx.Client):
    published(memory_client, "orders", b"one", b"two", b"three")
    reader = memory_client.create_reader("orders", MessageId.earliest)
    for message in reader:
        assert message.data() == b"one"
        break
    assert reader.read_next().data() == b"two"
    assert [message.data() for message in reader] == [b"three"]


def test_a_reader_of_partitions_iterates_over_all_of_them(memory_client: pulsarx.Client):
    memory_client.admin.topics.create_partitioned_topic("orders", 3)
    with memory_client.create_producer("orders") as producer:
        for number in range(9):
            producer.send(b"%d" % number)
    reader = memory_client.create_reader("orders", MessageId.earliest)
    assert sorted(message.data() for message in reader) == [b"%d" % number for number in range(9)]


def test_a_consumer_iterates_until_it_is_closed_and_acknowledges_nothing(
    memory_client: pulsarx.Client,
):
    consumer = memory_client.subscribe("orders", "billing")
    published(memory_client, "orders", b"one", b"two")
    seen = []
    for message in consumer:
        seen.append(message.data())
        if len(seen) == 2:
            consumer.close()
    assert seen == [b"one", b"two"]
    again = memory_client.subscribe("orders", "billing")
    assert again.receive(60_000).data() == b"one"


def test_closing_a_consumer_ends_an_iteration_that_waits(memory_client: pulsarx.Client):
    consumer = memory_client.subscribe("orders", "billing")
    published(memory_client, "orders", b"one")
    first = threading.Event()
    seen = []

    def iterate() -> None:
        for message in consumer:
            seen.append(message.data())
            first.set()

    thread = threading.Thread(target=iterate)
    thread.start()
    assert first.wait(60)
    consumer.close()
    thread.join(60)
    assert not thread.is_alive() and seen == [b"one"]


def test_a_consumer_of_several_topics_iterates(memory_client: pulsarx.Client):
    consumer = memory_client.subscribe(["a", "b"], "billing")
    published(memory_client, "a", b"one")
    published(memory_client, "b", b"two")
    messages = iter(consumer)
    assert {next(messages).data(), next(messages).data()} == {b"one", b"two"}


def test_what_is_closed_is_not_iterated(memory_client: pulsarx.Client):
    consumer = memory_client.subscribe("orders", "billing")
    reader = memory_client.create_reader("orders", MessageId.earliest)
    consumer.close()
    reader.close()
    for closed in (consumer, reader):
        with pytest.raises(errors.AlreadyClosed):
            iter(closed)


def test_what_listens_is_not_iterated(memory_client: pulsarx.Client):
    consumer = memory_client.subscribe("a", "x", message_listener=lambda *_: None)
    reader = memory_client.create_reader("a", MessageId.earliest, reader_listener=lambda *_: None)
    for listening in (consumer, reader):
        with pytest.raises(errors.InvalidConfiguration, match="listener"):
            iter(listening)


def test_an_iteration_goes_on_behind_an_error(memory_client: pulsarx.Client):
    """As receive does: an exception of it is no end."""
    consumer = memory_client.subscribe("orders", "billing")
    published(memory_client, "orders", b"one")
    messages = iter(consumer)
    consumer.receive = lambda: 1 / 0  # as a program replaces it
    with pytest.raises(ZeroDivisionError):
        next(iter(consumer))
    assert next(messages).data() == b"one"
    consumer.close()
    for _ in range(2):
        assert next(messages, None) is None
