"""Looks at all topics again and again, so that a console can show them, and how they were."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx.clock import monotonic_us
from pulsarx.rest.history import History

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.clock import Clock

    Json = dict[str, Any]
    Ask = Callable[[str, Json], Any]

INTERVAL_MS = 10_000
_WATCHED_MS = 2_000  # the interval while somebody looks,
_WATCHED_FOR_MS = 60_000  # which is so long after a question
# A look takes at most one part of so many of the time: of many topics there are fewer looks.
_PARTS, _PARTS_WATCHED = 50, 10
_RATE_MS = 1000  # the least time that a rate is made of
_AT_ONCE = 1000  # topics
# Publishers of the same process want the interpreter: some 20 microseconds for each topic.
_ROWS_AT_ONCE = 4
_PAUSE_SECONDS = 0.0001
_SUBSCRIPTIONS_MAX = 50  # of a topic, that have a history


class TopicRow:
    """The figures known of a topic, or of the partitions of one together. None: it is not known. A
    value."""

    __slots__ = (
        "age", "backlog", "consumers", "counts", "flaw", "partitions", "producers", "rate_in",
        "rate_out", "stored", "subscriptions", "terminated", "topic",
    )  # fmt: skip

    def __init__(self, figures: Json) -> None:
        """figures: as topics.get_figures tells them."""
        found: Json | None = figures.get("subscriptions")
        each = [] if found is None else list(found.values())
        self.topic: str = figures["topic"]
        self.flaw: str | None = figures.get("flaw")
        self.stored: int = figures.get("stored", 0)
        self.producers: int | None = figures.get("producers")
        self.terminated: bool = figures.get("terminated", False)
        self.age: int = figures.get("age", -1)
        self.partitions: int = 0
        self.backlog: int | None = None
        self.consumers: int | None = None
        self.subscriptions: int | None = None
        if found is not None:
            self.subscriptions = len(found)
            self.backlog = sum(one["backlog"] for one in each)
            if all(one["consumers"] is not None for one in each):
                self.consumers = sum(one["consumers"] for one in each)
        self.rate_in: float | None = None
        self.rate_out: float | None = None
        # (topic) and (topic, subscription): what they count, and their backlog.
        self.counts: dict[tuple[str, ...], tuple[int | None, int]] = {
            (self.topic, name): (one["out"], one["backlog"]) for name, one in (found or {}).items()
        }
        self.counts[(self.topic,)] = (figures.get("in"), self.backlog or 0)

    def add(self, partition: TopicRow) -> None:
        """Take one of its partitions in."""
        self.partitions += 1
        self.stored += partition.stored
        self.age = max(self.age, partition.age)
        self.terminated = self.partitions == 1 or self.terminated
        self.terminated = self.terminated and partition.terminated
        self.flaw = self.flaw or partition.flaw
        self.subscriptions = _greatest(self.subscriptions, partition.subscriptions)
        self.producers = _greatest(self.producers, partition.producers)
        self.consumers = _greatest(self.consumers, partition.consumers)
        for name in ("backlog", "rate_in", "rate_out"):
            value = getattr(partition, name)
            if value is not None:
                setattr(self, name, (getattr(self, name) or 0) + value)


def _greatest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


class Sampler:
    """Any thread may call."""

    def __init__(self, ask: Ask, clock: Clock) -> None:
        """ask: performs a verb, by name and arguments."""
        self._ask = ask
        self._clock = clock
        self._looking = Lock()
        self._state = Lock()  # taken after it: the history
        self._asked_us = -_WATCHED_FOR_MS * 1000  # when somebody asked last
        self._looked_us: int | None = None  # when the last look ended,
        self._cost_us = 0  # and what it took
        self._counts: dict[tuple[str, ...], tuple[int | None, int]] = {}
        self._time_ms = 0  # of the counts
        self._rates: dict[tuple[str, ...], float | None] = {}
        self._rows: dict[str, TopicRow] = {}
        self._history = History()
        self._was_loading = False  # the last look
        self._ended = False
        self.began_ms: int = 0  # the first look, by the clock; 0: there was none,
        self.sampled_ms: int = 0  # and the last

    @property
    def interval_ms(self) -> int:
        """How long to wait until the next look."""
        watched = monotonic_us() - self._asked_us < _WATCHED_FOR_MS * 1000
        least, parts = (_WATCHED_MS, _PARTS_WATCHED) if watched else (INTERVAL_MS, _PARTS)
        return max(least, self._cost_us * parts // 1000)

    def watched(self, *, now: bool = False) -> None:
        """Somebody looks: have topics opened that are not, and look at once where the last look is
        too long ago. now: in any case, for something was changed."""
        self._asked_us = monotonic_us()
        due = (
            self._looked_us is None
            or not self._was_loading
            or self._asked_us - self._looked_us >= self.interval_ms * 1000
        )
        if not due and not now:
            return
        # Who comes while another one looks takes what there is, unless there is nothing.
        if self._looking.acquire(blocking=now or not self._was_loading):
            try:
                began_us = self._looked_us or 0
                if now or not self._was_loading or began_us < self._asked_us:
                    self._look(load=True)
            finally:
                self._looking.release()

    def look(self) -> None:
        """By nobody's wish."""
        if self._looking.acquire(blocking=False):
            try:
                watched = monotonic_us() - self._asked_us < _WATCHED_FOR_MS * 1000
                self._look(load=watched)
            finally:
                self._looking.release()

    def end(self) -> None:
        """Let a look that goes on end, without a result."""
        self._ended = True

    def rows(self) -> list[TopicRow]:
        """The rows as of the last look."""
        return list(self._rows.values())

    def points(
        self, topic: str, subscription: str | None, since_ms: int, count_max: int
    ) -> list[list[float]]:
        """See History."""
        key = (topic,) if subscription is None else (topic, subscription)
        with self._state:
            return self._history.points(key, since_ms, count_max)

    def trends(self, topics: list[str], since_ms: int, count_max: int) -> list[list[list[float]]]:
        """Times and backlogs of each."""
        with self._state:
            found = [self._history.points((each,), since_ms, count_max) for each in topics]
        return [[point[:2] for point in points] for points in found]

    # A look ---------------------------------------------------------------------------------------

    def _look(self, load: bool) -> None:
        began_us = monotonic_us()
        raw: list[Json] = []
        after: str | None = " "
        while after is not None:
            if self._ended:
                raise errors.AlreadyClosed(detail="the server is closing")
            arguments = {"after": after, "count": _AT_ONCE, "load": load}
            found = self._ask("topics.get_figures", arguments)
            raw += found["topics"]
            after = found["next"]
        with self._state:
            self._take_in(raw, self._clock.now_ms())
        self._was_loading = load
        self._looked_us = monotonic_us()
        self._cost_us = self._looked_us - began_us

    def _take_in(self, raw: list[Json], now_ms: int) -> None:
        rows: dict[str, TopicRow] = {}
        counts: dict[tuple[str, ...], tuple[int | None, int]] = {}
        all_rates: dict[tuple[str, ...], float | None] = {}
        wholes: dict[tuple[str, ...], tuple[int, float]] = {}  # of partitioned topics
        for number, figures in enumerate(raw):
            if number % _ROWS_AT_ONCE == 0:
                Event().wait(_PAUSE_SECONDS)
            row = TopicRow(figures)
            rates = self._rates_of(row, now_ms)
            counts |= row.counts
            all_rates |= rates
            row.rate_in = rates.get((row.topic,))
            if row.rate_in is not None:
                row.rate_out = sum(
                    rate for key, rate in rates.items() if len(key) == 2 and rate is not None
                )
            if row.backlog is not None:
                self._note(row, rates, now_ms)
            base = figures.get("part_of")
            if base is None:
                rows[row.topic] = row
                continue
            rows.setdefault(base, TopicRow({"topic": base})).add(row)
            for key, (_, backlog) in row.counts.items():
                if len(key) == 2:
                    before = wholes.get((base, key[1]), (0, 0.0))
                    sums = before[0] + backlog, before[1] + (rates[key] or 0.0)
                    wholes[base, key[1]] = sums
        for row in rows.values():
            if row.partitions and row.backlog is not None:
                self._add(row, now_ms)
        for whole, (backlog, rate) in wholes.items():
            self._history.add(whole, now_ms, (backlog, 0.0, rate, 0.0))
        self._history.keep({*counts, *wholes, *((name,) for name in rows)})
        if now_ms - self._time_ms >= _RATE_MS:
            self._counts, self._time_ms = counts, now_ms
        self.began_ms = self.began_ms or now_ms
        self._rows, self._rates, self.sampled_ms = rows, all_rates, now_ms

    def _rates_of(self, row: TopicRow, now_ms: int) -> dict[tuple[str, ...], float | None]:
        """A second, since the look before."""
        seconds = (now_ms - self._time_ms) / 1000
        found: dict[tuple[str, ...], float | None] = {}
        for key, (count, _) in row.counts.items():
            if count is None:
                found[key] = None
            elif self._time_ms == 0:
                found[key] = 0.0  # what there was before the first look
            elif now_ms - self._time_ms < _RATE_MS:
                found[key] = self._rates.get(key, 0.0)
            else:
                before = self._counts.get(key, (0, 0))[0] or 0
                # One that began anew counts from 0.
                found[key] = (count - before if count >= before else count) / seconds
        return found

    def _note(self, row: TopicRow, rates: dict[tuple[str, ...], float | None], now_ms: int) -> None:
        self._add(row, now_ms)
        for key in list(row.counts)[:_SUBSCRIPTIONS_MAX]:
            if len(key) == 2:
                values = (row.counts[key][1], 0.0, rates[key] or 0.0, 0.0)
                self._history.add(key, now_ms, values)

    def _add(self, row: TopicRow, now_ms: int) -> None:
        values = (row.backlog or 0, row.rate_in or 0.0, row.rate_out or 0.0, row.stored)
        self._history.add((row.topic,), now_ms, values)
