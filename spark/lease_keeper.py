"""Keeps the leases of what this process, the driver, has planned, for as long as Spark can still
read it: between the actions of a DataFrame no task renews them.

  read_topic, map_topic   the plans in Java, of the DataFrame and of all that are derived from it,
                          share one Python function; a weak reference tells when none is left
  topic_rdd               the same with the RDD in Java that names the ranges
  Spark Connect           the plans are objects of Python

  plan_topic              the ranges are objects of Python, which share one that tells when they are
                          forgotten; once one was pickled or made text, another process may read it

When nothing is left, or the driver ends, the lease is given back. Java notices with its next
garbage collection, which Spark asks for every half hour. Until then who plans the same ledgers
again joins the lease: to take another one is a commit, and twice the time of the plan. Imports no
Spark.
"""

from __future__ import annotations

import atexit
import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event, RLock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.broker.scan.lease import (
    bear_lease,
    lease,
    lowest_ledgers,
    release_lease,
    renew_lease,
)
from pulsarx.broker.scan.planned_here import PlannedHere
from pulsarx.clock import Deadline, system_clock
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame

    from pulsarx.broker.catalogue.records import LeaseRecord
    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.clock import Clock

    IsLeft = Callable[[], bool]  # whether Spark can still read it

LOOK_SECONDS = 30.0
_TTL_LONGER_MAX_MS = 30 * 24 * 3600 * 1000  # the longest that there can be
_RENEW_TIMEOUT_MS = 20_000
_RELEASE_TIMEOUT_MS = 1000
_EXIT_TIMEOUT_MS = 5000


class _KeptLease:
    """The lease of reads of the same ledgers. The lock of LeaseKeeper is held for what changes.

    readers: of each read, whether it is left. held: of each plan that joined and that nobody keeps
    yet, until when the lease was promised to it; with the key of the plan.
    """

    __slots__ = ("folder", "job", "ttl_ms", "due_ms", "lowest", "readers", "held", "has_failed")

    def __init__(self, ranges: list[LedgerRange], now_ms: int, is_left: IsLeft) -> None:
        assert ranges[0].lease is not None
        self.job, self.ttl_ms, expires_ms, _ = ranges[0].lease
        self.folder = ranges[0].folder
        self.lowest = lowest_ledgers(ranges)
        # From when it was taken: Spark may have needed long to make what reads it.
        self.due_ms = min(now_ms, expires_ms - self.ttl_ms) + self.ttl_ms // 3
        self.readers = [is_left]
        self.held: list[tuple[int, object]] = []
        self.has_failed = False

    def is_over(self, now_ms: int) -> bool:
        return not self.readers and not self.is_held(now_ms)

    def is_held(self, now_ms: int) -> bool:
        return any(until_ms > now_ms for until_ms, _ in self.held)

    def hold(self, key: object, now_ms: int) -> None:
        """Hold the lease for a plan that joined, from now on for ttl_ms."""
        self.let_go(key)
        self.held = [each for each in self.held if each[0] > now_ms]
        self.held.append((now_ms + self.ttl_ms, key))

    def let_go(self, key: object) -> None:
        """Let go of the lease of this plan, if it is held; never of another one, which may still be
        read."""
        self.held = [each for each in self.held if each[1] is not key]


