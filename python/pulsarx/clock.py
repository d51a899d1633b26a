"""The clocks that a client can be given. Any layer may use them.

There are two kinds of time. What the broker decides (batching delay, redelivery, retention) runs on
the clock that the client was given: `SystemClock`, or `ManualClock` in tests. How long a caller is
willing to wait is real time: `Deadline`. Times are milliseconds since 1970 in UTC. The clocks
themselves are native (`_pycore/ground/clock_core`): no signal handler can leave one half changed.
"""

from __future__ import annotations

import threading

from pulsarx import errors
from pulsarx._pycore.ground.clock_core import (
    ClockCore,
    ManualClockCore,
    SystemClockCore,
    Timer,
    monotonic_ms,
    monotonic_us,
    wall_ms,
)
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.deadline import Deadline
from pulsarx._pycore.ground.job_queue import retry_by
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.threads import await_beginnings, forget_beginnings
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.ground.fork import at_fork
from pulsarx.ground.process_end import at_end

__all__ = [
    "MANUAL_START_MS",
    "Clock",
    "Deadline",
    "ManualClock",
    "SystemClock",
    "Timer",
    "monotonic_ms",
    "monotonic_us",
    "system_clock",
    "wall_ms",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Settles(Protocol):
        """Threads that do what a timer set off: the broker's, and those of listeners."""

        @property
        def idle(self) -> bool: ...
        def runs_here(self) -> bool: ...
        def wait(self, deadline: Deadline | None = None) -> bool: ...
        def busy_with(self) -> list[str]: ...


Clock = ClockCore  # what both kinds share
MANUAL_START_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
SETTLE_SECONDS = 10.0
_LOOK_MS = 2


class ManualClock(ManualClockCore):
    """A clock that stands still until `advance` is called; for tests. Any thread may use it."""

    _advancing_thread: int

    def __init__(
        self, start_ms: int = MANUAL_START_MS, *, settle_seconds: float = SETTLE_SECONDS
    ) -> None:
        """Stand still at a time.

        Args:
            start_ms: Milliseconds since 1970.
            settle_seconds: How many seconds of real time `advance` waits at most for a listener or
                callback that a timer set off.
        """
        super().__init__(start_ms)
        self._settle_seconds = settle_seconds
        self._reset()
        _clocks.add(self)

    def advance(self, seconds: float) -> None:
        """Let time pass. Everything due fires, in order and each at its time, before it returns.

        What the broker does about it, listeners, callbacks, futures and dead letters have run then
        too, and timers armed meanwhile have fired if their time is within the span. Two threads
        advance one after the other.

        Args:
            seconds: Seconds, 0 and more.

        Raises:
            RuntimeError: A timer's callback, a listener or a callback of `send_async` calls it, for
                which it would wait.
            Timeout: One of those did not return within `settle_seconds` of real time; the text
                names it.
            ValueError: seconds is negative.

        Example:
            clock = pulsarx.ManualClock()
            with pulsarx.Client("memory:", clock=clock) as client:
                consumer = client.subscribe("orders", "billing")
                producer = client.create_producer("orders", batching_enabled=True)
                producer.send_async(b"one", None)
                clock.advance(seconds=0.010)
                assert consumer.receive(timeout_millis=5000).data() == b"one"
        """
        if not seconds >= 0:
            raise ValueError(f"time does not go back: advance({errors.shown(seconds)})")
        if self._advancing_thread == threading.get_ident():
            raise RuntimeError("a timer's callback cannot advance the clock that called it")
        if any(each.runs_here() for each in self._settling.members()):
            raise RuntimeError(
                "a listener or callback cannot advance the clock: advance would wait for it"
            )
        control_plane.perform(self._advance, (round(seconds * 1000),))

    def next_due_ms(self) -> int | None:
        """Return when the next timer fires, or a call that a test delays goes on, in milliseconds
        since 1970; None when there is none."""
        from pulsarx._pycore.ground.delayed_calls import delayed_until_ms

        dues = super().next_due_ms(), delayed_until_ms(self)
        return min((each for each in dues if each is not None), default=None)

    def settles(self, threads: Settles) -> None:
        """Let `advance` wait for what these threads do.

        Args:
            threads: Held weakly.
        """
        self._settling.add(threads)

    def _reset(self) -> None:
        """Set up, also in a forked child, where the lock may be left taken."""
        self._advancing = Lock()
        self._advancing_thread = 0
        self._settling = WeakList()  # of Settles

    def _advance(self, milliseconds: int) -> None:
        with self._advancing:
            self._advancing_thread = threading.get_ident()
            try:
                self._advance_to(self.now_ms() + milliseconds)
            finally:
                self._advancing_thread = 0

    def _advance_to(self, target_ms: int) -> None:
        from pulsarx._pycore.ground.delayed_calls import has_delays

        if has_delays(self):
            self._settle()  # so that each call which is delayed waits from the time it was made
        while True:
            due_ms = self.next_due_ms()
            if due_ms is None or due_ms > target_ms:
                self.set_now_ms(target_ms)
                self._settle()
                due_ms = self.next_due_ms()
                if due_ms is None or due_ms > target_ms:
                    return
            while self.fire_next(due_ms):
                pass
            self.set_now_ms(max(due_ms, self.now_ms()))  # a call that is delayed fires nothing
            self._settle()

    def _settle(self) -> None:
        """Wait until nothing runs that the timers set off."""
        deadline: Deadline | None = None
        while busy := [each for each in self._settling.members() if not each.idle]:
            deadline = deadline or Deadline(self._settle_seconds * 1000)
            for each in busy:
                if each.runs_here():
                    continue
                waits = self._wait_for(each, deadline)
                if waits is None:
                    return
                if not waits:
                    names = ", ".join(each.busy_with()) or "a thread of PulsarX"
                    raise errors.Timeout(
                        detail=f"advance: {names} did not return within {self._settle_seconds:g} "
                        f"s; the clock stands at {self.now_ms()} ms"
                    )
            if all(each.runs_here() for each in busy):
                return

    def _wait_for(self, threads: Settles, deadline: Deadline) -> bool | None:
        """Whether they have done it in time; None: they may wait for this clock themselves, where
        a test delays what they do."""
        from pulsarx._pycore.ground.delayed_calls import delayed_until_ms, has_delays

        if not has_delays(self):
            return threads.wait(deadline)
        while not threads.wait(Deadline(_LOOK_MS)):
            if delayed_until_ms(self) is not None:
                return None
            if deadline.expired():
                return False
        return True


class SystemClock(SystemClockCore):
    """The time of day. Any thread may use it.

    Timers fire in one thread, which starts with the first timer, sleeps until the next one is due
    and ends when there was none for a minute. It counts whole milliseconds of monotonic time, so
    a timer fires up to one late, never early. After the time of day was set forward, a `call_at`
    may fire late by as much.
    """

    def __init__(self) -> None:
        """Make a clock, whose thread starts with its first timer."""
        _clocks.add(self)

    def _reset(self) -> None:
        """In a forked child."""


_clocks = WeakList()  # all there are
_system_clock = SystemClock()
retry_by(_system_clock)


def system_clock() -> SystemClock:
    """The clock of clients that were given none: one a process."""
    return _system_clock


def _stop_at_exit() -> None:
    for clock in _clocks.members():
        if isinstance(clock, SystemClock):
            clock.stop()
    await_beginnings()


def _reset_in_child() -> None:
    forget_beginnings()
    for clock in _clocks.members():
        clock.forget_timers()
        clock._reset()


# Registered at import, so before any client: clients close first, with their timers still alive.
at_end(_stop_at_exit)
at_fork(__name__, _reset_in_child)
