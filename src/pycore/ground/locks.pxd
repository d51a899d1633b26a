"""Locks, conditions and events of the library, as those of `threading` and by their names.

Those of `threading` are replaced where gevent patches a program, by ones that threads of the system
do not know; and `threading.Condition` enters by a method in Python: a signal handler that raises
there leaves it locked for ever. Here taking and giving back are single steps, and a wait in the
main thread looks for signals: what a handler raises comes out with nothing taken.

The state is guarded by the GIL. To a lock all greenlets of a thread are that thread; waits.pxd says
how they are kept apart.
"""

from libc.stdint cimport uint32_t

from pulsarx._core.wait_event cimport WaitEvent


cdef class Lock:
    cdef WaitEvent freed                 # it was given back
    cdef unsigned long owner             # the thread that holds it; 0: none
    cdef uint32_t depth                  # how often that took it
    cdef bint is_reentrant

    cdef bint take(self, double timeout) except -1
    """timeout: seconds; negative: without limit."""
    cdef int give(self) except -1
    cdef int retake(self) except -1
    """Take it whatever signals arrive: the caller gives it back."""


cdef class RLock(Lock):
    pass


cdef class Condition:
    cdef WaitEvent changed               # notified
    cdef Lock lock

    cdef int take(self) except -1
    cdef int give(self) except -1


cdef class Event:
    cdef WaitEvent changed
    cdef bint flag
