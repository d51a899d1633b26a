"""Random acknowledgements of several transactions, beside a model in plain Python."""

from __future__ import annotations

import random
from typing import Any

import pytest
from seeds import seeds
from support.consumer_types import ALL_TYPES
from support.topics import backlog
from transacted_steps import StandIn
from type_steps import join

import pulsarx
from pulsarx import ConsumerType, MessageId, errors

STEPS = 120


class Model:
    """What a subscription knows of its messages, which are numbers. `held`: received, and neither
    acknowledged nor given back, with the consumer that has it. In order: `front` comes first, then
    what lies from `rest` on."""

    def __init__(self, kind: ConsumerType) -> None:
        self.in_order = kind in (ConsumerType.Exclusive, ConsumerType.Failover)
        self.count = 0
        self.acknowledged: set[int] = set()
        self.pending: dict[int, StandIn] = {}
        self.through: tuple[int, StandIn] | None = None  # the first message that is not
        self.held: dict[int, int] = {}
        self.redelivered: dict[int, int] = {}
        self.front: set[int] = set()
        self.rest = 0

    def is_taken(self, message: int) -> bool:
        return (
            message in self.acknowledged
            or message in self.pending
            or (self.through is not None and message < self.through[0])
        )

    def coming(self) -> list[int]:
        """What is to be received, in order."""
        if not self.in_order:
            free = set(range(self.count)) - self.held.keys()
            return [each for each in sorted(free) if not self.is_taken(each)]
        order = [*sorted(self.front), *range(self.rest, self.count)]
        return [each for each in order if not self.is_taken(each)]

    def received(self, message: int, number: int) -> None:
        self.held[message] = number
        if message in self.front:
            # One that is acknowledged by the time it would come is passed over.
            self.front = {each for each in self.front if each > message}
        elif self.in_order:
            self.front.clear()
            self.rest = message + 1

    def passed(self) -> None:
        """Everything was looked at, and nothing was free."""
        self.front.clear()
        self.rest = self.count

    def first(self) -> int:
        """The first message that is not acknowledged."""
        at = 0
        while at in self.acknowledged:
            at += 1
        return at

    def acknowledge(self, messages: list[int]) -> None:
        self.acknowledged.update(messages)
        for each in messages:
            self.held.pop(each, None)
            self.pending.pop(each, None)
        if self.through is not None and self.first() >= self.through[0]:
            self.through = None

    def collides(self, messages: list[int], transaction: StandIn) -> bool:
        below = self.through is not None and self.through[1] is not transaction
        return len(set(messages)) < len(messages) or any(
            each in self.acknowledged
            or each in self.pending
            or (below and self.through is not None and each < self.through[0])
            for each in messages
        )

    def collides_through(self, end: int, transaction: StandIn) -> bool:
        if end <= self.first():
            return True
        if self.through is not None and (
            self.through[1] is not transaction or end <= self.through[0]
        ):
            return True
        return any(
            each < end and holder is not transaction for each, holder in self.pending.items()
        )

    def of(self, transaction: StandIn) -> list[int]:
        """What it has pending."""
        found = {each for each, holder in self.pending.items() if holder is transaction}
        if self.through is not None and self.through[1] is transaction:
            found |= set(range(self.through[0])) - self.acknowledged
            self.through = None
        for each in found:
            self.pending.pop(each, None)
        return sorted(found)

    def end(self, transaction: StandIn, commits: bool) -> None:
        found = self.of(transaction)
        if commits:
            return self.acknowledge(found)
        for each in found:
            self.held.pop(each, None)
            if not self.in_order:
                self.count_redelivery(each)
            elif each < self.rest:
                self.count_redelivery(each)
                self.front.add(each)
        return None

    def count_redelivery(self, message: int) -> None:
        self.redelivered[message] = self.redelivered.get(message, 0) + 1

    def give_back(self, number: int, counts: bool) -> None:
        """What a consumer holds comes again; in order, everything."""
        again = [each for each, holder in self.held.items() if holder == number]
        for each in again:
            del self.held[each]
        if self.in_order:  # as the house counts: all that was handed out once
            again = [each for each in range(self.rest) if not self.is_taken(each)]
        for each in again if counts else []:
            self.count_redelivery(each)
        self.front.clear()
        self.rest = 0

    def refuse(self, message: int, number: int) -> None:
        """It comes again; in order, with all behind it."""
        if not self.in_order:
            if self.held.get(message) == number:
                del self.held[message]
                self.count_redelivery(message)
        elif message < self.rest and not self.is_taken(message):
            self.count_redelivery(message)
            self.front = {each for each in self.front if each < message}
            self.rest = message
            self.held = {each: by for each, by in self.held.items() if each < message}

    def seek(self, message: int) -> None:
        """Everything before it is acknowledged, and nothing else. What was pending in vain is
        forgotten."""
        self.acknowledged = set(range(message))
        self.pending = {each: by for each, by in self.pending.items() if each >= message}
        if self.through is not None and self.through[0] <= message:
            self.through = None
        self.redelivered.clear()
        self.held.clear()
        self.give_back(0, False)


@pytest.mark.parametrize("batched", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("seed", seeds(12))
def test_a_subscription_does_as_the_model(seed: int, kind: ConsumerType, batched: bool) -> None:
    chance = random.Random(f"{seed} {kind} {batched}")
    model = Model(kind)
    client = pulsarx.Client(
        "memory:",
        durability="os",
        broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=7),
    )
    try:
        follow(chance, model, client, kind, batched)
    finally:
        client.shutdown()


