"""Facts about seeking."""

from __future__ import annotations

from typing import Any

import pytest
from subscription_steps import (
    Kind,
    both_kinds,
    earliest,
    publish_batched,
    publish_plain,
    rest_after_reopening,
)
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import MessageId
from pulsarx.testing import inspect


@both_kinds
@pytest.mark.parametrize(("inclusive", "expected"), [(False, 51), (True, 50)])
def test_a_seek_to_an_id_goes_behind_it_or_to_it(
    memory_client: pulsarx.Client, publish: Kind, inclusive: bool, expected: int
) -> None:
    consumer = earliest(memory_client, start_message_id_inclusive=inclusive)
    publish(memory_client, 100)
    messages = drain(consumer)
    consumer.acknowledge_cumulative(messages[-1])
    consumer.seek(messages[50].message_id())
    assert payloads(consumer) == numbers(100 - expected, expected)


def test_a_seek_to_earliest_or_latest_goes_to_an_end(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_batched(memory_client, 20)
    drain(consumer)
    consumer.seek(MessageId.earliest)
    assert payloads(consumer) == numbers(20)
    consumer.seek(MessageId.latest)
    assert payloads(consumer) == []
    memory_client.create_producer("t").send(b"new")
    assert payloads(consumer) == [b"new"]


@pytest.mark.parametrize("batching", [False, True])
def test_a_seek_to_a_time_gives_the_first_message_from_then_on(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, batching: bool
) -> None:
    consumer = earliest(clocked_client)
    producer = clocked_client.create_producer("t")
    times = []
    for number in range(10):
        times.append(manual_clock.now_ms())
        producer.send_many([b"%d" % number, b"%d" % number]) if batching else producer.send(
            b"%d" % number
        )
        manual_clock.advance(1)
    copies = 2 if batching else 1
    for number in (3, 0, 9, 5):
        consumer.seek(times[number])
        assert consumer.receive(0).data() == b"%d" % number
    consumer.seek(times[4] - 500)
    assert len(payloads(consumer)) == 6 * copies
    consumer.seek(times[9] + 1)
    assert payloads(consumer) == []
    consumer.seek(0)
    assert len(payloads(consumer)) == 10 * copies


@pytest.mark.parametrize("wrong", [1.5, "earliest", None, (1, 2)])
def test_a_seek_to_another_type_is_refused(memory_client: pulsarx.Client, wrong: Any) -> None:
    consumer = memory_client.subscribe("t", "s")
    with pytest.raises(ValueError, match="invalid seek_arg type"):
        consumer.seek(wrong)


def test_a_seek_survives_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    consumer = earliest(client)
    publish_batched(client, 30)
    messages = drain(consumer)
    consumer.acknowledge_many(messages)
    consumer.seek(messages[9].message_id())
    assert rest_after_reopening(open_client, client) == numbers(20, 10)


def test_after_a_seek_what_came_before_counts_as_acknowledged(open_client: OpenClient) -> None:
    client = open_client()
    consumer = earliest(client)
    publish_plain(client, 10)
    messages = drain(consumer)
    consumer.seek(messages[4].message_id())
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 5
    consumer.acknowledge(messages[7])
    assert rest_after_reopening(open_client, client) == [b"5", b"6", b"8", b"9"]


def test_a_seek_to_an_id_beyond_the_end_waits_for_new_messages(
    memory_client: pulsarx.Client,
) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    last = consumer.get_last_message_id()
    consumer.seek(MessageId(-1, last.ledger_id(), 1000))
    assert payloads(consumer) == []
    memory_client.create_producer("t").send(b"new")
    assert payloads(consumer) == [b"new"]


def test_a_seek_on_an_empty_topic_is_fine(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    for target in (MessageId.earliest, MessageId.latest, 0, 1 << 50, MessageId(-1, 7, 7)):
        consumer.seek(target)
        assert payloads(consumer) == []
    memory_client.create_producer("t").send(b"x")
    assert payloads(consumer) == [b"x"]


@pytest.mark.parametrize("target", [0, 1 << 63, (1 << 64) - 1])
def test_times_beyond_all_numbers_are_the_ends(memory_client: pulsarx.Client, target: int) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    consumer.seek(target)
    assert payloads(consumer) == (numbers(3) if target <= 0 else [])


@pytest.mark.border(left_out="several topics")
@pytest.mark.parametrize("target", [-(1 << 70), -1, 1 << 64, 1 << 70])
def test_a_time_outside_64_bits_is_refused(memory_client: pulsarx.Client, target: int) -> None:
    """-1 used to be the start, and 2^70 the end."""
    consumer = earliest(memory_client)
    several = memory_client.subscribe(["t", "u"], "several")
    reader = memory_client.create_reader("t", MessageId.latest)
    publish_plain(memory_client, 3)
    for each in (consumer, several, reader):
        with pytest.raises(TypeError, match="64"):
            each.seek(target)
        with pytest.raises(ValueError, match="seek_arg"):
            each.seek(1.5)
    assert payloads(consumer) == numbers(3)  # nothing moved


@pytest.mark.guest(left_out="the owner's inside is changed")
@pytest.mark.border(left_out="the inside is changed")
def test_a_seek_to_the_end_while_a_ledger_is_opened_goes_there(
    memory_client: pulsarx.Client,
) -> None:
    """It used to raise NotAllowedError: the subscription had not been told the ledger yet."""
    publish_plain(memory_client, 3)
    consumer: Any = earliest(memory_client)
    ledger: Any = inspect(memory_client).ledger(consumer.topic())
    told = ledger._on_change

    def seek_first(ledger_id: int) -> None:
        ledger._on_change = told
        consumer.seek(MessageId.latest)
        told(ledger_id)

    ledger._on_change = seek_first
    ledger.roll_over(ledger.tail.writer)
    publish_plain(memory_client, 1)
    assert payloads(consumer) == numbers(1)
