"""Keeps the leases of what this process, the driver, has planned, for as long as Spark can still
read it: between the actions of a DataFrame no task renews them.

  read_topic, map_topic   the plans in Java, of the DataFrame and of all that are derived from it,
                          share one Python function; a weak reference tells when none is left
  topic_rdd               the same with the RDD in Java that names the ranges
  Spark Connect           the plans are objects of Python

When nothing is left, or the driver ends, the lease is given back. Java notices with its next
garbage collection, which Spark asks for every half hour. Imports no Spark.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.broker.scan.lease import lease, lowest_ledgers, release_lease, renew_lease
from pulsarx.clock import Deadline, system_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame

    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.clock import Clock

    IsLeft = Callable[[], bool]  # whether Spark can still read it

LOOK_SECONDS = 30.0
_RENEW_TIMEOUT_MS = 20_000
_RELEASE_TIMEOUT_MS = 1000
_EXIT_TIMEOUT_MS = 5000


class _KeptLease:
    """The lease of one read. The lock of LeaseKeeper is held for what changes."""

    __slots__ = ("folder", "job", "ttl_ms", "due_ms", "lowest", "is_left", "has_failed")

    def __init__(self, ranges: list[LedgerRange], now_ms: int, is_left: IsLeft) -> None:
        assert ranges[0].lease is not None
        self.job, self.ttl_ms, *_ = ranges[0].lease
        self.folder = ranges[0].folder
        self.lowest = lowest_ledgers(ranges)
        self.due_ms = now_ms + self.ttl_ms // 3
        self.is_left = is_left
        self.has_failed = False


class LeaseKeeper:
    """Renews leases until nothing is left that could be read under them. Any thread may call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._abandoned: list[Any] = []
        self._kept: list[_KeptLease] = []
        self.reset()

    def reset(self) -> None:
        """Forget everything: at the start, and in a forked child, which keeps nothing of its
        parent. References into Java stay: to drop them talks over the parent's connection."""
        self._abandoned.append(self._kept)
        self._kept = []
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: OwnThread | None = None

    def keep(self, groups: Iterable[list[LedgerRange]], is_left: IsLeft) -> None:
        """Keep the lease of planned ranges, if they have one, while is_left answers True."""
        ranges = [each for group in groups for each in group]
        if not ranges or ranges[0].lease is None:
            return
        with self._lock:
            self._kept.append(_KeptLease(ranges, self._clock.now_ms(), is_left))
            if self._thread is None:
                thread = OwnThread(partial(self._run, self._wake), "pulsarx-leases")
                thread.start()
                self._thread = thread  # else the next plan tries again
        self._wake.set()

    def _run(self, wake: threading.Event) -> None:
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
            kept = list(self._kept)
        for each in kept:
            if not each.is_left():
                self._give_back(each, _RELEASE_TIMEOUT_MS)
            elif each.due_ms <= self._clock.now_ms():
                self._renew(each)

    def _give_back(self, kept: _KeptLease, timeout_ms: int) -> None:
        with self._lock:
            if kept not in self._kept:
                return
            self._kept.remove(kept)
        try:
            release_lease(kept.folder, kept.job, timeout_ms=timeout_ms)
        except Exception:
            pass  # it ends by itself, and the thread goes on

    def _renew(self, kept: _KeptLease) -> None:
        failure: Exception | None = None
        try:
            _lease_on(kept)
        except Exception as error:
            failure = error
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

    def release_all(self) -> None:
        """Give everything back, within a few seconds: the driver ends."""
        deadline = Deadline(_EXIT_TIMEOUT_MS)
        with self._lock:
            kept = list(self._kept)
        for each in kept:
            if not deadline.expired():
                left_ms = deadline.remaining_ms() or 0
                self._give_back(each, min(_RELEASE_TIMEOUT_MS, left_ms))


def _lease_on(kept: _KeptLease) -> None:
    try:
        renew_lease(kept.folder, kept.job, kept.ttl_ms, timeout_ms=_RENEW_TIMEOUT_MS)
    except errors.NotAllowedError:
        # It was over, as where the host slept: all of it again, or it is lost.
        wanted = {topic: [ledger_id] for topic, ledger_id in kept.lowest.items()}
        lease(kept.folder, kept.job, wanted, kept.ttl_ms, timeout_ms=_RENEW_TIMEOUT_MS)


keeper = LeaseKeeper(system_clock())
os.register_at_fork(after_in_child=keeper.reset)
atexit.register(keeper.release_all)


def frame_is_left(frame: DataFrame) -> IsLeft:
    """For a DataFrame that mapInArrow made."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None:  # Spark Connect
        plan = weakref.ref(frame._plan)
        return lambda: plan() is not None
    function = java_frame.logicalPlan().expressions().head().func()
    return _java_is_left(frame.sparkSession.sparkContext, function)


def rdd_is_left(rdd: RDD[Any]) -> IsLeft:
    """For an RDD that SparkContext.parallelize made."""
    return _java_is_left(rdd.context, rdd._jrdd.rdd())


def _java_is_left(context: SparkContext, found: Any) -> IsLeft:
    assert context._jvm is not None
    reference = context._jvm.java.lang.ref.WeakReference(found)

    def is_left() -> bool:
        try:
            return context._jsc is not None and not reference.refersTo(None)
        except Exception:
            return False  # Java is gone

    return is_left
