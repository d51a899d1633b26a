"""The ways in which a call of the user waits. All of pycore uses it, with the GIL; the library's
own threads sleep with `wait_event_sleep`, which nothing but the event ends.

Where greenlets of gevent share the calling thread, the others run meanwhile: one thread of the
library, made by the first such wait, sleeps on the events of all greenlets and tells their hubs.
But a greenlet that holds a lock (locks.pxd) keeps its thread until it has waited: to the lock all
of them are one thread, and a second one would enter.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent

cdef enum:
    SPIN_NS = 20000000               # how long it is before a caller looks for all else


cdef class BusyWait:
    """Has the calls of this process that wait stay awake, until `end`; none of a forked child."""
    cdef bint ended
    cdef uint64_t forks                  # when it was made


cdef bint waits_are_busy() noexcept nogil

cdef int wait_on(WaitEvent* event, uint32_t seen, int64_t left_ns, WaitEvent* wakes=*) except -1
"""Sleep until an event that was entered moves, left_ns at most (negative: without limit), and leave
it; then let the handlers of signals run. May return early. STATUS_OK, STATUS_TIMEOUT,
STATUS_INTERRUPTED. Raises what a handler raises, and what another greenlet throws into this one.
wakes: one waiter of it is woken first, and finds the GIL free; NULL: none."""

cdef int sleep_on(WaitEvent* event, uint32_t seen, int64_t left_ns) except -1
"""Like wait_on, without leaving the event and without a look for signals: left_ns is a time after
which the caller looks (signals_sleep_ns). Raises what another greenlet throws into this one."""

cdef int sleep_on_any(WaitEvent** events, const uint32_t* seen, uint32_t count,
                      int64_t left_ns) except -1
"""Like sleep_on, until one of the events moves."""

cdef bint others_run_here() except -1
"""Whether greenlets of the calling thread are to run while this one waits."""

cdef void lock_was_taken() noexcept
cdef void lock_was_given() noexcept
"""By the calling thread: while it has one, a wait is the whole thread's."""
