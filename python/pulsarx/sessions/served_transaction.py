"""A transaction that a client of a network has opened."""

from __future__ import annotations

from pulsarx.broker.transactions.broker_transaction import BrokerTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.transactions.participants import TransactingRuntime


class ServedTransaction(BrokerTransaction):
    """Any thread may call. It outlives the connection over which it was opened: its client comes
    back by another one, or its deadline ends it."""

    def __init__(
        self, runtime: TransactingRuntime, number: int, timeout_ms: int, role: str | None
    ) -> None:
        """role: that opened it; None: clients are not asked who they are."""
        super().__init__(runtime, number, timeout_ms)
        self.role = role
