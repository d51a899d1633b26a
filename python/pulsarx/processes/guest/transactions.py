"""The transactions of this process in a folder that another one owns, which opens and ends them. An
owner that goes takes those with it that are open: they are aborted."""

from __future__ import annotations

import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.processes.guest.owner_connection import GuestConnection

    Transaction = Any  # of pulsarx.transaction, which stands above
    Values = dict[str, Any]


class GuestTransactions:
    """Stands where a TransactionCoordinator does. Calls of the control plane."""

    def __init__(self, host: GuestHost) -> None:
        self._host = host

    def open(self, make: Callable[..., Transaction], timeout_ms: int) -> Transaction:
        """Have the owner open a transaction, and make it of itself. Raises what the owner raises;
        Timeout: there is none, or it does not answer."""
        self._host.state.require_open()
        ask = partial(self._open, make, timeout_ms)
        opened: Transaction = self._host.asked("open a transaction", ask)
        return opened

    def _open(
        self, make: Callable[..., Transaction], timeout_ms: int, connection: GuestConnection
    ) -> Transaction:
        member = _Member(connection)
        try:
            arguments = {"member": member.id, "timeout_ms": timeout_ms, "pid": os.getpid()}
            number = connection.perform("guest.new_transaction", arguments)
            made = make(self._host, number, timeout_ms)
            made.member = member
            member.is_of(made)
        except BaseException:
            member.forget()
            raise
        return made

    def commit(self, transaction: Transaction) -> None:
        """Like TransactionCoordinator.commit. An owner that went before it answered is asked once
        more in the person of the next one, which knows what became of it."""
        self._end(transaction, committed=True)

    def abort(self, transaction: Transaction) -> None:
        """Like TransactionCoordinator.abort."""
        self._end(transaction, committed=False)

    def _end(self, transaction: Transaction, *, committed: bool) -> None:
        arguments = {"number": transaction.number, "committed": committed, "pid": os.getpid()}
        transaction.asked = committed
        try:
            self._host.ask_verb("guest.end_transaction", **arguments)
        except errors.StorageFullError:
            transaction.asked = None
            transaction.reopen()
            raise
        except errors.InvalidTxnStatusError:
            self._forget(transaction, False)
            raise
        self._forget(transaction, committed)

    def _forget(self, transaction: Transaction, committed: bool) -> None:
        """It has ended."""
        transaction.is_ended = True
        member: _Member = transaction.member
        member.forget()
        for sender in list(transaction.senders):
            attempt(partial(sender.leave, transaction, committed))


class _Member:
    """Hears what becomes of a transaction. The thread that reads the connection calls told and
    lost."""

    def __init__(self, connection: GuestConnection) -> None:
        self._connection = connection
        self._transaction: Transaction | None = None
        self._over: Callable[[Transaction], object] | None = None  # what became of it
        self.id: int = connection.add_producer(self)

    def is_of(self, transaction: Transaction) -> None:
        """It is made, and may be over."""
        self._transaction = transaction
        if self._over is not None:
            self._over(transaction)

    def told(self, name: str, values: Values, _: bytes) -> None:
        """Its time was over: the owner has aborted it."""
        if name == "LINK" and values["kind"] == owner_link.CLOSED:
            self.forget()
            self._is_over(_has_timed_out)

    def lost(self, _: Exception) -> None:
        """The connection has ended, and it with that, unless it was about to be committed."""
        pid = self._connection.owner_pid
        reason = (
            f"process {pid}, which owned the folder, has gone or has hung up, and with it the "
            "transactions that were open"
        )
        self._is_over(lambda transaction: transaction.was_lost(reason))

    def _is_over(self, over: Callable[[Transaction], object]) -> None:
        self._over = over
        transaction = self._transaction
        if transaction is not None:
            over(transaction)

    def forget(self) -> None:
        """It has ended."""
        self._connection.forget_producer(self.id)


def _has_timed_out(transaction: Transaction) -> None:
    transaction.is_open, transaction.is_ended = False, True
    transaction.has_timed_out()
