"""Clocks and their timers: what the broker's time runs on. Beneath `pulsarx.clock`.

Everything here is one step to a signal handler, so a timer may be armed and cancelled by calls that
must not be cut in half, with any mutex held, and by finalizers. A timer's callback runs in the
clock's own thread (SystemClock) or in the thread that advances (ManualClock).

  state of a timer   holds                                left by
  WAITING            its callback; a node of the wheel    it is due; cancel
  OVER               nothing                              -
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t
from pulsarx._core.timer_wheel cimport TimerWheel
from pulsarx._core.wait_event cimport WaitEvent


cdef class ClockCore


cdef class Timer:
    cdef ClockCore clock
    cdef object callback                 # None: it fired, fires or was cancelled
    cdef readonly int64_t due_ms         # on the clock it was armed on
    cdef uint32_t node                   # of the wheel; TIMER_NONE: it is in none
    cdef bint by_wall                    # due at a time of day, which may be set back

    cpdef bint cancel(self) except -1
    """True: it will never fire. False: it has fired, is firing, or was cancelled before."""


cdef class ClockCore:
    cdef pthread_mutex_t mutex           # guards the wheel; held for no call into Python
    cdef TimerWheel wheel                # of pointers to timers
    cdef set waiting                     # owns the timers in the wheel
    cdef uint64_t armed_count            # numbers timers of the same millisecond in their order
    cdef object __weakref__

    cdef int64_t now(self) noexcept
    """Milliseconds since 1970 on this clock."""

    cpdef Timer call_at(self, due_ms, callback)
    """Call back once the time is there, never before. The callback must not block: it holds up all
    other timers. What it raises is logged."""

    cdef Timer arm(self, int64_t due_ms, object callback)
    """call_at of Cython callers."""

    cdef int64_t monotonic(self) noexcept
    """Milliseconds from an arbitrary start: setting the time of day does not change them. What a
    wait is measured by."""

    cdef Timer arm_monotonic(self, int64_t due_ms, object callback)
    """Like arm, at a time of `monotonic`."""

    cdef Timer timer(self, int64_t due_ms, object callback)

    cdef int push(self, Timer timer, int64_t wheel_ms) except -1
    cdef Timer pop(self, int64_t wheel_ms)
    """Take out the earliest timer due by now; None: there is none."""

    cdef int take_out(self, Timer timer) except -1
    cdef int64_t earliest(self) noexcept
    """When the next timer is due, in the wheel's time; INT64_MAX: there is none."""

    cdef int forget(self) except -1


cdef class SystemClockCore(ClockCore):
    cdef WaitEvent earlier               # a timer was armed that is due before the thread wakes
    cdef int64_t sleeps_until_ns         # monotonic; INT64_MAX: until it is woken
    cdef readonly bint has_thread        # its thread runs, or is about to
    cdef bint stopped
    cdef unsigned long thread

    cpdef Timer call_after(self, delay_ms, callback)
    """Call back after a while. Setting the time of day does not change how long that is."""

    cdef Timer armed_after(self, Timer timer, int64_t delay_ms)
    cdef int armed(self, int64_t wheel_ms) except -1
    cdef bint sleep(self) except -1


cdef class ManualClockCore(ClockCore):
    cdef int64_t now_value_ms
