"""Facts about message listeners, reader listeners and consumer event listeners."""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

import pytest
from subscription_steps import publish_plain
from topic_reading import OpenClient, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors
from pulsarx.testing import inspect

WAIT = 30


class Listener:
    """Keeps what it was called with; acknowledges unless told not to."""

    def __init__(self, acknowledges: bool = True) -> None:
        self.arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.consumers: set[Any] = set()
        self.threads: set[str] = set()
        self.acknowledges = acknowledges

    def __call__(self, consumer: Any, message: Any) -> None:
        self.consumers.add(consumer)
        self.threads.add(threading.current_thread().name)
        if self.acknowledges:
            consumer.acknowledge(message)
        self.arrived.put(message)

    def payloads(self, count: int) -> list[bytes]:
        return [self.arrived.get(timeout=WAIT).data() for _ in range(count)]


def listen(client: pulsarx.Client, listener: Any, topic: Any = "t", **options: Any) -> Any:
    return client.subscribe(
        topic,
        "s",
        message_listener=listener,
        initial_position=InitialPosition.Earliest,
        **options,
    )


@pytest.mark.border(left_out="several topics", of="*topic1*")
@pytest.mark.parametrize("topic", ["t", ["t", "u"]])
def test_a_listener_is_called_with_every_message_in_order(
    memory_client: pulsarx.Client, topic: Any
) -> None:
    publish_plain(memory_client, 300)
    listener = Listener()
    consumer = listen(memory_client, listener, topic)
    assert listener.payloads(300) == numbers(300)
    publish_plain(memory_client, 300)
    assert listener.payloads(300) == numbers(300)
    assert listener.consumers == {consumer}
    assert listener.threads == {"pulsarx-listener-1"}


def test_a_consumer_that_only_listens_need_not_be_kept(memory_client: pulsarx.Client) -> None:
    listener = Listener()
    listen(memory_client, listener)
    publish_plain(memory_client, 3)
    assert listener.payloads(3) == numbers(3)


@pytest.mark.border(left_out="several topics", of="*topic1*")
@pytest.mark.parametrize("call", ["receive", "receive_many", "receive_arrow", "receive_async"])
@pytest.mark.parametrize("topic", ["t", ["t", "u"]])
def test_receiving_beside_a_listener_is_refused(
    memory_client: pulsarx.Client, call: str, topic: Any
) -> None:
    consumer = listen(memory_client, Listener(), topic)
    arguments = (1,) if call in ("receive_many", "receive_arrow") else ()
    with pytest.raises(errors.InvalidConfiguration):
        getattr(consumer, call)(*arguments)
    assert consumer.batch_receive() == []  # as of the official client


