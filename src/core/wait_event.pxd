"""Lets a thread sleep until something happened, across threads and processes, without a lock and
without cost while no thread waits.

  waiter                                      waker
    seen = wait_event_enter(event)              make the change (release store)
    look again; if the change is there: leave   wait_event_wake(event)
    wait_event_sleep(event, seen, timeout)
    wait_event_leave(event); look again
Every wait may end early. Linux futex on a word that may lie in a shared mapping.
"""

from libc.stdint cimport int64_t, uint32_t

cdef struct WaitEvent:
    uint32_t event
    uint32_t waiters

cdef enum:
    WAIT_EVENTS_MAX = 128            # that can be slept on at once
    WAIT_EVENTS_POLL_NS = 5000000    # how long to sleep where not all can be slept on

cdef uint32_t wait_event_enter(WaitEvent* self) noexcept nogil
cdef void wait_event_leave(WaitEvent* self) noexcept nogil
cdef int wait_event_sleep(WaitEvent* self, uint32_t seen, int64_t timeout_ns) noexcept nogil
"""timeout_ns: -1 for ever. STATUS_OK (woken, or the event moved on), STATUS_TIMEOUT,
STATUS_INTERRUPTED (signal)."""

cdef int wait_events_sleep(WaitEvent** events, const uint32_t* seen, uint32_t count,
                           int64_t until_ns) noexcept nogil
"""Like wait_event_sleep, until any of the events moves, all of which were entered; at most until a
time of the monotonic clock, -1: for ever. More than WAIT_EVENTS_MAX are not slept on. Where the
kernel has no futex_waitv it sleeps on the first, for WAIT_EVENTS_POLL_NS."""

cdef void wait_event_wake(WaitEvent* self) noexcept nogil
"""Wake all waiters. Without one it costs a fence and a load."""

cdef void wait_event_wake_one(WaitEvent* self) noexcept nogil
"""Like wait_event_wake, for one sleeping waiter, where any single waiter is enough for the
change."""
