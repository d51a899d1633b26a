"""The transactions of a process that uses the folder beside its owner, as the owner keeps them: as
long as its connection lives."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ledger.open_transactions import TransactionCore
from pulsarx.broker.transactions.broker_transaction import COORDINATOR, BrokerTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.transactions.coordinator import TransactionCoordinator
    from pulsarx.broker.transactions.participants import TransactingRuntime
    from pulsarx.sessions.consumers import SessionConsumers
    from pulsarx.sessions.context import SessionContext

    Values = dict[str, Any]

_OUTCOMES_SURE = 500  # transactions that ended here, up to which none of before is forgotten


class GuestTransaction(BrokerTransaction):
    """One of another process."""

    def __init__(self, runtime: TransactingRuntime, number: int, timeout_ms: int) -> None:
        super().__init__(runtime, number, timeout_ms)
        self.tell_over: Callable[[], object] | None = None  # its process; None: that has left
        self.forget: Callable[[], object] | None = None  # in its session; as tell_over
        self.pid = 0

    def has_timed_out(self) -> None:
        forget, tell = self.forget, self.tell_over
        if forget is not None:
            forget()
        if tell is not None:
            tell()


class EndedTransaction(TransactionCore):
    """Stands for a transaction that is not open, so that what comes for it is refused in its
    turn."""

    def __init__(self, number: int, how: str) -> None:
        """how: as of TransactionCoordinator.how_it_ended."""
        self.is_open: bool = False
        self.number = number
        self._how = how

    def how_it_ended(self) -> str:
        return self._how

    def __str__(self) -> str:
        return f"({COORDINATOR},{self.number})"


class GuestTransactions:
    """Keeps those of one session, whose calls these are."""

    def __init__(self, context: SessionContext, consumers: SessionConsumers) -> None:
        """consumers: those of the session."""
        self._consumers = consumers
        self._runtime = context.broker.runtime
        self._write = context.write
        self._open: dict[int, GuestTransaction] = {}
        self.verbs: dict[str, Callable[[Values], Any]] = {
            "guest.new_transaction": self._new,
            "guest.end_transaction": self._end,
        }

    @property
    def _coordinator(self) -> TransactionCoordinator:
        return self._runtime.transactions

    def of(self, values: Values) -> TransactionCore | None:
        """The transaction of a SEND; where it is not open, one that takes nothing; None: it is of
        none."""
        if values["transaction_most"] is None:
            return None
        number = values["transaction_least"]
        found = self._open.get(number)
        if found is None:
            return EndedTransaction(number, self._coordinator.how_it_ended(number))
        return found

    def require(self, number: int) -> GuestTransaction:
        """The transaction of a number. InvalidTxnStatusError: it is not open."""
        found = self._open.get(number)
        if found is None:
            raise errors.InvalidTxnStatusError(
                detail=f"transaction ({COORDINATOR},{number}) has ended"
                f"{self._coordinator.how_it_ended(number)}"
            )
        return found

    def _new(self, arguments: Values) -> int:
        made = self._coordinator.open(GuestTransaction, arguments["timeout_ms"])
        assert isinstance(made, GuestTransaction)
        made.pid = arguments["pid"]
        frame = owner_link.frame(owner_link.CLOSED, arguments["member"])
        made.tell_over = partial(self._write, frame)
        self._open[made.number] = made
        made.forget = partial(self._open.pop, made.number, None)
        if not made.is_open and self._coordinator.find(made.number) is None:
            made.forget()  # its time was over already
        return made.number

    def _end(self, arguments: Values) -> None:
        """End a transaction, as it was asked for, maybe of an owner before, whose answer got lost.

        InvalidTxnStatusError: it ended otherwise.
        """
        number, committed = arguments["number"], arguments["committed"]
        found = self._open.get(number) or self._left_behind(number, arguments["pid"])
        if found is None:
            self._answer_again(number, committed)
            return
        coordinator = self._coordinator
        try:
            (coordinator.commit if committed else coordinator.abort)(found)
        except errors.InvalidTxnStatusError:
            self._open.pop(number, None)  # it has ended otherwise
            raise
        self._open.pop(number, None)
        subscriptions: list[Any] = list(found.subscriptions)
        if subscriptions:
            for each in subscriptions:
                self._consumers.due_of(each)
            self._consumers.deliver()  # what consumers are told of it goes before the answer

    def _left_behind(self, number: int, pid: int) -> GuestTransaction | None:
        """A transaction of the process whose connection was cut, which this session is just not
        told yet."""
        found = self._coordinator.find(number)
        return found if isinstance(found, GuestTransaction) and found.pid == pid else None

    def _answer_again(self, number: int, committed: bool) -> None:
        coordinator = self._coordinator
        known = coordinator.was_committed(number)
        call = f"{'commit' if committed else 'abort'} transaction ({COORDINATOR},{number})"
        if known is not None and known != committed:
            how = "committed" if known else "aborted"
            raise errors.InvalidTxnStatusError(detail=f"{call}: it was {how}")
        if known is None and committed:
            ended = coordinator.committed_count + coordinator.aborted_count
            how = "the process that owned the folder ended before it was committed; it was aborted"
            if ended > _OUTCOMES_SURE:
                how = "it ended long ago; whether it was committed is not known any more"
            raise errors.InvalidTxnStatusError(detail=f"{call}: {how}")

    def leave(self) -> list[Callable[[], object]]:
        """The steps that abort them all."""
        open_ones, self._open = list(self._open.values()), {}
        return [partial(_abort, each) for each in open_ones]


def _abort(transaction: GuestTransaction) -> None:
    """Abort one whose process has left, or end it as that has asked."""
    transaction.tell_over = transaction.forget = None
    transaction.runtime.transactions.end_late(transaction)
