"""Correct histories at random: a broker that makes any choice the model allows, and its users.

Correct by construction, so they say what the model accepts; what it refuses is said by mutations
of them and by histories written by hand.
"""

from __future__ import annotations

import random
from typing import Any

from topic_model import ORDERED, Step, TopicModel

NAME = "s"
KEYS = ("a", "b", None)


class SimulatedTopic:
    """One subscription of one type, driven by a seed."""

    def __init__(self, consumer_type: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.type = consumer_type
        self.model = TopicModel()
        self.model.do("subscribe", subscription=NAME)
        self.subscription = self.model.subscriptions[NAME]
        self.joined = 0

    def history(self, steps: int) -> list[Step]:
        actions = (
            [self.publish] * 6
            + [self.join] * 2
            + [self.deliver] * 12
            + [self.acknowledge] * 6
            + [self.nack] * 3
            + [self.advance] * 3
            + [self.leave, self.restart, self.drain, self.drain]
        )
        for _ in range(steps):
            self.random.choice(actions)()
        self.finish()
        return self.model.history

    def do(self, step: str, /, **arguments: Any) -> None:
        self.model.do(step, subscription=NAME, **arguments)

    def publish(self) -> None:
        delayed = self.random.random() < 0.15
        deliver_at_ms = self.model.now_ms + self.random.randrange(1, 9000) if delayed else None
        self.model.do("publish", key=self.random.choice(KEYS), deliver_at_ms=deliver_at_ms)

    def join(self) -> None:
        if len(self.subscription.consumers) < (1 if self.type == "Exclusive" else 3):
            self.joined += 1
            self.do(
                "join",
                consumer=f"c{self.joined}",
                consumer_type=self.type,
                priority=self.random.randrange(2),
                ack_timeout_ms=self.random.choice((0, 0, 5000)),
            )

    def leave(self) -> None:
        if self.subscription.consumers:
            self.do("leave", consumer=self.random.choice(list(self.subscription.consumers)))

    def restart(self) -> None:
        self.model.do("restart")

    def advance(self) -> None:
        self.model.do("advance", milliseconds=self.random.choice((100, 1000, 4000, 7000)))

    def deliver(self) -> bool:
        """Something that may go to somebody, to whom it may go; False: there is nothing."""
        allowed = [
            (name, state)
            for name in self.subscription.consumers
            for state in self.subscription.states
            if self.subscription.refusal(name, state) is None
        ]
        if not allowed:
            return False
        name, state = self.random.choice(allowed)
        timed_out = state.waits_for in ("ack", "nack")
        count = self.random.randint(state.lowest_count, state.highest_count) + timed_out
        self.do("deliver", consumer=name, index=state.message.index, count=count)
        return True

    def drain(self) -> None:
        while self.subscription.overdue():
            assert self.deliver()
        self.do("drained")

    def acknowledge(self) -> None:
        found = [state for state in self.subscription.states if state.outstanding()]
        if found:
            index = self.random.choice(found).message.index
            cumulative = self.type in ORDERED and self.random.random() < 0.3
            self.do("acknowledge_cumulative" if cumulative else "acknowledge", index=index)

    def nack(self) -> None:
        found = [
            state
            for state in self.subscription.states
            if state.outstanding() and not state.acknowledged
        ]
        if found:
            state = self.random.choice(found)
            self.do(
                "nack",
                consumer=state.consumer,
                index=state.message.index,
                delay_ms=self.random.choice((0, 1000, 6000)),
            )

    def finish(self) -> None:
        """Until everything is acknowledged."""
        self.model.do("restart")
        self.model.do("advance", milliseconds=60_000)
        self.join()
        self.drain()
        for state in self.subscription.states:
            if not state.acknowledged:
                self.do("acknowledge", index=state.message.index)
        self.do("drained")
        self.do("finished")


def simulated_history(consumer_type: str, seed: int, steps: int = 60) -> list[Step]:
    return SimulatedTopic(consumer_type, seed).history(steps)
