"""Facts about receiving, acknowledging, seeking and redelivery."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenClient
from topic_reading import drain, numbers, payloads

import pulsarx
from pulsarx import ConsumerBatchReceivePolicy, InitialPosition, MessageId, errors

Kind = Callable[[pulsarx.Client, int], None]


def publish_plain(client: pulsarx.Client, count: int) -> None:
    producer = client.create_producer("t")
    for payload in numbers(count):
        producer.send_async(payload, None)
    producer.flush()
    producer.close()


def publish_batched(client: pulsarx.Client, count: int) -> None:
    producer = client.create_producer("t", batching_max_messages=7)
    producer.send_many(numbers(count))
    producer.close()


both_kinds = pytest.mark.parametrize("publish", [publish_plain, publish_batched], ids=["plain", "batched"])


def earliest(client: pulsarx.Client, **options: Any) -> Any:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


def rest_after_reopening(open_client: OpenClient, client: pulsarx.Client) -> list[bytes]:
    """What the subscription delivers to a consumer of a new start of the broker."""
    client.close()
    return payloads(open_client().subscribe("t", "s"))


# Receiving -------------------------------------------------------------------------------------------------------------


@both_kinds
def test_messages_come_in_the_order_they_were_published(memory_client: pulsarx.Client, publish: Kind) -> None:
    consumer = earliest(memory_client)
    publish(memory_client, 100)
    assert [consumer.receive().data() for _ in range(100)] == numbers(100)


def test_a_new_subscription_begins_with_the_next_message(memory_client: pulsarx.Client) -> None:
    publish_plain(memory_client, 3)
    consumer = memory_client.subscribe("t", "s")
    memory_client.create_producer("t").send(b"next")
    assert payloads(consumer) == [b"next"]


@both_kinds
def test_a_new_subscription_may_begin_at_the_first_message(memory_client: pulsarx.Client, publish: Kind) -> None:
    publish(memory_client, 10)
    assert payloads(earliest(memory_client)) == numbers(10)


def test_the_position_of_a_new_subscription_survives_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    publish_plain(client, 3)
    client.subscribe("t", "s").close()
    client.create_producer("t").send(b"next")
    assert rest_after_reopening(open_client, client) == [b"next"]


def test_a_subscription_made_before_the_first_message_gets_it_after_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    client.subscribe("t", "s")
    client.close()
    client = open_client()
    publish_plain(client, 3)
    assert rest_after_reopening(open_client, client) == numbers(3)


def test_an_existing_subscription_ignores_the_initial_position(memory_client: pulsarx.Client) -> None:
    memory_client.subscribe("t", "s").close()
    publish_plain(memory_client, 2)
    assert payloads(memory_client.subscribe("t", "s")) == numbers(2)


@pytest.mark.parametrize("timeout", [0, -1, 1, True])
def test_receive_raises_timeout_when_nothing_comes(memory_client: pulsarx.Client, timeout: int) -> None:
    consumer = memory_client.subscribe("t", "s")
    with pytest.raises(errors.Timeout):
        consumer.receive(timeout)
    assert not isinstance(errors.Timeout(), TimeoutError)


@pytest.mark.parametrize("timeout", [0, -1, 1000])
def test_receive_with_a_timeout_returns_what_is_there(memory_client: pulsarx.Client, timeout: int) -> None:
    consumer = memory_client.subscribe("t", "s")
    publish_plain(memory_client, 1)
    assert consumer.receive(timeout_millis=timeout).data() == b"0"


@pytest.mark.parametrize("timeout", [1.5, "1", b""])
def test_receive_refuses_a_timeout_that_is_no_int(memory_client: pulsarx.Client, timeout: Any) -> None:
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


# Acknowledging ---------------------------------------------------------------------------------------------------------


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
def test_acknowledge_many_takes_messages_and_ids_in_any_order(open_client: OpenClient, publish: Kind) -> None:
    client = open_client()
    consumer = earliest(client)
    publish(client, 40)
    messages = drain(consumer)
    consumer.acknowledge_many(messages[30:] + messages[:5])
    consumer.acknowledge_many([message.message_id() for message in messages[10:20]])
    consumer.acknowledge_many(tuple(messages[4:8]))
    consumer.acknowledge_many([])
    assert rest_after_reopening(open_client, client) == numbers(2, 8) + numbers(10, 20)


def test_acknowledging_twice_counts_once(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    message = consumer.receive()
    for _ in range(3):
        consumer.acknowledge(message)
    subscriptions = memory_client.admin.topics.stats("t")["subscriptions"]
    assert subscriptions["s"]["msg_backlog"] == 2


def test_what_never_was_received_may_be_acknowledged_by_id(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    sent = memory_client.create_producer("t").send_many(numbers(3))
    consumer.acknowledge(sent[1])
    assert payloads(consumer) == [b"0", b"2"]


@pytest.mark.parametrize("wrong", [None, 5, "1:2:3", b"id", object()])
def test_what_is_no_message_cannot_be_acknowledged(memory_client: pulsarx.Client, wrong: Any) -> None:
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
    for call in (consumer.acknowledge, consumer.acknowledge_cumulative, lambda each: consumer.acknowledge_many([each])):
        with pytest.raises(errors.NotAllowedError, match="topic"):
            call(message)
    assert payloads(consumer) == [b"0"]


@pytest.mark.parametrize(
    "odd",
    [
        MessageId(-1, 999, 0),
        MessageId(-1, 0, 0),
        MessageId.earliest,
        MessageId.latest,
        MessageId(-1, 1, 1 << 62),
        MessageId(-1, 1, 0, 1 << 30),
        MessageId(-1, 1, -1),
    ],
    ids=str,
)
def test_acknowledging_an_id_that_names_nothing_changes_nothing(memory_client: pulsarx.Client, odd: MessageId) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    consumer.acknowledge(odd)
    consumer.acknowledge_cumulative(odd)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(3)


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


# One consumer at a time ------------------------------------------------------------------------------------------------


def test_an_exclusive_subscription_has_one_consumer(memory_client: pulsarx.Client) -> None:
    first = memory_client.subscribe("t", "s", consumer_name="one")
    assert (first.consumer_name(), first.subscription_name()) == ("one", "s")
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe("t", "s")
    memory_client.subscribe("t", "other").close()
    first.close()
    memory_client.subscribe("t", "s").close()


def test_a_forgotten_consumer_leaves_its_subscription(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    assert consumer.receive().data() == b"0"
    del consumer
    assert payloads(earliest(memory_client)) == numbers(3)


# Seeking ---------------------------------------------------------------------------------------------------------------


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
        producer.send_many([b"%d" % number, b"%d" % number]) if batching else producer.send(b"%d" % number)
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


def test_a_seek_to_an_id_beyond_the_end_waits_for_new_messages(memory_client: pulsarx.Client) -> None:
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


# batch_receive ---------------------------------------------------------------------------------------------------------


def test_batch_receive_stops_at_its_number(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(7, -1, -1))
    publish_plain(memory_client, 20)
    assert [len(consumer.batch_receive()) for _ in range(2)] == [7, 7]


def test_batch_receive_stops_at_its_bytes(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(-1, 25, -1))
    memory_client.create_producer("t").send_many([b"x" * 10] * 6)
    assert [len(consumer.batch_receive()) for _ in range(2)] == [3, 3]


def test_batch_receive_stops_at_its_time(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, batch_receive_policy=ConsumerBatchReceivePolicy(100, -1, 20))
    publish_plain(memory_client, 3)
    assert [message.data() for message in consumer.batch_receive()] == numbers(3)
    assert consumer.batch_receive() == []


def test_batch_receive_without_a_policy_takes_what_comes_in_a_tenth_of_a_second(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_batched(memory_client, 30)
    assert [message.data() for message in consumer.batch_receive()] == numbers(30)


# Leaving ---------------------------------------------------------------------------------------------------------------


def test_unsubscribe_forgets_the_position(open_client: OpenClient) -> None:
    client = open_client()
    consumer = earliest(client)
    publish_plain(client, 3)
    drain(consumer)
    consumer.unsubscribe()
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(0)
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


# Threads ---------------------------------------------------------------------------------------------------------------


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


def settle(thread: threading.Thread) -> None:
    """Give a thread the time to fall asleep; nothing depends on whether it has."""
    thread.join(0.02)


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_waiting_receive_is_woken_by_a_message(open_client: OpenClient, durability: str) -> None:
    client = open_client(durability=durability)
    consumer = client.subscribe("t", "s")
    for payload in numbers(3):
        thread, found = in_thread(consumer.receive)
        settle(thread)
        client.create_producer("t").send(payload)
        thread.join(10)
        assert found[0].data() == payload


@pytest.mark.parametrize("close", ["consumer", "client", "unsubscribe"])
def test_a_waiting_receive_is_ended_by_a_close(close: str) -> None:
    client = pulsarx.Client("memory:closing")
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"x")
    consumer.receive()
    thread, found = in_thread(consumer.receive)
    settle(thread)
    {"consumer": consumer.close, "client": client.close, "unsubscribe": consumer.unsubscribe}[close]()
    thread.join(10)
    assert isinstance(found[0], errors.AlreadyClosed)
    client.shutdown()


def test_a_waiting_receive_is_woken_by_a_seek(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    drain(consumer)
    thread, found = in_thread(consumer.receive)
    settle(thread)
    consumer.seek(MessageId.earliest)
    thread.join(10)
    assert found[0].data() == b"0"


def test_a_waiting_receive_is_woken_by_redelivery(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    publish_plain(memory_client, 3)
    drain(consumer)
    thread, found = in_thread(consumer.receive)
    settle(thread)
    consumer.redeliver_unacknowledged_messages()
    thread.join(10)
    assert found[0].data() == b"0"


def test_several_threads_receive_each_message_once(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client)
    count = 20_000
    lists: list[list[bytes]] = [[] for _ in range(4)]

    def take(found: list[bytes]) -> None:
        while (message := consumer.receive()).data() != b"end":
            found.append(message.data())
            consumer.acknowledge(message)

    threads = [threading.Thread(target=take, args=(found,)) for found in lists]
    for thread in threads:
        thread.start()
    producer = memory_client.create_producer("t")
    producer.send_many(numbers(count))
    producer.send_many([b"end"] * 4)
    for thread in threads:
        thread.join(30)
    assert sorted(sum(lists, []), key=int) == numbers(count)
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
