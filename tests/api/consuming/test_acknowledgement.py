"""Facts about acknowledging and redelivery."""

from __future__ import annotations

import threading
from pathlib import Path
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
from pulsarx import InitialPosition, MessageId, errors
from pulsarx.clock import Deadline
from pulsarx.testing import inspect

REAL = 777  # stands for the id of the topic's ledger


@both_kinds
@pytest.mark.parametrize("restart", [False, True])
def test_exactly_what_is_not_acknowledged_comes_back_in_order(
    open_client: OpenClient, publish: Kind, restart: bool
) -> None:
    client = open_client()
    consumer = earliest(client)
    publish(client, 50)
    messages = drain(consumer)
    kept = [number for number in range(50) if number % 3 == 0 or 20 < number < 30]
    for number in reversed(range(50)):
        if number not in kept:
            consumer.acknowledge(messages[number])
    if restart:
        assert rest_after_reopening(open_client, client) == [b"%d" % number for number in kept]
    else:
        consumer.close()
        assert payloads(client.subscribe("t", "s")) == [b"%d" % number for number in kept]


@both_kinds
def test_acknowledging_by_id_counts_as_by_message(open_client: OpenClient, publish: Kind) -> None:
    client = open_client()
    consumer = earliest(client)
    publish(client, 20)
    for message in drain(consumer)[5:15]:
        consumer.acknowledge(MessageId.deserialize(message.message_id().serialize()))
    assert rest_after_reopening(open_client, client) == numbers(5) + numbers(5, 15)


@both_kinds
@pytest.mark.parametrize("by_id", [False, True])
def test_a_cumulative_acknowledgement_takes_everything_before(
    open_client: OpenClient, publish: Kind, by_id: bool
) -> None:
    client = open_client()
    consumer = earliest(client)
    publish(client, 20)
    message = drain(consumer)[11]
    consumer.acknowledge_cumulative(message.message_id() if by_id else message)
    assert rest_after_reopening(open_client, client) == numbers(8, 12)


def test_a_cumulative_acknowledgement_never_goes_back(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 10)
    messages = drain(consumer)
    consumer.acknowledge_cumulative(messages[6])
    consumer.acknowledge_cumulative(messages[2])
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(3, 7)


