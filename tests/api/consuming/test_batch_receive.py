"""Facts about batch_receive: a batch ends with its number, its bytes or its time."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from topic_reading import numbers

import pulsarx
from pulsarx import ConsumerBatchReceivePolicy, ConsumerType, InitialPosition, errors

NEVER = -1
LONG_MS = 60_000


@pytest.fixture(params=["t", ["t", "u"]], ids=["one topic", "two topics"])
def topic(request: pytest.FixtureRequest) -> Any:
    return request.param


def collecting(client: pulsarx.Client, topic: Any, *policy: int, **options: Any) -> Any:
    return client.subscribe(
        topic,
        "s",
        initial_position=InitialPosition.Earliest,
        batch_receive_policy=ConsumerBatchReceivePolicy(*policy),
        **options,
    )


def publish(client: pulsarx.Client, count: int, size: int = 1) -> list[bytes]:
    payloads = [number.ljust(size) for number in numbers(count)]
    client.create_producer("t").send_many(payloads)
    return payloads


def data(messages: list[Any]) -> list[bytes]:
    return [message.data() for message in messages]


@pytest.mark.border(left_out="several topics", of="*two topics*")
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_the_number_comes_first(
    memory_client: pulsarx.Client, topic: Any, kind: ConsumerType
) -> None:
    consumer = collecting(memory_client, topic, 4, 1000, LONG_MS, consumer_type=kind)
    sent = publish(memory_client, 10)
    assert data(consumer.batch_receive()) == sent[:4]
    assert data(consumer.batch_receive()) == sent[4:8]


@pytest.mark.border(left_out="several topics", of="*two topics*")
def test_the_bytes_come_first(memory_client: pulsarx.Client, topic: Any) -> None:
    consumer = collecting(memory_client, topic, 100, 40, LONG_MS)
    sent = publish(memory_client, 8, 20)
    assert data(consumer.batch_receive()) == sent[:2]
    assert data(consumer.batch_receive()) == sent[2:4]


@pytest.mark.border(left_out="several topics", of="*two topics*")
def test_the_time_comes_first(memory_client: pulsarx.Client, topic: Any) -> None:
    consumer = collecting(memory_client, topic, 100, 1000, 10)
    sent = publish(memory_client, 3)
    assert data(consumer.batch_receive()) == sent
    assert consumer.batch_receive() == []


@pytest.mark.border(left_out="several topics", of="*two topics*")
def test_without_a_time_it_waits_for_the_number(memory_client: pulsarx.Client, topic: Any) -> None:
    consumer = collecting(memory_client, topic, 6, NEVER, NEVER)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.extend(data(consumer.batch_receive())))
    thread.start()
    sent = publish(memory_client, 3)
    sent += publish(memory_client, 3)
    thread.join(30)
    assert found == sent


@pytest.mark.border(left_out="several topics", of="*two topics*")
def test_closing_ends_a_batch_that_waits(memory_client: pulsarx.Client, topic: Any) -> None:
    consumer = collecting(memory_client, topic, 6, NEVER, NEVER)
    raised: list[Exception] = []

    def collect() -> None:
        try:
            consumer.batch_receive()
        except errors.AlreadyClosed as error:
            raised.append(error)

    thread = threading.Thread(target=collect)
    thread.start()
    until_asleep(thread)
    consumer.close()
    thread.join(30)
    assert raised


@pytest.mark.border(left_out="several topics", of="*two topics*")
@pytest.mark.parametrize("how", ["close", "unsubscribe", "close the client"])
def test_a_closed_consumer_has_no_batch(
    memory_client: pulsarx.Client, topic: str | list[str], how: str
) -> None:
    """Not even an empty one, as there is none in the official client."""
    consumer = collecting(memory_client, topic, 1, NEVER, NEVER)
    publish(memory_client, 1)
    if how == "close the client":
        memory_client.close()
    else:
        getattr(consumer, how)()
    with pytest.raises(errors.AlreadyClosed) as caught:
        consumer.batch_receive()
    assert str(caught.value) == "Pulsar error: AlreadyClosed"


def test_with_a_receiver_queue_of_0_there_is_no_batch(memory_client: pulsarx.Client) -> None:
    consumer = collecting(memory_client, "t", 1, NEVER, NEVER, receiver_queue_size=0)
    assert consumer.batch_receive() == []
    with pytest.raises(errors.InvalidConfiguration):
        consumer.receive(1)
    publish(memory_client, 1)
    assert consumer.receive().data() == b"0"


class Stopped(Exception):
    """Raised by a signal handler."""


@pytest.mark.border(left_out="several topics", of="*two topics*")
@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_an_interrupt_gives_back_what_was_taken(
    memory_client: pulsarx.Client, topic: Any, kind: ConsumerType
) -> None:
    """In order, uncounted, to the next call; it used to be gone until the consumer closed."""
    consumer = collecting(memory_client, topic, 10, NEVER, NEVER, consumer_type=kind)
    sent = publish(memory_client, 3)
    main = threading.main_thread()

    def stop(*_: object) -> None:
        raise Stopped

    def interrupt() -> None:
        until_asleep(main)
        signal.pthread_kill(main.ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        for _ in range(2):
            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(Stopped):
                consumer.batch_receive()
            thread.join(30)
    finally:
        signal.signal(signal.SIGUSR1, before)
    messages = consumer.receive_many(10, 0)
    assert data(messages) == sent
    assert [each.redelivery_count() for each in messages] == [0] * 3
