"""Facts about publishing: batches, ids, limits, callbacks, errors."""

from __future__ import annotations

import gc
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sleeping_thread import until_asleep
from topic_reading import Told, batched, drain, numbers, read_all, whole_topic

import pulsarx
from pulsarx import CompressionType, Result, errors
from pulsarx.testing.faults import fault_plan

Clocked = pulsarx.Client


# Ids ---------------------------------------------------------------------------------------------


def test_send_returns_the_id_the_message_is_received_with(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    producer = memory_client.create_producer("t")
    ids = [producer.send(payload) for payload in numbers(5)]
    assert [message.message_id() for message in drain(consumer)] == ids
    assert [each.entry_id() for each in ids] == [0, 1, 2, 3, 4]
    assert {each.batch_index() for each in ids} == {-1}
    assert ids == sorted(ids)


def test_callbacks_get_the_ids_in_order_and_in_another_thread(
    memory_client: pulsarx.Client,
) -> None:
    told = Told()
    producer = memory_client.create_producer("t")
    for payload in numbers(20):
        producer.send_async(payload, told)
    producer.flush()
    messages = read_all(memory_client)
    assert told.results == [(Result.Ok, message.message_id()) for message in messages]
    assert threading.get_ident() not in told.threads
    assert len(told.threads) == 1


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_callbacks_of_a_batch_get_its_indexes(folder: Path, durability: str) -> None:
    with pulsarx.Client(folder, durability=durability) as client:
        told = Told()
        producer = client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=86_400_000
        )
        for payload in numbers(3):
            producer.send_async(payload, told)
        assert told.results == []
        producer.flush()
        assert [(result, found.batch_index()) for result, found in told.results if found] == [
            (Result.Ok, 0),
            (Result.Ok, 1),
            (Result.Ok, 2),
        ]


def test_a_callback_gets_its_index_where_others_of_the_batch_have_none(
    memory_client: pulsarx.Client,
) -> None:
    told = Told()
    producer = batched(memory_client)
    for number in range(5):
        producer.send_async(b"x", None if number % 2 else told)
    producer.flush()
    assert [found.batch_index() for _, found in told.results if found] == [0, 2, 4]


def test_pending_callbacks_are_no_objects_for_the_garbage_collector(
    memory_client: pulsarx.Client,
) -> None:
    """Each had a tuple, so a program that sent with callbacks spent a fifth of it on collecting."""
    told = Told()
    producer = batched(memory_client)
    producer.send_async(b"x", told)
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(500):
            producer.send_async(b"x", told)
        found = gc.get_count()[0] - before
    finally:
        gc.enable()
    assert told.results == [] and found < 100
    producer.flush()
    assert len(told.results) == 501


