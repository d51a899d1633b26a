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
from itertools import count
from weakref import WeakSet

from pulsarx._pycore.ground.timer import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    Callback = Callable[[], object]

MANUAL_START_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
IDLE_SECONDS = 60.0  # how long the thread of a system clock outlives its last timer
# A wheel's milliseconds are unsigned: a clock's, plus 35,000 years.
WHEEL_ORIGIN_MS = 1 << 50
WHEEL_END_MS = (1 << 64) - 1


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

    __slots__ = ("_clock", "_handle", "_number", "_waiting", "due_ms")

    def __init__(self, clock: Clock, due_ms: int, callback: Callback) -> None:
        self.due_ms = due_ms
        self._clock = clock
        # Who pops the callback, fires it or drops it: an atomic step that needs no lock, so that
        # a timer may be cancelled from a finalizer that interrupted the clock itself.
        self._waiting = [callback]
        # Where it is in the clock's wheel; the clock's lock is held for them.
        self._number = 0
        self._handle = 0

    def cancel(self) -> bool:
        """True: it will never fire. False: it has fired, is firing, or was cancelled before."""
        if self._take() is None:
            return False
        self._clock._discard(self)
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
        self._timers = Timers()
        self._armed: dict[int, Timer] = {}  # by their number, as long as they are in the wheel
        self._numbers = count(1)  # in the order of arming
        self._cancelled: list[Timer] = []  # what may still be in the wheel

    def _push(self, due_ms: int, timer: Timer) -> None:
        """The lock is held. Timers of the same time fire in the order they were armed."""
        self._sweep()
        number = next(self._numbers)
        self._armed[number] = timer
        timer._number = number
        try:
            timer._handle = self._timers.insert(_wheel_ms(due_ms), number, 0)
        except BaseException:
            del self._armed[number]
            raise

    def _pop(self, now_ms: int) -> Timer | None:
        """The lock is held. Takes out the earliest timer due by now."""
        self._sweep()
        while (due := self._timers.pop(_wheel_ms(now_ms))) is not None:
            timer = self._armed.pop(due[1], None)
            if timer is not None:
                return timer
        return None

    def _earliest_due(self) -> int | None:
        """The lock is held. When the earliest timer is due, as it was pushed."""
        self._sweep()
        due_ms = self._timers.next_due()
        return None if due_ms is None else due_ms - WHEEL_ORIGIN_MS

    def _discard(self, timer: Timer) -> None:
        """Take a cancelled timer out of the wheel: now, or when whoever holds the lock comes by.

        It must not wait for the lock: a finalizer may have interrupted the thread that holds it.
        If that is this thread, the lock is had again, which is why `_sweep` may run between any
        two steps of the others.
        """
        self._cancelled.append(timer)
        if self._changed.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._changed.release()

    def _sweep(self) -> None:
        """The lock is held. Takes the cancelled timers out of the wheel."""
        while self._cancelled:
            try:
                timer = self._cancelled.pop()
            except IndexError:  # taken by a finalizer
                return
            # What was popped meanwhile is in the wheel no more, nor is what a parent has armed
            # before a fork: another timer may have its number and its handle by now.
            if self._armed.get(timer._number) is timer:
                self._timers.cancel(timer._handle)
                del self._armed[timer._number]


def _wheel_ms(clock_ms: int) -> int:
    return min(max(clock_ms + WHEEL_ORIGIN_MS, 0), WHEEL_END_MS)


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
            return self._earliest_due()

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
                timer = self._pop(target_ms)
                if timer is None:
                    self._now_ms = target_ms
                    return
                self._now_ms = max(self._now_ms, timer.due_ms)
            _fire(timer, Exception)  # Ctrl-C and sys.exit belong to the thread that advances


class SystemClock(Clock):
    """The time of day. Any thread may use it.

    Timers fire in one thread, which starts with the first timer, sleeps until the next one is due
    and ends when there was none for a minute. It counts whole milliseconds of monotonic time, so
    a timer fires up to one late, never early. After the time of day was set forward, a `call_at`
    may fire late by as much.
    """

    # For the core, which calls it where a signal handler must not run: this is no Python function.
    now_ns = staticmethod(time.time_ns)

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
        due_ms = _ms_after(due_ns)
        with self._changed:
            self._push(due_ms, timer)
            if self._thread is None:
                if not self._stopped:
                    self._start()
            elif self._sleeping_until_ns is None or due_ms * 1_000_000 < self._sleeping_until_ns:
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
                due_ms = self._earliest_due()
                if due_ms is None:
                    self._sleeping_until_ns = None
                    if self._changed.wait(IDLE_SECONDS) or len(self._timers):
                        continue
                    break
                now_ns = time.monotonic_ns()
                left_ns = due_ms * 1_000_000 - now_ns
                if left_ns > 0:
                    self._sleeping_until_ns = now_ns + left_ns
                    self._changed.wait(min(left_ns / 1e9, threading.TIMEOUT_MAX))
                    continue
                timer = self._pop(now_ns // 1_000_000)
                if timer is None:
                    continue
                early_ns = timer._early_ns() if isinstance(timer, _WallTimer) else 0
                if early_ns <= 0:
                    # Awake and outside the lock: whoever arms now need not wake anybody.
                    self._sleeping_until_ns = now_ns
                    return timer
                self._push(_ms_after(now_ns + early_ns), timer)
                if not timer.is_waiting():  # cancelled while it was in no wheel
                    self._cancelled.append(timer)
                del timer
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


def _ms_after(ns: int) -> int:
    """Rounded up: a timer may be late by less than a millisecond, never early."""
    return -(-ns // 1_000_000)


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
