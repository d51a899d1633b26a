"""The rates at which counters grow, by their values at the look before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pulsarx._pycore.ground.locks import RLock
    from pulsarx.clock import Clock

    Counters = Mapping[Hashable, tuple[int, ...]]

LOOK_MS = 30_000  # so a rate is that of the last half to whole minute


class Rates:
    """Any thread may call; one looks at a time. A counter that was not met before was 0. Times are
    those of steady_ms, so that a time of day that is set makes no rates."""

    def __init__(self, now_ms: int) -> None:
        self._looks: tuple[tuple[int, Counters], tuple[int, Counters]] = ((now_ms, {}),) * 2

    def look(self, now_ms: int, counters: Counters) -> None:
        """counters: what each counts now, those that count nothing left out."""
        self._looks = (self._looks[1], (now_ms, counters))

    def per_second(self, now_ms: int, key: Hashable, *counts: int) -> tuple[float, ...]:
        """How fast each of some counters, which are at `counts` now, grew since the look before
        last. One that began anew counts from 0."""
        then_ms, then = self._looks[0]
        before = then.get(key)
        seconds = max(now_ms - then_ms, 1000) / 1000
        if before is None:
            return tuple(count / seconds for count in counts)
        return tuple(
            (count - old if count >= old else count) / seconds for count, old in zip(counts, before)
        )


class TopicRates:
    """The rates of a topic's counters, for its statistics: nothing is done between two looks, so an
    idle topic costs nothing. Any thread may call."""

    __slots__ = ("_clock", "_lock", "_looked_ms", "_opened_ms", "_rates")

    def __init__(self, clock: Clock, lock: RLock) -> None:
        """lock: of the topic, which is just being opened."""
        self._clock = clock
        self._lock = lock
        self._opened_ms = self._looked_ms = clock.steady_ms()
        self._rates: Rates | None = None  # made with the first look

    def per_second(self, counters: Counters) -> dict[Hashable, tuple[float, ...]]:
        """How fast each of the counters has grown since the look before last that took note of
        them, which is half a minute ago at least; since the topic was opened, for the first two."""
        with self._lock:
            now_ms = self._clock.steady_ms()
            if self._rates is None:
                self._rates = Rates(self._opened_ms)
            found = {
                key: self._rates.per_second(now_ms, key, *each) for key, each in counters.items()
            }
            if now_ms - self._looked_ms >= LOOK_MS:
                self._rates.look(now_ms, dict(counters))
                self._looked_ms = now_ms
            return found
