"""Verbs about leases: ledgers that a job reads and that are not trimmed meanwhile."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.verbs.verb import SUPERUSER, TENANT_ADMIN, verb
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.records import LeaseRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder

    Json = dict[str, Any]

_TTL_MAX_MS = 30 * 24 * 3600 * 1000
# Behind the job, and before a number, in the name of a lease of no ledgers: the mark that this part
# of it was read.
_PART = "#"


@verb("leases.set", needs=SUPERUSER)
def set_lease(broker: Broker, job: str, ledgers: Json, ttl_ms: int) -> Json:
    """It is an error if one of the ledgers is not there (any more)."""
    return _lease(broker, job, ledgers, ttl_ms, only_present=False)


@verb("leases.set_present", needs=SUPERUSER)
def set_present(broker: Broker, job: str, ledgers: Json, ttl_ms: int) -> Json:
    """Ledgers that are not there (any more) are left out."""
    return _lease(broker, job, ledgers, ttl_ms, only_present=True)


def _lease(broker: Broker, job: str, ledgers: Json, ttl_ms: int, *, only_present: bool) -> Json:
    if _job_of(job) != job:
        raise ValueError(f"lease: the name of the job, {job!r:.200}, ends as that of a part does")
    now_ms, expires_ms = _times(broker, ttl_ms)
    ledgers = {str(TopicName.of(name)): ids for name, ids in ledgers.items()}
    for name, ids in ledgers.items():
        if not isinstance(ids, list) or not all(one.__class__ is int and one > 0 for one in ids):
            raise ValueError(f"lease: {ids!r:.100} are no ids of ledgers of {name:.200}")

    def operations(state: CatalogueState) -> list[Json]:
        wanted: Json = {}
        for name, ids in ledgers.items():
            record = state.topics.get(name)
            if record is None:
                if only_present:
                    continue
                raise errors.missing_topic(name)
            gone = set(ids).difference(each.ledger_id for each in record.ledgers)
            if only_present:
                wanted[name] = [each for each in ids if each not in gone]
                continue
            if gone:
                raise errors.NotAllowedError(
                    detail=f"lease ledgers of {name} for job {job}: {len(gone)} of them are not "
                    f"there (any more), {min(gone)} for one. Plan again"
                )
            wanted[name] = ids
        forgotten = _expired(state, now_ms)
        return [changes.set_lease(job, expires_ms, wanted, forgotten=forgotten)]

    broker.catalogue.commit(operations)
    return {"expires_ms": expires_ms}


@verb("leases.renew", needs=SUPERUSER)
def renew(broker: Broker, job: str, ttl_ms: int) -> Json:
    now_ms, expires_ms = _times(broker, ttl_ms)

    def operations(state: CatalogueState) -> list[Json]:
        lease = state.leases.get(job)
        if lease is None or lease.expires_ms <= now_ms:
            # Ledgers of it may have been trimmed since.
            raise errors.NotAllowedError(
                detail=f"renew the lease of job {job}: it has none (any more)"
            )
        return [changes.renew_lease(job, expires_ms)]

    broker.catalogue.commit(operations)
    return {"expires_ms": expires_ms}


def _times(broker: Broker, ttl_ms: int) -> tuple[int, int]:
    if not 0 < ttl_ms <= _TTL_MAX_MS:
        raise ValueError(f"lease: ttl_ms is {ttl_ms}; it must be from 1 to {_TTL_MAX_MS}")
    now_ms = broker.runtime.clock.now_ms()
    return now_ms, now_ms + ttl_ms


def _expired(state: CatalogueState, now_ms: int) -> list[str]:
    """Jobs whose lease is over, with the marks of their parts."""
    lasting = {each.job for each in state.leases.values() if each.expires_ms > now_ms}
    return [each.job for each in state.leases.values() if _bearer(each) not in lasting]


def _bearer(lease: LeaseRecord) -> str:
    """The job whose part a lease marks as read, else its own."""
    return lease.job if lease.ledgers else _job_of(lease.job)


def _job_of(name: str) -> str:
    job, _, part = name.rpartition(_PART)
    return job if part.isascii() and part.isdigit() else name


def _parts_read(state: CatalogueState, job: str) -> set[str]:
    return {each.job for each in state.leases.values() if each.job != job and _bearer(each) == job}


@verb("leases.finish_part", needs=SUPERUSER)
def finish_part(broker: Broker, job: str, part: int, parts: int, pause_ms: int) -> Json:
    """One of so many parts of what a job leased was read to its end. With the last of them the
    lease ends in pause_ms, if nothing renews it; is_last: whether this was it."""
    is_last = False

    def operations(state: CatalogueState) -> list[Json]:
        nonlocal is_last
        now_ms = broker.runtime.clock.now_ms()
        lease = state.leases.get(job)
        is_last = False
        if lease is None or lease.expires_ms <= now_ms:
            return [changes.remove_leases(_expired(state, now_ms))]
        mark = f"{job}{_PART}{part}"
        read = _parts_read(state, job) | {mark}
        if len(read) < parts:
            return [changes.set_lease(mark, lease.expires_ms, {}, forgotten=[])]
        is_last = True
        until_ms = min(lease.expires_ms, now_ms + pause_ms)
        return [changes.remove_leases(sorted(read)), changes.renew_lease(job, until_ms)]

    if job in broker.catalogue.state.leases:
        broker.catalogue.commit(operations)
    return {"is_last": is_last}


@verb("leases.release", needs=SUPERUSER)
def release(broker: Broker, job: str) -> Json:
    topics: list[str] = []

    def operations(state: CatalogueState) -> list[Json]:
        lease = state.leases.get(job)
        topics[:] = () if lease is None else lease.ledgers
        gone = {job, *_parts_read(state, job), *_expired(state, broker.runtime.clock.now_ms())}
        return [changes.remove_leases(sorted(gone))]

    if job not in broker.catalogue.state.leases:
        return {"released": False}
    broker.catalogue.commit(operations)
    for name in topics:
        topic = broker.topics.open_topic(name)
        if topic is not None:
            topic.trim_soon()
    return {"released": True}


@verb("leases.get_leases", needs=TENANT_ADMIN, reads=True)
def get_leases(folder: OpenFolder, topic: TopicName) -> list[Json]:
    """The leases of a topic that have not ended: job, expires_ms, and ledgers, the first and last
    id of each run. messages: how many there are from the first of them on, so how many the job may
    still have to read at most."""
    from pulsarx.clock import wall_ms

    folder.refresh()
    name = topic.full
    state = folder.catalogue.state
    record = state.topics.get(name)
    if record is None:
        raise errors.missing_topic(name)
    owned: Any = folder
    now_ms = wall_ms() if folder.read_only else owned.runtime.clock.now_ms()
    held = [
        (lease, runs)
        for lease in list(state.leases.values())
        if lease.expires_ms > now_ms and (runs := lease.ledgers.get(name))
    ]
    if not held:
        return []
    ledgers = folder.topic(topic, create=False).ledger
    return [
        {
            "job": lease.job,
            "expires_ms": lease.expires_ms,
            "ledgers": runs,
            "messages": ledgers.message_count_from((runs[0][0], 0)),
        }
        for lease, runs in held
    ]
