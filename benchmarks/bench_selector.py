"""A subscription whose selector matches 1 of 100 messages, against one without: stored messages
that are gone through, each with a property, in batches of 1000."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest
from measurement import Measurement
from topic_in_folder import TopicInFolder

import pulsarx

ONE_OF = 100


def one_by_one(consumer: Any, count: int) -> None:
    receive, acknowledge = consumer.receive, consumer.acknowledge
    for _ in repeat(None, count):
        message = receive()
        message.data()
        acknowledge(message)


def many(consumer: Any, count: int) -> None:
    while count > 0:
        received = consumer.receive_many(1000)
        consumer.acknowledge_many(received)
        count -= len(received)


ROWS: dict[str, Callable[[Any, int], None]] = {"selector": one_by_one, "selector_many": many}


@pytest.mark.parametrize("row", ROWS)
def bench_selector(measurement: Measurement, topic: TopicInFolder, row: str) -> None:
    count = measurement.sizes.messages
    earliest = pulsarx.InitialPosition.Earliest
    selecting = topic.client.subscribe(
        "measured", "selecting", selector="number = 7", initial_position=earliest
    )
    described = [{"number": str(number % ONE_OF)} for number in range(1000)]
    payloads = [b"%0100d" % number for number in range(1000)]
    take = ROWS[row]

    def publish() -> None:
        for _ in range(count // 1000):
            topic.producer.send_many(payloads, properties=described)

    measurement.pairs(
        row,
        lambda: take(topic.consumer, count),
        lambda: take(selecting, count // ONE_OF),
        before=publish,
        floor_count=count,
        path_count=count,
        names=("a message without selector", "with one"),
    )
    assert not selecting.has_message()
    assert not topic.consumer.has_message()
