"""The timer wheel of the core for bench_timers.py.

Built at bench time by floor_build.py; not part of the library.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.timer_wheel cimport (
    TimerNode, TimerWheel, timer_wheel_cancel, timer_wheel_free, timer_wheel_init,
    timer_wheel_insert, timer_wheel_is_pending, timer_wheel_memory_size, timer_wheel_pop,
)


@cython.final
cdef class Timers:
    """Pending deadlines in milliseconds. One thread at a time."""
    cdef TimerWheel c_wheel

    def __cinit__(self) -> None:
        timer_wheel_init(&self.c_wheel)

    def __dealloc__(self) -> None:
        timer_wheel_free(&self.c_wheel)

    def insert(self, uint64_t due_ms, uint64_t first, /) -> int:
        """Arm a timer; its handle."""
        cdef uint32_t timer
        if timer_wheel_insert(&self.c_wheel, due_ms, first, 0, &timer):
            raise MemoryError
        return timer

    def cancel(self, uint32_t handle, /) -> None:
        """Nothing, if the timer is not pending any more."""
        if timer_wheel_is_pending(&self.c_wheel, handle):
            timer_wheel_cancel(&self.c_wheel, handle)

    def pass_time(self, uint64_t now_ms, /) -> None:
        """What is due by now is gone."""
        cdef TimerNode node
        while timer_wheel_pop(&self.c_wheel, now_ms, &node):
            pass

    def __len__(self) -> int:
        return self.c_wheel.count

    def memory_size(self) -> int:
        """Bytes of the wheel."""
        return timer_wheel_memory_size(&self.c_wheel)
