"""Deadlines: insert and cancel cost the same however many are pending. One thread at a time.

A hierarchy of wheels of 64 slots, one millisecond wide at the bottom and 64 times wider at each
level above; a timer moves down a level when its slot comes up. Memory is taken with the first
insert: an idle wheel is a few words.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef enum TimerLimits:
    TIMER_NONE = 4294967295             # no handle
    TIMER_LEVELS = 8                    # 2^48 ms: what is due later waits in the last slot

cdef struct TimerNode:                  # 32 bytes
    uint64_t due_ms
    uint64_t first                      # what the timer is for: two words of the caller's
    uint64_t second
    uint32_t next
    uint32_t previous

cdef struct TimerWheel:
    TimerNode* nodes                    # owned; NULL before the first insert
    uint32_t* slots                     # owned: head and tail of each list
    uint64_t* occupied                  # owned: a word a level
    uint64_t now_ms                     # everything due before is out
    uint32_t count                      # pending timers
    uint32_t capacity
    uint32_t free_node                  # head of the list of unused nodes, TIMER_NONE: none
    uint32_t used_nodes                 # nodes ever used: below it they are linked somewhere

cdef void timer_wheel_init(TimerWheel* self) noexcept nogil
cdef void timer_wheel_free(TimerWheel* self) noexcept nogil

cdef int timer_wheel_insert(TimerWheel* self, uint64_t due_ms, uint64_t first, uint64_t second,
                            uint32_t* timer) noexcept nogil
"""Arm a timer; timer: its handle, valid until it is popped or cancelled. NO_MEMORY.

What is due at or before the last pop comes out of the next one.
"""

cdef void timer_wheel_cancel(TimerWheel* self, uint32_t timer) noexcept nogil
"""Take out a pending timer."""

cdef bint timer_wheel_pop(TimerWheel* self, uint64_t now_ms, TimerNode* popped) noexcept nogil
"""Take the earliest timer due at or before now_ms; False: there is none.

Timers due in the same millisecond come in ascending order of (first, second).
"""

cdef uint64_t timer_wheel_next_due(TimerWheel* self) noexcept nogil
"""When the earliest is due, exactly; UINT64_MAX when none is pending."""