class LeaseKeeper:
    """Renews leases until nothing is left that could be read under them. Any thread may call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._abandoned: list[Any] = []
        self._kept: list[_KeptLease] = []
        # Folder and job of each plan whose ranges are read here alone and that nobody keeps, by
        # its key. Changed in single steps without the lock: ranges are pickled anywhere.
        self._here: dict[object, tuple[str, str]] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything: at the start, and in a forked child, which keeps nothing of its
        parent. References into Java stay: to drop them talks over the parent's connection."""
        self._abandoned.append(self._kept)
        self._kept = []
        self._here = {}
        self._lock = RLock()
        self._wake = Event()
        self._thread: OwnThread | None = None

    def keep(self, groups: Iterable[list[LedgerRange]], is_left: IsLeft) -> None:
        """Keep the lease of planned ranges, if they have one, while is_left answers True."""
        ranges = [each for group in groups for each in group]
        if not is_leased([ranges]):
            return
        key = _key_of(ranges)
        self.goes_out(key)
        with self._lock:
            kept = self._kept_of(ranges)
            if kept is None:
                self._kept.append(_KeptLease(ranges, self._clock.now_ms(), is_left))
            else:
                kept.readers.append(is_left)
                kept.let_go(key)
            if self._thread is None:
                thread = OwnThread(partial(self._run, self._wake), "pulsarx-leases")
                thread.start()
                self._thread = thread  # else the next plan tries again
        self._wake.set()

    def join(
        self, ranges: list[LedgerRange], ttl_ms: int, leases: Mapping[str, LeaseRecord]
    ) -> bool:
        """Have ranges read under a lease that is kept for the same ledgers, if there is one; for
        ttl_ms, until `keep` or `leave` is called. leases: of the catalogue that they were planned
        with."""
        # Not waited for: who has the lock may wait for this thread, where a signal's handler plans.
        if not ranges or not self._lock.acquire(blocking=False):
            return False
        try:
            lowest, now_ms = lowest_ledgers(ranges), self._clock.now_ms()
            for kept in self._kept:
                found = leases.get(kept.job)
                if (
                    (kept.folder, kept.ttl_ms, kept.lowest) == (ranges[0].folder, ttl_ms, lowest)
                    and found is not None
                    and found.expires_ms > now_ms
                    and _covers(found, ranges)
                ):
                    kept.hold(self._plan_of(ranges).key, now_ms)
                    bear_lease(ranges, kept.job, ttl_ms, found.expires_ms)
                    return True
            return False
        finally:
            self._lock.release()

    def lengthen(self, ranges: list[LedgerRange]) -> bool:
        """Have the lease that ranges have joined last as long as one of their own would, a quarter
        longer where it has to be renewed, so that those who join soon need not; False: they have
        not joined one, or it was over."""
        if not ranges or ranges[0].lease is None:
            return False
        job, ttl_ms, expires_ms, _ = ranges[0].lease
        if expires_ms - self._clock.now_ms() >= ttl_ms:
            return True
        longer_ms = max(ttl_ms, min(ttl_ms * 5 // 4, _TTL_LONGER_MAX_MS))
        try:
            expires_ms = renew_lease(ranges[0].folder, job, longer_ms)
            with self._lock:
                kept = self._kept_of(ranges)
                if kept is None:
                    raise errors.NotAllowedError(
                        detail=f"the lease of job {job} was over meanwhile"
                    )
                kept.hold(_key_of(ranges), self._clock.now_ms())
        except BaseException as error:
            self.leave(ranges)
            for each in ranges:
                each.lease = None
            if isinstance(error, errors.PulsarException):
                return False  # to take one says why not
            raise
        bear_lease(ranges, job, ttl_ms, expires_ms)
        return True

    def leave(self, ranges: list[LedgerRange]) -> bool:
        """Note that nobody will read what joined; False: its lease is not kept here."""
        self.goes_out(_key_of(ranges))
        return ranges[0].lease is not None and self._leave(_key_of(ranges), ranges[0].lease[0])

    def _leave(self, key: object, job: str) -> bool:
        with self._lock:
            kept = self._kept_as(job)
            if kept is None:
                return False
            kept.let_go(key)
        self._wake.set()
        return True

    def watch(self, ranges: list[LedgerRange]) -> None:
        """Give the lease of planned ranges back when nobody here has any of them, unless one went
        elsewhere, or somebody keeps it."""
        if ranges and ranges[0].lease is not None:
            plan = self._plan_of(ranges)
            for each in ranges:
                each.planned = plan
            self._here[plan.key] = ranges[0].folder, ranges[0].lease[0]

    def goes_out(self, key: object) -> None:
        """Another process may read what this plan is of: its lease ends by itself."""
        self._here.pop(key, None)

    def all_go_out(self) -> None:
        """This process is about to be forked, and its child may read everything."""
        self._here.clear()

    def forgotten(self, key: object) -> None:
        """No range of this plan is left. In the control plane."""
        found = self._here.pop(key, None)
        if found is not None and not self._leave(key, found[1]):
            _give_back(*found, _RELEASE_TIMEOUT_MS)

    def _plan_of(self, ranges: list[LedgerRange]) -> PlannedHere:
        """Return the plan of the first range, which tells it from other plans."""
        first = ranges[0]
        if first.planned is None:
            first.planned = PlannedHere(self.goes_out, self.forgotten)
        return first.planned

    def _kept_of(self, ranges: list[LedgerRange]) -> _KeptLease | None:
        """The lock is held."""
        return self._kept_as(ranges[0].lease[0]) if ranges and ranges[0].lease else None

    def _kept_as(self, job: str) -> _KeptLease | None:
        """The lock is held."""
        return next((each for each in self._kept if each.job == job), None)

    def _run(self, wake: Event) -> None:
        # Ends with the process: Spark keeps a thread in Java for each that ever asked it. A look
        # asks Java about each plan, so a new one has it wait shorter, and does not have it look.
        next_look = Deadline(LOOK_SECONDS * 1000)
        while True:
            if not wake.wait(self._wait_seconds(next_look)):
                self.look()
                next_look = Deadline(LOOK_SECONDS * 1000)
            wake.clear()

    def _wait_seconds(self, next_look: Deadline) -> float | None:
        """None: until there is something to look after."""
        with self._lock:
            due_ms = min((each.due_ms for each in self._kept), default=None)
        if due_ms is None:
            return None
        left_ms = max(due_ms - self._clock.now_ms(), 0)
        return min(left_ms / 1000, next_look.remaining_seconds() or 0)

    def look(self) -> None:
        """Give back the leases of plans that are gone, renew what is due."""
        with self._lock:
            kept = [(each, list(each.readers)) for each in self._kept]
        for each, readers in kept:
            gone = [is_left for is_left in readers if not is_left()]
            now_ms = self._clock.now_ms()
            with self._lock:
                each.readers = [is_left for is_left in each.readers if is_left not in gone]
                is_over = each.is_over(now_ms) and each in self._kept
                if is_over:
                    self._kept.remove(each)  # nobody can join it any more
            if is_over:
                _give_back(each.folder, each.job, _RELEASE_TIMEOUT_MS)
            elif each.due_ms <= now_ms:
                self._renew(each)

    def _renew(self, kept: _KeptLease) -> None:
        failure: Exception | None = None
        try:
            self._lease_on(kept)
        except Exception as error:
            failure = error
        if not self._is_kept(kept):
            # As release_all did: it may be there again.
            _give_back(kept.folder, kept.job, _RELEASE_TIMEOUT_MS)
            return
        wait_ms = kept.ttl_ms // 3 if failure is None else max(kept.ttl_ms // 12, 1000)
        kept.due_ms = self._clock.now_ms() + wait_ms
        if failure is not None and not kept.has_failed:
            import logging

            logging.getLogger("pulsarx.spark").warning(
                "the lease of job %s on ledgers in %s is not renewed by the driver: %s; what is "
                "not read before it ends may be removed by retention",
                kept.job, kept.folder, failure,
            )  # fmt: skip
        kept.has_failed = failure is not None

    def _lease_on(self, kept: _KeptLease) -> None:
        try:
            renew_lease(kept.folder, kept.job, kept.ttl_ms, timeout_ms=_RENEW_TIMEOUT_MS)
        except errors.NotAllowedError:
            if not self._is_kept(kept):
                return
            # It was over, as where the host slept: all of it again, or it is lost.
            wanted = {topic: [ledger_id] for topic, ledger_id in kept.lowest.items()}
            lease(kept.folder, kept.job, wanted, kept.ttl_ms, timeout_ms=_RENEW_TIMEOUT_MS)

    def _is_kept(self, kept: _KeptLease) -> bool:
        with self._lock:
            return kept in self._kept

    def release_all(self) -> None:
        """Give everything back, within a few seconds: the driver ends. But for what was planned
        under it, went out and that nobody keeps: another process may read that."""
        deadline = Deadline(_EXIT_TIMEOUT_MS)
        unread: list[tuple[str, str]] = []
        now_ms = self._clock.now_ms()
        with self._lock:
            while self._here:
                key, (folder, job) = self._here.popitem()
                joined = self._kept_as(job)
                if joined is None:
                    unread.append((folder, job))
                else:
                    joined.let_go(key)
            kept = [each for each in self._kept if not each.is_held(now_ms)]
            self._kept = [each for each in self._kept if each.is_held(now_ms)]
        for folder, job in [*unread, *((each.folder, each.job) for each in kept)]:
            if not deadline.expired():
                left_ms = deadline.remaining_ms() or 0
                _give_back(folder, job, min(_RELEASE_TIMEOUT_MS, left_ms))


def _key_of(ranges: list[LedgerRange]) -> object:
    """Return the key of the plan of leased ranges; None: it was not made here."""
    planned = ranges[0].planned
    return None if planned is None else planned.key


def _give_back(folder: str, job: str, timeout_ms: int) -> None:
    try:
        release_lease(folder, job, timeout_ms=timeout_ms)
    except Exception:
        pass  # it ends by itself


def _covers(found: LeaseRecord, ranges: list[LedgerRange]) -> bool:
    """Ledgers that were added since it was taken are spared by retention, and may be merged."""
    return all(
        any(first <= each.ledger_id <= last for first, last in found.ledgers.get(each.topic, ()))
        for each in ranges
    )


keeper: LeaseKeeper = LeaseKeeper(system_clock())
_weak_references: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
at_fork(__name__, keeper.reset, before=keeper.all_go_out)
atexit.register(keeper.release_all)


def is_leased(groups: Iterable[list[LedgerRange]]) -> bool:
    """Whether what was planned has a lease; all of it has, or nothing."""
    return any(each.lease is not None for group in groups for each in group[:1])


def frame_is_left(frame: DataFrame) -> IsLeft:
    """Make the check whether a DataFrame that mapInArrow made still exists."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:  # Spark Connect
        plan = weakref.ref(frame._plan)
        return lambda: plan() is not None
    function = java_frame.logicalPlan().expressions().head().func()
    return _java_is_left(frame.sparkSession.sparkContext, function)


def rdd_is_left(rdd: RDD[Any]) -> IsLeft:
    """Make the check whether an RDD that SparkContext.parallelize made still exists."""
    return _java_is_left(rdd.context, rdd._jrdd.rdd())


def _weak_reference_class(context: SparkContext) -> Any:
    """Return the class WeakReference of this Java, kept: it is asked about each part of the name, a
    third of a millisecond a time."""
    assert context._jvm is not None
    known = _weak_references.get(context._jvm)
    if known is None:
        known = _weak_references[context._jvm] = context._jvm.java.lang.ref.WeakReference
    return known


def _java_is_left(context: SparkContext, found: Any) -> IsLeft:
    reference = _weak_reference_class(context)(found)

    def is_left() -> bool:
        try:
            return context._jsc is not None and not reference.refersTo(None)
        except Exception:
            return False  # Java is gone

    return is_left
