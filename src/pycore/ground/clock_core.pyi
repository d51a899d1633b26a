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
        """Return milliseconds since 1970 in UTC."""

    def steady_ms(self) -> int:
        """Return milliseconds from an arbitrary start, for how long something takes: a time of day
        that is set does not change it."""

    def call_at(self, due_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back once the time is there, never before; at once if it has passed.

        Args:
            due_ms: The time in milliseconds since 1970.
            callback: Must not block: it holds up all other timers. What it raises is logged.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back after a while."""

    def call_monotonic(self, due_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back like call_at, at a time that a publish rate says.

        Args:
            due_ms: The time in milliseconds of steady_ms.
            callback: As call_at.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """

    def deliver_at_ms(self, deliver_after: timedelta) -> int:
        """Return the time that lies deliver_after ahead, in milliseconds since 1970; now for one
        that is past.

        Args:
            deliver_after: A timedelta.

        Raises:
            ValueError: It is none.
        """

    def forget_timers(self) -> None:
        """Forget all timers, in a forked child: those of before say that they wait, and never
        fire."""
    @property
    def timer_count(self) -> int:
        """How many timers wait."""

class SystemClockCore(ClockCore):
    def stop(self) -> None:
        """End the thread; timers stay unfired. Returns when no callback runs any more."""

class ManualClockCore(ClockCore):
    def __init__(self, start_ms: int) -> None: ...
    def next_due_ms(self) -> int | None:
        """Return when the next timer fires, in milliseconds since 1970; None when there is none."""

    def set_now_ms(self, now_ms: int) -> None:
        """Set the time, and fire nothing.

        Args:
            now_ms: Milliseconds since 1970.
        """
    def fire_next(self, until_ms: int) -> bool:
        """Fire the earliest timer due by then, at its time.

        Args:
            until_ms: Milliseconds since 1970.

        Returns:
            Whether there was one.
        """
