"""Facts about receiving, acknowledging, seeking and redelivery."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from sleeping_thread import until_asleep
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
from pulsarx import ConsumerBatchReceivePolicy, MessageId, errors

# Receiving ---------------------------------------------------------------------------------------


@both_kinds
def test_messages_come_in_the_order_they_were_published(
    memory_client: pulsarx.Client, publish: Kind
) -> None:
    consumer = earliest(memory_client)
    publish(memory_client, 100)
    assert [consumer.receive().data() for _ in range(100)] == numbers(100)


def test_a_new_subscription_begins_with_the_next_message(memory_client: pulsarx.Client) -> None:
    publish_plain(memory_client, 3)
    consumer = memory_client.subscribe("t", "s")
    memory_client.create_producer("t").send(b"next")
    assert payloads(consumer) == [b"next"]


@both_kinds
def test_a_new_subscription_may_begin_at_the_first_message(
    memory_client: pulsarx.Client, publish: Kind
) -> None:
    publish(memory_client, 10)
    assert payloads(earliest(memory_client)) == numbers(10)


def test_the_position_of_a_new_subscription_survives_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    publish_plain(client, 3)
    client.subscribe("t", "s").close()
    client.create_producer("t").send(b"next")
    assert rest_after_reopening(open_client, client) == [b"next"]


def test_a_subscription_made_before_the_first_message_gets_it_after_a_restart(
    open_client: OpenClient,
) -> None:
    client = open_client()
    client.subscribe("t", "s")
    client.close()
    client = open_client()
    publish_plain(client, 3)
    assert rest_after_reopening(open_client, client) == numbers(3)


def test_an_existing_subscription_ignores_the_initial_position(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.subscribe("t", "s").close()
    publish_plain(memory_client, 2)
    assert payloads(memory_client.subscribe("t", "s")) == numbers(2)


@pytest.mark.parametrize("timeout", [0, -1, 1, True])
def test_receive_raises_timeout_when_nothing_comes(
    memory_client: pulsarx.Client, timeout: int
) -> None:
    consumer = memory_client.subscribe("t", "s")
    with pytest.raises(errors.Timeout):
        consumer.receive(timeout)
    assert not isinstance(errors.Timeout(), TimeoutError)


@pytest.mark.parametrize("timeout", [0, -1, 1000])
def test_receive_with_a_timeout_returns_what_is_there(
    memory_client: pulsarx.Client, timeout: int
) -> None:
    consumer = memory_client.subscribe("t", "s")
    publish_plain(memory_client, 1)
    assert consumer.receive(timeout_millis=timeout).data() == b"0"


@pytest.mark.parametrize("timeout", [1.5, "1", b""])
def test_receive_refuses_a_timeout_that_is_no_int(
    memory_client: pulsarx.Client, timeout: Any
) -> None:
    consumer = memory_client.subscribe("t", "s")
    with pytest.raises(ValueError, match="timeout_millis"):
        consumer.receive(timeout)


def test_receive_many_returns_what_is_there_up_to_its_limit(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    assert consumer.receive_many(5, 0) == []
    publish_batched(memory_client, 12)
    assert [len(consumer.receive_many(5, 0)) for _ in range(4)] == [5, 5, 2, 0]
    with pytest.raises(ValueError, match="max_messages"):
        consumer.receive_many(0)


# One consumer at a time --------------------------------------------------------------------------


def test_an_exclusive_subscription_has_one_consumer(memory_client: pulsarx.Client) -> None:
    first = memory_client.subscribe("t", "s", consumer_name="one")
    assert (first.consumer_name(), first.subscription_name()) == ("one", "s")
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe("t", "s")
    memory_client.subscribe("t", "other").close()
    first.close()
    memory_client.subscribe("t", "s").close()


@pytest.mark.guest(left_out="forgotten consumers")
@pytest.mark.border(left_out="forgotten consumers")
def test_a_forgotten_consumer_leaves_its_subscription(memory_client: pulsarx.Client) -> None:
    consumer = earliest(pulsarx.Client("memory:"))
    publish_plain(memory_client, 3)
    assert consumer.receive().data() == b"0"
    del consumer  # and its client
    assert payloads(earliest(memory_client)) == numbers(3)


# batch_receive -----------------------------------------------------------------------------------


def test_batch_receive_stops_at_its_number(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(7, -1, -1))
    publish_plain(memory_client, 20)
    assert [len(consumer.batch_receive()) for _ in range(2)] == [7, 7]


@pytest.mark.guest(left_out="messages come later")
def test_batch_receive_stops_at_its_bytes(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(-1, 25, -1))
    memory_client.create_producer("t").send_many([b"x" * 10] * 4 + [b"x" * 26, b"x" * 25, b"x"])
    assert [len(consumer.batch_receive()) for _ in range(4)] == [2, 2, 1, 1]


def test_batch_receive_stops_at_its_time(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(100, -1, 20))
    publish_plain(memory_client, 3)
    assert [message.data() for message in consumer.batch_receive()] == numbers(3)
    assert consumer.batch_receive() == []


def test_batch_receive_without_a_policy_takes_what_comes_in_a_tenth_of_a_second(
    memory_client: pulsarx.Client,
) -> None:
    consumer = earliest(memory_client)
    publish_batched(memory_client, 30)
    assert [message.data() for message in consumer.batch_receive()] == numbers(30)


# Leaving -----------------------------------------------------------------------------------------


def test_unsubscribe_forgets_the_position(open_client: OpenClient) -> None:
    client = open_client()
    consumer = earliest(client)
    publish_plain(client, 3)
    drain(consumer)
    consumer.unsubscribe()
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(0)
    consumer.close()
    with pytest.raises(errors.AlreadyClosed):
        consumer.close()
    assert client.admin.topics.stats("t")["subscriptions"] == {}
    client.close()
    assert payloads(earliest(open_client())) == numbers(3)


def test_the_last_message_id_is_that_of_the_last_message(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    assert str(consumer.get_last_message_id()) == "(-1,-1,-1,-1)"
    producer = memory_client.create_producer("t")
    assert producer.send(b"x") == consumer.get_last_message_id()
    assert producer.send(b"y") == consumer.get_last_message_id()
    assert producer.send_many(numbers(5))[-1] == consumer.get_last_message_id()


# Threads -----------------------------------------------------------------------------------------


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_waiting_receive_is_woken_by_a_message(open_client: OpenClient, durability: str) -> None:
    client = open_client(durability=durability)
    consumer = client.subscribe("t", "s")
    for payload in numbers(3):
        thread, found = in_thread(consumer.receive)
        until_asleep(thread)
        client.create_producer("t").send(payload)
        thread.join(60)
        assert found[0].data() == payload


@pytest.mark.parametrize("close", ["consumer", "client", "unsubscribe"])
def test_a_waiting_receive_is_ended_by_a_close(close: str) -> None:
    client = pulsarx.Client("memory:closing")
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"x")
    consumer.receive()
    thread, found = in_thread(consumer.receive)
    until_asleep(thread)
    {"consumer": consumer.close, "client": client.close, "unsubscribe": consumer.unsubscribe}[
        close
    ]()
    thread.join(60)
    assert isinstance(found[0], errors.AlreadyClosed)
    client.shutdown()


def test_a_waiting_receive_is_woken_by_a_seek(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    drain(consumer)
    thread, found = in_thread(consumer.receive)
    until_asleep(thread)
    consumer.seek(MessageId.earliest)
    thread.join(60)
    assert found[0].data() == b"0"


def test_a_waiting_receive_is_woken_by_redelivery(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    drain(consumer)
    thread, found = in_thread(consumer.receive)
    until_asleep(thread)
    consumer.redeliver_unacknowledged_messages()
    thread.join(60)
    assert found[0].data() == b"0"


def test_several_threads_receive_each_message_once(
    memory_client: pulsarx.Client, many: int
) -> None:
    consumer = earliest(memory_client)
    lists: list[list[bytes]] = [[] for _ in range(4)]

    def take(found: list[bytes]) -> None:
        while (message := consumer.receive()).data() != b"end":
            found.append(message.data())
            consumer.acknowledge(message)

    threads = [threading.Thread(target=take, args=(found,)) for found in lists]
    for thread in threads:
        thread.start()
    producer = memory_client.create_producer("t")
    producer.send_many(numbers(many))
    producer.send_many([b"end"] * 4)
    for thread in threads:
        thread.join()
    assert sorted(chain.from_iterable(lists), key=int) == numbers(many)
    assert all(found == sorted(found, key=int) for found in lists)


def test_a_message_is_pinned_while_its_ledger_is_trimmed(folder: Path) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        consumer = earliest(client)
        publish_plain(client, 20)
        messages = drain(consumer)
        consumer.acknowledge_cumulative(messages[-1])
        consumer.unsubscribe()
        assert [message.data() for message in messages] == numbers(20)
