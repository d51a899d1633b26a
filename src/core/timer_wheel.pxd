"""A timer wheel: inserting and cancelling a deadline costs the same however many are pending. One
thread at a time.

A hierarchy of wheels of 64 slots, one millisecond wide at the bottom and 64 times wider at each
level above. A timer waits at the level of the highest digit (base 64) in which it differs from the
wheel's time, so no slot ever wraps around and the first occupied slot of the lowest occupied level
is the next to come. Memory is taken with the first insert and given back when many timers have left
an empty wheel: an idle one is a few words.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef enum TimerLimits:
    TIMER_NONE = 4294967295             # no handle
    TIMER_LEVELS = 11                   # 66 bits: every deadline has its slot
    TIMER_RUNS = 32

cdef struct TimerNode:                  # 32 bytes
    uint64_t due_ms
    uint64_t first                      # what the timer is for: two words of the caller's
    uint64_t second
    uint32_t next
    uint32_t previous                   # of the first of a list: which list; unused: TIMER_NONE

cdef struct TimerSlots:
    uint64_t occupied[TIMER_LEVELS]     # a bit a slot
    uint64_t scanned[TIMER_LEVELS]      # slots whose earliest timer was sought already
    # The first timer of each slot, then of each run: sorted lists of what has left the wheels. A
    # run of rank k came from about 2^k timers; two of one rank are merged to one of the next.
    uint32_t heads[TIMER_LEVELS * 64 + TIMER_RUNS]

cdef struct TimerWheel:
    TimerNode* nodes                    # owned; NULL before the first insert
    TimerSlots* slots                   # owned; likewise
    uint64_t now_ms                     # of the latest pop
    uint64_t wheel_ms                   # what is due at or before it is in the runs
    uint64_t earliest_ms                # when the earliest is due, if that is known
    bint earliest_known
    uint32_t levels                     # a bit for each level that holds a timer
    uint32_t runs                       # a bit for each run
    uint32_t count                      # pending timers
    uint32_t capacity                   # of nodes
    uint32_t free_node                  # head of the list of unused nodes, TIMER_NONE: none
    uint32_t used_nodes                 # nodes used since the wheel was empty

cdef void timer_wheel_init(TimerWheel* self) noexcept nogil
cdef void timer_wheel_free(TimerWheel* self) noexcept nogil

cdef int timer_wheel_insert(TimerWheel* self, uint64_t due_ms, uint64_t first, uint64_t second,
                            uint32_t* timer) noexcept nogil
"""Arm a timer; timer: its handle, valid until it is popped or cancelled. NO_MEMORY.

What is due at or before the last pop comes out of the next one. Such a late timer costs the
logarithm of their number; all others cost the same.
"""

cdef inline bint timer_wheel_is_pending(const TimerWheel* self, uint32_t timer) noexcept nogil:
    """False: no timer has this handle now. A later timer may get the handle of an earlier one."""
    return timer < self.used_nodes and self.nodes[timer].previous != TIMER_NONE

cdef inline uint64_t timer_wheel_due_ms(const TimerWheel* self, uint32_t timer) noexcept nogil:
    """Return when a pending timer is due."""
    return self.nodes[timer].due_ms

cdef void timer_wheel_cancel(TimerWheel* self, uint32_t timer) noexcept nogil
"""Take out a pending timer."""

cdef bint timer_wheel_pop(TimerWheel* self, uint64_t now_ms, TimerNode* popped) noexcept nogil
"""Take the earliest timer due at or before now_ms; False: there is none.

Timers due in the same millisecond come in ascending order of (first, second).
"""

cdef uint64_t timer_wheel_next_due(TimerWheel* self) noexcept nogil
"""When the earliest is due, exactly; UINT64_MAX when none is pending.

Cheap to ask after each insert, cancel and pop: over all calls, a timer is looked at a few times a
level.
"""

cdef uint64_t timer_wheel_memory_size(const TimerWheel* self) noexcept nogil