def follow(
    chance: random.Random, model: Model, client: pulsarx.Client, kind: ConsumerType, batched: bool
) -> None:
    producer = client.create_producer(
        "t", batching_enabled=batched, batching_max_publish_delay_ms=86_400_000
    )
    client.subscribe("t", "keeper").close()  # so that one can seek back to everything
    ids: list[MessageId] = []
    transactions = [StandIn() for _ in range(3)]
    consumers = [join(client, kind) for _ in range(1 if model.in_order else 2)]

    def publish() -> None:
        count = chance.randrange(1, 8)
        told: list[MessageId] = []
        for _ in range(count):
            key = chance.choice("abc")
            number = b"%d" % model.count
            producer.send_async(number, lambda _, each: told.append(each), partition_key=key)
            model.count += 1
        producer.flush()
        ids.extend(told)

    def any_consumer() -> tuple[int, Any]:
        number = chance.randrange(len(consumers))
        return number, consumers[number]

    def receive() -> None:
        number, consumer = any_consumer()
        for _ in range(chance.randrange(1, 6)):
            coming = model.coming()
            messages: list[Any] = consumer.receive_many(1, 0)
            if model.in_order:
                assert bool(messages) == bool(coming)
            if not messages:
                model.passed()
                return
            message = int(messages[0].data())
            assert message == coming[0] if model.in_order else message in coming
            assert messages[0].redelivery_count() == model.redelivered.get(message, 0)
            model.received(message, number)

    def some() -> list[int]:
        """Received ones mostly."""
        among = sorted(model.held) if chance.random() < 0.8 and model.held else None
        chosen = range(model.count) if among is None else among
        return [chance.choice(chosen) for _ in range(chance.choice((1, 1, 2, 3)))]

    def acknowledge() -> None:
        messages = some()
        _, consumer = any_consumer()
        consumer.acknowledge_many([ids[each] for each in messages])
        model.acknowledge(messages)

    def acknowledge_cumulatively() -> None:
        if model.in_order:
            message = chance.randrange(model.count)
            if message < model.rest:
                consumers[0].acknowledge_cumulative(ids[message])
                model.acknowledge(list(range(message + 1)))

    def acknowledge_in_transaction() -> None:
        messages, transaction = some(), chance.choice(transactions)
        _, consumer = any_consumer()
        if model.collides(messages, transaction):
            with pytest.raises(errors.TransactionConflict):
                consumer.acknowledge_many([ids[each] for each in messages], transaction)
            return
        consumer.acknowledge_many([ids[each] for each in messages], transaction)
        for each in messages:
            model.pending[each] = transaction
            model.held.pop(each, None)

    def acknowledge_cumulatively_in_transaction() -> None:
        if not model.in_order:
            return
        message, transaction = chance.randrange(model.count), chance.choice(transactions)
        if model.collides_through(message + 1, transaction):
            with pytest.raises(errors.TransactionConflict):
                consumers[0].acknowledge_cumulative(ids[message], transaction)
            return
        consumers[0].acknowledge_cumulative(ids[message], transaction)
        model.through = (message + 1, transaction)
        model.held = {each: by for each, by in model.held.items() if each > message}

    def end() -> None:
        transaction = transactions.pop(chance.randrange(len(transactions)))
        transactions.append(StandIn())
        commits = chance.random() < 0.4
        model.end(transaction, commits)
        if commits:
            transaction.commit()
        else:
            transaction.abort()

    def redeliver() -> None:
        number, consumer = any_consumer()
        consumer.redeliver_unacknowledged_messages()
        model.give_back(number, True)

    def refuse() -> None:
        number, consumer = any_consumer()
        message = chance.randrange(model.count)
        if not model.in_order and message not in model.held:
            return  # it may be in the consumer's queue, and counts then
        consumer.redeliver_at_once(ids[message])
        model.refuse(message, number)

    def reopen() -> None:
        number, consumer = any_consumer()
        consumer.close()
        consumers[number] = join(client, kind)
        model.give_back(number, False)

    def seek() -> None:
        message = chance.randrange(model.count)
        consumers[0].seek(ids[message])
        model.seek(message + 1)

    steps = [
        (publish, 3), (receive, 8), (acknowledge, 2), (acknowledge_cumulatively, 1),
        (acknowledge_in_transaction, 8), (acknowledge_cumulatively_in_transaction, 3), (end, 3),
        (redeliver, 1), (refuse, 2), (reopen, 1), (seek, 1),
    ]  # fmt: skip
    publish()
    for _ in range(STEPS):
        (step,) = chance.choices([each for each, _ in steps], [weight for _, weight in steps])
        step()
        assert backlog(client) == model.count - len(model.acknowledged)
        assert consumers[0].dispatcher.check() == []
    for transaction in transactions:
        model.end(transaction, False)
        transaction.abort()
    for _ in range(200):
        receive()
        held = list(model.held)  # so that later messages of their keys come
        consumers[0].acknowledge_many([ids[each] for each in held])
        model.acknowledge(held)
    assert model.coming() == []
    for each in consumers:
        assert each.receive_many(1, 0) == []
    assert backlog(client) == model.count - len(model.acknowledged)
