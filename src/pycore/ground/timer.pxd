"""The timer wheel of the core for callers in Python; Cython ones use core/timer_wheel itself."""

from pulsarx._core.timer_wheel cimport TimerWheel

cdef class Timers:
    cdef TimerWheel c_wheel
