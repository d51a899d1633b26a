"""Leases: ledgers that a job reads are not trimmed until it gives them back, or is overdue.

For any process that can reach the folder, be there an owner or not. Time runs on the owner's clock.
A lease of a job also spares its staging area from `collect_staging`.
"""

from __future__ import annotations

from pulsarx.broker.owner_request import TIMEOUT_MS, ask_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping


def lease(
    folder: str | os.PathLike[str],
    job: str,
    ledgers: Mapping[str, Iterable[int]],
    ttl_ms: int,
    *,
    timeout_ms: int = TIMEOUT_MS,
) -> int:
    """Lease ledgers, given by topic (in full, partitions one by one), for ttl_ms; when that ends.

    A lease the job has is replaced. NotAllowedError: a ledger is not there (any more): plan again.
    """
    wanted = {topic: list(ids) for topic, ids in ledgers.items()}
    arguments = {"job": job, "ledgers": wanted, "ttl_ms": ttl_ms}
    return int(ask_owner(folder, "lease", arguments, timeout_ms)["expires_ms"])


def renew_lease(
    folder: str | os.PathLike[str], job: str, ttl_ms: int, *, timeout_ms: int = TIMEOUT_MS
) -> int:
    """Lease the same ledgers from now on for ttl_ms; when that ends. NotAllowedError: there is no
    lease, or it was over, and ledgers may be gone."""
    arguments = {"job": job, "ttl_ms": ttl_ms}
    return int(ask_owner(folder, "renew", arguments, timeout_ms)["expires_ms"])


def release_lease(
    folder: str | os.PathLike[str], job: str, *, timeout_ms: int = TIMEOUT_MS
) -> bool:
    """Give the lease of a job back; False: it had none."""
    return bool(ask_owner(folder, "release", {"job": job}, timeout_ms)["released"])
