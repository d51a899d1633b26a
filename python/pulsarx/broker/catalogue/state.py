"""The state that the catalogue knows: topics, their ledgers and subscriptions, namespaces and
policies.

A record never changes once it is in a CatalogueState: a change puts a new record in its place, so a
thread that took one keeps a consistent view without a lock. `catalogue/draft` alone publishes
changes; `catalogue/operations` and `catalogue/topic_operations` make them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.catalogue.records import (
        DeletionRecord,
        EndedTransaction,
        LeaseRecord,
        LedgerRecord,
        OffloadRecord,
        SchemaRecord,
        TopicRecord,
        TransactionRecord,
    )

LEASED_NOTHING = 1 << 63  # greater than every ledger id


class CatalogueState:
    """Everything after one commit. The catalogue's lock guards changes; any thread may read."""

    __slots__ = (
        "number", "checksum", "epoch", "next_id", "tenants", "namespaces", "topics",
        "transactions", "leases", "schemas", "deletions", "change_events", "policies_number",
        "offloads", "ended", "next_transaction", "last_end",
    )  # fmt: skip

    def __init__(self) -> None:
        self.number: int = 0  # of the last commit in it
        self.policies_number: int = 0  # of the last commit known here that changed a policy
        self.checksum: int = 0  # of that commit's file
        self.epoch: int = 0  # of the owner
        self.next_id: int = 1  # greater than every id in use
        self.tenants: dict[str, dict[str, Any]] = {"public": {}}
        self.namespaces: dict[str, dict[str, Any]] = {"public/default": {}}  # policies of each
        self.topics: dict[str, TopicRecord] = {}
        self.transactions: dict[str, TransactionRecord] = {}  # by application
        self.leases: dict[str, LeaseRecord] = {}  # by job
        self.schemas: dict[str, tuple[SchemaRecord, ...]] = {}  # by topic, in order of versions
        self.deletions: dict[int, DeletionRecord] = {}  # by the id of the topic, or of the ledger
        self.offloads: dict[int, OffloadRecord] = {}  # by the id of the file
        self.ended: dict[int, EndedTransaction] = {}  # by number, in the order they ended
        self.next_transaction: int = 0  # greater than every number of a transaction in use
        self.last_end: int = 0  # how many transactions have ended with a record

        # By topic, how often its policies were changed, and that was not told yet.
        self.change_events: dict[str, int] = {}

    def leased_from(self, topic: str, now_ms: int) -> tuple[int, int]:
        """The lowest ledger id of a topic that a job reads, and when the last lease on the topic
        expires; the greatest id there can be, and 0, when there is none."""
        lowest, expires_ms = LEASED_NOTHING, 0
        for lease in list(self.leases.values()):
            runs = lease.ledgers.get(topic)
            if runs and lease.expires_ms > now_ms:
                lowest = min(lowest, runs[0][0])
                expires_ms = max(expires_ms, lease.expires_ms)
        return lowest, expires_ms

    def leased(self, topic: str, ledgers: Iterable[LedgerRecord], now_ms: int) -> set[int]:
        """Ids of those of these ledgers of a topic that jobs read."""
        runs = [
            run
            for lease in list(self.leases.values())
            if lease.expires_ms > now_ms
            for run in lease.ledgers.get(topic, ())
        ]
        return {
            each.ledger_id
            for each in (ledgers if runs else ())
            if any(first <= each.ledger_id <= last for first, last in runs)
        }

    def offload_of(self, ledger: LedgerRecord) -> OffloadRecord | None:
        """The copy of a ledger's file that may be read instead of it."""
        found = self.offloads.get(ledger.file_id)
        return found if found is not None and found.size else None

    def document(self) -> dict[str, Any]:
        """Itself as JSON keeps it."""
        return {
            "number": self.number,
            "checksum": self.checksum,
            "epoch": self.epoch,
            "next_id": self.next_id,
            "tenants": self.tenants,
            "namespaces": self.namespaces,
            "topics": [each.row() for each in self.topics.values()],
            "transactions": [each.row() for each in self.transactions.values()],
            "leases": [each.row() for each in self.leases.values()],
            "schemas": {
                topic: [each.row() for each in records] for topic, records in self.schemas.items()
            },
            "deletions": [each.row() for each in self.deletions.values()],
            "change_events": self.change_events.copy(),
            "offloads": [each.row() for each in self.offloads.values()],
            "ended": [each.row() for each in self.ended.values()],
            "next_transaction": self.next_transaction,
            "last_end": self.last_end,
        }

    @staticmethod
    def of_document(document: dict[str, Any]) -> CatalogueState:
        """The state of such a document. Any exception: it is not one."""
        # A folder without a checkpoint needs no records, and often not at all.
        from pulsarx.broker.catalogue.records import (
            DeletionRecord,
            EndedTransaction,
            LeaseRecord,
            OffloadRecord,
            SchemaRecord,
            TopicRecord,
            TransactionRecord,
        )

        made = CatalogueState()
        made.number = document["number"]
        made.checksum = document["checksum"]
        made.epoch = document["epoch"]
        made.next_id = document["next_id"]
        made.tenants = document["tenants"]
        made.namespaces = document["namespaces"]
        of_row = TopicRecord.of_row
        made.topics = {row[1]: of_row(row) for row in document["topics"]}
        made.transactions = {row[0]: TransactionRecord(*row) for row in document["transactions"]}
        made.leases = {row[0]: LeaseRecord(*row) for row in document["leases"]}
        made.schemas = {
            topic: tuple(SchemaRecord(*row) for row in rows)
            for topic, rows in document["schemas"].items()
        }
        made.deletions = {row[0]: DeletionRecord(*row) for row in document["deletions"]}
        made.change_events = document["change_events"]
        made.offloads = {row[0]: OffloadRecord(*row) for row in document["offloads"]}
        made.ended = {row[0]: EndedTransaction(*row) for row in document.get("ended", ())}
        made.next_transaction = document.get("next_transaction", 0)
        made.last_end = document.get("last_end", 0)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CatalogueState):
            return NotImplemented
        return self.document() == other.document()

    __hash__: None = None  # type: ignore[assignment]
