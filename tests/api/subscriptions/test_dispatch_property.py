"""Random histories of Shared and Key_Shared subscriptions, counted again after every step.

What must hold of what applications see: nothing is delivered to two at a time; on Key_Shared a
message comes only when every earlier one of its key is acknowledged or with the same consumer; and
when everybody takes and acknowledges what there is, everything has come.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seeds import scaled
from type_steps import publish, publish_batch, take_messages

import pulsarx
from pulsarx import ConsumerKeySharedPolicy, ConsumerType, InitialPosition, KeySharedMode

KEYS = ["a", "b", "c", "d", "e", ""]  # "": none
HALVES = [[(0, 32767)], [(32768, 65535)], [(0, 9999)], [(20000, 40000)]]
KINDS = ["shared", "ordered", "unordered", "sticky", "ring"]
topics = (f"t{number}" for number in itertools.count())

number = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("publish"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=8)),
    st.tuples(st.just("publish_batch"), st.lists(st.sampled_from(KEYS), min_size=2, max_size=8)),
    st.tuples(st.just("join"), st.sampled_from([0, 1, 2, 3, 5, 1000])),
    st.tuples(st.just("leave"), number),
    st.tuples(st.just("receive"), number, st.integers(1, 6)),
    st.tuples(st.just("receive"), number, st.integers(1, 6)),
    st.tuples(st.just("acknowledge"), number),
    st.tuples(st.just("acknowledge"), number),
    st.tuples(st.just("refuse"), number),
    st.tuples(st.just("redeliver"), number),
    st.tuples(st.just("advance"), st.sampled_from([0.4, 1.0, 3.0])),
    st.tuples(st.just("seek")),
)


class History:
    """A topic of a client, and what its applications have."""

    def __init__(self, client: pulsarx.Client, clock: pulsarx.ManualClock, kind: str) -> None:
        self.client = client
        self.clock = clock
        self.kind = kind
        self.topic = next(topics)
        self.keys: list[str] = []  # of each message, by its payload
        self.acknowledged: set[int] = set()
        self.held: dict[int, tuple[Any, Any]] = {}  # by payload: (consumer, message)
        self.consumers: list[Any] = []
        self.subscribe(1000).close()
        # Nothing is trimmed, so that a seek finds it again.
        client.subscribe(self.topic, "keeper", initial_position=InitialPosition.Earliest).close()

    def subscribe(self, queue_size: int, ranges: Any = None) -> Any:
        policy = None
        if self.kind == "unordered":
            policy = ConsumerKeySharedPolicy(allow_out_of_order_delivery=True)
        if self.kind == "sticky":
            policy = ConsumerKeySharedPolicy(
                KeySharedMode.Sticky, sticky_ranges=ranges or [(0, 65535)]
            )
        return self.client.subscribe(
            self.topic,
            "s",
            consumer_type=ConsumerType.Shared if self.kind == "shared" else ConsumerType.KeyShared,
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=queue_size,
            negative_ack_redelivery_delay_ms=[0, 1000, 3000][len(self.keys) % 3],
            unacked_messages_timeout_ms=[None, 2000][len(self.consumers) % 2],
            key_shared_policy=policy,
        )

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, step[0])(*step[1:])
        if self.consumers:
            assert self.consumers[0].dispatcher.check() == []

    def payloads(self, keys: list[str]) -> list[str]:
        first = len(self.keys)
        self.keys += keys
        # A name of its own for each key and topic, so that keys lie elsewhere each time.
        return [
            f"{key}{self.topic}:{first + at}" if key else f"{first + at}"
            for at, key in enumerate(keys)
        ]

    def publish(self, keys: list[str]) -> None:
        publish(self.client, *self.payloads(keys), topic=self.topic)

    def publish_batch(self, keys: list[str]) -> None:
        publish_batch(self.client, *self.payloads(keys), topic=self.topic)

    def join(self, queue_size: int) -> None:
        if len(self.consumers) == 4:
            return
        try:
            self.consumers.append(self.subscribe(queue_size, HALVES[len(self.consumers)]))
        except pulsarx.ConsumerAssignError:
            assert self.kind == "sticky"

    def some(self, place: int) -> Any:
        return self.consumers[place % len(self.consumers)] if self.consumers else None

    def leave(self, place: int) -> None:
        consumer = self.some(place)
        if consumer is not None:
            self.consumers.remove(consumer)
            consumer.close()
            self.gave_back(consumer)

    def gave_back(self, consumer: Any) -> None:
        for payload in [each for each, (who, _) in self.held.items() if who is consumer]:
            del self.held[payload]

    def receive(self, place: int, most: int) -> int:
        consumer = self.some(place)
        if consumer is None:
            return 0
        found = take_messages(consumer, most)
        for message in found:
            self.came(consumer, message)
        return len(found)

    def came(self, consumer: Any, message: Any) -> None:
        payload = int(message.data().rpartition(b":")[2])
        assert payload not in self.acknowledged
        assert payload not in self.held
        self.held[payload] = (consumer, message)
        if self.kind in ("shared", "unordered"):
            return
        for earlier in range(payload):
            if self.keys[earlier] == self.keys[payload] and earlier not in self.acknowledged:
                assert self.held.get(earlier, (None,))[0] is consumer, (earlier, payload)

    def held_one(self, place: int) -> Any:
        found = sorted(self.held)
        return found[place * 5 % len(found)] if found else None

    def acknowledge(self, place: int) -> None:
        payload = self.held_one(place)
        if payload is not None:
            consumer, message = self.held.pop(payload)
            consumer.acknowledge(message)
            self.acknowledged.add(payload)

    def refuse(self, place: int) -> None:
        payload = self.held_one(place)
        if payload is not None:
            consumer, message = self.held.pop(payload)
            consumer.negative_acknowledge(message)

    def redeliver(self, place: int) -> None:
        consumer = self.some(place)
        if consumer is not None:
            consumer.redeliver_unacknowledged_messages()
            self.gave_back(consumer)

    def advance(self, seconds: float) -> None:
        # Acknowledgement timeouts may take from anybody: those applications lose what they have.
        self.clock.advance(seconds)
        for consumer in self.consumers:
            if consumer._options.unacked_messages_timeout_ms:
                consumer.redeliver_unacknowledged_messages()
                self.gave_back(consumer)

    def seek(self) -> None:
        consumer = self.some(0)
        if consumer is not None:
            consumer.seek(pulsarx.MessageId.earliest)
            self.held.clear()
            self.acknowledged.clear()

    def finish(self) -> None:
        """Everybody takes and acknowledges what there is: all of it comes."""
        if self.kind == "sticky":
            while self.consumers:
                self.leave(0)
        if not self.consumers:
            self.consumers.append(self.subscribe(3))
        quiet = 0
        while quiet < 2:
            self.clock.advance(10)
            for consumer in self.consumers:
                if consumer._options.unacked_messages_timeout_ms:
                    self.gave_back(consumer)
            came = 0
            for place in range(len(self.consumers)):
                came += self.receive(place, 1000)
                assert self.consumers[0].dispatcher.check() == []
            came += len(self.held)
            while self.held:
                self.acknowledge(0)
            quiet = 0 if came else quiet + 1
        assert self.acknowledged == set(range(len(self.keys)))
        for consumer in self.consumers:
            consumer.close()


@pytest.mark.parametrize("kind", KINDS)
@given(history=st.lists(steps, min_size=20, max_size=100))
@settings(
    max_examples=scaled(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
)
def test_random_histories(kind: str, history: list[tuple[Any, ...]]) -> None:
    clock = pulsarx.ManualClock()
    options = pulsarx.BrokerOptions(
        subscription_key_shared_use_consistent_hashing=kind == "ring",
        managed_ledger_max_entries_per_ledger=5,
        max_unacked_messages_per_consumer=7,
        max_unacked_messages_per_subscription=12,
        key_shared_look_ahead_msg_in_replay_threshold_per_consumer=3,
    )
    client = pulsarx.Client("memory:random", clock=clock, durability="os", broker_options=options)
    try:
        topic = History(client, clock, kind)
        topic.join(3)
        for step in history:
            topic.do(step)
        topic.finish()
    finally:
        client.shutdown()