def test_a_callback_may_send(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    done = threading.Event()

    def again(result: Any, message_id: Any) -> None:
        producer.send(b"second")
        done.set()

    producer.send_async(b"first", again)
    assert done.wait(60)
    assert whole_topic(memory_client) == [b"first", b"second"]


def test_a_callback_that_raises_is_logged_and_harms_nobody(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    producer = memory_client.create_producer("t")
    producer.send_async(b"x", lambda result, message_id: 1 / 0)
    producer.send_async(b"y", told)
    producer.flush()
    assert "ZeroDivisionError" in caplog.text
    assert len(told.results) == 1


# Metadata ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batching", [False, True])
def test_everything_said_about_a_message_arrives(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    producer = memory_client.create_producer("t", producer_name="me", batching_enabled=batching)
    for number in range(2):
        producer.send_async(
            b"%d" % number,
            None,
            properties={"name": "wert ä", "empty": ""},
            partition_key=f"key {number}",
            ordering_key="ordering",
            event_timestamp=1234567890123 + number,
            sequence_id=70 + number,
        )
    producer.flush()
    for number, message in enumerate(read_all(memory_client)):
        assert message.data() == message.value() == b"%d" % number
        assert message.properties() == {"name": "wert ä", "empty": ""}
        assert message.partition_key() == f"key {number}"
        assert message.ordering_key() == "ordering"
        assert message.event_timestamp() == 1234567890123 + number
        assert message.sequence_id() == 70 + number
        assert message.producer_name() == "me"
        assert message.topic_name() == "persistent://public/default/t"
        assert message.redelivery_count() == 0
        assert not message.has_null_value()
        assert message.message_id().batch_index() == (number if batching else -1)


@pytest.mark.parametrize("batching", [False, True])
def test_what_was_not_said_is_empty(memory_client: pulsarx.Client, batching: bool) -> None:
    memory_client.create_producer("t", batching_enabled=batching).send(b"")
    (message,) = read_all(memory_client)
    assert (message.data(), message.properties(), message.partition_key()) == (b"", {}, "")
    assert (message.ordering_key(), message.event_timestamp(), message.has_null_value()) == (
        "",
        0,
        False,
    )


@pytest.mark.parametrize("batching", [False, True])
def test_none_is_a_tombstone_and_no_empty_message(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    producer = memory_client.create_producer("t", batching_enabled=batching)
    producer.send_async(None, None, partition_key="k")
    producer.send_async(b"", None, partition_key="k")
    producer.flush()
    found = [(message.data(), message.has_null_value()) for message in read_all(memory_client)]
    assert found == [(b"", True), (b"", False)]


@pytest.mark.parametrize("when", [{"deliver_at": 1 << 42}, {"deliver_after": timedelta(days=1)}])
def test_a_delayed_message_is_not_batched_and_comes_at_once_on_an_exclusive_subscription(
    clocked_client: Clocked, when: dict[str, Any]
) -> None:
    consumer = clocked_client.subscribe("t", "s")
    producer = batched(clocked_client)
    producer.send_async(b"0", None)
    producer.send_async(b"1", None, **when)
    producer.send_async(b"2", None)
    producer.flush()
    messages = drain(consumer)
    assert [message.data() for message in messages] == numbers(3)
    assert [message.message_id().batch_index() for message in messages] == [-1, -1, -1]


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("compression", list(CompressionType.__members__.values()), ids=str)
def test_every_compression_brings_back_what_was_sent(
    memory_client: pulsarx.Client, compression: CompressionType, batching: bool
) -> None:
    sent = [b"", b"a", b"ab" * 5000, bytes(range(256)) * 10]
    producer = memory_client.create_producer(
        "t", compression_type=compression, batching_enabled=batching
    )
    for payload in sent:
        producer.send_async(payload, None, properties={"size": str(len(payload))})
    producer.flush()
    messages = read_all(memory_client)
    assert [message.data() for message in messages] == sent
    assert [message.properties()["size"] for message in messages] == [
        str(len(payload)) for payload in sent
    ]


# Sequence ids ------------------------------------------------------------------------------------


def test_sequence_ids_count_from_zero(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    assert producer.last_sequence_id() == -1
    producer.send(b"x")
    assert producer.last_sequence_id() == 0
    producer.send(b"x")
    assert [message.sequence_id() for message in read_all(memory_client)] == [0, 1]


@pytest.mark.parametrize("initial", [0, 41])
def test_sequence_ids_go_on_behind_the_initial_one(
    memory_client: pulsarx.Client, initial: int
) -> None:
    producer = memory_client.create_producer("t", initial_sequence_id=initial)
    assert producer.last_sequence_id() == initial
    producer.send(b"x")
    assert producer.last_sequence_id() == initial + 1


def test_a_batch_counts_its_sequence_ids(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t", batching_enabled=True)
    for payload in numbers(3):
        producer.send_async(payload, None)
    producer.flush()
    assert producer.last_sequence_id() == 2
    assert [message.sequence_id() for message in read_all(memory_client)] == [0, 1, 2]


# Limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batching", [False, True])
def test_a_message_of_the_largest_size_goes_and_one_byte_more_is_too_big(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    limit = 5 * 1024 * 1024
    producer = memory_client.create_producer("t", batching_enabled=batching)
    producer.send(b"x" * limit)
    for send in (
        producer.send,
        lambda content: producer.send_async(content, None),
        lambda each: producer.send_many([each]),
    ):
        with pytest.raises(errors.MessageTooBig, match=str(limit)):
            send(b"x" * (limit + 1))
    producer.send(b"after")
    assert [len(message.data()) for message in read_all(memory_client)] == [limit, 5]


def test_the_largest_size_can_be_set() -> None:
    options = pulsarx.BrokerOptions(max_message_size=10)
    with pulsarx.Client("memory:small", broker_options=options) as client:
        producer = client.create_producer("t")
        producer.send(b"x" * 10)
        with pytest.raises(errors.MessageTooBig, match="10"):
            producer.send(b"x" * 11)


def test_a_full_queue_is_refused(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", max_pending_messages=3)
        producer.send(b"warm up")
        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            for payload in numbers(3):
                producer.send_async(payload, None)
            with pytest.raises(errors.ProducerQueueIsFull, match="max_pending_messages"):
                producer.send_async(b"one too many", None)
            plan.release()
        producer.flush()
        producer.send_async(b"3", None)
        producer.flush()
        assert whole_topic(client)[1:] == numbers(4)


def test_a_full_queue_blocks_until_there_is_room(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", max_pending_messages=3, block_if_queue_full=True)
        producer.send(b"warm up")
        entered = threading.Event()

        def send_five() -> None:
            for payload in numbers(5):
                if payload == b"3":
                    entered.set()
                producer.send_async(payload, None)

        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            sender = threading.Thread(target=send_five)
            sender.start()
            assert entered.wait(60)
            until_asleep(sender)
            assert sender.is_alive()
            plan.release()
            sender.join(60)
            assert not sender.is_alive()
        producer.flush()
        assert whole_topic(client)[1:] == numbers(5)


def test_zero_pending_messages_means_no_limit(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", max_pending_messages=0)
        for payload in numbers(2500):
            producer.send_async(payload, None)
        producer.flush()
        assert whole_topic(client) == numbers(2500)


# Wrong arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"content": "text"}, TypeError),
        ({"content": bytearray(b"x")}, TypeError),
        pytest.param({"content": memoryview(b"x")}, TypeError, id="memoryview"),
        ({"content": 5}, TypeError),
        ({"properties": [("a", "b")]}, ValueError),
        ({"properties": {"a": 1}}, TypeError),
        ({"properties": {1: "a"}}, TypeError),
        ({"partition_key": b"k"}, ValueError),
        ({"ordering_key": 7}, ValueError),
        ({"sequence_id": "7"}, ValueError),
        ({"sequence_id": 1.5}, ValueError),
        ({"event_timestamp": 1.5}, ValueError),
        ({"deliver_at": 1.5}, ValueError),
        ({"deliver_after": 5}, ValueError),
        ({"replication_clusters": "a"}, ValueError),
        ({"disable_replication": 1}, ValueError),
        ({"partition_key": "\ud800"}, ValueError),
        ({"properties": {"a": "\ud800"}}, ValueError),
        ({"properties": {"\ud800": "a"}}, ValueError),
        ({"event_timestamp": -1}, TypeError),
        ({"event_timestamp": 1 << 64}, TypeError),
        ({"sequence_id": -1}, ValueError),
        ({"deliver_at": -1}, ValueError),
        ({"deliver_at": 1 << 63}, ValueError),
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_and_harms_nothing(
    memory_client: pulsarx.Client, arguments: dict[str, Any], expected: type[Exception]
) -> None:
    arguments.setdefault("content", b"x")
    for batching in (False, True):
        producer = memory_client.create_producer("t", batching_enabled=batching)
        with pytest.raises(expected):
            producer.send(**arguments)
        with pytest.raises(expected):
            producer.send_async(callback=None, **arguments)
        producer.send(b"fine")
        assert producer.last_sequence_id() == 0
        producer.close()
    assert whole_topic(memory_client) == [b"fine", b"fine"]


def test_a_name_on_a_topic_is_taken_once(memory_client: pulsarx.Client) -> None:
    first = memory_client.create_producer("t", producer_name="p")
    assert first.producer_name() == "p"
    with pytest.raises(errors.ProducerBusy, match="p"):
        memory_client.create_producer("t", producer_name="p")
    memory_client.create_producer("other", producer_name="p")
    first.close()
    second = memory_client.create_producer("t", producer_name="p")
    with pytest.raises(errors.AlreadyClosed):
        first.close()
    with pytest.raises(errors.ProducerBusy):
        memory_client.create_producer("t", producer_name="p")
    second.send(b"x")


def test_generated_names_differ(memory_client: pulsarx.Client) -> None:
    producers = [memory_client.create_producer("t") for _ in range(10)]
    assert len({producer.producer_name() for producer in producers}) == 10


def test_a_forgotten_producer_sends_its_batch_and_gives_its_name_back(
    clocked_client: Clocked,
) -> None:
    told = Told()
    producer = batched(clocked_client, producer_name="p")
    producer.send_async(b"0", told)
    producer.send_async(b"1", told)
    del producer
    gc.collect()
    batched(clocked_client, producer_name="p").close()
    assert whole_topic(clocked_client) == numbers(2)
    assert [result for result, _ in told.results] == [Result.Ok, Result.Ok]


def test_a_producer_forgotten_right_after_sending_loses_nothing(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        for payload in numbers(50):
            client.create_producer("t").send_async(payload, None)
    with pulsarx.Client(folder) as client:
        assert sorted(whole_topic(client)) == sorted(numbers(50))
