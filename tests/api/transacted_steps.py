"""A transaction as subscriptions see it, without a coordinator; and what its tests do."""

from __future__ import annotations

import itertools
from typing import Any

from pulsarx import errors
from pulsarx._pycore.ledger.open_transactions import TransactionCore

_numbers = itertools.count()


class StandIn(TransactionCore):
    """A transaction that subscriptions are enlisted in. Compared by identity."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.is_open = True
        self.enlisted: list[Any] = []

    def __str__(self) -> str:
        return f"(0,{self.number})"

    def enlist(self, owner: Any) -> None:
        if not self.is_open:
            raise errors.InvalidTxnStatusError(detail=f"transaction {self} has ended")
        self.enlisted.append(owner)

    def end(self) -> list[Any]:
        self.is_open = False
        return self.enlisted

    def commit(self) -> None:
        for each in self.end():
            each.transaction_acks(self)
            each.commit_transaction(self)

    def abort(self) -> None:
        for each in self.end():
            each.abort_transaction(self)


def messages_of(consumer: Any, count: int = 1000) -> list[Any]:
    """What it is given without waiting."""
    found: list[Any] = []
    while len(found) < count and (more := consumer.receive_many(count - len(found), 0)):
        found += more
    return found


def texts_of(consumer: Any, count: int = 1000) -> list[str]:
    return [each.data().decode() for each in messages_of(consumer, count)]


def counted(consumer: Any, count: int = 1000) -> list[tuple[str, int]]:
    """Payloads and redelivery counts."""
    found = messages_of(consumer, count)
    return [(each.data().decode(), each.redelivery_count()) for each in found]
