"""Sleeping and waking across threads, nobody missed."""

import threading

from failing_calls cimport EINTR, EINVAL, ENOSYS, call_fails, calls_succeed
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
        thread.join(60)
        assert not thread.is_alive()
    assert EVENT.waiters == 0


cdef WaitEvent TAKERS
cdef uint32_t THERE = 0
cdef uint32_t TAKEN = 0
cdef uint32_t SLEPT = 0


def take_until(last):
    """Take what is there, one at a time, as others do."""
    cdef uint32_t end = last
    cdef uint32_t seen
    cdef uint32_t at = 0
    with nogil:
        while at < end:
            seen = wait_event_enter(&TAKERS)
            at = atomic_load_u32(&TAKEN)
            if at < end and at == atomic_load_u32(&THERE):
                wait_event_sleep(&TAKERS, seen, -1)
                atomic_add_u32(&SLEPT, 1)
            elif at < end:
                atomic_swap_if_u32(&TAKEN, at, at + 1)
            wait_event_leave(&TAKERS)


def test_one_of_those_that_sleep_is_woken_and_no_wake_is_missed():
    """All were woken for each: a call to the control plane cost as much as it had threads."""
    cdef uint32_t number
    threads = [threading.Thread(target=take_until, args=(300,)) for _ in range(32)]
    for thread in threads:
        thread.start()
    with nogil:
        for number in range(300):
            atomic_add_u32(&THERE, 1)
            wait_event_wake_one(&TAKERS)
            while atomic_load_u32(&TAKEN) <= number:
                pass
        wait_event_wake(&TAKERS)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert TAKERS.waiters == 0
    assert SLEPT < 16 * 300


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
        thread.join(60)
        assert not thread.is_alive()
    assert SEVERAL[0].waiters == SEVERAL[1].waiters == 0


def test_a_signal_ends_the_sleep_and_an_old_kernel_polls_the_first():
    cdef WaitEvent event
    cdef WaitEvent* all[1]
    cdef uint32_t seen = 0
    memset(&event, 0, sizeof(event))
    all[0] = &event
    for error, status in (
        (EINTR, STATUS_INTERRUPTED), (EINVAL, STATUS_TIMEOUT), (ENOSYS, STATUS_TIMEOUT),
    ):
        call_fails(b"syscall", error)
        assert wait_events_sleep(all, &seen, 1, -1) == status
        calls_succeed()
    for error, status in ((EINTR, STATUS_INTERRUPTED), (EINVAL, STATUS_OK)):
        call_fails(b"syscall", error)
        assert wait_event_sleep(&event, seen, 1) == status
        calls_succeed()
