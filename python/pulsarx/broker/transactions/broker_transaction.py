"""A transaction as the broker knows it. Made by the coordinator's callers, changed by it alone.

state       holds                                                left by
OPEN        sends and acknowledgements join it                   close, the deadline
ENDING      nothing joins; what was sent before still arrives    commit, abort
COMMITTED   its messages are seen, its acknowledgements count    -
ABORTED     its messages are never seen                          -
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ledger.open_transactions import TransactionCore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.transactions.participants import TransactedSubscription, TransactingRuntime

COORDINATOR = 0  # the one of a folder


def outcome_text(committed: bool, ended_ms: int) -> str:
    """The text that errors have behind "has ended"."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(ended_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f": {'committed' if committed else 'aborted'} at {at}"


class BrokerTransaction(TransactionCore):
    """Any thread may call."""

    goes_on: bool = False  # over a restart of the owner, with its deadline
    role: str | None = None  # that opened it over a network, where clients are asked who they are

    def __init__(self, runtime: TransactingRuntime, number: int, timeout_ms: int) -> None:
        self.runtime: TransactingRuntime = runtime
        self.number: int = number
        self.timeout_ms: int = timeout_ms
        self.opened_ms: int = runtime.clock.now_ms()
        self.lost: str = ""  # why it cannot go on, of one that a dead owner left; "": it can
        self.is_late: bool = False  # its deadline ended it
        self.outcome: tuple[bool, int] | None = None  # whether it was committed, and when
        self.timer: Any = None  # of the deadline; None: it is over, or the transaction
        self.joining: Lock = Lock()  # of the next, and of the end of is_open
        self.ending: RLock = RLock()  # one end of it at a time; in front of the coordinator's
        # Whether a commit of the catalogue was tried that says it is committed, or aborted; that
        # one may be there. None: none was.
        self.asked: bool | None = None
        # Those in which messages were acknowledged in it.
        self.subscriptions: dict[TransactedSubscription, bool] = {}

    def enlist(self, subscription: TransactedSubscription) -> None:
        """Note that messages of a subscription are about to be acknowledged in it.

        Args:
            subscription: The broker's.

        Raises:
            InvalidTxnStatusError: It has ended, or is about to.
            NotAllowedError: It is of another folder.
        """
        with self.joining:
            self.require_open()
            self.require_of(subscription.runtime)
            self.subscriptions[subscription] = True

    def require_open(self) -> None:
        """Refuse what would join it too late.

        Raises:
            InvalidTxnStatusError: It has ended, or is about to.
        """
        if not self.is_open:
            raise errors.InvalidTxnStatusError(
                detail=f"transaction {self} has ended{self.how_it_ended()}"
            )

    def lose(self, why: str) -> None:
        """Note that a part of it is lost, so that it is not to be committed.

        Args:
            why: The part, and why.
        """
        self.lost = self.lost or why

    def how_it_ended(self) -> str:
        """Return what an error says of it behind "has ended": how, and when.

        Returns:
            A text, "" where it is about to end.
        """
        if self.lost:
            return f": aborted, as a part of it was lost: {self.lost}"
        if self.is_late:
            return f": aborted, as its timeout of {self.timeout_ms} ms was over"
        if self.outcome is not None:
            return outcome_text(*self.outcome)
        return "" if self.failure is None else f": {errors.detail_of(self.failure)}"

    def require_of(self, runtime: object) -> None:
        """Refuse what is sent or acknowledged in another folder.

        Args:
            runtime: The broker's, of that folder.

        Raises:
            NotAllowedError: The transaction is of another one.
        """
        if runtime is not self.runtime:
            raise errors.NotAllowedError(
                detail=f"transaction {self} is of {self.runtime.directory.path or 'memory:'}; a "
                "topic of another folder cannot take part in it"
            )

    def time_out(self) -> None:
        """Note that its deadline is over: it is aborted, now or as soon as the disk allows it."""
        if not self.is_late:
            self.is_late = True
            self.has_timed_out()

    def has_timed_out(self) -> None:
        """Its deadline is over. Called once."""

    def reopen(self) -> None:
        """Note that nothing came of its end: it is open as before."""
        self.is_open = True

    def __str__(self) -> str:
        return f"({COORDINATOR},{self.number})"
