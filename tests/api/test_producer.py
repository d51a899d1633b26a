"""Facts about publishing: batches, ids, limits, callbacks, errors."""

from __future__ import annotations

import gc
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from topic_reading import drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import CompressionType, MessageId, Result, errors
from pulsarx.testing.faults import fault_plan

ONE_DAY_MS = 86_400_000
Clocked = pulsarx.Client


def read_all(client: pulsarx.Client, topic: str = "t") -> list[Any]:
    return drain(_Many(client.create_reader(topic, MessageId.earliest)))


class _Many:
    def __init__(self, reader: Any) -> None:
        self.receive_many = reader.read_many


class Told:
    """A send_async callback that keeps what it was told."""

    def __init__(self) -> None:
        self.results: list[tuple[Any, MessageId | None]] = []
        self.threads: set[int] = set()

    def __call__(self, result: Any, message_id: MessageId | None) -> None:
        self.results.append((result, message_id))
        self.threads.add(threading.get_ident())


# Ids -------------------------------------------------------------------------------------------------------------------


def test_send_returns_the_id_the_message_is_received_with(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    producer = memory_client.create_producer("t")
    ids = [producer.send(payload) for payload in numbers(5)]
    assert [message.message_id() for message in drain(consumer)] == ids
    assert [each.entry_id() for each in ids] == [0, 1, 2, 3, 4]
    assert {each.batch_index() for each in ids} == {-1}
    assert ids == sorted(ids)


def test_callbacks_get_the_ids_in_order_and_in_another_thread(memory_client: pulsarx.Client) -> None:
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
        producer = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS)
        for payload in numbers(3):
            producer.send_async(payload, told)
        assert told.results == []
        producer.flush()
        assert [(result, found.batch_index()) for result, found in told.results if found] == [
            (Result.Ok, 0),
            (Result.Ok, 1),
            (Result.Ok, 2),
        ]


