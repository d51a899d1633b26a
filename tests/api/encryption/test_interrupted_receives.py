"""Facts about receiving that is interrupted with messages in hand: behind what was taken, the
library says in the log that it is delivered as it is stored, and there a signal handler raises."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from encryption_steps import KeyFiles, encrypting, subscribe
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerCryptoFailureAction, ConsumerType, MessageId

CONSUME = ConsumerCryptoFailureAction.CONSUME
COUNT = 4


class RaisedError(Exception):
    """What the handler raises."""


class Interrupting(logging.Filter):
    """Has a signal arrive where the next-th text is said."""

    def __init__(self) -> None:
        super().__init__()
        self.next = 0

    def filter(self, record: logging.LogRecord) -> bool:
        self.next -= 1
        if self.next == 0:
            signal.raise_signal(signal.SIGUSR1)
        return True


@pytest.fixture
def interrupting() -> Iterator[Interrupting]:
    def fire(*_: object) -> None:
        raise RaisedError

    made = Interrupting()
    logger = logging.getLogger("pulsarx")
    logger.addFilter(made)
    before = signal.signal(signal.SIGUSR1, fire)
    yield made
    signal.signal(signal.SIGUSR1, before)
    logger.removeFilter(made)


def published(client: pulsarx.Client, keys: KeyFiles, *topics: str) -> list[MessageId]:
    found = []
    for topic in topics:
        with encrypting(client, keys(), topic) as producer:
            found += [producer.send(b"%d" % number) for number in range(COUNT)]
    return found


def all_of(take: Callable[[int], Any]) -> list[Any]:
    """What is taken until nothing is left."""
    found = []
    while messages := take(100):
        found += messages
    return found


def one(consumer: Any) -> list[Any]:
    return [consumer.receive(1000)]


WAYS: dict[str, Callable[[Any], list[Any]]] = {
    "receive": one,
    "receive_many": lambda consumer: consumer.receive_many(COUNT, 1000),
    "batch_receive": lambda consumer: consumer.batch_receive(),
    "receive_async": lambda consumer: [consumer.receive_async().result(10)],
}


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_a_consumer_is_given_again_what_an_interrupted_call_had_in_hand(
    memory_client: pulsarx.Client,
    key_files: KeyFiles,
    interrupting: Interrupting,
    kind: Any,
    way: str,
    at: int,
) -> None:
    """It stayed with the consumer until that was closed: neither this nor another one got it."""
    ids = published(memory_client, key_files, "t")
    consumer = subscribe(memory_client, consumer_type=kind, crypto_failure_action=CONSUME)
    interrupting.next = at
    found = []
    with pytest.raises(RaisedError):
        for _ in range(2 * COUNT):
            found += WAYS[way](consumer)
    found += all_of(lambda count: consumer.receive_many(count, 0))
    received = [each.message_id() for each in found]
    if kind == ConsumerType.Shared:  # what lay in its queue goes first
        received.sort()
    assert received == ids
    assert {each.redelivery_count() for each in found} == {0}


@pytest.mark.parametrize("at", [1, 2])
def test_a_reader_reads_again_what_an_interrupted_call_had_in_hand(
    memory_client: pulsarx.Client, key_files: KeyFiles, interrupting: Interrupting, at: int
) -> None:
    ids = published(memory_client, key_files, "t")
    reader = memory_client.create_reader("t", MessageId.earliest, crypto_failure_action=CONSUME)
    interrupting.next = at
    found = []
    with pytest.raises(RaisedError):
        for _ in range(COUNT):
            found.append(reader.read_next(1000))
    found += all_of(lambda count: reader.read_many(count, 0))
    assert [each.message_id() for each in found] == ids


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("way", ["receive", "receive_many", "batch_receive"])
def test_a_consumer_of_several_topics_tells_of_the_interrupt_and_loses_nothing(
    memory_client: pulsarx.Client,
    key_files: KeyFiles,
    interrupting: Interrupting,
    way: str,
    at: int,
) -> None:
    """receive_many returned what it had taken before, and the caller heard nothing of it."""
    ids = published(memory_client, key_files, "t", "u")
    consumer = subscribe(memory_client, topic=["t", "u"], crypto_failure_action=CONSUME)
    interrupting.next = at
    found = []
    with pytest.raises(RaisedError):
        for _ in range(2 * COUNT):
            found += WAYS[way](consumer)
    found += all_of(lambda count: consumer.receive_many(count, 0))
    assert sorted(each.message_id() for each in found) == sorted(ids)
    assert {each.redelivery_count() for each in found} == {0}
    for topic in ("t", "u"):
        of_topic = [each for each in found if each.topic_name().endswith(f"/{topic}")]
        assert of_topic == sorted(of_topic, key=lambda each: each.message_id())


def test_another_consumer_is_given_what_an_interrupted_call_had_in_hand(
    memory_client: pulsarx.Client, key_files: KeyFiles, interrupting: Interrupting
) -> None:
    """Without a queue it was kept for the one that was interrupted."""
    (wanted, *_) = published(memory_client, key_files, "t")
    shared = {"consumer_type": ConsumerType.Shared, "receiver_queue_size": 0}
    first = subscribe(memory_client, crypto_failure_action=CONSUME, **shared)
    interrupting.next = 1
    with pytest.raises(RaisedError):
        first.receive()
    second = subscribe(memory_client, crypto_failure_action=CONSUME, **shared)
    assert second.receive().message_id() == wanted
