"""For tests of messages redelivered too often, below the letters: what a consumer gave up."""

from __future__ import annotations

from typing import Any

from pulsarx._pycore.dispatch.redelivery import DeadLetterSink


class GivenUp(DeadLetterSink):
    """Keeps what it is handed over, on its way to a dead letter topic for ever."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def hand_over(self, receiver: Any, messages: list[Any]) -> int:
        self.messages += [self.open(each) for each in messages]
        return 0

    def payloads(self) -> list[bytes]:
        return [each.data() for each in self.messages]
