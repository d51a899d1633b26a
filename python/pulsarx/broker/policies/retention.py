"""Decides which ledgers may go: whole, sealed ones that every durable subscription has acknowledged
and no policy keeps."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.records import LedgerRecord


class RetentionPolicy:
    """How long acknowledged messages stay. -1: without limit; 0 in either: not at all. A value."""

    __slots__ = ("size_mb", "time_minutes")

    def __init__(self, time_minutes: int = 0, size_mb: int = 0) -> None:
        self.time_minutes: int = time_minutes
        self.size_mb: int = size_mb

    @property
    def keeps_nothing(self) -> bool:
        """Whether retention is off, as in Pulsar: a limit of 0 in one of the two switches retention
        off."""
        return self.time_minutes == 0 or self.size_mb == 0


def removable(
    ledgers: list[LedgerRecord],
    held_from: int,
    policy: RetentionPolicy,
    now_ms: int,
) -> list[int]:
    """Ids of the ledgers to remove, oldest first.

    held_from: the ledger of the slowest durable cursor; it and later ones stay. A ledger goes when
        it is older than
    time_minutes or when the topic without it still holds size_mb; the first that stays ends the
    search.
    Source: ManagedLedgerImpl.internalTrimLedgers.
    """
    candidates = []
    for ledger in ledgers:
        if ledger.state != "sealed" or ledger.ledger_id >= held_from:
            break
        candidates.append(ledger)
    total = sum(ledger.size for ledger in ledgers if ledger.state == "sealed")
    removed = []
    for ledger in candidates:
        total -= ledger.size
        if not is_expired(ledger, policy, now_ms) and not is_over_size(total, policy):
            break
        removed.append(ledger.ledger_id)
    return removed


def is_expired(ledger: LedgerRecord, policy: RetentionPolicy, now_ms: int) -> bool:
    if policy.keeps_nothing:
        return True
    return policy.time_minutes > 0 and now_ms - ledger.sealed_ms > policy.time_minutes * 60_000


def is_over_size(kept_bytes: int, policy: RetentionPolicy) -> bool:
    return policy.size_mb > 0 and kept_bytes >= policy.size_mb << 20
