"""Renews leases for as long as this process reads what they cover. Used by read_range.

A reader renews, so a lease lasts as long as any task of its job reads, however long that is, and
ends by itself when no task does: the job is over, or died. A job that goes on later, such as the
second action of a DataFrame, finds its lease over: then the reading process takes one of its own,
on the ledgers of the job that are still there, and that one is renewed. Where a plan is read again
its lease may have been made shorter, to `pause_ms`: it is renewed twice in that time.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.clock import system_clock
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.clock import Clock, Timer

_TIMEOUT_MS = 20_000


class LeaseRenewals:
    """The leases under which a process reads; each is renewed in time. Any thread may call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leases: dict[tuple[str, str], _ReadLease] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything: at the start, and in a forked child, whose clock has done so, too."""
        # A reader that is dropped leaves in a finalizer, which may interrupt this very thread.
        self._lock = RLock()
        for each in self._leases.values():
            each.timer = None
        self._leases = {}

    def enter(self, planned: LedgerRange) -> _ReadLease:
        """Renew the lease of a range, which it has, until what is returned is left."""
        assert planned.lease is not None
        job, ttl_ms, expires_ms, lowest = planned.lease
        topic, key = planned.topic, (planned.folder, job)
        with self._lock:
            found = self._leases.get(key)
            if found is None:
                found = self._add(key)
            if expires_ms > found.expires_ms:  # a stream replaces its lease
                now_ms = self._clock.now_ms()
                # The owner's clock may be another one: never later than counted from now.
                found.due_ms = min(expires_ms - ttl_ms, now_ms) + _interval_ms(ttl_ms)
                found.ttl_ms, found.expires_ms, found.is_over = ttl_ms, expires_ms, False
                found.own_job, found.lowest = "", {}
                found.cancel_timer()
            if lowest < found.lowest.get(topic, lowest + 1):
                found.lowest[topic] = lowest
                found.has_grown = True
                if found.own_job:  # which does not cover it yet
                    found.due_ms, found.is_over = self._clock.now_ms(), False
                    found.cancel_timer()
            found.reading.append((topic, planned.ledger_id))
            self._arm(found)
        return found

    def leave(self, lease: _ReadLease, planned: LedgerRange) -> None:
        """The range is read no more."""
        with self._lock:
            # The timer stays: the next of a thousand small ranges would start it anew.
            lease.reading.remove((planned.topic, planned.ledger_id))

    def _add(self, key: tuple[str, str]) -> _ReadLease:
        """The lock is held."""
        now_ms = self._clock.now_ms()
        for old, each in list(self._leases.items()):
            if not each.reading and each.due_ms + each.ttl_ms < now_ms:
                each.cancel_timer()
                del self._leases[old]
        found = self._leases[key] = _ReadLease(*key)
        return found

    def _arm(self, lease: _ReadLease) -> None:
        """The lock is held."""
        if lease.timer or lease.thread or lease.is_over or not lease.reading:
            return
        if lease.due_ms > self._clock.now_ms():
            lease.timer = self._clock.call_at(lease.due_ms, lambda: self._fire(lease))
            return
        # Not by a timer: many short reads would each cancel it before it fires.
        thread = OwnThread(partial(self._renew, lease), "pulsarx-lease")
        try:
            thread.start()
            lease.thread = thread  # it looks for that under the lock
        except RuntimeError:  # no more threads: some time later
            lease.due_ms = self._clock.now_ms() + _interval_ms(lease.ttl_ms)
            lease.timer = self._clock.call_at(lease.due_ms, lambda: self._fire(lease))

    def _fire(self, lease: _ReadLease) -> None:
        with self._lock:
            lease.timer = None
            self._arm(lease)

    def _renew(self, lease: _ReadLease) -> None:
        failure: Exception | None = None
        try:
            self._ask(lease)
        except Exception as error:
            failure = error
        with self._lock:
            lease.is_over = isinstance(failure, errors.NotAllowedError)
            wait_ms = _interval_ms(lease.ttl_ms)
            if failure is not None:
                wait_ms = max(wait_ms, 1000)
            if lease.own_job and lease.has_grown:
                wait_ms, lease.is_over = 0, False
            lease.due_ms = self._clock.now_ms() + wait_ms
            is_first = failure is not None and not lease.has_failed
            lease.has_failed = failure is not None
            lease.thread = None
            self._arm(lease)
        if failure is not None and is_first:
            import logging

            detail = errors.detail_of(failure)
            logging.getLogger("pulsarx").warning(
                "the lease of job %s on ledgers in %s is not renewed from host %s: %s; what is "
                "not read before it ends may be removed by retention",
                lease.job, lease.folder, os.uname().nodename, detail,
            )  # fmt: skip

    def _ask(self, lease: _ReadLease) -> None:
        """NotAllowedError: it is over, and there is nothing left to lease."""
        from pulsarx.broker.scan.lease import lease as take_lease
        from pulsarx.broker.scan.lease import pause_ms, renew_lease

        if not lease.own_job:
            try:
                renew_lease(lease.folder, lease.job, lease.ttl_ms, timeout_ms=_TIMEOUT_MS)
                return
            except errors.NotAllowedError:
                # A lease of this process alone: another one may read other topics of the job.
                lease.own_job = f"{lease.job}-{uuid.uuid4().hex[:12]}"
        ttl_ms = pause_ms(lease.ttl_ms)  # it is needed no longer than something is read
        with self._lock:
            lease.has_grown = False
            planned = {topic: [lowest] for topic, lowest in lease.lowest.items()}
            reading: dict[str, list[int]] = {}
            for topic, ledger_id in list(lease.reading):
                reading.setdefault(topic, []).append(ledger_id)
        try:
            take_lease(lease.folder, lease.own_job, planned, ttl_ms, timeout_ms=_TIMEOUT_MS)
        except errors.NotAllowedError:
            # Retention has removed some of the job that may have been read before.
            take_lease(lease.folder, lease.own_job, reading, ttl_ms, timeout_ms=_TIMEOUT_MS)

    def wait(self) -> None:
        """For tests: until nothing is being renewed."""
        for lease in list(self._leases.values()):
            thread = lease.thread
            if thread is not None:
                thread.join()


def finish_soon(planned: LedgerRange, part: int, parts: int) -> None:
    """Finish a part as finish_part does, but nobody waits for it, or hears that it could not be
    done: where the folder has no owner it takes as long as a short task, and a lease ends by
    itself."""

    def finish() -> None:
        with contextlib.suppress(errors.PulsarException):
            finish_part(planned, part, parts, timeout_ms=_TIMEOUT_MS)

    from pulsarx.broker.scan.lease import finish_part

    OwnThread(finish, "pulsarx-lease").start()


def _interval_ms(ttl_ms: int) -> int:
    return min(ttl_ms // 3, max(ttl_ms // 24, 500))


class _ReadLease:
    """A lease some ranges are read under. The lock of LeaseRenewals is held."""

    __slots__ = (
        "folder", "job", "own_job", "ttl_ms", "expires_ms", "due_ms", "reading", "lowest",
        "has_grown", "timer", "thread", "is_over", "has_failed",
    )  # fmt: skip

    def __init__(self, folder: str, job: str) -> None:
        self.folder: str = folder
        self.job: str = job
        self.own_job: str = ""  # whose lease it is since that of the job is over
        self.ttl_ms: int = 0
        self.expires_ms: int = -1  # as the newest range bears it
        self.due_ms: int = 0  # of the next renewal
        self.reading: list[tuple[str, int]] = []  # topic and ledger of each reader
        self.lowest: dict[str, int] = {}  # ledger of the job's lease, by topic read here
        self.has_grown: bool = False  # by a topic that a lease of this process does not cover yet
        self.timer: Timer | None = None
        self.thread: OwnThread | None = None  # that is asking the owner
        self.is_over: bool = False
        self.has_failed: bool = False

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


renewals: LeaseRenewals = LeaseRenewals(system_clock())
at_fork(__name__, renewals.reset)
