"""How figures are remembered: what is kept, and that it is bounded."""

from __future__ import annotations

from pulsarx.rest.history import COARSE_MS, FINE_SPAN_MS, SPAN_MS, History

BEGIN = 1_000_000_000_000
STEP_MS = 10_000


def filled(history: History, key: object, count: int, changing: bool = True) -> int:
    """The time of the last of so many points."""
    for number in range(count):
        value = float(number if changing else 7)
        history.add(key, BEGIN + number * STEP_MS, (value, 0.0, 0.0, 0.0))  # type: ignore[arg-type]
    return BEGIN + (count - 1) * STEP_MS


def test_the_points_since_a_time_come_with_the_one_before():
    history = History()
    last = filled(history, "t", 10)
    found = history.points("t", last - 2 * STEP_MS, 100)
    assert [(time, backlog) for time, backlog, *_ in found] == [
        (last - 3 * STEP_MS, 6),
        (last - 2 * STEP_MS, 7),
        (last - STEP_MS, 8),
        (last, 9),
    ]
    assert history.points("other", 0, 100) == []


def test_what_does_not_change_costs_two_points():
    history = History()
    last = filled(history, "t", 1000, changing=False)
    assert history.point_count == 2
    assert [time for time, *_ in history.points("t", 0, 100)] == [BEGIN, last]


def test_more_points_than_are_asked_for_are_spread_over_the_time():
    history = History()
    last = filled(history, "t", 300)
    times = [time for time, *_ in history.points("t", 0, 5)]
    assert len(times) == 5
    assert (times[0], times[-1]) == (BEGIN, last)


def test_what_is_old_is_kept_coarsely_and_a_day_long():
    history = History()
    last = filled(history, "t", 2 * SPAN_MS // STEP_MS)
    times = [time for time, *_ in history.points("t", 0, 1 << 30)]
    assert last - times[0] <= SPAN_MS + 100 * STEP_MS
    assert last - times[0] >= SPAN_MS - COARSE_MS
    fine = [time for time in times if last - time <= FINE_SPAN_MS]
    assert len(fine) == FINE_SPAN_MS // STEP_MS + 1
    assert len(times) < len(fine) + SPAN_MS // COARSE_MS + 100


def test_many_series_shorten_what_is_remembered_and_stay_in_their_bound():
    history = History(points_max=1000)
    for number in range(200):
        for key in range(20):
            value = (float(number), 0.0, 0.0, 0.0)
            history.add(key, BEGIN + number * STEP_MS, value)
    assert history.point_count <= 1000
    assert all(len(history.points(key, 0, 1 << 20)) >= 25 for key in range(20))


def test_more_series_than_points_stay_in_the_bound():
    history = History(points_max=100)
    for number in range(3):
        for key in range(1000):
            history.add(key, BEGIN + number * STEP_MS, (float(number), 0.0, 0.0, 0.0))
    assert history.point_count <= 300


def test_series_that_are_not_kept_are_forgotten():
    history = History()
    filled(history, "t", 100)
    filled(history, "u", 3)
    history.keep({"u"})
    assert history.point_count == 3
    assert history.points("t", 0, 100) == []
