"""How fast counters grow, by what they were when they were looked at before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    Counters = Mapping[Hashable, tuple[int, ...]]

LOOK_MS = 30_000  # so a rate is that of the last half to whole minute


class Rates:
    """Any thread may call; one looks at a time. A counter that was not met before was 0."""

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
