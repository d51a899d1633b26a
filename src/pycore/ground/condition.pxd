"""A condition variable without a step of Python, for futures.

`threading.Condition` enters by a method in Python: a signal handler that raises there leaves the
lock taken for ever, and the thread that completes the future waits for it. Here taking and giving
back are single steps, and a wait in the main thread looks for signals.
"""

from libc.stdint cimport uint32_t

from pulsarx._core.wait_event cimport WaitEvent


cdef class Condition:
    cdef WaitEvent changed               # notified
    cdef WaitEvent freed                 # the lock was given back
    cdef unsigned long owner             # the thread that holds it; 0: none
    cdef uint32_t depth                  # how often it took it

    cdef int take(self) except -1
    """What a handler raises while this waits comes out with nothing taken."""

    cdef int give(self) except -1
    cdef int retake(self) except -1
