"""The parts of a broker as the coordinator of transactions sees them, which know it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pulsarx._pycore.ground.job_queue import JobQueue
    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.records import LedgerRecord, SubscriptionRecord, TopicRecord
    from pulsarx.broker.ledgers.aborted_messages import AbortedMessages
    from pulsarx.broker.transactions.transaction_log import TransactionLog
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.clock import Clock, SystemClock

    class TransactingRuntime(Protocol):
        """A BrokerRuntime."""

        catalogue: Catalogue
        clock: Clock | SystemClock
        durability: str
        options: BrokerOptions
        state: OpenState
        background: JobQueue
        directory: Any

        @property
        def transactions(self) -> Any: ...
        @property
        def transaction_log(self) -> TransactionLog: ...
        def flush_catalogue_soon(self) -> None: ...

    class TransactedLedger(Protocol):
        """The ManagedLedger of a topic."""

        name: Any

        @property
        def aborted(self) -> AbortedMessages: ...
        def record(self) -> TopicRecord | None: ...
        def flush(self, *, sealed: bool = True) -> None: ...
        def ledgers(self) -> list[LedgerRecord]: ...
        def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]: ...
        def seal_again(self) -> None: ...

    class TransactedSubscription(Protocol):
        """A Subscription."""

        name: str
        topic: Any
        record: SubscriptionRecord | None
        removed: bool
        tracker: Any

        @property
        def runtime(self) -> Any: ...
        def transaction_through(self, transaction: object) -> list[int] | None: ...
        def transaction_acks(self, transaction: object) -> dict[str, Any]: ...
        def commit_transaction(self, transaction: object) -> None: ...
        def abort_transaction(self, transaction: object) -> None: ...
        def reopen_transaction(self, transaction: object) -> None: ...
