"""For tests of letters below `subscribe`: a core that only notes down what it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulsarx
from pulsarx.letters.dead_letter import DeadLetters
from pulsarx.letters.letter_rules import LetterRules
from pulsarx.letters.retry_letter import RetryLetters
from pulsarx.testing import inspect

DLQ = "persistent://public/default/t-s-DLQ"
RETRY = "persistent://public/default/t-s-RETRY"


class NotingReceiver:
    def __init__(self, revived: list[Any]) -> None:
        self.revived = revived

    def revive(self, message: Any) -> None:
        self.revived.append(message)


class NotingCore:
    """Takes the place of a consumer's core: hands messages over, notes what happens to them."""

    sink: Any

    def __init__(self, settle: Callable[[], None]) -> None:
        """settle: waits for the background, which empties the sink."""
        self.acknowledged: list[Any] = []
        self.revived: list[Any] = []
        self.max_redeliver_count = 0
        self.receiver = NotingReceiver(self.revived)
        self._settle = settle

    def set_dead_letters(self, count: int, sink: Any) -> None:
        self.max_redeliver_count = count
        self.sink = sink

    def hand_over(self, messages: list[Any]) -> None:
        self.sink.hand_over(self.receiver, list(messages))
        self._settle()

    def acknowledge(self, message: Any) -> None:
        self.acknowledged.append(message)

    def redeliver_at_once(self, message: Any) -> None:
        self.revived.append(message)


class Desk:
    """The letters of a consumer named `c` of subscription `s` of topic `t`."""

    def __init__(self, client: pulsarx.Client, policy: Any = None, retry: bool = False) -> None:
        native = pulsarx.ConsumerDeadLetterPolicy(2) if policy is None else policy
        behind = inspect(client)
        self.rules = LetterRules(["t"], "s", native.policy(), retry)
        self.core: Any = NotingCore(behind.settle)
        self.dead = DeadLetters(behind.owner, behind.runtime, self.rules, "c")
        self.dead.attach(self.core)
        self.retry = RetryLetters(behind.owner, behind.runtime, self.rules, self.dead)

    def close(self) -> None:
        self.dead.close()
        self.retry.close()


def received(client: pulsarx.Client, *contents: bytes, **described: Any) -> list[Any]:
    """Messages of topic `t`, as a reader gets them."""
    with client.create_producer("t") as producer:
        for content in contents:
            producer.send(content, **described)
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    return [reader.read_next(60_000) for _ in contents]
