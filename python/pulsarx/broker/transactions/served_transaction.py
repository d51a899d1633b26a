"""A transaction that a client of a network has opened."""

from __future__ import annotations

from functools import partial

from pulsarx._pycore.publish.transaction_stamp import stamped
from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.transactions.participants import TransactedSubscription, TransactingRuntime


class ServedTransaction(BrokerTransaction):
    """Any thread may call. It outlives the connection over which it was opened, and the owner of
    the folder: its client comes back by another one, or its deadline ends it."""

    def __init__(
        self, runtime: TransactingRuntime, number: int, timeout_ms: int, role: str | None
    ) -> None:
        """role: that opened it; None: clients are not asked who they are."""
        super().__init__(runtime, number, timeout_ms)
        self.role = role
        # Memory is gone with its owner.
        self.goes_on: bool = runtime.directory.ends_path is not None

    def lose(self, why: str) -> None:
        """Note that a part of it is lost, so that neither this owner nor the next one commits
        it."""
        super().lose(why)
        attempt(partial(self.runtime.transaction_log.ended, self.number))

    def joining_entry(self, topic: str, entry: bytes) -> bytes:
        """An entry as it is to be stored in a topic: it names the transaction. StorageError: it is
        not to be stored, as the next owner would not know of it."""
        if not self.goes_on:
            return entry
        self.runtime.transaction_log.joined(self.number, topic)
        return stamped(entry, self.number)

    def acknowledged(
        self, subscription: TransactedSubscription, individual: list[tuple[int, int, int]]
    ) -> None:
        """Messages were acknowledged in it: these, (ledger id, first, count) each, or all up to
        one. StorageError: the next owner would not know of it, so it is not to be answered."""
        record = subscription.record
        if self.goes_on and record is not None:
            self.runtime.transaction_log.acked(
                self.number,
                subscription.topic.name,
                record.cursor_id,
                [list(each) for each in individual],
                None if individual else subscription.transaction_through(self),
            )
