"""A program as users write it: mypy checks it, and it runs. See test_types."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta
from typing import Any, assert_type

import pulsarx
from pulsarx.schema import JsonSchema, Long, Record, String, StringSchema


class Order(Record):
    customer = String(required=True)
    cents = Long(required=True)


def told(result: pulsarx.Result, message_id: pulsarx.MessageId) -> None:
    if result != pulsarx.Result.Ok:
        print(result, message_id)


def listen(consumer: pulsarx.Consumer, message: pulsarx.Message) -> None:
    consumer.acknowledge(message)


def choose(message: pulsarx.Message, partitions: int) -> int:
    return len(message.data()) % partitions


def produce(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "orders",
        producer_name="till",
        batching_enabled=True,
        batching_max_publish_delay_ms=5,
        compression_type=pulsarx.CompressionType.LZ4,
        access_mode=pulsarx.ProducerAccessMode.Shared,
        message_router=choose,
        properties={"a": "b"},
    )
    assert_type(producer, pulsarx.Producer[bytes])
    sent = producer.send(b"x", properties={"a": "b"}, partition_key="k", event_timestamp=1)
    assert_type(sent, pulsarx.MessageId)
    producer.send_async(b"y", told, deliver_after=timedelta(seconds=1))
    producer.send_async(b"z", None)
    producer.send_async(b"z", callback=lambda result, message_id: None)
    assert_type(producer.send_many([b"1", None]), list[pulsarx.MessageId])
    producer.flush()
    assert_type(producer.topic(), str)
    assert_type(producer.last_sequence_id(), int)
    producer.new_message().value(b"x").key("k").send()
    producer.close()
    with client.create_producer("texts", schema=StringSchema()) as typed:
        assert_type(typed, pulsarx.Producer[str])
        typed.send("x")


def consume(client: pulsarx.Client) -> None:
    consumer = client.subscribe(
        "orders",
        "billing",
        pulsarx.ConsumerType.Shared,
        initial_position=pulsarx.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=1000,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(3),
        batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(10, -1, 100),
        key_shared_policy=pulsarx.ConsumerKeySharedPolicy(),
    )
    assert_type(consumer, pulsarx.Consumer[bytes])
    try:
        message = consumer.receive(timeout_millis=1000)
        assert_type(message, pulsarx.Message[bytes])
        assert_type(message.data(), bytes)
        assert_type(message.value(), bytes)
        assert_type(message.properties(), dict[str, str])
        assert_type(message.message_id(), pulsarx.MessageId)
        assert_type(message.topic_name(), str)
        consumer.acknowledge(message)
        consumer.acknowledge(message.message_id())
        consumer.negative_acknowledge(message)
    except pulsarx.Timeout as error:
        assert_type(error.detail, str)
    except (pulsarx.NotConnected, pulsarx.AlreadyClosed):
        raise
    assert_type(consumer.batch_receive(), list[pulsarx.Message[bytes]])
    assert_type(consumer.receive_async(), Future[pulsarx.Message[bytes]])
    consumer.seek(pulsarx.MessageId.earliest)
    consumer.seek(0)
    assert_type(consumer.get_last_message_id(), pulsarx.MessageId)
    consumer.unsubscribe()
    client.subscribe(["a", "b"], "s", message_listener=listen).close()
    records = JsonSchema(Order)
    with client.subscribe("records", "typed", schema=records) as typed:
        with client.create_producer("records", schema=records) as producer:
            producer.send(Order(customer="ada", cents=1))
        order = typed.receive(60_000).value()
        assert_type(order, Order)
    retried = client.subscribe("orders", "later", pulsarx.ConsumerType.Shared, retry_enable=True)
    client.create_producer("orders").send(b"again")
    retried.reconsume_later(retried.receive(10_000), 5)
    with client.subscribe(
        "orders", "all", initial_position=pulsarx.InitialPosition.Earliest
    ) as one:
        one.acknowledge_cumulative(one.receive(60_000))


def read(client: pulsarx.Client) -> None:
    with client.create_reader("orders", pulsarx.MessageId.earliest) as reader:
        assert_type(reader, pulsarx.Reader[bytes])
        while reader.has_message_available():
            assert_type(reader.read_next().data(), bytes)
    view = client.create_table_view("orders")
    view.get("k")
    assert_type(len(view), int)
    assert_type(client.get_topic_partitions("orders"), list[str])


def failed(error: pulsarx.PulsarException) -> str:
    if isinstance(error, pulsarx.FolderOwnedError):
        assert_type(error.pid, int | None)
    if isinstance(error, pulsarx.MessageTooBig):
        assert_type(error.size, int | None)
    return error.detail


def busy(error: pulsarx.ProducerBusy | pulsarx.NotConnected) -> None:
    raise pulsarx.AuthenticationError from error


class Keeps:
    """As applications do."""

    client: pulsarx.Client
    producer: pulsarx.Producer
    consumer: pulsarx.Consumer
    reader: pulsarx.Reader | None = None
    producers: dict[str, pulsarx.Producer[Any]]


def main() -> None:
    options = pulsarx.BrokerOptions(max_message_size=1000)
    with pulsarx.Client("memory:", broker_options=options, clock=pulsarx.ManualClock()) as client:
        produce(client)
        consume(client)
        read(client)
        client.admin.topics.create_partitioned_topic("p", 2)
        position = pulsarx.MessageId.deserialize(pulsarx.MessageId.earliest.serialize(), "t")
        assert_type(position.ledger_id(), int)


if __name__ == "__main__":
    main()
