"""What the tests of redelivery, delays and flow do again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from topic_reading import payloads

import pulsarx
from pulsarx import ConsumerType, InitialPosition

PATIENCE_SECONDS = 60  # for what happens at once unless it is broken

sharing = pytest.mark.parametrize(
    "kind", [ConsumerType.Shared, ConsumerType.KeyShared], ids=["shared", "key_shared"]
)
alone = pytest.mark.parametrize(
    "kind", [ConsumerType.Exclusive, ConsumerType.Failover], ids=["exclusive", "failover"]
)
every_kind = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
    ids=["exclusive", "failover", "shared", "key_shared"],
)


def join(client: pulsarx.Client, kind: ConsumerType, **options: Any) -> Any:
    """A consumer of subscription s of topic t."""
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe("t", "s", kind, **options)


def publish(client: pulsarx.Client, count: int, batch: int = 0, start: int = 0) -> list[Any]:
    """Numbers from start on, in batches of so many; their ids."""
    numbers = [b"%d" % number for number in range(start, start + count)]
    if batch:
        with client.create_producer(
            "t", batching_enabled=True, batching_max_messages=batch
        ) as producer:
            return list(producer.send_many(numbers))
    sent: list[Any] = []
    with client.create_producer("t") as producer:
        for payload in numbers:
            producer.send_async(payload, lambda _, message_id: sent.append(message_id))
        producer.flush()
    return sent


def statistics(client: pulsarx.Client) -> dict[str, Any]:
    """Of subscription s of topic t."""
    found: dict[str, Any] = client.admin.topics.stats("t")["subscriptions"]["s"]
    return found


def of_consumer(client: pulsarx.Client, name: str) -> dict[str, Any]:
    """What the statistics say of one consumer of subscription s."""
    found: list[dict[str, Any]] = statistics(client)["consumers"]
    return next(each for each in found if each["consumer_name"] == name)


def flow(client: pulsarx.Client, name: str = "c") -> tuple[int, int, int]:
    """(permits, messages in the receiver queue, unacknowledged) of one consumer."""
    found = of_consumer(client, name)
    return (
        found["available_permits"],
        found["receiver_queue_messages"],
        found["unacked_messages"],
    )


def counted(messages: list[Any]) -> list[tuple[bytes, int]]:
    """(payload, redelivery count) of each."""
    return [(message.data(), message.redelivery_count()) for message in messages]


def comes_after(consumer: Any, clock: pulsarx.ManualClock, seconds: float) -> list[bytes]:
    """What the consumer gets when so much time has passed, and not a millisecond earlier."""
    clock.advance(seconds - 0.001)
    assert payloads(consumer) == []
    clock.advance(0.001)
    return payloads(consumer)


class Table:
    """A redelivery backoff that answers from a list and keeps what it was asked."""

    def __init__(self, *delays_ms: int) -> None:
        self.delays_ms = delays_ms
        self.asked: list[int] = []

    def next(self, redelivery_count: int) -> int:
        self.asked.append(redelivery_count)
        return self.delays_ms[min(redelivery_count, len(self.delays_ms) - 1)]


class Waiting:
    """A call in a thread of its own, which sleeps in it by the time this is made."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._answer: list[Any] = []
        self._failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()
        self.until_asleep()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self._answer.append(call())
        except BaseException as error:
            self._failure.append(error)

    def until_asleep(self) -> None:
        """Until it sleeps again, after something that may have woken it."""
        until_asleep(self._thread)

    @property
    def is_waiting(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> Any:
        """What the call answered or raised."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it was not woken"
        if self._failure:
            raise self._failure[0]
        return self._answer[0]


def waiting_receive(consumer: Any) -> Waiting:
    """A thread that sleeps in receive()."""
    found = Waiting(consumer.receive)
    assert found.is_waiting
    return found
