"""timer_wheel beside a sorted list, and the cases that would cost too much if done simply."""

import random
from bisect import insort

import pytest

from seeds import seeds

from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t

from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport (
    TIMER_NONE, TimerNode, TimerWheel, timer_wheel_cancel, timer_wheel_free, timer_wheel_init,
    timer_wheel_insert, timer_wheel_is_pending, timer_wheel_memory_size, timer_wheel_next_due,
    timer_wheel_pop,
)

DAY_MS = 86_400_000
START_MS = 1_704_067_200_000


cdef uint32_t insert(TimerWheel* wheel, uint64_t due_ms, uint64_t first=0,
                     uint64_t second=0) except? 0xFFFFFFFF:
    cdef uint32_t timer = TIMER_NONE
    assert timer_wheel_insert(wheel, due_ms, first, second, &timer) == STATUS_OK
    assert timer_wheel_is_pending(wheel, timer)
    return timer


cdef list popped(TimerWheel* wheel, uint64_t now_ms):
    """All that is due, as (due_ms, first, second)."""
    cdef TimerNode node
    found = []
    while timer_wheel_pop(wheel, now_ms, &node):
        found.append((node.due_ms, node.first, node.second))
    return found


cdef int compare(uint64_t seed, list reaches, uint64_t start_ms) except -1:
    """Random calls on a wheel and on a sorted list of (due_ms, first, second, handle)."""
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint64_t now_ms = start_ms
    cdef uint64_t due_ms, first, second
    cdef uint32_t timer
    chance = random.Random(seed)
    model = []
    asks = chance.random() < 0.7
    cancels = chance.choice((0.1, 0.3, 0.5))
    timer_wheel_init(&wheel)
    for _ in range(chance.choice((50, 400, 1500))):
        what = chance.random()
        if what < 0.55 or not model:
            due_ms = max(0, min(now_ms + chance.randrange(-5, chance.choice(reaches)), 2**64 - 1))
            first, second = chance.randrange(3), chance.choice((0, 1, 2**64 - 1))
            insort(model, (due_ms, first, second, insert(&wheel, due_ms, first, second)))
        elif what < 0.55 + cancels * 0.45:
            at = 0 if chance.random() < 0.3 else chance.randrange(len(model))
            timer = model.pop(at)[3]
            timer_wheel_cancel(&wheel, timer)
            assert not timer_wheel_is_pending(&wheel, timer)
        else:
            what = chance.random()
            if what < 0.5:
                now_ms = max(now_ms, model[0][0])
            elif what < 0.8:
                now_ms = min(now_ms + chance.randrange(chance.choice(reaches)), 2**64 - 1)
            for _ in range(chance.choice((1, 3, 100_000))):
                if not timer_wheel_pop(&wheel, now_ms, &node):
                    assert not model or model[0][0] > now_ms, seed
                    break
                due = model.pop(next(i for i, other in enumerate(model)
                                     if other[:3] == (node.due_ms, node.first, node.second)))
                assert due[0] <= now_ms and (not model or due[:3] <= model[0][:3]), seed
                # Of equal ones any may come: the handle says which it was.
                assert not timer_wheel_is_pending(&wheel, due[3]) or any(
                    due[:3] == other[:3] for other in model), seed
                model = relabelled(&wheel, model, due)
        assert wheel.count == <uint32_t>len(model), seed
        if asks:
            expected = model[0][0] if model else 2**64 - 1
            assert timer_wheel_next_due(&wheel) == expected, seed
    assert popped(&wheel, UINT64_MAX) == [entry[:3] for entry in model], seed
    assert wheel.count == 0 and timer_wheel_next_due(&wheel) == UINT64_MAX
    timer_wheel_free(&wheel)
    return 0


cdef list relabelled(TimerWheel* wheel, list model, tuple gone):
    """The model, its handles put right where an equal timer was popped instead of gone."""
    if not timer_wheel_is_pending(wheel, gone[3]):
        return model
    wrong = next(i for i, other in enumerate(model)
                 if other[:3] == gone[:3] and not timer_wheel_is_pending(wheel, other[3]))
    model[wrong] = gone
    return sorted(model)


def test_it_is_a_sorted_list():
    for seed in seeds(150):
        compare(seed, [6, 70, 5000], START_MS)
        compare(seed, [10, 300_000, DAY_MS, 400 * DAY_MS], START_MS)
        compare(seed, [6, 70, 5000, 2**20, 2**62], seed)


def test_an_idle_wheel_owns_nothing():
    cdef TimerWheel wheel
    cdef TimerNode node
    timer_wheel_init(&wheel)
    assert not timer_wheel_pop(&wheel, START_MS, &node)
    assert timer_wheel_next_due(&wheel) == UINT64_MAX
    assert timer_wheel_memory_size(&wheel) == 0
    assert not timer_wheel_is_pending(&wheel, 0)
    insert(&wheel, START_MS + 1)
    assert 0 < timer_wheel_memory_size(&wheel) < 4096
    timer_wheel_free(&wheel)
    assert timer_wheel_memory_size(&wheel) == 0


def test_a_timer_fires_at_its_millisecond_and_not_before():
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint64_t distance
    for exponent in range(63):
        for distance in (2**exponent - 1, 2**exponent, 2**exponent + 1):
            timer_wheel_init(&wheel)
            assert not timer_wheel_pop(&wheel, START_MS, &node)
            insert(&wheel, START_MS + distance + 1)
            assert not timer_wheel_pop(&wheel, START_MS + distance, &node)
            assert timer_wheel_next_due(&wheel) == START_MS + distance + 1
            assert timer_wheel_pop(&wheel, START_MS + distance + 1, &node)
            assert node.due_ms == START_MS + distance + 1
            timer_wheel_free(&wheel)


