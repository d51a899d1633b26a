"""Sleeping and waking across threads, nobody missed."""

import threading

from libc.stdint cimport uint32_t
from libc.string cimport memset

from pulsarx._core.atomic cimport *
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport *

cdef WaitEvent EVENT
cdef uint32_t COUNTER = 0


def test_nobody_waits_nothing_moves():
    cdef WaitEvent event
    memset(&event, 0, sizeof(event))
    wait_event_wake(&event)
    assert event.event == 0 and event.waiters == 0


def test_time_runs_out_and_a_moved_event_is_not_slept_on():
    cdef WaitEvent event
    cdef uint32_t seen
    memset(&event, 0, sizeof(event))
    seen = wait_event_enter(&event)
    assert wait_event_sleep(&event, seen, 1000000) == STATUS_TIMEOUT
    wait_event_wake(&event)
    assert wait_event_sleep(&event, seen, -1) == STATUS_OK
    wait_event_leave(&event)
    assert event.waiters == 0


def follow(last):
    """Wait for every step of COUNTER."""
    cdef uint32_t end = last
    cdef uint32_t seen
    with nogil:
        while atomic_load_u32(&COUNTER) < end:
            seen = wait_event_enter(&EVENT)
            if atomic_load_u32(&COUNTER) < end:
                wait_event_sleep(&EVENT, seen, -1)
            wait_event_leave(&EVENT)


def test_no_wake_is_missed():
    threads = [threading.Thread(target=follow, args=(last,)) for last in range(100, 4000, 1000)]
    for thread in threads:
        thread.start()
    with nogil:
        while atomic_add_u32(&COUNTER, 1) < 4000:
            wait_event_wake(&EVENT)
        wait_event_wake(&EVENT)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert EVENT.waiters == 0


def test_any_of_several_ends_the_sleep():
    cdef WaitEvent events[3]
    cdef WaitEvent* all[3]
    cdef uint32_t seen[3]
    cdef int at
    cdef int moved
    memset(events, 0, sizeof(events))
    for moved in range(3):
        for at in range(3):
            all[at] = &events[at]
            seen[at] = wait_event_enter(&events[at])
        assert wait_events_sleep(all, seen, 3, 1) == STATUS_TIMEOUT
        wait_event_wake(&events[moved])
        assert wait_events_sleep(all, seen, 3, -1) == STATUS_OK
        for at in range(3):
            wait_event_leave(&events[at])


def test_of_more_than_can_be_slept_on_the_first_are():
    cdef WaitEvent event
    cdef WaitEvent* all[WAIT_EVENTS_MAX + 1]
    cdef uint32_t seen[WAIT_EVENTS_MAX + 1]
    cdef int at
    memset(&event, 0, sizeof(event))
    for at in range(WAIT_EVENTS_MAX + 1):
        all[at] = &event
        seen[at] = at == WAIT_EVENTS_MAX     # only this one has moved
    assert wait_events_sleep(all, seen, WAIT_EVENTS_MAX + 1, 1) == STATUS_TIMEOUT


cdef WaitEvent SEVERAL[2]


def follow_either(last):
    """Wait for every step of COUNTER, on two events."""
    cdef uint32_t end = last
    cdef uint32_t seen[2]
    cdef WaitEvent* all[2]
    all[0] = &SEVERAL[0]
    all[1] = &SEVERAL[1]
    with nogil:
        while atomic_load_u32(&COUNTER) < end:
            seen[0] = wait_event_enter(&SEVERAL[0])
            seen[1] = wait_event_enter(&SEVERAL[1])
            if atomic_load_u32(&COUNTER) < end:
                wait_events_sleep(all, seen, 2, -1)
            wait_event_leave(&SEVERAL[0])
            wait_event_leave(&SEVERAL[1])


def test_no_wake_of_several_is_missed():
    cdef uint32_t step
    atomic_store_u32(&COUNTER, 0)
    threads = [
        threading.Thread(target=follow_either, args=(last,)) for last in range(100, 4000, 1000)
    ]
    for thread in threads:
        thread.start()
    with nogil:
        step = 0
        while step < 4000:
            step = atomic_add_u32(&COUNTER, 1)
            wait_event_wake(&SEVERAL[step & 1])
        wait_event_wake(&SEVERAL[0])
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert SEVERAL[0].waiters == SEVERAL[1].waiters == 0
