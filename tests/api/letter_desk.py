"""For tests of letters below `subscribe`: a core that only notes down what it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulsarx
from pulsarx.letters.dead_letter import DeadLetters
from pulsarx.letters.letter_rules import LetterRules
from pulsarx.letters.retry_letter import RetryLetters

DLQ = "persistent://public/default/t-s-DLQ"
RETRY = "persistent://public/default/t-s-RETRY"


class NotingReceiver:
    def __init__(self, revived: list[Any]) -> None:
        self.revived = revived

    def revive(self, message: Any) -> None:
        self.revived.append(message)


class NotingCore:
    """Takes the place of a consumer's core: hands messages over, notes what happens to them."""

    def __init__(self) -> None:
        self.acknowledged: list[Any] = []
        self.revived: list[Any] = []
        self.max_redeliver_count = 0
        self.hand_over: Callable[[list[Any]], object] = print
        self.receiver = NotingReceiver(self.revived)

    def set_dead_letters(self, count: int, handler: Callable[[list[Any]], object]) -> None:
        self.max_redeliver_count = count
        self.hand_over = handler

    def acknowledge(self, message: Any) -> None:
        self.acknowledged.append(message)

    def redeliver_at_once(self, message: Any) -> None:
        self.revived.append(message)


class Desk:
    """The letters of a consumer named `c` of subscription `s` of topic `t`."""

    def __init__(self, client: pulsarx.Client, policy: Any = None, retry: bool = False) -> None:
        native = pulsarx.ConsumerDeadLetterPolicy(2) if policy is None else policy
        self.broker: Any = client._broker
        self.rules = LetterRules(["t"], "s", native.policy(), retry)
        self.core = NotingCore()
        self.dead = DeadLetters(client, self.broker, self.rules, "c")
        self.dead.attach(self.core)
        self.retry = RetryLetters(client, self.broker, self.rules, self.dead)

    def close(self) -> None:
        self.dead.close()
        self.retry.close()


def received(client: pulsarx.Client, *contents: bytes, **described: Any) -> list[Any]:
    """Messages of topic `t`, as a reader gets them."""
    with client.create_producer("t") as producer:
        for content in contents:
            producer.send(content, **described)
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    return [reader.read_next(1000) for _ in contents]