def test_the_last_millisecond_has_its_slot():
    cdef TimerWheel wheel
    timer_wheel_init(&wheel)
    for due_ms in (2**64 - 1, 2**63, 2**64 - 2, 0, 2**48, 2**60):
        insert(&wheel, due_ms)
    assert [entry[0] for entry in popped(&wheel, UINT64_MAX)] == [
        0, 2**48, 2**60, 2**63, 2**64 - 2, 2**64 - 1]
    timer_wheel_free(&wheel)


def test_what_is_late_comes_out_next_in_order():
    cdef TimerWheel wheel
    timer_wheel_init(&wheel)
    assert popped(&wheel, START_MS) == []
    for number in (5, 3, 4):
        insert(&wheel, START_MS, number)
    insert(&wheel, START_MS - DAY_MS, 9)
    insert(&wheel, 0, 10)
    assert timer_wheel_next_due(&wheel) == 0
    assert [entry[1] for entry in popped(&wheel, START_MS)] == [10, 9, 3, 4, 5]
    timer_wheel_free(&wheel)


def test_time_may_be_asked_for_that_is_over():
    """A caller's clock may be set back: nothing fires early then, nothing is lost."""
    cdef TimerWheel wheel
    timer_wheel_init(&wheel)
    assert popped(&wheel, START_MS) == []
    insert(&wheel, START_MS - 50, 1)
    insert(&wheel, START_MS + 50, 2)
    assert popped(&wheel, START_MS - 51) == []
    assert [entry[1] for entry in popped(&wheel, START_MS - 50)] == [1]
    assert popped(&wheel, 0) == []
    assert [entry[1] for entry in popped(&wheel, START_MS + 50)] == [2]
    timer_wheel_free(&wheel)


@pytest.mark.standard
def test_a_million_due_at_once_come_in_order():
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint64_t number
    cdef uint64_t last = 0
    timer_wheel_init(&wheel)
    assert not timer_wheel_pop(&wheel, START_MS, &node)
    for number in range(1_000_000):
        insert(&wheel, START_MS + 60_000, number * 7919 % 1_000_003)
    for number in range(1_000_000):
        assert timer_wheel_pop(&wheel, START_MS + 60_000, &node)
        assert number == 0 or node.first > last
        last = node.first
    assert wheel.count == 0
    timer_wheel_free(&wheel)


@pytest.mark.standard
def test_a_million_late_ones_between_pops_come_in_order():
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint64_t number
    timer_wheel_init(&wheel)
    assert not timer_wheel_pop(&wheel, START_MS, &node)
    for number in range(1_000_000):
        insert(&wheel, START_MS - number * 7919 % 1_000_003, number)
        if number % 3 == 2:
            assert timer_wheel_next_due(&wheel) <= START_MS
            assert timer_wheel_pop(&wheel, START_MS, &node)
    entries = popped(&wheel, START_MS)
    assert entries == sorted(entries)
    timer_wheel_free(&wheel)


@pytest.mark.standard
def test_asking_after_every_call_does_not_search_a_million_timers_again():
    """One slot holds them all; each of the earliest is cancelled, as acknowledgements do."""
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint64_t number
    cdef uint32_t timer
    timer_wheel_init(&wheel)
    assert not timer_wheel_pop(&wheel, START_MS, &node)
    timers = []
    for number in range(1_000_000):
        timers.append(insert(&wheel, START_MS + 3_600_000 + number // 100, number))
        assert timer_wheel_next_due(&wheel) == START_MS + 3_600_000
    for number in range(999_999):
        timer = timers[number]
        timer_wheel_cancel(&wheel, timer)
        assert timer_wheel_next_due(&wheel) == START_MS + 3_600_000 + (number + 1) // 100
    # Looking ahead let nothing fire, and the wheel runs on the caller's time again once empty.
    assert not timer_wheel_pop(&wheel, START_MS + 1, &node)
    insert(&wheel, START_MS + 2, 1)
    assert timer_wheel_pop(&wheel, START_MS + 2, &node) and node.first == 1
    assert timer_wheel_pop(&wheel, UINT64_MAX, &node) and node.first == 999_999
    timer_wheel_free(&wheel)


def test_timers_may_be_cancelled_among_the_due_ones():
    cdef TimerWheel wheel
    cdef TimerNode node
    cdef uint32_t timer
    timer_wheel_init(&wheel)
    timers = [insert(&wheel, START_MS, number) for number in range(1000)]
    assert timer_wheel_pop(&wheel, START_MS, &node) and node.first == 0
    for timer in timers[2::2]:
        timer_wheel_cancel(&wheel, timer)
    assert [entry[1] for entry in popped(&wheel, START_MS)] == list(range(1, 1000, 2))
    timer_wheel_free(&wheel)


def test_memory_grows_with_the_timers_and_goes_with_them():
    cdef TimerWheel wheel
    cdef uint64_t number
    timer_wheel_init(&wheel)
    for number in range(300_000):
        insert(&wheel, number)
    assert timer_wheel_memory_size(&wheel) < 300_000 * 40
    assert len(popped(&wheel, UINT64_MAX)) == 300_000
    assert timer_wheel_memory_size(&wheel) < 40_000
    # Nodes are used again.
    for number in range(300_000):
        timer_wheel_cancel(&wheel, insert(&wheel, number))
    assert timer_wheel_memory_size(&wheel) < 40_000
    timer_wheel_free(&wheel)
