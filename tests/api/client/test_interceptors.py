"""Facts about interceptors of producers and consumers."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from topic_reading import Told, drain, numbers, whole_topic

import pulsarx
from pulsarx import (
    ConsumerInterceptor,
    MessageId,
    OutgoingMessage,
    ProducerInterceptor,
    Result,
    errors,
)

WAIT = 60


class Stamp(ProducerInterceptor):
    """Puts a letter in front of each content."""

    def __init__(self, letter: bytes) -> None:
        self.letter = letter

    def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage:
        message.content = self.letter + message.content
        message.properties = {**(message.properties or {}), "by": producer.producer_name()}
        return message


class Ends(ProducerInterceptor):
    """Keeps how each message ended."""

    def __init__(self) -> None:
        self.ends: list[tuple[bytes, MessageId | None, type[Exception] | None]] = []

    def on_send_acknowledgement(
        self,
        producer: Any,
        message: OutgoingMessage,
        message_id: MessageId | None,
        exception: Exception | None,
    ) -> None:
        self.ends.append(
            (message.content, message_id, None if exception is None else type(exception))
        )


class Broken(ProducerInterceptor, ConsumerInterceptor):
    def before_send(self, *_: Any) -> Any:
        raise RuntimeError("before_send")

    def on_send_acknowledgement(self, *_: Any) -> None:
        raise RuntimeError("on_send_acknowledgement")

    def before_consume(self, *_: Any) -> None:
        raise RuntimeError("before_consume")

    def on_acknowledge(self, *_: Any) -> None:
        raise RuntimeError("on_acknowledge")

    def on_acknowledge_cumulative(self, *_: Any) -> None:
        raise RuntimeError("on_acknowledge_cumulative")

    def on_negative_acks_send(self, *_: Any) -> None:
        raise RuntimeError("on_negative_acks_send")


class Seen(ConsumerInterceptor):
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.consumed: list[bytes] = []
        self.told: list[tuple[str, Any, type[Exception] | None]] = []
        self.consumers: set[Any] = set()

    def before_consume(self, consumer: Any, message: Any) -> None:
        self.consumers.add(consumer)
        self.consumed.append(message.data())

    def on_acknowledge(self, _: Any, message_id: MessageId, exception: Exception | None) -> None:
        self._keep("acknowledge", message_id, exception)

    def on_acknowledge_cumulative(
        self, _: Any, message_id: MessageId, exception: Exception | None
    ) -> None:
        self._keep("cumulative", message_id, exception)

    def on_negative_acks_send(self, _: Any, message_ids: set[MessageId]) -> None:
        self._keep("negative", message_ids, None)

    def _keep(self, what: str, ids: Any, exception: Exception | None) -> None:
        self.told.append((what, ids, None if exception is None else type(exception)))


@pytest.fixture(params=["one topic", "partitions"])
def client(request: pytest.FixtureRequest, memory_client: pulsarx.Client) -> pulsarx.Client:
    if request.param == "partitions":
        memory_client.admin.topics.create_partitioned_topic("t", 3)
    return memory_client


# Producers ---------------------------------------------------------------------------------------


def test_each_changes_what_the_one_before_it_returned(client: pulsarx.Client) -> None:
    consumer = client.subscribe("t", "s")
    ends = Ends()
    producer = client.create_producer(
        "t", producer_name="p", interceptors=[Stamp(b"a"), Stamp(b"b"), ends]
    )
    sent = producer.send(b"1", {"given": "x"}, "key")
    message = consumer.receive(0)
    assert message.data() == b"ba1"
    assert message.properties() == {"given": "x", "by": "p"}
    assert message.partition_key() == "key"
    assert message.message_id() == sent
    assert ends.ends == [(b"ba1", sent, None)]


def test_all_ways_to_send_are_intercepted(client: pulsarx.Client) -> None:
    consumer = client.subscribe("t", "s")
    ends, told = Ends(), Told()
    producer = client.create_producer("t", batching_enabled=True, interceptors=[Stamp(b"x"), ends])
    producer.send_async(b"1", told)
    producer.send_async(b"2", None)
    producer.flush()
    many = producer.send_many([b"3", b"4"], keys=["k", None], properties=[None, {"a": "b"}])
    built = producer.new_message().value(b"5").key("k").send()
    expected = [b"x1", b"x2", b"x3", b"x4", b"x5"]
    found = {message.data(): message for message in drain(consumer)}
    assert sorted(found) == expected
    assert sorted(content for content, _, _ in ends.ends) == expected
    assert all(found[content].message_id() == ident for content, ident, _ in ends.ends)
    assert [found[b"x3"].message_id(), found[b"x4"].message_id()] == many
    assert found[b"x3"].partition_key() == "k"
    assert found[b"x4"].properties()["a"] == "b"
    assert found[b"x5"].message_id() == built
    assert told.results == [(Result.Ok, found[b"x1"].message_id())]
    for call in (producer.send_arrow, producer.send_columns):
        with pytest.raises(errors.OperationNotSupported):
            call([b"x"])


def test_an_interceptor_may_set_what_send_many_has_not(client: pulsarx.Client) -> None:
    class Ordered(ProducerInterceptor):
        def before_send(self, _: Any, message: OutgoingMessage) -> None:
            message.ordering_key = "o"

    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", interceptors=[Ordered()])
    producer.send_many(numbers(5))
    assert [message.ordering_key() for message in drain(consumer)] == ["o"] * 5


def test_it_chooses_the_partition_by_changing_the_key(memory_client: pulsarx.Client) -> None:
    class OneKey(ProducerInterceptor):
        def before_send(self, _: Any, message: OutgoingMessage) -> OutgoingMessage:
            return OutgoingMessage(message.content, partition_key="all")

    memory_client.admin.topics.create_partitioned_topic("p", 4)
    producer = memory_client.create_producer("p", interceptors=[OneKey()])
    assert len({producer.send(payload).partition() for payload in numbers(20)}) == 1


def test_a_failure_is_told_to_interceptor_and_caller(folder: Path) -> None:
    ends = Ends()
    options = pulsarx.BrokerOptions(max_message_size=100)
    with pulsarx.Client(folder, broker_options=options) as client:
        producer = client.create_producer("t", interceptors=[ends])
        with pytest.raises(errors.MessageTooBig):
            producer.send(b"x" * 101)
        with pytest.raises(errors.MessageTooBig):
            producer.send_many([b"x" * 101])
        told = Told()
        producer.send_async(b"x" * 101, told)
        producer.flush()
        assert [result for result, _ in told.results] == [Result.MessageTooBig]
        producer.send_async(b"x" * 101, None)
        with pytest.raises(errors.MessageTooBig):
            producer.flush()
        producer.flush()
        with pytest.raises(TypeError, match="callback"):
            producer.send_async(b"x", 5)
    assert ends.ends == [(b"x" * 101, None, errors.MessageTooBig)] * 4


def test_closing_raises_what_nobody_was_told() -> None:
    options = pulsarx.BrokerOptions(max_message_size=100)
    with pulsarx.Client("memory:closing", broker_options=options) as client:
        producer = client.create_producer("t", interceptors=[Ends()])
        producer.send_async(b"x" * 101, None)
        with pytest.raises(errors.MessageTooBig):
            producer.close()
        assert not producer.is_connected()


@pytest.mark.parametrize("partitions", [0, 2])
def test_sending_without_a_callback_by_a_closed_producer_raises(partitions: int) -> None:
    """Nobody was told: the next flush raises that it is closed, and no more."""
    ends = Ends()
    with pulsarx.Client("memory:closed") as client:
        if partitions:
            client.admin.topics.create_partitioned_topic("t", partitions)
        producer = client.create_producer("t", interceptors=[ends])
        producer.close()
        with pytest.raises(errors.AlreadyClosed):
            producer.send_async(b"x", None)
        assert ends.ends == [(b"x", None, errors.AlreadyClosed)]


def test_what_a_producers_interceptor_raises_is_logged_and_loses_nothing(
    client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = client.subscribe("t", "s")
    ends, told = Ends(), Told()
    producer = client.create_producer("t", interceptors=[Broken(), Stamp(b"x"), ends])
    with caplog.at_level(logging.ERROR, "pulsarx"):
        producer.send(b"1")
        producer.send_async(b"2", told)
        producer.flush()
    assert sorted(message.data() for message in drain(consumer)) == [b"x1", b"x2"]
    assert len(ends.ends) == len(told.results) + 1 == 2
    logged = caplog.text
    assert logged.count("RuntimeError: before_send") == 2
    assert logged.count("RuntimeError: on_send_acknowledgement") == 2


def test_what_is_no_message_is_not_sent_in_the_place_of_one(
    client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    class Wrong(ProducerInterceptor):
        def before_send(self, producer: Any, message: Any) -> Any:
            return message.content

    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t", interceptors=[Wrong(), Stamp(b"x")])
    told = Told()
    with caplog.at_level(logging.ERROR, "pulsarx"):
        producer.send(b"1")
        producer.send_async(b"2", told)
        producer.send_many([b"3", b"4"])
        producer.flush()
    assert sorted(each.data() for each in drain(consumer)) == [b"x1", b"x2", b"x3", b"x4"]
    assert [result for result, _ in told.results] == [Result.Ok]
    assert caplog.text.count("TypeError: it returned b") == 4


# Consumers ---------------------------------------------------------------------------------------


def test_all_ways_to_receive_are_intercepted(client: pulsarx.Client) -> None:
    seen = Seen()
    consumer = client.subscribe("t", "s", interceptors=[seen])
    with client.create_producer("t") as producer:
        for payload in numbers(10):
            producer.send(payload)
    got = [consumer.receive(0).data()]
    got += [message.data() for message in consumer.receive_many(3, 0)]
    got += [consumer.receive_async().result(WAIT).data()]
    got += [message.data() for message in consumer.batch_receive()]
    assert sorted(got) == sorted(numbers(10))
    assert seen.consumed == got
    assert seen.consumers == {consumer}
    with pytest.raises(errors.OperationNotSupported):
        consumer.receive_arrow(1, 0)
    with pytest.raises(errors.Timeout):
        consumer.receive(0)


def test_what_a_batch_gives_back_is_seen_when_it_is_had(memory_client: pulsarx.Client) -> None:
    seen = Seen()
    consumer = memory_client.subscribe(
        "t",
        "s",
        batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(-1, 5, 1000),
        interceptors=[seen],
    )
    producer = memory_client.create_producer("t")
    producer.send(b"1234")
    producer.send(b"56")
    assert [message.data() for message in consumer.batch_receive()] == [b"1234"]
    assert seen.consumed == [b"1234"]
    assert consumer.receive(0).data() == b"56"
    assert seen.consumed == [b"1234", b"56"]


def test_a_listener_gets_what_was_intercepted(client: pulsarx.Client) -> None:
    seen, came = Seen(), threading.Semaphore(0)
    client.subscribe("t", "s", message_listener=lambda *_: came.release(), interceptors=[seen])
    with client.create_producer("t") as producer:
        for payload in numbers(5):
            producer.send(payload)
    for _ in range(5):
        assert came.acquire(timeout=WAIT)
    assert sorted(seen.consumed) == numbers(5)


def test_acknowledgements_are_told_once_each(client: pulsarx.Client) -> None:
    seen = Seen()
    consumer = client.subscribe("t", "s", interceptors=[seen])
    with client.create_producer("t") as producer:
        for payload in numbers(6):
            producer.send(payload, partition_key="one")
    messages = [consumer.receive(0) for _ in range(6)]
    ids = [message.message_id() for message in messages]
    consumer.acknowledge(messages[0])
    consumer.acknowledge(ids[1])
    consumer.acknowledge_many([messages[2], ids[3]])
    consumer.acknowledge_cumulative(messages[4])
    consumer.negative_acknowledge(messages[5])
    assert seen.told == [
        *(("acknowledge", each, None) for each in ids[:4]),
        ("cumulative", ids[4], None),
        ("negative", {ids[5]}, None),
    ]
    with pytest.raises(TypeError):
        consumer.acknowledge("x")  # type: ignore[arg-type]
    consumer.close()
    with pytest.raises(errors.AlreadyClosed):
        consumer.acknowledge(messages[5])
    assert seen.told[-1] == ("acknowledge", ids[5], errors.AlreadyClosed)
    assert len(seen.told) == 7


def test_putting_a_message_off_acknowledges_it(memory_client: pulsarx.Client) -> None:
    seen = Seen()
    shared = pulsarx.ConsumerType.Shared
    consumer = memory_client.subscribe("t", "s", shared, retry_enable=True, interceptors=[seen])
    memory_client.create_producer("t").send(b"1")
    message = consumer.receive(0)
    with pytest.raises(ValueError):
        consumer.reconsume_later(message, -1)
    assert seen.told == []
    consumer.reconsume_later(message, 1000)
    assert seen.told == [("acknowledge", message.message_id(), None)]


def test_what_a_consumers_interceptor_raises_is_logged_and_loses_nothing(
    client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    consumer = client.subscribe("t", "s", interceptors=[Broken(), seen])
    with client.create_producer("t") as producer:
        for payload in numbers(3):
            producer.send(payload, partition_key="one")
    with caplog.at_level(logging.ERROR, "pulsarx"):
        messages = [consumer.receive(0) for _ in range(3)]
        consumer.acknowledge(messages[0])
        consumer.acknowledge_cumulative(messages[1])
        consumer.negative_acknowledge(messages[2])
    assert [message.data() for message in messages] == numbers(3) == seen.consumed
    assert [what for what, _, _ in seen.told] == ["acknowledge", "cumulative", "negative"]
    for name in ("before_consume", "on_acknowledge", "on_acknowledge_cumulative"):
        assert f"RuntimeError: {name}\n" in caplog.text
    consumer.close()
    again = client.subscribe("t", "s")
    assert [message.data() for message in drain(again)] == [b"2"]


def test_a_message_that_was_interrupted_on_its_way_comes_again(client: pulsarx.Client) -> None:
    class Interrupted(ConsumerInterceptor):
        done = False

        def before_consume(self, *_: Any) -> None:
            if not self.done:
                self.done = True
                raise KeyboardInterrupt

    consumer = client.subscribe("t", "s", interceptors=[Interrupted()])
    with client.create_producer("t") as producer:
        producer.send(b"once")
    with pytest.raises(KeyboardInterrupt):
        consumer.receive(0)
    message = consumer.receive(WAIT * 1000)
    assert message.data() == b"once"
    assert message.redelivery_count() == 0


def test_consumers_of_several_topics_and_patterns(memory_client: pulsarx.Client) -> None:
    import re

    seen = Seen()
    for wanted in (["a", "b"], re.compile("persistent://public/default/[ab]")):
        consumer = memory_client.subscribe(wanted, "s", interceptors=[seen])
        for topic in "ab":
            with memory_client.create_producer(topic) as producer:
                producer.send(topic.encode())
        got = sorted(consumer.receive(0).data() for _ in range(2))
        assert got == sorted(seen.consumed) == [b"a", b"b"]
        assert seen.consumers == {consumer}
        consumer.unsubscribe()
        seen.consumed.clear()
        seen.consumers.clear()


@pytest.mark.parametrize("wrong", [[object()], [Stamp], "Stamp", (Stamp(b"x"),)], ids=range(4))
def test_what_is_no_list_of_interceptors_is_refused(
    memory_client: pulsarx.Client, wrong: Any
) -> None:
    with pytest.raises(ValueError, match="interceptors"):
        memory_client.create_producer("t", interceptors=wrong)
    with pytest.raises(ValueError, match="interceptors"):
        memory_client.subscribe("t", "s", interceptors=wrong)


def test_without_interceptors_the_calls_are_the_native_ones(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t", interceptors=[])
    consumer = memory_client.subscribe("t", "s")
    assert type(producer).__name__ == "TopicProducer"
    assert type(consumer).__name__ == "TopicConsumer"
    producer.send(b"x")
    assert whole_topic(memory_client) == [b"x"]