def test_the_id_of_a_whole_batch_acknowledges_all_of_it(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_batched(memory_client, 14)
    first = drain(consumer)[0].message_id()
    consumer.acknowledge(MessageId(-1, first.ledger_id(), first.entry_id(), -1))
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(7, 7)


@both_kinds
def test_acknowledge_many_takes_messages_and_ids_in_any_order(
    open_client: OpenClient, publish: Kind
) -> None:
    client = open_client()
    consumer = earliest(client)
    publish(client, 40)
    messages = drain(consumer)
    consumer.acknowledge_many(messages[30:] + messages[:5])
    consumer.acknowledge_many([message.message_id() for message in messages[10:20]])
    consumer.acknowledge_many(tuple(messages[4:8]))
    consumer.acknowledge_many([])
    assert rest_after_reopening(open_client, client) == numbers(2, 8) + numbers(10, 20)


@pytest.mark.border(left_out="more than is pending at most", of="plain")
@both_kinds
def test_a_long_list_of_messages_with_gaps_and_ids_is_acknowledged_as_it_is(
    open_client: OpenClient, publish: Kind
) -> None:
    """Messages are taken a thousand at a time."""
    client = open_client()
    consumer = earliest(client)
    publish(client, 3000)
    messages = drain(consumer)
    kept = [number for number in range(3000) if number % 7 == 0 or 1020 < number < 1030]
    given = [messages[number] for number in range(3000) if number not in set(kept)]
    given[1500:1510] = [message.message_id() for message in given[1500:1510]]
    consumer.acknowledge_many(given)
    assert rest_after_reopening(open_client, client) == [b"%d" % number for number in kept]


@pytest.mark.border(left_out="several topics")
def test_what_stands_before_a_message_of_another_topic_is_acknowledged(
    memory_client: pulsarx.Client,
) -> None:
    other = memory_client.subscribe("other", "s")
    memory_client.create_producer("other").send(b"x")
    consumer = earliest(memory_client)
    publish_plain(memory_client, 6)
    messages = drain(consumer)
    with pytest.raises(errors.NotAllowedError, match="not of topic"):
        consumer.acknowledge_many([messages[0], messages[2], other.receive(), messages[4]])
    subscriptions = memory_client.admin.topics.stats("t")["subscriptions"]
    assert subscriptions["s"]["msg_backlog"] == 4


def test_acknowledging_twice_counts_once(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    message = consumer.receive()
    for _ in range(3):
        consumer.acknowledge(message)
    subscriptions = memory_client.admin.topics.stats("t")["subscriptions"]
    assert subscriptions["s"]["msg_backlog"] == 2


@pytest.mark.border(left_out="sent before acknowledged")
def test_what_never_was_received_may_be_acknowledged_by_id(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    sent = memory_client.create_producer("t").send_many(numbers(3))
    consumer.acknowledge(sent[1])
    assert payloads(consumer) == [b"0", b"2"]


@pytest.mark.parametrize("wrong", [None, 5, "1:2:3", b"id", object()])
def test_what_is_no_message_cannot_be_acknowledged(
    memory_client: pulsarx.Client, wrong: Any
) -> None:
    consumer = memory_client.subscribe("t", "s")
    with pytest.raises(TypeError):
        consumer.acknowledge(wrong)
    with pytest.raises(TypeError):
        consumer.acknowledge_cumulative(wrong)
    with pytest.raises(TypeError):
        consumer.acknowledge_many([wrong])


def test_a_message_of_another_topic_cannot_be_acknowledged(memory_client: pulsarx.Client) -> None:
    other = memory_client.subscribe("other", "s")
    memory_client.create_producer("other").send(b"x")
    message = other.receive()
    consumer = earliest(memory_client)
    publish_plain(memory_client, 1)
    for call in (
        consumer.acknowledge,
        consumer.acknowledge_cumulative,
        lambda each: consumer.acknowledge_many([each]),
    ):
        with pytest.raises(errors.NotAllowedError, match="topic"):
            call(message)
    assert payloads(consumer) == [b"0"]


@pytest.mark.border(left_out="negative acknowledgements", of="t-*")
@pytest.mark.border(left_out="several topics", of="['t', 'u']*")
@pytest.mark.parametrize(
    "odd",
    [
        MessageId(-1, 999, 0),
        MessageId(-1, 0, 0),
        MessageId.earliest,
        MessageId.latest,
        MessageId(-1, REAL, 1 << 62),
        MessageId(-1, REAL, 0, 1 << 30),
        MessageId(-1, REAL, -1),
    ],
    ids=str,
)
@pytest.mark.parametrize("topic", ["t", ["t", "u"]], ids=str)
def test_an_id_that_names_nothing_is_refused_and_changes_nothing(
    memory_client: pulsarx.Client, odd: MessageId, topic: Any
) -> None:
    """It used to be taken without a word."""
    publish_plain(memory_client, 3)
    consumer = memory_client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    if odd.ledger_id() == REAL:
        stats = memory_client.admin.topics.stats("t")
        ledger_id = stats["ledgers"][0]["ledger_id"]
        odd = MessageId(-1, ledger_id, odd.entry_id(), odd.batch_index())
    odd = MessageId.deserialize(odd.serialize(), "t")
    refusals = (errors.NotAllowedError, errors.OperationNotSupported)  # the latter: of several
    for call in (
        consumer.acknowledge,
        consumer.acknowledge_cumulative,
        consumer.negative_acknowledge,
        lambda each: consumer.acknowledge_many([each]),
    ):
        with pytest.raises(refusals, match=r"has such a message|has no such message"):
            call(odd)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(3)


@pytest.mark.border(left_out="several topics", of="['t', 'u'*")
@pytest.mark.parametrize("topic", ["t", ["t", "u"]], ids=str)
def test_the_id_of_another_topic_is_refused(memory_client: pulsarx.Client, topic: Any) -> None:
    before = memory_client.create_producer("before").send(b"x")
    publish_plain(memory_client, 1)
    after = memory_client.create_producer("after").send(b"x")
    consumer = memory_client.subscribe(topic, "s")
    kind = errors.NotAllowedError if topic == "t" else errors.OperationNotSupported
    for foreign in (before, after):
        foreign = MessageId.deserialize(foreign.serialize(), "t")
        with pytest.raises(kind, match=r"no such message|none of"):
            consumer.acknowledge(foreign)


@pytest.mark.border(left_out="several topics", of="['u', 't'*")
@pytest.mark.parametrize("topic", ["t", ["u", "t"]], ids=str)
def test_an_id_that_was_trimmed_is_acknowledged_already(
    open_client: OpenClient, topic: Any
) -> None:
    client = open_client()
    client.subscribe(topic, "s").close()
    client.create_producer("t").send(b"0")
    client.close()
    client = open_client()
    consumer = client.subscribe(topic, "s")
    first = consumer.receive(60_000).message_id()
    consumer.acknowledge(first)
    client.create_producer("t").send(b"1")
    consumer.acknowledge(consumer.receive(60_000))
    client.close()
    client = open_client()
    consumer = client.subscribe(topic, "s")
    ledgers = client.admin.topics.stats("t")["ledgers"]
    assert first.ledger_id() not in [each["ledger_id"] for each in ledgers]
    consumer.acknowledge(first)
    consumer.acknowledge_cumulative(first)
    consumer.negative_acknowledge(first)


def test_redelivery_brings_what_is_not_acknowledged_in_order(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_batched(memory_client, 20)
    messages = consumer.receive_many(10)
    consumer.acknowledge_many(messages[2:5])
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [*numbers(2), *numbers(15, 5)]


def test_subscriptions_are_independent(memory_client: pulsarx.Client) -> None:
    first = memory_client.subscribe("t", "first")
    second = memory_client.subscribe("t", "second")
    publish_plain(memory_client, 3)
    first.acknowledge_cumulative(drain(first)[-1])
    assert payloads(second) == numbers(3)


def test_what_is_acknowledged_while_a_flush_begins_is_flushed_by_the_next_one(
    folder: Path,
) -> None:
    """It used to be flushed only when the client closed."""
    with pulsarx.Client(folder, flush_interval_ms=1) as client:
        consumer = earliest(client)
        publish_plain(client, 30)
        tracker = inspect(client).subscription("t", "s").tracker
        for number, message in enumerate(drain(consumer)):
            consumer.acknowledge(message)
            deadline = Deadline(20_000)
            while tracker.dirty and not deadline.expired():
                threading.Event().wait(0.001)
            assert not tracker.dirty, number
