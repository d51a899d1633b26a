"""Timers for clocks, tests and benchmarks; Cython callers use core/timer_wheel. One thread at a
time."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.timer_wheel cimport (
    TimerNode, timer_wheel_cancel, timer_wheel_free, timer_wheel_init, timer_wheel_insert,
    timer_wheel_is_pending, timer_wheel_memory_size, timer_wheel_next_due, timer_wheel_pop,
)


@cython.final
cdef class Timers:
    """Pending deadlines in milliseconds. Not thread-safe: the caller sees to it that only one
    thread is inside.

    No method runs Python code while the wheel changes, so a finalizer that interrupts the thread
    finds it whole.
    """

    def __cinit__(self) -> None:
        timer_wheel_init(&self.c_wheel)

    def __dealloc__(self) -> None:
        timer_wheel_free(&self.c_wheel)

    def insert(self, uint64_t due_ms, uint64_t first, uint64_t second, /) -> int:
        """Arm a timer for the two numbers; its handle.

        What is due at or before the last pop comes out of the next one.
        """
        cdef uint32_t timer
        if timer_wheel_insert(&self.c_wheel, due_ms, first, second, &timer):
            raise MemoryError(f"arm a timer beside {self.c_wheel.count} others: out of memory; "
                              "nothing was changed")
        return first << 32 | timer

    def cancel(self, uint64_t handle, /) -> bool:
        """False: the timer is not pending any more.

        A later timer may sit in its place: `first` tells them apart, by its lower 32 bits.
        """
        cdef uint32_t timer = <uint32_t>handle
        if not timer_wheel_is_pending(&self.c_wheel, timer):
            return False
        if <uint32_t>self.c_wheel.nodes[timer].first != <uint32_t>(handle >> 32):
            return False
        timer_wheel_cancel(&self.c_wheel, timer)
        return True

    def pop(self, uint64_t now_ms, /) -> tuple[int, int, int] | None:
        """Take out (due_ms, first, second) of the earliest timer due by now; None: there is none.

        Timers due in the same millisecond come in ascending order of (first, second).
        """
        cdef TimerNode node
        if not timer_wheel_pop(&self.c_wheel, now_ms, &node):
            return None
        return node.due_ms, node.first, node.second

    def next_due(self) -> int | None:
        """When the earliest is due, exactly; None when none is pending."""
        if self.c_wheel.count == 0:
            return None
        return timer_wheel_next_due(&self.c_wheel)

    def __len__(self) -> int:
        return self.c_wheel.count

    def memory_size(self) -> int:
        """Bytes of the wheel; 0 before the first insert."""
        return timer_wheel_memory_size(&self.c_wheel)
