"""Facts about the counter of events behind rates in statistics."""

from __future__ import annotations

from pulsarx._pycore.ground.rate_counter import RateCounter


def test_the_rate_is_of_the_last_sixty_seconds() -> None:
    counter = RateCounter()
    counter.count(60, 100_999)
    counter.count(120, 130_000)
    assert counter.per_second(130_000) == 3.0
    assert counter.per_second(159_999) == 3.0
    assert counter.per_second(160_000) == 2.0  # second 100 is out of it
    assert counter.per_second(190_000) == 0.0
    assert counter.total == 180


def test_a_second_counts_from_nothing_when_a_minute_has_passed() -> None:
    counter = RateCounter()
    counter.count(600, 5_000)
    counter.count(60, 65_000)
    assert counter.per_second(65_000) == 1.0


def test_a_clock_that_was_set_back_hides_what_is_ahead_of_it() -> None:
    counter = RateCounter()
    counter.count(60, 500_000)
    counter.count(30, 400_000)
    assert counter.per_second(400_000) == 0.5
    assert counter.per_second(500_000) == 1.0


def test_times_before_the_epoch_count_as_the_epoch() -> None:
    counter = RateCounter()
    counter.count(60, -5)
    assert counter.per_second(-1) == 1.0
