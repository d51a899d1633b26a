"""The history of statistics over the last day, in bounded memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

VALUES = ("backlog", "rate_in", "rate_out", "stored")
SPAN_MS = 24 * 3600 * 1000
FINE_SPAN_MS = 3600 * 1000  # up to which every point is kept; of what is older one in
COARSE_MS = 5 * 60 * 1000
POINTS_MAX = 200_000  # of all series together: 40 bytes each
_SPAN_MIN_MS = 5 * 60 * 1000
_WIDTH = 1 + len(VALUES)
_THIN_AFTER = 64  # points of a series


class History:
    """A series of points for each key. One thread at a time.

    What does not change costs two points, the first and the last with its values. Where all
    together are more than POINTS_MAX, the time that is remembered becomes shorter.
    """

    def __init__(self, points_max: int = POINTS_MAX) -> None:
        self._points_max = points_max
        self._series: dict[Hashable, array[float]] = {}
        self._added: dict[Hashable, int] = {}  # points, since it was thinned
        self._points = 0
        self._span_ms = SPAN_MS

    @property
    def point_count(self) -> int:
        return self._points

    def add(self, key: Hashable, time_ms: int, values: tuple[float, ...]) -> None:
        """values: as VALUES says. time_ms: not before that of the point before."""
        series = self._series.get(key)
        if series is None:
            if self._points >= self._points_max:
                return  # there are more series than points
            series = self._series[key] = array("d")
        point = array("d", (time_ms, *values))
        if series and series[-_WIDTH] == time_ms:
            series[-_WIDTH:] = point
            return
        ends = series[-_WIDTH + 1 :], series[-2 * _WIDTH + 1 : -_WIDTH]
        if len(series) > _WIDTH and ends[0] == ends[1] == point[1:]:
            series[-_WIDTH] = time_ms
            return
        series.extend(point)
        self._points += 1
        added = self._added[key] = self._added.get(key, 0) + 1
        if added >= _THIN_AFTER:
            self._added[key] = 0
            self._replace(key, self._thinned(series, time_ms))
        while self._points > self._points_max and self._span_ms > _SPAN_MIN_MS:
            self._span_ms //= 2
            for each, others in list(self._series.items()):
                self._replace(each, self._thinned(others, time_ms))

    def keep(self, keys: set[Hashable]) -> None:
        """Forget all others."""
        for each in [each for each in self._series if each not in keys]:
            self._points -= len(self._series.pop(each)) // _WIDTH
            self._added.pop(each, None)

    def points(self, key: Hashable, since_ms: int, count_max: int) -> list[list[float]]:
        """The times and values of a key since then, the one before included; of more than
        count_max, so many of them."""
        series = self._series.get(key, array("d"))
        times = series[::_WIDTH]
        begin = max(bisect_left(times, since_ms) - 1, 0)
        found = [
            list(series[at : at + _WIDTH]) for at in range(begin * _WIDTH, len(series), _WIDTH)
        ]
        if len(found) <= count_max:
            return found
        last = len(found) - 1
        return [found[round(at * last / (count_max - 1))] for at in range(count_max)]

    def _replace(self, key: Hashable, series: array[float]) -> None:
        self._points += (len(series) - len(self._series[key])) // _WIDTH
        self._series[key] = series

    def _thinned(self, series: array[float], now_ms: int) -> array[float]:
        """Without what is older than the span; of what is no longer fine, a point in a while."""
        found: array[float] = array("d")
        for at in range(0, len(series), _WIDTH):
            time_ms = series[at]
            is_last = at + 2 * _WIDTH > len(series)
            if now_ms - time_ms > self._span_ms and not is_last:
                continue
            is_fine = now_ms - time_ms <= FINE_SPAN_MS or is_last
            if is_fine or not found or time_ms - found[-_WIDTH] >= COARSE_MS:
                found.extend(series[at : at + _WIDTH])
        return found
