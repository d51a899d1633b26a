"""Bugs that the sweeps of failures must find."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pulsarx._pycore.ledger.open_transactions import release
from pulsarx.backups import workplace
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.ledgers import managed_ledger
from pulsarx.broker.transactions.coordinator import TransactionCoordinator
from pulsarx.producing.topic_producer import TopicProducer


@dataclass(frozen=True)
class Planted:
    """A bug, planted in the process of one point. kind, scene, points: of the sweep that finds it.
    faults: those that it is found with; None: all of the kind."""

    plant: Callable[[], None]
    kind: str
    scene: str
    points: int
    faults: tuple[tuple[Any, ...], ...] | None = None
    hang_seconds: int = 60


def nothing() -> None:
    """The fault itself is the bug."""


def raise_errors_of_the_system() -> None:
    def as_it_is(_: str, error: OSError) -> OSError:
        return error

    workplace.storage_error = as_it_is  # type: ignore[assignment]


def take_for_gone() -> None:
    managed_ledger.may_exist = os.path.exists


def drop_without_memory() -> None:
    send = TopicProducer.send_async

    def sent(*arguments: Any, **named: Any) -> None:
        with suppress(MemoryError):
            send(*arguments, **named)

    TopicProducer.send_async = sent  # type: ignore[method-assign]


def keep_lock_without_memory() -> None:
    commit, lock = Catalogue.commit, threading.Lock()

    def committed(self: Catalogue, *arguments: Any, **named: Any) -> int:
        lock.acquire()
        number = commit(self, *arguments, **named)
        lock.release()
        return number

    Catalogue.commit = committed  # type: ignore[method-assign]


def show_before_the_record() -> None:
    """Readers see a transaction, and then the catalogue is told."""
    tell = TransactionCoordinator._tell_catalogue

    def told(self: Any, transaction: Any, committed: bool, messages: Any) -> None:
        if committed:
            release(transaction, True)
        tell(self, transaction, committed, messages)

    TransactionCoordinator._tell_catalogue = told  # type: ignore[method-assign]


PLANTED: dict[str, Planted] = {
    "a failed flush is ignored": Planted(
        nothing, "files", "publish", 3, (("system", "flush", "lie"),)
    ),
    "a failed write is ignored": Planted(
        nothing, "files", "publish", 3, (("system", "write", "lie"),)
    ),
    "errors of the system are not told as documented": Planted(
        raise_errors_of_the_system, "system:write:error:EIO", "back-up", 100
    ),
    "a ledger that cannot be looked at is gone": Planted(
        take_for_gone, "system:stat", "receive", 100
    ),
    "a transaction is seen before it is told": Planted(
        show_before_the_record, "plan:write:error:ENOSPC", "transact", 100
    ),
    "a message is dropped without memory": Planted(
        drop_without_memory, "memory", "publish-batches", 400
    ),
    "a lock is kept without memory": Planted(
        keep_lock_without_memory, "memory", "administer", 400, hang_seconds=10
    ),
}
