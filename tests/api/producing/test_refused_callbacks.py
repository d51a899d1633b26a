"""Facts about `send_async` of a message that is refused: its callback is told, nothing raised."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from topic_reading import read_all, whole_topic

import pulsarx
from pulsarx import Result, errors

ONE_DAY_MS = 24 * 3600 * 1000
KINDS = ["plain", "batched", "by key", "described", "partitioned"]


class Told:
    """A callback that keeps what it is told."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.came = threading.Event()

    def __call__(self, result: Result, message_id: Any) -> None:
        self.results.append(result)
        self.came.set()


def make_producer(client: pulsarx.Client, kind: str, **options: Any) -> Any:
    if kind == "partitioned":
        client.admin.topics.create_partitioned_topic("t", 1)
    if kind != "plain":
        options |= {"batching_enabled": True, "batching_max_publish_delay_ms": ONE_DAY_MS}
    if kind == "by key":
        options["batching_type"] = pulsarx.BatchingType.KeyBased
    return client.create_producer("t", **options)


def send(producer: Any, kind: str, content: bytes, callback: Any) -> None:
    more = {"properties": {"a": "b"}} if kind == "described" else {}
    producer.send_async(content, callback, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_is_too_large_is_told_to_its_callback(
    memory_client: pulsarx.Client, kind: str
) -> None:
    producer = make_producer(memory_client, kind)
    told = Told()
    send(producer, kind, bytes(6 << 20), told)
    assert told.came.wait(30)
    send(producer, kind, b"fine", None)
    producer.flush()
    assert told.results == [Result.MessageTooBig]
    with pytest.raises(errors.MessageTooBig):
        send(producer, kind, bytes(6 << 20), None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_client", [False, True])
def test_a_closed_producer_is_told_to_the_callback(
    memory_client: pulsarx.Client, kind: str, by_client: bool
) -> None:
    producer = make_producer(memory_client, kind)
    (memory_client if by_client else producer).close()
    told = Told()
    send(producer, kind, b"x", told)
    assert told.came.wait(30)
    assert told.results == [Result.AlreadyClosed]
    with pytest.raises(errors.AlreadyClosed):
        send(producer, kind, b"x", None)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_full_queue_is_told_to_the_callback_of_the_message_it_refuses(
    memory_client: pulsarx.Client, kind: str
) -> None:
    producer = make_producer(memory_client, kind, max_pending_messages=2)
    holds, told = threading.Event(), [Told() for _ in range(4)]

    def hold(result: Result, message_id: Any) -> None:
        assert holds.wait(30)

    send(producer, kind, b"first", hold)  # its callback keeps the thread of callbacks
    for number in range(1, 4):
        try:
            send(producer, kind, b"%d" % number, told[number])
        except errors.ProducerQueueIsFull:  # it used to be raised
            pytest.fail("raised beside a callback")
    holds.set()
    producer.flush()
    refused = [each.results == [Result.ProducerQueueIsFull] for each in told[1:]]
    stored = [each.results == [Result.Ok] for each in told[1:]]
    assert [a or b for a, b in zip(refused, stored, strict=True)] == [True] * 3
    assert any(refused)
    topic = "t-partition-0" if kind == "partitioned" else "t"
    assert len(read_all(memory_client, topic)) == 1 + sum(stored)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("callback", [5, "print", object()])
def test_a_callback_that_cannot_be_called_is_refused_at_once(
    memory_client: pulsarx.Client, kind: str, callback: object
) -> None:
    """It was logged, after the message was stored."""
    producer = make_producer(memory_client, kind)
    with pytest.raises(TypeError, match="callback must be a function"):
        send(producer, kind, b"x", callback)
    producer.flush()
    assert whole_topic(memory_client, "t-partition-0" if kind == "partitioned" else "t") == []


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments_are_raised_beside_a_callback(
    memory_client: pulsarx.Client, kind: str
) -> None:
    producer, told = make_producer(memory_client, kind), Told()
    for wrong, expected in (
        ({"partition_key": 7}, ValueError),
        ({"properties": {"a": 1}}, TypeError),
        ({"event_timestamp": -1}, TypeError),
    ):
        with pytest.raises(expected):
            producer.send_async(b"x", told, **wrong)
    producer.flush()
    assert told.results == []


@pytest.mark.parametrize(
    "after", [timedelta(0), timedelta(seconds=-5), timedelta.min], ids=["now", "past", "long ago"]
)
def test_a_message_to_be_delivered_in_the_past_is_delivered_at_once(
    clocked_client: pulsarx.Client, after: timedelta
) -> None:
    """deliver_after below zero used to raise ValueError."""
    consumer = clocked_client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
    clocked_client.create_producer("t").send(b"x", deliver_after=after)
    assert consumer.receive(60_000).data() == b"x"


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("event_ms", [1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_an_event_time_is_64_bits_unsigned(
    memory_client: pulsarx.Client, batching: bool, event_ms: int
) -> None:
    """2^63 and above used to be refused."""
    producer = memory_client.create_producer("t", batching_enabled=batching)
    producer.send(b"x", event_timestamp=event_ms)
    producer.send_many([b"y"], event_timestamps=[event_ms])
    assert [each.event_timestamp() for each in read_all(memory_client)] == [event_ms] * 2
    reader = memory_client.create_reader("t", pulsarx.MessageId.earliest)
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.table(reader.read_arrow(10))["event_time"].cast(pyarrow.int64()).to_pylist()
    assert column == [event_ms if event_ms < 1 << 63 else None] * 2  # too late for a column


@pytest.mark.parametrize("kind", ["plain", "partitioned"])
def test_a_call_that_python_refuses_is_named_as_its_caller_knows_it(
    memory_client: pulsarx.Client, kind: str
) -> None:
    """Both named send_async_described, which nobody had called."""
    producer = make_producer(memory_client, kind)
    missing = r"send_async\(\) missing 1 required positional argument: 'callback'"
    with pytest.raises(TypeError, match=missing):
        producer.send_async(b"one")
    with pytest.raises(TypeError, match=missing):
        producer.send_async(b"one", partition_key="ada")
    with pytest.raises(TypeError, match=r"^send_async\(\) got an unexpected .* 'partition_kay'"):
        producer.send_async(b"one", None, partition_kay="ada")
    producer.send_async(content=b"one", callback=None)
    producer.flush()
    producer.close()
    assert len(read_all(memory_client, "t")) == 1
