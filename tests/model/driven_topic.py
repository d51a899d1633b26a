"""PulsarX and the model side by side: every step is done to both, every delivery told the model.

A topic of a client with a manual clock, in one thread, so that a history happens again exactly.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.killed_owners import left_by_kill
from topic_model import ORDERED, SubscriptionModel, TopicModel

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.randomness import Randomness
from pulsarx.testing import inspect

TOPIC = "t"
NAME = "s"
# Small ledgers, so that a few messages already cross from one to the next.
OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=7)
_memory_names = itertools.count()


class DrivenConsumer:
    """A consumer of the real thing and what it was made with."""

    def __init__(self, consumer: Any, nack_delay_ms: int) -> None:
        self.consumer = consumer
        self.nack_delay_ms = nack_delay_ms


class DrivenTopic:
    """folder: where to work, for restarts; None: in memory, where nothing can be restarted."""

    def __init__(self, folder: Path | None = None, names: tuple[str, ...] = (NAME,)) -> None:
        self.folder = folder
        self.opened = 0
        self.clock = pulsarx.ManualClock()
        self.model = TopicModel(self.clock.now_ms())
        self.joined = 0
        self.received: dict[tuple[str, int], Any] = {}  # the last of each that came
        self.consumers: dict[str, dict[str, DrivenConsumer]] = {name: {} for name in names}
        self.open()
        for name in names:
            self.client.subscribe(TOPIC, name, initial_position=InitialPosition.Earliest).close()
            self.model.do("subscribe", subscription=name)

    def open(self) -> None:
        url = f"memory:model-{next(_memory_names)}" if self.folder is None else self.where()
        self.client = pulsarx.Client(
            url,
            clock=self.clock,
            durability="os",
            randomness=Randomness(self.opened),
            broker_options=OPTIONS,
        )
        self.single = self.client.create_producer(TOPIC)
        self.batched = self.client.create_producer(
            TOPIC, batching_enabled=True, batching_max_publish_delay_ms=86_400_000
        )

    def where(self) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.opened}"

    def close(self) -> None:
        self.client.shutdown()

    # -- steps ------------------------------------------------------------------------------------

    def publish(self, keys: list[str | None], batched: bool, deliver_at_ms: int | None) -> None:
        """Messages of these keys; with batched in one batch, unless they are delayed."""
        delay = {} if deliver_at_ms is None else {"deliver_at": deliver_at_ms}
        for key in keys:
            payload = b"%d" % len(self.model.messages)
            # Before it happens: a broker may deliver what it has not yet said to have.
            self.model.do("publish", key=key, deliver_at_ms=deliver_at_ms)
            if batched:
                self.batched.send_async(payload, None, partition_key=key, **delay)
            else:
                self.single.send(payload, partition_key=key, **delay)
        if batched:
            self.batched.flush()

    def join(
        self,
        consumer_type: str,
        subscription: str = NAME,
        priority: int = 0,
        queue_size: int = 1000,
        ack_timeout_ms: int = 0,
        nack_delay_ms: int = 60_000,
    ) -> None:
        """Somebody joins, or is refused where it must be."""
        name = f"c{self.joined}"
        self.joined += 1
        options: dict[str, Any] = {"receiver_queue_size": queue_size, "consumer_name": name}
        if priority:
            options["priority_level"] = priority
        if ack_timeout_ms:
            options["unacked_messages_timeout_ms"] = ack_timeout_ms

        def subscribe() -> Any:
            return self.client.subscribe(
                TOPIC,
                subscription,
                consumer_type=getattr(ConsumerType, consumer_type),
                negative_ack_redelivery_delay_ms=nack_delay_ms,
                **options,
            )

        there = self.model.subscriptions[subscription]
        if not there.may_join(consumer_type):
            must_refuse(subscribe)
            return
        self.consumers[subscription][name] = DrivenConsumer(subscribe(), nack_delay_ms)
        self.model.do(
            "join",
            subscription=subscription,
            consumer=name,
            consumer_type=consumer_type,
            priority=priority,
            queue_size=queue_size,
            ack_timeout_ms=ack_timeout_ms,
        )

    def leave(self, name: str, subscription: str = NAME) -> None:
        self.consumers[subscription].pop(name).consumer.close()
        self.model.do("leave", subscription=subscription, consumer=name)

    def receive(self, name: str, most: int = 1, subscription: str = NAME) -> int:
        """Take what there is now, at most so many; how many came."""
        found = self.consumers[subscription][name].consumer.receive_many(most, 0)
        for message in found:
            index = int(message.data())
            published = self.model.messages[index]
            assert (message.partition_key() or None) == published.given_key
            self.received[subscription, index] = message
            self.model.do(
                "deliver",
                subscription=subscription,
                consumer=name,
                index=index,
                count=message.redelivery_count(),
            )
        assert len(found) <= most
        return len(found)

    def drain(self, subscription: str = NAME) -> None:
        """Until nobody gets anything; then nothing deliverable may be left."""
        asking = True
        while asking:
            names = list(self.consumers[subscription])
            self.check_statistics(subscription)
            asking = sum(self.receive(name, 3, subscription) for name in names) > 0
        self.model.do("drained", subscription=subscription)
        self.check_statistics(subscription)

    def acknowledge(self, name: str, index: int, by_id: bool, subscription: str = NAME) -> None:
        """By any consumer, whoever received it."""
        message = self.received[subscription, index]
        what = message.message_id() if by_id else message
        self.consumers[subscription][name].consumer.acknowledge(what)
        self.model.do("acknowledge", subscription=subscription, index=index)

    def acknowledge_cumulative(self, name: str, index: int, subscription: str = NAME) -> None:
        message = self.received[subscription, index]
        self.consumers[subscription][name].consumer.acknowledge_cumulative(message)
        self.model.do("acknowledge_cumulative", subscription=subscription, index=index)

    def nack(self, index: int, subscription: str = NAME) -> None:
        """By who has it."""
        name = self.state(index, subscription).consumer
        assert name is not None
        driven = self.consumers[subscription][name]
        driven.consumer.negative_acknowledge(self.received[subscription, index])
        self.model.do(
            "nack",
            subscription=subscription,
            consumer=name,
            index=index,
            delay_ms=driven.nack_delay_ms,
        )

    def redeliver(self, name: str, subscription: str = NAME) -> None:
        self.consumers[subscription][name].consumer.redeliver_unacknowledged_messages()
        self.model.do("redeliver", subscription=subscription, consumer=name)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds / 1000)
        self.model.do("advance", milliseconds=milliseconds)

    def restart(self, killed: bool) -> None:
        """Close everything and open it again; killed: open what a killed process would leave."""
        assert self.folder is not None
        self.settle()
        before, old = self.where(), self.client
        self.opened += 1
        if killed:
            left_by_kill(old, self.where())
        old.shutdown()
        if not killed:
            before.rename(self.where())
        else:
            shutil.rmtree(before)
        for consumers in self.consumers.values():
            consumers.clear()
        self.received.clear()
        self.model.do("restart")
        self.open()

    # -- what is known ----------------------------------------------------------------------------

    def subscription(self, name: str = NAME) -> SubscriptionModel:
        return self.model.subscriptions[name]

    def state(self, index: int, subscription: str = NAME) -> Any:
        return self.subscription(subscription).states[index]

    def outstanding(self, subscription: str = NAME) -> list[int]:
        """Messages somebody connected has and could nack."""
        return [
            state.message.index
            for state in self.subscription(subscription).states
            if state.outstanding()
            and not state.acknowledged
            and self.model.now_ms < state.earliest_ms
            and state.consumer in self.consumers[subscription]
        ]

    def known(self, subscription: str = NAME) -> list[int]:
        """Messages that were received since the start, whatever became of them."""
        return sorted(index for name, index in self.received if name == subscription)

    def settle(self) -> None:
        """Let trims and seals end, so that nothing but the steps decides what happens."""
        inspect(self.client).settle()

    def check_statistics(self, subscription: str = NAME) -> None:
        self.settle()
        statistics = self.client.admin.topics.stats(TOPIC)["subscriptions"][subscription]
        self.model.do("backlog", subscription=subscription, count=statistics["msg_backlog"])
        if self.subscription(subscription).type in ORDERED:
            return  # nothing is pushed there
        for consumer in statistics["consumers"]:
            self.model.do(
                "prefetched",
                subscription=subscription,
                consumer=consumer["consumer_name"],
                count=consumer["receiver_queue_messages"],
                permits=consumer["available_permits"],
            )

    def finish(self, subscription: str = NAME) -> None:
        """Let everything come due, be received and be acknowledged: nothing may be lost."""
        if not self.consumers[subscription]:
            self.join("Shared", subscription)
        while True:
            self.advance(300_000)
            self.drain(subscription)
            left = self.known_open(subscription)
            if not left:
                break
            for index in left:
                self.acknowledge(self.taker(subscription), index, False, subscription)
        self.model.do("finished", subscription=subscription)

    def known_open(self, subscription: str) -> list[int]:
        return [
            index
            for index in self.known(subscription)
            if not self.state(index, subscription).acknowledged
        ]

    def taker(self, subscription: str = NAME) -> str:
        """Who may acknowledge cumulatively."""
        found = self.subscription(subscription)
        active = found.active() if found.type in ORDERED else next(iter(found.consumers))
        assert active is not None
        return active


def must_refuse(subscribe: Callable[[], Any]) -> None:
    try:
        consumer = subscribe()
    except errors.PulsarException:
        return
    raise AssertionError(f"{consumer} was let in")
