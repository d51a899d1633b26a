"""Publishing 100-byte messages from one thread: batch encoding, checksum and store counted."""

from __future__ import annotations

from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder, payloads


def bench_send(measurement: Measurement, topic: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    producer = topic.producer

    def path() -> None:
        send = producer.send_async
        for message in messages:
            send(message, None)
        producer.flush()

    measurement.units("send", messages, path, before=DrainBefore(topic, len(messages)))


def bench_send_key(measurement: Measurement, topic: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    keys = [f"customer-{number % 1000}" for number in range(len(messages))]
    producer = topic.producer

    def path() -> None:
        send = producer.send_async
        for message, key in zip(messages, keys):
            send(message, None, partition_key=key)
        producer.flush()

    measurement.units("send_key", messages, path, before=DrainBefore(topic, len(messages)))


def bench_send_many(measurement: Measurement, topic: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    lists = [messages[at : at + 1000] for at in range(0, len(messages), 1000)]
    producer = topic.producer

    def path() -> None:
        for thousand in lists:
            producer.send_many(thousand)

    measurement.units("send_many", messages, path, before=DrainBefore(topic, len(messages)))
