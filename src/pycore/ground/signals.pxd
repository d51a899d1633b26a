"""Runs Python's signal handlers in calls that wait. All of pycore uses it; needs the GIL.

Handlers run in the main thread only, whichever thread the system gave the signal to. So a wait of
the main thread sleeps no longer than SIGNAL_LOOK_NS at a time and looks; a wait of another thread
needs no looking.
"""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    SIGNAL_LOOK_NS = 200000000           # five looks a second: 25 microseconds of CPU time

cdef bint signals_arrive_here() noexcept
"""Whether the calling thread is the one in which signal handlers run."""

cdef int signals_check() except -1
"""Let the handlers of signals that have arrived run. What one raises comes out as it is, Ctrl-C as
errors.InterruptedByKeyboard, which is a KeyboardInterrupt too."""

cpdef uint64_t signals_raised() noexcept
"""How often a handler has raised in a wait of this thread. Whoever tells failures from interrupts
compares: what a handler raises may be of any type, those of our errors included."""

cdef int64_t signals_sleep_ns(int64_t left_ns) noexcept
"""How long this thread may sleep before it looks for signals, when it would sleep left_ns
(negative: for ever)."""