def test_a_listener_that_raises_is_logged_and_goes_on(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener()

    def fail(consumer: Any, message: Any) -> None:
        if message.data() == b"1":
            raise ValueError("of the listener")
        listener(consumer, message)

    with caplog.at_level(logging.ERROR, "pulsarx"):
        listen(memory_client, fail)
        publish_plain(memory_client, 3)
        assert listener.payloads(2) == [b"0", b"2"]
    assert "the listener raised" in caplog.text
    assert "of the listener" in caplog.text


def test_the_thread_survives_even_a_system_exit(memory_client: pulsarx.Client) -> None:
    listener = Listener()

    def leave(consumer: Any, message: Any) -> None:
        if message.data() == b"0":
            raise SystemExit(3)
        listener(consumer, message)

    listen(memory_client, leave)
    publish_plain(memory_client, 2)
    assert listener.payloads(1) == [b"1"]


def test_a_paused_listener_is_not_called_until_it_is_resumed(
    memory_client: pulsarx.Client,
) -> None:
    listener = Listener()
    seen = Listener()
    consumer = listen(memory_client, listener)
    listen(memory_client, seen, "u")
    consumer.pause_message_listener()
    publish_plain(memory_client, 5)
    # The only thread has been past the paused one when this one was called.
    memory_client.create_producer("u").send(b"later")
    assert seen.payloads(1) == [b"later"]
    assert listener.arrived.empty()
    consumer.resume_message_listener()
    assert listener.payloads(5) == numbers(5)


def test_a_listener_may_pause_itself(memory_client: pulsarx.Client) -> None:
    listener = Listener()

    def once(consumer: Any, message: Any) -> None:
        consumer.pause_message_listener()
        listener(consumer, message)

    consumer = listen(memory_client, once)
    publish_plain(memory_client, 3)
    for number in range(3):
        assert listener.payloads(1) == [b"%d" % number]
        assert listener.arrived.empty()
        consumer.resume_message_listener()


def test_pausing_needs_a_listener(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    for call in (consumer.pause_message_listener, consumer.resume_message_listener):
        with pytest.raises(errors.InvalidConfiguration):
            call()


def test_one_consumer_is_listened_to_in_one_thread_at_a_time(open_client: OpenClient) -> None:
    client = open_client("memory:four", message_listener_threads=4)
    inside: dict[str, int] = {}
    most = []
    arrived: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
    together = threading.Barrier(2)

    def count(consumer: Any, message: Any) -> None:
        topic = consumer.topic()
        inside[topic] = inside.get(topic, 0) + 1
        most.append(inside[topic])
        if message.data() == b"0":
            together.wait(WAIT)  # passes only when two consumers have a thread each
        inside[topic] -= 1
        arrived.put((topic, message.data()))

    for topic in ("a", "b"):
        listen(client, count, topic)
        client.create_producer(topic).send_many(numbers(50))
    found = [arrived.get(timeout=WAIT) for _ in range(100)]
    assert max(most) == 1
    for topic in ("a", "b"):
        assert [data for name, data in found if name.endswith(topic)] == numbers(50)


@pytest.mark.guest(left_out="messages come later")
def test_a_listener_with_much_to_do_lets_others_have_the_thread(
    memory_client: pulsarx.Client,
) -> None:
    order: queue.SimpleQueue[str] = queue.SimpleQueue()
    go = threading.Event()

    def note(consumer: Any, _: Any) -> None:
        go.wait(WAIT)
        order.put(consumer.topic()[-1])

    for topic in ("a", "b"):
        memory_client.create_producer(topic).send_many(numbers(50))
        listen(memory_client, note, topic)
    go.set()
    found = [order.get(timeout=WAIT) for _ in range(100)]
    assert "b" in found[:5]


def test_close_inside_the_listener_is_the_last_call(memory_client: pulsarx.Client) -> None:
    listener = Listener(acknowledges=False)
    raised: list[Exception] = []

    def close(consumer: Any, message: Any) -> None:
        consumer.close()
        try:
            consumer.acknowledge(message)
        except errors.AlreadyClosed as error:
            raised.append(error)
        listener(consumer, message)

    consumer = listen(memory_client, close)
    publish_plain(memory_client, 3)
    assert listener.payloads(1) == [b"0"]
    assert raised
    assert not consumer.is_connected()
    assert payloads(memory_client.subscribe("t", "s")) == numbers(3)
    assert listener.arrived.empty()


def test_close_does_not_wait_for_a_listener_that_waits_for_the_closer(
    memory_client: pulsarx.Client,
) -> None:
    inside, closed, done = threading.Event(), threading.Event(), threading.Event()

    def wait(consumer: Any, message: Any) -> None:
        inside.set()
        assert closed.wait(WAIT)
        done.set()

    consumer = listen(memory_client, wait)
    publish_plain(memory_client, 2)
    assert inside.wait(WAIT)
    consumer.close()
    memory_client.close()
    closed.set()
    assert done.wait(WAIT)


def test_closing_the_client_inside_a_listener_works(open_client: OpenClient) -> None:
    client = open_client()
    done = threading.Event()

    def close(*_: Any) -> None:
        client.close()
        done.set()

    listen(client, close)
    publish_plain(client, 1)
    assert done.wait(WAIT)
    assert payloads(open_client().subscribe("t", "s")) == [b"0"]


def test_a_queue_of_0_may_be_listened_to(memory_client: pulsarx.Client) -> None:
    listener = Listener()
    listen(memory_client, listener, receiver_queue_size=0)
    publish_plain(memory_client, 3)
    assert listener.payloads(3) == numbers(3)


def test_no_thread_is_started_without_a_listener(memory_client: pulsarx.Client) -> None:
    before = threading.enumerate()  # those of clients that were closed may not have ended yet
    memory_client.subscribe("t", "s")
    begun = set(threading.enumerate()).difference(before)
    assert not any("listener" in each.name for each in begun)


# Readers -----------------------------------------------------------------------------------------


def test_a_reader_listener_is_called_with_the_reader_and_every_message(
    memory_client: pulsarx.Client,
) -> None:
    publish_plain(memory_client, 3)
    listener = Listener(acknowledges=False)
    reader = memory_client.create_reader("t", MessageId.earliest, reader_listener=listener)
    assert listener.payloads(3) == numbers(3)
    publish_plain(memory_client, 2)
    assert listener.payloads(2) == numbers(2)
    assert listener.consumers == {reader}
    with pytest.raises(errors.InvalidConfiguration):
        reader.read_next()
    reader.close()


def test_a_reader_listener_needs_the_owner_of_the_folder(open_client: OpenClient) -> None:
    publish_plain(open_client(), 1)
    reading = open_client(read_only=True)
    if not inspect(reading).broker.read_only:
        return  # in the owner's process it reads the owner's broker
    with pytest.raises(errors.OperationNotSupported):
        reading.create_reader("t", MessageId.earliest, reader_listener=print)


# Consumer events ---------------------------------------------------------------------------------


class Events:
    def __init__(self) -> None:
        self.told: queue.SimpleQueue[tuple[str, Any, int]] = queue.SimpleQueue()

    def became_active(self, consumer: Any, partition: int) -> None:
        self.told.put(("active", consumer, partition))
        raise ValueError("logged, and that is all")

    def became_inactive(self, consumer: Any, partition: int) -> None:
        self.told.put(("inactive", consumer, partition))


@pytest.mark.border(left_out="several topics", of="*topic1*")
@pytest.mark.parametrize("topic", ["t", ["t", "u"]])
def test_consumer_events_are_told_in_order(memory_client: pulsarx.Client, topic: Any) -> None:
    events = Events()
    failover: Any = {"consumer_type": ConsumerType.Failover}
    consumer = memory_client.subscribe(
        topic, "s", consumer_event_listener=events, priority_level=1, **failover
    )
    memory_client.subscribe(topic, "s", **failover).close()  # it goes first, while it is there
    topics = 2 if isinstance(topic, list) else 1
    found = [events.told.get(timeout=WAIT) for _ in range(3 * topics)]
    assert sorted(found, key=lambda each: each[0] == "inactive") == sorted(
        [(each, consumer, -1) for each in ("active", "inactive", "active")] * topics,
        key=lambda each: each[0] == "inactive",
    )
    if topics == 1:
        assert [each[0] for each in found] == ["active", "inactive", "active"]


@pytest.mark.parametrize("wrong", [object(), print])
def test_an_event_listener_has_both_methods(memory_client: pulsarx.Client, wrong: Any) -> None:
    with pytest.raises(ValueError, match="became_active"):
        memory_client.subscribe("t", "s", consumer_event_listener=wrong)


# Types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.Exclusive])
def test_a_message_whose_listener_raised_comes_again(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    listener = Listener()
    failed: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done = threading.Event()

    def fail_once(consumer: Any, message: Any) -> None:
        if failed.empty():
            failed.put(message)
            raise ValueError("once")
        listener(consumer, message)
        done.set()

    consumer = listen(clocked_client, fail_once, consumer_type=kind)
    clocked_client.create_producer("t").send(b"again")
    assert failed.get(timeout=WAIT).data() == b"again"
    failed.put(None)
    # The nack follows the failed call in the same thread; this job comes after it.
    after = threading.Event()
    inspect(clocked_client).listener_pool.post(after.set)
    assert after.wait(WAIT)
    manual_clock.advance(61)
    assert listener.payloads(1) == [b"again"]
    consumer.close()


def test_listeners_of_a_shared_subscription_share(open_client: OpenClient) -> None:
    client = open_client("memory:shared", message_listener_threads=2)
    listeners = [Listener(), Listener()]
    for listener in listeners:
        listen(client, listener, consumer_type=ConsumerType.Shared)
    together: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for listener in listeners:
        listener.arrived = together
    publish_plain(client, 500)
    found = [together.get(timeout=WAIT).data() for _ in range(500)]
    assert sorted(found) == sorted(numbers(500))
    assert all(listener.consumers for listener in listeners)


class Impossible:
    """A redelivery backoff that fails."""

    def next(self, redelivery_count: int) -> int:
        raise ZeroDivisionError


def test_a_raising_listener_with_a_raising_backoff_goes_on(memory_client: pulsarx.Client) -> None:
    """The second exception used to end it: what was there already waited for the next message."""
    seen: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def fail(_: Any, message: Any) -> None:
        seen.put(message.data())
        raise ValueError("not this one")

    memory_client.subscribe("t", "s").close()
    publish_plain(memory_client, 3)
    listen(memory_client, fail, nack_backoff=Impossible())
    assert [seen.get(timeout=WAIT) for _ in range(3)] == numbers(3)
