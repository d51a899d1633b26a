"""The changes of one commit on top of a state, and what operations of all kinds share. For
`operations` and `topic_operations`, which change it, and for who applies them.
"""

from __future__ import annotations

from pulsarx.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.catalogue.records import (
        DeletionRecord,
        EndedTransaction,
        LeaseRecord,
        OffloadRecord,
        SchemaRecord,
        TopicRecord,
        TransactionRecord,
    )
    from pulsarx.broker.catalogue.state import CatalogueState

    Operation = dict[str, Any]

POLICY = {"policy": "text", "value": "value"}


class CatalogueDraft:
    """A state with changes on top that no other thread sees yet. For one thread."""

    __slots__ = (
        "state", "epoch", "tenants", "namespaces", "topics", "used_ids", "transactions", "leases",
        "schemas", "deletions", "change_events", "changes_policies", "offloads",
        "ended", "next_transaction", "last_end",
    )  # fmt: skip

    def __init__(self, state: CatalogueState) -> None:
        self.state: CatalogueState = state
        self.epoch: int = state.epoch
        self.tenants: dict[str, dict[str, Any] | None] = {}  # None: deleted
        self.namespaces: dict[str, dict[str, Any] | None] = {}
        self.topics: dict[str, TopicRecord | None] = {}
        self.used_ids: set[int] = set()
        self.transactions: dict[str, TransactionRecord | None] = {}  # None: forgotten
        self.leases: dict[str, LeaseRecord | None] = {}
        self.schemas: dict[str, tuple[SchemaRecord, ...] | None] = {}  # None: with their topic
        self.deletions: dict[int, DeletionRecord | None] = {}  # None: the files are gone
        self.change_events: dict[str, int | None] = {}  # None: told
        self.offloads: dict[int, OffloadRecord | None] = {}  # None: the object is gone
        self.changes_policies: bool = False
        self.ended: dict[int, EndedTransaction | None] = {}  # None: forgotten
        self.next_transaction: int = state.next_transaction
        self.last_end: int = state.last_end

    def publish(self, number: int, checksum: int) -> None:
        """Put the changes into the state, as the commit of this number."""
        state = self.state
        changed: tuple[tuple[dict[Any, Any], dict[Any, Any]], ...] = (
            (state.tenants, self.tenants),
            (state.namespaces, self.namespaces),
            (state.topics, self.topics),
            (state.transactions, self.transactions),
            (state.leases, self.leases),
            (state.schemas, self.schemas),
            (state.deletions, self.deletions),
            (state.change_events, self.change_events),
            (state.offloads, self.offloads),
            (state.ended, self.ended),
        )
        for known, changes in changed:
            if changes:
                _publish_into(known, changes)
        state.epoch = self.epoch
        state.next_transaction = self.next_transaction
        state.last_end = self.last_end
        if self.changes_policies:
            state.policies_number = number
        if self.used_ids:
            state.next_id = max(state.next_id, max(self.used_ids) + 1)
        state.number = number
        state.checksum = checksum

    def topic_if_any(self, name: str) -> TopicRecord | None:
        return self.topics[name] if name in self.topics else self.state.topics.get(name)

    def topic(self, name: str) -> TopicRecord:
        """The topic, to be changed."""
        found = self.topic_if_any(name)
        if found is None:
            raise CatalogueError(detail=f"there is no topic {name}")
        if name not in self.topics:
            found = self.topics[name] = found.copy()
        return found

    def take_id(self, taken_id: int, what: str) -> int:
        if taken_id in self.used_ids:
            raise CatalogueError(detail=f"{what} {taken_id}: this commit uses that id twice")
        self.used_ids.add(taken_id)
        return taken_id


def _publish_into(known: dict[Any, Any], changes: dict[Any, Any]) -> None:
    for name in changes:  # without memory for a pair, `items` ends the process in CPython
        record = changes[name]
        if record is None:
            known.pop(name, None)
        else:
            known[name] = record


def namespace_if_any(draft: CatalogueDraft, name: str) -> dict[str, Any] | None:
    known = draft.namespaces if name in draft.namespaces else draft.state.namespaces
    return known.get(name)


def namespace_of(draft: CatalogueDraft, name: str) -> dict[str, Any]:
    found = namespace_if_any(draft, name)
    if found is None:
        raise CatalogueError(detail=f"there is no namespace {name}")
    return found


def policies_with(policies: dict[str, Any], fields: Operation) -> dict[str, Any]:
    """A copy with one policy set; a value of None takes it away."""
    changed = policies.copy()
    if fields["value"] is None:
        changed.pop(fields["policy"], None)
    else:
        changed[fields["policy"]] = fields["value"]
    return changed


def is_integer(value: object) -> bool:
    return value.__class__ is int and -(2**63) <= value < 2**63


def is_ids(value: object) -> bool:
    return isinstance(value, list) and all(is_integer(one) and one > 0 for one in value)
