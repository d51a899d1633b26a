"""The one place that reads a clock. Everybody may use it.

Two kinds of time. What the broker decides (batching delay, redelivery, retention) runs on the clock
that the client was given: `SystemClock`, or `ManualClock` in tests. How long a caller is willing to
wait is real time: `monotonic_ms` and `Deadline`. Times are milliseconds since 1970 in UTC.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from heapq import heapify, heappop, heappush
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    Callback = Callable[[], object]

MANUAL_START_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
IDLE_SECONDS = 60.0  # how long the thread of a system clock outlives its last timer
COMPACT_FROM = 64  # fewer cancelled timers than this are not worth a sweep


def wall_ms() -> int:
    """The time of day, whatever clock a client was given."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Real time from an arbitrary start; it never goes back."""
    return time.monotonic_ns() // 1_000_000


class Deadline:
    """How long a caller still waits, in real time. For the thread that made it."""

    __slots__ = ("_due_ns",)

    def __init__(self, timeout_ms: float | None) -> None:
        """timeout_ms: None waits for ever; 0 and less has passed already."""
        self._due_ns: int | None = None
        if timeout_ms is not None:
            self._due_ns = time.monotonic_ns() + int(max(timeout_ms, 0) * 1_000_000)

    def remaining_ms(self) -> int | None:
        """Rounded up, so that 0 means over; None: for ever."""
        if self._due_ns is None:
            return None
        return max(0, -((time.monotonic_ns() - self._due_ns) // 1_000_000))

    def remaining_seconds(self) -> float | None:
        """As `threading` wants it; None: for ever."""
        if self._due_ns is None:
            return None
        return max(0, self._due_ns - time.monotonic_ns()) / 1e9

    def expired(self) -> bool:
        return self._due_ns is not None and time.monotonic_ns() >= self._due_ns


class Timer:
    """One callback that fires at most once. Any thread may cancel it."""

    __slots__ = ("_clock", "_waiting", "due_ms")

    def __init__(self, clock: Clock, due_ms: int, callback: Callback) -> None:
        self.due_ms = due_ms
        self._clock = clock
        # Who pops the callback, fires it or drops it: an atomic step that needs no lock, so that
        # a timer may be cancelled from a finalizer that interrupted the clock itself.
        self._waiting = [callback]

    def cancel(self) -> bool:
        """True: it will never fire. False: it has fired, is firing, or was cancelled before."""
        if self._take() is None:
            return False
        self._clock._cancelled += 1
        return True

    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def _take(self) -> Callback | None:
        try:
            return self._waiting.pop()
        except IndexError:
            return None


_clocks: WeakSet[Clock] = WeakSet()


class Clock:
    """Base of the clocks. Any thread may use one."""

    def __init__(self) -> None:
        self._reset()
        _clocks.add(self)

    def now_ms(self) -> int:
        raise NotImplementedError

    def call_at(self, due_ms: int, callback: Callback) -> Timer:
        """Call back once the time is there, never before; at once if it has passed.

        The callback must not block: it holds up all other timers. What it raises is logged.
        """
        raise NotImplementedError

    def call_after(self, delay_ms: int, callback: Callback) -> Timer:
        """Call back after a while. Setting the time of day does not change how long that is."""
        raise NotImplementedError

    def deliver_at_ms(self, deliver_after: timedelta) -> int:
        """The time that lies deliver_after ahead. ValueError: no timedelta, or a negative one."""
        from datetime import timedelta

        if not isinstance(deliver_after, timedelta):
            raise ValueError(
                "Argument deliver_after is expected to be of type 'timedelta' "
                f"and not '{type(deliver_after).__name__}'"
            )
        if deliver_after.total_seconds() < 0:
            raise ValueError(f"deliver_after is {deliver_after}; it must not be negative")
        return self.now_ms() + round(deliver_after.total_seconds() * 1000)

    def _reset(self) -> None:
        """Forget everything: at the start, and in a forked child, where locks may be left taken."""
        self._changed = threading.Condition()
        self._heap: list[tuple[int, int, Timer]] = []
        self._armed_count = 0
        self._cancelled = 0  # a hint for sweeping, so it need not be exact

    def _push(self, due: int, timer: Timer) -> None:
        """The lock is held. Timers of the same time fire in the order they were armed."""
        if self._cancelled > COMPACT_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_waiting()]
            heapify(self._heap)
            self._cancelled = 0
        self._armed_count += 1
        heappush(self._heap, (due, self._armed_count, timer))

    def _drop_cancelled(self) -> None:
        """The lock is held. Leaves a waiting timer on top, or none."""
        while self._heap and not self._heap[0][2].is_waiting():
            heappop(self._heap)
            self._cancelled = max(0, self._cancelled - 1)


def _fire(timer: Timer, logged: type[BaseException]) -> None:
    callback = timer._take()
    if callback is None:
        return
    try:
        callback()
    except logged:
        import logging

        logging.getLogger("pulsarx.clock").exception("a timer's callback failed: %r", callback)


class ManualClock(Clock):
    """A clock that stands still until `advance` is called; for tests. Any thread may use it."""

    _advancing_thread: int

    def __init__(self, start_ms: int = MANUAL_START_MS) -> None:
        super().__init__()
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """During a callback: the time it was due."""
        return self._now_ms

    def call_at(self, due_ms: int, callback: Callback) -> Timer:
        """Fires in `advance`; what is due already fires in the next one, `advance(0)` included."""
        timer = Timer(self, due_ms, callback)
        with self._changed:
            self._push(due_ms, timer)
        return timer

    def call_after(self, delay_ms: int, callback: Callback) -> Timer:
        return self.call_at(self._now_ms + delay_ms, callback)

    def next_due_ms(self) -> int | None:
        """When the next timer fires; None when there is none."""
        with self._changed:
            self._drop_cancelled()
            return self._heap[0][0] if self._heap else None

    def advance(self, seconds: float) -> None:
        """Let time pass. Fires everything due, in order and each at its time, before it returns.

        Timers armed meanwhile fire too, if their time is within the span. Two threads advance one
        after the other; a callback cannot advance.
        """
        if not seconds >= 0:
            raise ValueError(f"time does not go back: advance({seconds!r})")
        if self._advancing_thread == threading.get_ident():
            raise RuntimeError("a timer's callback cannot advance the clock that called it")
        with self._advancing:
            self._advancing_thread = threading.get_ident()
            try:
                self._advance_to(self._now_ms + round(seconds * 1000))
            finally:
                self._advancing_thread = 0

    def _reset(self) -> None:
        super()._reset()
        self._advancing = threading.Lock()
        self._advancing_thread = 0

    def _advance_to(self, target_ms: int) -> None:
        while True:
            with self._changed:
                self._drop_cancelled()
                if not self._heap or self._heap[0][0] > target_ms:
                    self._now_ms = target_ms
                    return
                due_ms, _, timer = heappop(self._heap)
                self._now_ms = max(self._now_ms, due_ms)
            _fire(timer, Exception)  # Ctrl-C and sys.exit belong to the thread that advances


class SystemClock(Clock):
    """The time of day. Any thread may use it.

    Timers fire in one thread, which starts with the first timer, sleeps until the next one is due
    and ends when there was none for a minute. After the time of day was set forward, a `call_at`
    may fire late by as much; never early.
    """

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_at(self, due_ms: int, callback: Callback) -> Timer:
        now_ns = time.monotonic_ns()
        delay_ns = due_ms * 1_000_000 - time.time_ns()
        return self._arm(now_ns + delay_ns, _WallTimer(self, due_ms, callback))

    def call_after(self, delay_ms: int, callback: Callback) -> Timer:
        due_ns = time.monotonic_ns() + delay_ms * 1_000_000
        return self._arm(due_ns, Timer(self, self.now_ms() + delay_ms, callback))

    def _reset(self) -> None:
        super()._reset()
        self._thread: threading.Thread | None = None
        self._sleeping_until_ns: int | None = None  # None: until it is woken
        self._stopped = False

    def _arm(self, due_ns: int, timer: Timer) -> Timer:
        with self._changed:
            self._push(due_ns, timer)
            if self._thread is None:
                if not self._stopped:
                    self._start()
            elif self._sleeping_until_ns is None or due_ns < self._sleeping_until_ns:
                self._changed.notify()
        return timer

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="pulsarx-clock", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except BaseException:
            self._thread = None
            raise

    def _run(self) -> None:
        while True:
            timer = self._next_due()
            if timer is None:
                return
            _fire(timer, BaseException)  # whatever it is, the other timers must fire
            del timer  # its callback must not live on while this thread sleeps

    def _next_due(self) -> Timer | None:
        """Sleep until a timer is due; None when the thread should end."""
        with self._changed:
            while not self._stopped:
                self._drop_cancelled()
                if not self._heap:
                    self._sleeping_until_ns = None
                    if self._changed.wait(IDLE_SECONDS) or self._heap:
                        continue
                    break
                due_ns, _, timer = self._heap[0]
                now_ns = time.monotonic_ns()
                if due_ns > now_ns:
                    self._sleeping_until_ns = due_ns
                    del timer
                    self._changed.wait(min((due_ns - now_ns) / 1e9, threading.TIMEOUT_MAX))
                    continue
                heappop(self._heap)
                early_ns = timer._early_ns() if isinstance(timer, _WallTimer) else 0
                if early_ns <= 0:
                    # Awake and outside the lock: whoever arms now need not wake anybody.
                    self._sleeping_until_ns = now_ns
                    return timer
                self._push(now_ns + early_ns, timer)
            self._thread = None
            return None

    def _stop(self) -> None:
        """End the thread; timers stay unfired. Returns when no callback runs any more."""
        with self._changed:
            self._stopped = True
            thread = self._thread
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join()


class _WallTimer(Timer):
    """Due at a time of day, which may be set back while it waits."""

    __slots__ = ()

    def _early_ns(self) -> int:
        return self.due_ms * 1_000_000 - time.time_ns()


_system_clock = SystemClock()


def system_clock() -> SystemClock:
    """The clock of clients that were given none: one a process."""
    return _system_clock


def _stop_at_exit() -> None:
    for clock in list(_clocks):
        if isinstance(clock, SystemClock):
            clock._stop()


def _reset_in_child() -> None:
    for clock in list(_clocks):
        clock._reset()


# Registered at import, so before any client: clients close first, with their timers still alive.
atexit.register(_stop_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
