"""Brings the subscriptions of one topic up to the transactions that have ended: they pass over what
was aborted, and have what was committed before a kill."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx._pycore.ground.locks import RLock
    from pulsarx.broker.ledgers.aborted_messages import Run
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscription import Subscription


class TopicTransactions:
    """A part of a topic. Calls of the control plane."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        ledger: ManagedLedger,
        lock: RLock,
        subscriptions: Callable[[], list[Subscription]],
        trim_soon: Callable[[], None],
        no_longer_held: Callable[[], None],
    ) -> None:
        """lock: of the topic, so that no subscription comes meanwhile. no_longer_held: trims what
        waited for a transaction."""
        self._runtime = runtime
        self._ledger = ledger
        self._lock = lock
        self._subscriptions = subscriptions
        self._trim_soon = trim_soon
        self._no_longer_held = no_longer_held

    def catch_up(self, subscription: Subscription) -> None:
        """Have one that was just opened, or made, pass over what was aborted, and acknowledge what
        transactions did whose owner was killed before its cursor was flushed."""
        aborted = self._ledger.aborted.all_passed()
        if aborted:
            subscription.pass_aborted(aborted)
        record = subscription.record
        if record is None:
            return
        ended = list(self._runtime.catalogue.state.ended.values())
        mine = [row for each in ended for row in each.acknowledged if row[0] == record.cursor_id]
        for _, individual, cumulative in mine:
            subscription.apply_acks({"individual": individual, "cumulative": cumulative})
        if mine:
            self._runtime.transactions.applied_at(subscription)

    def pass_over(self, runs: list[Run]) -> None:
        """A transaction has ended. runs: messages that nobody will see, in front of all that are of
        open ones."""
        if runs:
            with self._lock:
                for each in self._subscriptions():
                    each.pass_aborted(runs)
            self._trim_soon()
        else:
            self._no_longer_held()

    def check_none(self, action: str) -> None:
        """NotAllowedError: transactions are open that have messages here, or acknowledgements."""
        transactions = self._ledger.tail.transactions
        oldest = None if transactions is None else transactions.oldest()
        for each in self._subscriptions() if oldest is None else ():
            oldest = oldest or each.open_transaction()
        if oldest is not None:
            raise errors.NotAllowedError(
                detail=f"{action} {self._ledger.name}: transaction {oldest} is open, which takes "
                "part in it; commit or abort it"
            )

    def stop(self) -> None:
        """The topic is closed or deleted."""
