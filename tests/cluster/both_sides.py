"""One script for any client: of a folder, over a connection, or of a cluster.

It uses what only PulsarX has besides what the official client has, and tells what it saw. The
oracle runs it on a real Pulsar.

    python tests/cluster/both_sides.py SERVICE_URL TOPIC

"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pulsarx
from pulsarx import ConsumerInterceptor, ConsumerType, InitialPosition, MessageId, Result
from pulsarx.schema import StringSchema

PATIENCE_MS = 20_000


def seen(client: pulsarx.Client, topic: str) -> dict[str, Any]:
    """What each step saw. topic: one that there is not yet; others begin with its name."""
    steps = (many, ids, errors, callbacks, listening, reading, schemas, intercepting, closing)
    return {step.__name__: step(client, f"{topic}-{step.__name__}") for step in steps}


def _subscribe(client: Any, topic: str, **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe(topic, "subscription", **options)


def _receive(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        more = consumer.receive_many(count - len(found), PATIENCE_MS)
        assert more, f"only {len(found)} of {count} came"
        found += more
    return found


def many(client: Any, topic: str) -> Any:
    consumer = _subscribe(client, topic)
    producer = client.create_producer(topic, batching_enabled=True)
    sent = producer.send_many(
        [b"0", b"1", b"2"],
        keys=["a", None, "b"],
        properties=[None, {"x": "y"}, None],
        event_timestamps=[None, None, 5],
    )
    found = _receive(consumer, 3)
    consumer.acknowledge_many(found)
    told = [
        (
            each.data(),
            each.value(),
            each.size(),
            each.has_null_value(),
            each.partition_key(),
            each.has_key(),
            each.properties(),
            each.event_timestamp(),
            each.redelivery_count(),
            each.topic_name(),
            each.producer_name() == producer.producer_name(),
        )
        for each in found
    ]
    return [told, sent == [each.message_id() for each in found], consumer.receive_many(1, 0)]


def ids(client: Any, topic: str) -> Any:
    """The id of one message of a batch acknowledges that message alone, stored bytes of it too."""
    shared = {"consumer_type": ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = _subscribe(client, topic, **shared)
    producer = client.create_producer(topic, batching_enabled=True)
    sent = producer.send_many([b"0", b"1", b"2"])
    found = _receive(consumer, 3)
    consumer.acknowledge(found[0].message_id())
    consumer.acknowledge(MessageId.deserialize(found[2].message_id().serialize()))
    consumer.close()  # which sends what is acknowledged
    again = _receive(_subscribe(client, topic, **shared), 1)
    return [
        [each.data() for each in again],
        all(isinstance(each, MessageId) for each in sent),
        len({*sent}),
        sorted(sent) == sent,
        [MessageId.deserialize(each.serialize()) == each for each in sent],
    ]


def errors(client: Any, topic: str) -> Any:
    consumer = _subscribe(client, topic)
    told = []
    for call in (
        lambda: consumer.receive(50),
        lambda: _subscribe(client, topic),
        lambda: client.create_producer(topic, batching_max_messages=1),
        lambda: client.create_producer(""),
    ):
        try:
            call()
        except Exception as error:
            told.append(type(error).__name__)
        else:
            told.append("nothing")
    return told


def callbacks(client: Any, topic: str) -> Any:
    producer = client.create_producer(topic)
    told: list[Any] = []
    for number in range(3):
        producer.send_async(b"%d" % number, lambda *answer: told.append(answer))
    producer.flush()
    return [
        [result is Result.Ok for result, _ in told],
        [isinstance(each, MessageId) for _, each in told],
        producer.last_sequence_id(),
    ]


def listening(client: Any, topic: str) -> Any:
    """A message whose listener raises comes again; a future gets the next message."""
    came: list[bytes] = []
    done = threading.Event()

    def listener(consumer: Any, message: Any) -> None:
        came.append(message.data())
        if len(came) == 1:
            raise ValueError("once")
        consumer.acknowledge(message)
        done.set()

    consumer = _subscribe(
        client, topic, message_listener=listener, negative_ack_redelivery_delay_ms=100
    )
    client.create_producer(topic).send(b"0")
    assert done.wait(PATIENCE_MS / 1000)
    consumer.close()
    consumer = _subscribe(client, topic)
    future = consumer.receive_async()
    client.create_producer(topic).send(b"1")
    return [came, future.result(PATIENCE_MS / 1000).data()]


def reading(client: Any, topic: str) -> Any:
    _subscribe(client, topic)  # without which a broker need not keep the messages
    producer = client.create_producer(topic)
    sent = [producer.send(b"%d" % number) for number in range(4)]
    reader = client.create_reader(topic, sent[0])
    found = [reader.read_next(PATIENCE_MS).data()]
    while reader.has_message_available():
        found.append(reader.read_next(PATIENCE_MS).data())
    reader.seek(MessageId.earliest)
    found.append(reader.read_next(PATIENCE_MS).data())
    return found


def schemas(client: Any, topic: str) -> Any:
    consumer = _subscribe(client, topic, schema=StringSchema())
    producer = client.create_producer(topic, schema=StringSchema())
    producer.send("text")
    producer.send(None)
    try:
        producer.send(b"bytes")
    except TypeError:
        refused = True
    return [[each.value() for each in _receive(consumer, 2)], refused]


def intercepting(client: Any, topic: str) -> Any:
    told: list[Any] = []

    class Seeing(ConsumerInterceptor):
        def before_consume(self, consumer: Any, message: Any) -> None:
            told.append(("before", message.data()))

        def on_acknowledge(self, consumer: Any, message_id: Any, exception: Any) -> None:
            told.append(("acknowledged", isinstance(message_id, MessageId), exception))

    class Marking(pulsarx.ProducerInterceptor):
        def before_send(self, producer: Any, message: Any) -> Any:
            message.properties = {"marked": "yes"}
            return message

        def on_send_acknowledgement(
            self, producer: Any, message: Any, sent: Any, error: Any
        ) -> None:
            told.append(("sent", isinstance(sent, MessageId), error))

    try:
        consumer = _subscribe(client, topic, interceptors=[Seeing()])
    except pulsarx.OperationNotSupported:
        return "not over a connection"
    client.create_producer(topic, interceptors=[Marking()]).send(b"0")
    message = consumer.receive(PATIENCE_MS)
    consumer.acknowledge(message)
    return [message.properties(), told]


def closing(client: Any, topic: str) -> Any:
    told = []
    producer, consumer = client.create_producer(topic), _subscribe(client, topic)
    future = consumer.receive_async()
    for call in (
        producer.close,
        producer.close,
        lambda: producer.send(b""),
        consumer.close,
        consumer.close,
        lambda: consumer.receive(0),
        lambda: future.result(PATIENCE_MS / 1000),
    ):
        try:
            call()
        except Exception as error:
            told.append(type(error).__name__)
        else:
            told.append("passes")
    return told


def main(service_url: str, topic: str) -> None:
    quiet = pulsarx.FileLogger(pulsarx.LoggerLevel.Error, os.devnull)
    with pulsarx.Client(service_url, logger=quiet) as client:
        for step, told in seen(client, topic).items():
            print(step, told)


if __name__ == "__main__":
    main(*sys.argv[1:])
