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