def test_a_callback_may_send(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    done = threading.Event()

    def again(result: Any, message_id: Any) -> None:
        producer.send(b"second")
        done.set()

    producer.send_async(b"first", again)
    assert done.wait(10)
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


# Batches ---------------------------------------------------------------------------------------------------------------


def batched(client: pulsarx.Client, **options: Any) -> Any:
    options.setdefault("batching_max_publish_delay_ms", ONE_DAY_MS)
    return client.create_producer("t", batching_enabled=True, **options)


def test_a_batch_is_sent_when_it_has_its_messages(clocked_client: Clocked) -> None:
    producer = batched(clocked_client, batching_max_messages=3)
    for payload in numbers(7):
        producer.send_async(payload, None)
    messages = read_all(clocked_client)
    assert [message.data() for message in messages] == numbers(6)
    ids = [message.message_id() for message in messages]
    assert [(each.entry_id(), each.batch_index()) for each in ids] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_a_batch_is_sent_when_the_next_message_would_make_it_too_large(clocked_client: Clocked) -> None:
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


def test_a_batch_is_sent_when_its_delay_is_over(clocked_client: Clocked, manual_clock: pulsarx.ManualClock) -> None:
    producer = batched(clocked_client, batching_max_publish_delay_ms=10)
    consumer = clocked_client.subscribe("t", "s")
    for payload in numbers(2):
        producer.send_async(payload, None)
    manual_clock.advance(0.009)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    assert consumer.receive(5000).data() == b"0"
    assert payloads(consumer) == [b"1"]


def test_each_batch_gets_its_whole_delay(clocked_client: Clocked, manual_clock: pulsarx.ManualClock) -> None:
    producer = batched(clocked_client, batching_max_publish_delay_ms=10, batching_max_messages=2)
    consumer = clocked_client.subscribe("t", "s")
    producer.send_async(b"0", None)
    manual_clock.advance(0.005)
    producer.send_async(b"1", None)  # completes the first batch
    producer.send_async(b"2", None)
    manual_clock.advance(0.005)  # the first one's deadline
    assert consumer.receive_many(10, 5000) and payloads(consumer) == []
    manual_clock.advance(0.005)
    assert consumer.receive(5000).data() == b"2"


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


# Metadata --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batching", [False, True])
def test_everything_said_about_a_message_arrives(memory_client: pulsarx.Client, batching: bool) -> None:
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
    assert (message.ordering_key(), message.event_timestamp(), message.has_null_value()) == ("", 0, False)


@pytest.mark.parametrize("batching", [False, True])
def test_none_is_a_tombstone_and_no_empty_message(memory_client: pulsarx.Client, batching: bool) -> None:
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
    producer = memory_client.create_producer("t", compression_type=compression, batching_enabled=batching)
    for payload in sent:
        producer.send_async(payload, None, properties={"size": str(len(payload))})
    producer.flush()
    messages = read_all(memory_client)
    assert [message.data() for message in messages] == sent
    assert [message.properties()["size"] for message in messages] == [str(len(payload)) for payload in sent]


# Sequence ids ----------------------------------------------------------------------------------------------------------


def test_sequence_ids_count_from_zero(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    assert producer.last_sequence_id() == -1
    producer.send(b"x")
    assert producer.last_sequence_id() == 0
    producer.send(b"x")
    assert [message.sequence_id() for message in read_all(memory_client)] == [0, 1]


@pytest.mark.parametrize("initial", [0, 41])
def test_sequence_ids_go_on_behind_the_initial_one(memory_client: pulsarx.Client, initial: int) -> None:
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


# Limits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batching", [False, True])
def test_a_message_of_the_largest_size_goes_and_one_byte_more_is_too_big(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    limit = 5 * 1024 * 1024
    producer = memory_client.create_producer("t", batching_enabled=batching)
    producer.send(b"x" * limit)
    for send in (producer.send, lambda content: producer.send_async(content, None), lambda each: producer.send_many([each])):
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
            assert entered.wait(10)
            sender.join(0.05)
            assert sender.is_alive()
            plan.release()
            sender.join(10)
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


# Wrong arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"content": "text"}, TypeError),
        ({"content": bytearray(b"x")}, TypeError),
        ({"content": memoryview(b"x")}, TypeError),
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
        ({"event_timestamp": -1}, ValueError),
        ({"event_timestamp": 1 << 64}, ValueError),
        ({"sequence_id": -1}, ValueError),
        ({"deliver_at": -1}, ValueError),
        ({"deliver_at": 1 << 63}, ValueError),
        ({"deliver_after": timedelta(-1)}, ValueError),
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


def test_a_forgotten_producer_sends_its_batch_and_gives_its_name_back(clocked_client: Clocked) -> None:
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


# send_many -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batching", [False, True])
def test_send_many_returns_an_id_for_each_message_in_order(memory_client: pulsarx.Client, batching: bool) -> None:
    producer = memory_client.create_producer("t", batching_enabled=batching)
    ids = producer.send_many(numbers(2500))
    messages = read_all(memory_client)
    assert [message.data() for message in messages] == numbers(2500)
    assert [message.message_id() for message in messages] == ids
    assert producer.last_sequence_id() == 2499


def test_send_many_takes_keys_properties_and_event_times(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").send_many(
        numbers(3),
        keys=["a", None, "c"],
        properties=[None, {"p": "q"}, {}],
        event_timestamps=[None, 5, 6],
    )
    found = [
        (message.partition_key(), message.properties(), message.event_timestamp()) for message in read_all(memory_client)
    ]
    assert found == [("a", {}, 0), ("", {"p": "q"}, 5), ("c", {}, 6)]


def test_send_many_takes_any_iterable_and_nothing_at_all(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    assert producer.send_many([]) == []
    assert len(producer.send_many(payload for payload in numbers(3))) == 3
    assert len(producer.send_many((b"3", None))) == 2
    assert whole_topic(memory_client) == [*numbers(4), b""]


def test_send_many_keeps_the_order_with_an_open_batch(clocked_client: Clocked) -> None:
    producer = batched(clocked_client)
    producer.send_async(b"0", None)
    producer.send_many(numbers(2, 1))
    producer.send(b"3")
    assert whole_topic(clocked_client) == numbers(4)


@pytest.mark.parametrize(
    ("bad", "expected"), [("text", TypeError), (b"x" * 101, errors.MessageTooBig)], ids=["wrong type", "too big"]
)
def test_send_many_publishes_what_came_before_an_error_and_says_how_many(bad: Any, expected: type[Exception]) -> None:
    options = pulsarx.BrokerOptions(max_message_size=100)
    with pulsarx.Client("memory:partial", broker_options=options) as client:
        producer = client.create_producer("t", batching_max_messages=4)
        with pytest.raises(expected) as caught:
            producer.send_many([*numbers(10), bad, b"after"])
        assert "10 of 12 messages were published" in caught.value.__notes__
        producer.send(b"10")
        assert whole_topic(client) == numbers(11)
        assert [message.sequence_id() for message in read_all(client)] == list(range(11))


@pytest.mark.parametrize("column", ["keys", "properties", "event_timestamps"])
def test_send_many_refuses_columns_of_another_length(memory_client: pulsarx.Client, column: str) -> None:
    with pytest.raises(ValueError, match=column):
        memory_client.create_producer("t").send_many(numbers(3), **{column: [None]})
    assert whole_topic(memory_client) == []


def test_send_many_counts_large_batches_apart(memory_client: pulsarx.Client) -> None:
    sent = [bytes([number]) * 60_000 for number in range(20)]
    assert len(memory_client.create_producer("t").send_many(sent)) == 20
    assert whole_topic(memory_client) == sent
