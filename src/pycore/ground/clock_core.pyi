from collections.abc import Callable
from datetime import timedelta
from typing import final

def wall_ms() -> int:
    """The time of day, whatever clock a client was given."""

def monotonic_us() -> int:
    """Like monotonic_ms, in microseconds: for measurements."""

def monotonic_ms() -> int:
    """Real time from an arbitrary start; it never goes back."""

@final
class Timer:
    """A callback that fires at most once. Any thread may cancel it."""

    due_ms: int
    def cancel(self) -> bool:
        """True: it will never fire. False: it has fired, is firing, or was cancelled before."""

    def is_waiting(self) -> bool: ...

class ClockCore:
    """Base of the clocks. Any thread may use one."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 in UTC."""

    def steady_ms(self) -> int:
        """Milliseconds from an arbitrary start, for how long something takes: a time of day that is
        set does not change it."""

    def call_at(self, due_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back once the time is there, never before; at once if it has passed.

        The callback must not block: it holds up all other timers. What it raises is logged.
        """

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back after a while."""

    def call_monotonic(self, due_ms: int, callback: Callable[[], object]) -> Timer:
        """Like call_at, at a time that a publish rate says."""

    def deliver_at_ms(self, deliver_after: timedelta) -> int:
        """The time that lies deliver_after ahead. ValueError: no timedelta."""

    def forget_timers(self) -> None: ...
    @property
    def timer_count(self) -> int: ...

class SystemClockCore(ClockCore):
    def stop(self) -> None: ...

class ManualClockCore(ClockCore):
    def __init__(self, start_ms: int) -> None: ...
    def next_due_ms(self) -> int | None:
        """When the next timer fires; None when there is none."""

    def set_now_ms(self, now_ms: int) -> None: ...
    def fire_next(self, until_ms: int) -> bool:
        """Fire the earliest timer due by then, at its time; False: there is none."""
