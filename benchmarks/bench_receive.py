"""Receiving 100-byte messages in one thread, each acknowledged: a killed process keeps that."""

from __future__ import annotations

from itertools import repeat

from measurement import Measurement
from topic_in_folder import TopicInFolder, payloads


def bench_receive(measurement: Measurement, topic: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    consumer = topic.consumer

    def path() -> None:
        receive, acknowledge = consumer.receive, consumer.acknowledge
        for _ in repeat(None, len(messages)):
            message = receive()
            message.data()
            acknowledge(message)

    measurement.units("receive", messages, path, before=lambda: topic.publish(messages))
    assert not consumer.has_message()


def bench_receive_many(measurement: Measurement, topic: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    consumer = topic.consumer

    def path() -> None:
        left = len(messages)
        while left > 0:
            received = consumer.receive_many(1000)
            consumer.acknowledge_many(received)
            left -= len(received)

    measurement.units("receive_many", messages, path, before=lambda: topic.publish(messages))
    assert not consumer.has_message()
