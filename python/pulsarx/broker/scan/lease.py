"""Leases, which keep the ledgers that a job reads from being trimmed until it gives them back, or
is overdue.

Ranges that were leased (`lease_ranges`) name their lease wherever they go, and a reader of one
renews it meanwhile. So a lease need only be as long as the longest time in which nothing is read.
A reader that comes when it is over takes a new one on what is still there.
When all parts of a plan were read to their end its lease is made shorter (`finish_part`).

For any process that can reach the folder, be there an owner or not. Time runs on the owner's clock.
A lease of a job also spares its staging area from `collect_staging`.
"""

from __future__ import annotations

from pulsarx.broker.requests.owner_request import TIMEOUT_MS, ask_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from pulsarx.broker.scan.ledger_range import LedgerRange


def lease(
    folder: str | os.PathLike[str],
    job: str,
    ledgers: Mapping[str, Iterable[int]],
    ttl_ms: int,
    *,
    only_present: bool = False,
    timeout_ms: int = TIMEOUT_MS,
) -> int:
    """Lease ledgers, given by topic (in full, partitions one by one), for ttl_ms; when that ends.

    A lease the job has is replaced. only_present: a ledger that is not there (any more) is left
    out. NotAllowedError, TopicNotFound: one is not there; plan again.
    """
    wanted = {topic: list(ids) for topic, ids in ledgers.items()}
    arguments = {"job": job, "ledgers": wanted, "ttl_ms": ttl_ms}
    verb = "leases.set_present" if only_present else "leases.set"
    return int(ask_owner(folder, verb, arguments, timeout_ms)["expires_ms"])


def lease_ranges(
    folder: str | os.PathLike[str],
    job: str,
    ranges: Sequence[LedgerRange],
    ttl_ms: int,
    *,
    timeout_ms: int = TIMEOUT_MS,
) -> int:
    """Lease the ledgers of planned ranges, as `lease`; the ranges bear it from here on."""
    ledgers: dict[str, set[int]] = {}
    for each in ranges:
        ledgers.setdefault(each.topic, set()).add(each.ledger_id)
    wanted = {topic: sorted(ids) for topic, ids in ledgers.items()}
    expires_ms = lease(folder, job, wanted, ttl_ms, timeout_ms=timeout_ms)
    bear_lease(ranges, job, ttl_ms, expires_ms)
    return expires_ms


def bear_lease(ranges: Iterable[LedgerRange], job: str, ttl_ms: int, expires_ms: int) -> None:
    """Have ranges that a lease covers already be read under it."""
    covered = list(ranges)
    lowest = lowest_ledgers(covered)
    for each in covered:
        each.lease = (job, ttl_ms, expires_ms, lowest[each.topic])


def lowest_ledgers(ranges: Iterable[LedgerRange]) -> dict[str, int]:
    """The ledger to lease for each topic: trimming spares those behind it, too."""
    found: dict[str, int] = {}
    for each in ranges:
        found[each.topic] = min(each.ledger_id, found.get(each.topic, each.ledger_id))
    return found


def renew_lease(
    folder: str | os.PathLike[str], job: str, ttl_ms: int, *, timeout_ms: int = TIMEOUT_MS
) -> int:
    """Lease the same ledgers from now on for ttl_ms; when that ends. NotAllowedError: there is no
    lease, or it was over, and ledgers may be gone."""
    arguments = {"job": job, "ttl_ms": ttl_ms}
    return int(ask_owner(folder, "leases.renew", arguments, timeout_ms)["expires_ms"])


def pause_ms(ttl_ms: int) -> int:
    """How long what was read to its end is spared for whoever reads it again: the next action, or
    a task that Spark repeats."""
    return min(ttl_ms, max(ttl_ms // 12, 1000))


def finish_part(
    planned: LedgerRange, part: int, parts: int, *, timeout_ms: int = TIMEOUT_MS
) -> bool:
    """One of the parts of a plan was read to its end, the one with this range; whether it was the
    last: then the lease of the plan ends in pause_ms, unless it is being read again."""
    if planned.lease is None:
        return False
    job, ttl_ms, *_ = planned.lease
    arguments = {"job": job, "part": part, "parts": parts, "pause_ms": pause_ms(ttl_ms)}
    answer = ask_owner(planned.folder, "leases.finish_part", arguments, timeout_ms)
    return bool(answer["is_last"])


def release_lease(
    folder: str | os.PathLike[str], job: str, *, timeout_ms: int = TIMEOUT_MS
) -> bool:
    """Give the lease of a job back; False: it had none."""
    return bool(ask_owner(folder, "leases.release", {"job": job}, timeout_ms)["released"])
