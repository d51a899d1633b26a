"""Facts about the face of the timer wheel; the wheel itself is tested in tests/core."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx._pycore.ground.timer import Timers

WORDS = st.integers(0, 2**64 - 1)


def test_timers_come_in_order_with_what_they_are_for() -> None:
    timers = Timers()
    assert (len(timers), timers.next_due(), timers.memory_size()) == (0, None, 0)
    for due_ms, first, second in ((20, 1, 1), (10, 2, 5), (10, 2, 4), (10, 1, 9)):
        timers.insert(due_ms, first, second)
    assert (len(timers), timers.next_due()) == (4, 10)
    assert 0 < timers.memory_size() < 4096
    assert timers.pop(9) is None
    assert [timers.pop(15) for _ in range(4)] == [(10, 1, 9), (10, 2, 4), (10, 2, 5), None]
    assert timers.pop(20) == (20, 1, 1)
    assert (len(timers), timers.next_due()) == (0, None)


def test_a_cancelled_timer_is_gone() -> None:
    timers = Timers()
    handle = timers.insert(10, 1, 1)
    timers.insert(20, 2, 2)
    assert timers.cancel(handle)
    assert not timers.cancel(handle)
    assert timers.next_due() == 20
    assert timers.pop(100) == (20, 2, 2)


def test_an_old_handle_does_not_cancel_the_timer_in_its_place() -> None:
    timers = Timers()
    old = timers.insert(10, 1, 0)
    assert timers.pop(10) == (10, 1, 0)
    assert not timers.cancel(old)
    new = timers.insert(10, 2, 0)
    assert not timers.cancel(old)
    assert len(timers) == 1
    assert timers.cancel(new)
    for never in (0, 12345, 2**64 - 1):
        assert not timers.cancel(never)


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_numbers_that_do_not_fit_are_refused(wrong: int) -> None:
    timers = Timers()
    for arguments in ((wrong, 0, 0), (0, wrong, 0), (0, 0, wrong)):
        with pytest.raises(OverflowError):
            timers.insert(*arguments)
    for call in (timers.cancel, timers.pop):
        with pytest.raises(OverflowError):
            call(wrong)
    assert len(timers) == 0


@given(st.lists(st.tuples(WORDS, WORDS, WORDS)), st.lists(WORDS))
def test_it_is_a_heap(entries: list[tuple[int, int, int]], times_ms: list[int]) -> None:
    timers, model = Timers(), list(entries)
    heapq.heapify(model)
    for entry in entries:
        timers.insert(*entry)
    for now_ms in [*sorted(times_ms), 2**64 - 1]:
        while model and model[0][0] <= now_ms:
            assert timers.next_due() == model[0][0]
            assert timers.pop(now_ms) == heapq.heappop(model)
        assert timers.pop(now_ms) is None
    assert len(timers) == 0
