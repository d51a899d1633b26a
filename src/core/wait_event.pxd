"""Sleep until something happened, across threads and processes, without a lock and without cost
while no thread waits.

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

cdef uint32_t wait_event_enter(WaitEvent* self) noexcept nogil
cdef void wait_event_leave(WaitEvent* self) noexcept nogil
cdef int wait_event_sleep(WaitEvent* self, uint32_t seen, int64_t timeout_ns) noexcept nogil
"""timeout_ns: -1 for ever. STATUS_OK (woken, or the event moved on), STATUS_TIMEOUT,
STATUS_INTERRUPTED (signal)."""

cdef void wait_event_wake(WaitEvent* self) noexcept nogil
"""Wake all waiters. Without one it costs a fence and a load."""
