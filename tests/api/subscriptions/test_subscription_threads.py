"""Facts about subscriptions under real threads: a million messages, consumers come and go."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.clock import Deadline

PRODUCERS = 8
CONSUMERS = 8
KEYS = 25  # of each producer
LOOK_BACK = 8  # earlier messages of a key that are looked at
STUCK_AFTER_MS = 50_000  # without an acknowledgement
# One million in all.
COUNTS = {
    ConsumerType.Exclusive: 200_000,
    ConsumerType.Failover: 200_000,
    ConsumerType.Shared: 300_000,
    ConsumerType.KeyShared: 300_000,
}

# State of a message; in between: the number of the consumer that has it.
WAITING = 0
ACKNOWLEDGING = 254  # the call was made
ACKNOWLEDGED = 255  # the call returned


class Ledger:
    """Who has which message, as its consumers see it. Message n was published by producer
    n // each; what must be in order is the messages of one producer whose numbers are equal modulo
    stride (0: nothing must)."""

    def __init__(self, each: int, stride: int) -> None:
        self.each = each
        self.stride = stride
        self.states = bytearray(PRODUCERS * each)
        self.acknowledged_counts = [0] * (CONSUMERS + 1)
        self.wrong: list[str] = []
        self.deadline = Deadline(STUCK_AFTER_MS)

    def key(self, number: int) -> str:
        return f"{number // self.each}-{number % self.each % KEYS}"

    def received(self, consumer: int, number: int) -> None:
        state = self.states[number]
        if state != WAITING:
            self.wrong.append(f"{number} came to {consumer} in state {state}")
        self.states[number] = consumer
        if self.stride:
            self.check_order(consumer, number)

    def check_order(self, consumer: int, number: int) -> None:
        """What is before it in its order is acknowledged, or with the same consumer."""
        start = number - number % self.each
        first = max(start, number - LOOK_BACK * self.stride)
        for earlier in range(number - self.stride, first - 1, -self.stride):
            state = self.states[earlier]
            if state < ACKNOWLEDGING and state != consumer:
                self.wrong.append(f"{number} came to {consumer}, {earlier} is in state {state}")

    def set_all(self, numbers: list[int], state: int) -> None:
        for number in numbers:
            self.states[number] = state

    def is_done(self) -> bool:
        return sum(self.acknowledged_counts) >= len(self.states)


class Worker:
    """One of the consumers: again and again it joins, works for a while and leaves."""

    def __init__(
        self, number: int, ledger: Ledger, subscribe: Callable[[], Any], nacks: bool
    ) -> None:
        self.number = number
        self.ledger = ledger
        self.subscribe = subscribe
        self.nacks = nacks
        self.random = random.Random(number)
        self.busy_count = 0
        self.pause = threading.Event()
        self.consumer: Any = None
        self.held: dict[int, Any] = {}

    def run(self) -> None:
        while not self.ledger.is_done():
            self.check_deadline()
            try:
                self.consumer = self.subscribe()
            except errors.ConsumerBusy:
                self.busy_count += 1
                self.pause.wait(0.005)
                continue
            for _ in range(self.random.randrange(5, 60)):
                if not self.work():
                    break
            # From here on others may get what this one has.
            self.ledger.set_all(list(self.held), WAITING)
            self.held.clear()
            self.consumer.close()

    def check_deadline(self) -> None:
        if self.ledger.deadline.expired() or self.ledger.wrong:
            missing = [number for number, state in enumerate(self.ledger.states) if state < 254]
            raise AssertionError(f"{self.ledger.wrong[:5]} {len(missing)} left: {missing[:5]}")

    def work(self) -> bool:
        """Receive some, acknowledge most; False: everything is done."""
        messages = self.consumer.receive_many(self.random.randrange(1, 500), 20)
        for message in messages:
            number = int(message.data())
            self.held[number] = message
            self.ledger.received(self.number, number)
        if not messages:
            self.check_deadline()
            self.acknowledge(list(self.held))
            return not self.ledger.is_done()
        if self.nacks and self.random.random() < 0.2:
            self.negatively_acknowledge(self.random.choice(list(self.held)))
        kept = self.random.random() < 0.1
        self.acknowledge([number for number in self.held if not (kept and number % 7 == 0)])
        return True

    def acknowledge(self, numbers: list[int]) -> None:
        messages = [self.held.pop(number) for number in numbers]
        self.ledger.set_all(numbers, ACKNOWLEDGING)
        if len(messages) < 5:
            for message in messages:
                self.consumer.acknowledge(message)
        else:
            self.consumer.acknowledge_many(messages)
        self.ledger.set_all(numbers, ACKNOWLEDGED)
        self.ledger.acknowledged_counts[self.number] += len(numbers)
        if numbers:
            self.ledger.deadline = Deadline(STUCK_AFTER_MS)

    def negatively_acknowledge(self, number: int) -> None:
        message = self.held.pop(number)
        self.ledger.states[number] = WAITING
        self.consumer.negative_acknowledge(message)


def publish(client: pulsarx.Client, ledger: Ledger, producer_number: int) -> None:
    """Half of the producers one by one, the others lists; batches of mixed keys all of them."""
    first = producer_number * ledger.each
    numbers = range(first, first + ledger.each)
    with client.create_producer("t", batching_enabled=True, block_if_queue_full=True) as producer:
        if producer_number % 2:
            for number in numbers:
                producer.send_async(b"%d" % number, None, partition_key=ledger.key(number))
        else:
            for start in range(first, first + ledger.each, 500):
                some = numbers[start - first : start - first + 500]
                keys = [ledger.key(number) for number in some]
                producer.send_many([b"%d" % number for number in some], keys=keys)


def run_all(tasks: list[Callable[[], None]]) -> None:
    """Run each in a thread; the first error of any is raised."""
    failures: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.standard
@pytest.mark.parametrize("consumer_type", COUNTS, ids=lambda each: each.name)
def test_a_million_messages_through_consumers_that_come_and_go(
    folder: Path, consumer_type: ConsumerType
) -> None:
    """Nothing is lost, nothing is with two, nothing acknowledged comes back, and on all types but
    Shared what has an order keeps it whoever comes and goes."""
    stride = {ConsumerType.Shared: 0, ConsumerType.KeyShared: KEYS}.get(consumer_type, 1)
    ledger = Ledger(COUNTS[consumer_type] // PRODUCERS, stride)
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2_000)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()

        def subscribe(queue_size: int) -> Any:
            return client.subscribe(
                "t",
                "s",
                consumer_type=consumer_type,
                receiver_queue_size=queue_size,
                negative_ack_redelivery_delay_ms=100,
            )

        nacks = consumer_type in (ConsumerType.Shared, ConsumerType.KeyShared)
        workers = [
            Worker(number, ledger, partial(subscribe, 10 * 3**number), nacks)
            for number in range(1, CONSUMERS + 1)
        ]
        publishers = [partial(publish, client, ledger, number) for number in range(PRODUCERS)]
        run_all([*(worker.run for worker in workers), *publishers])
        assert ledger.wrong == []
        assert ledger.states == bytearray([ACKNOWLEDGED]) * len(ledger.states)
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
        if consumer_type == ConsumerType.Exclusive:
            assert sum(worker.busy_count for worker in workers) > 0
