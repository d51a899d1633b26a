"""A condition variable without a step of Python, for futures.

`threading.Condition` enters by a method in Python: a signal handler that raises there leaves the
lock taken for ever, and whoever completes the future waits for it. Here taking and giving back are
single steps, and who waits in the main thread looks for signals.
"""

from libc.stdint cimport uint32_t

from pulsarx._core.wait_event cimport WaitEvent


cdef class Condition:
    cdef WaitEvent changed               # notified
    cdef WaitEvent freed                 # nobody holds the lock any more
    cdef unsigned long owner             # the thread that holds it; 0: nobody
    cdef uint32_t depth                  # how often it took it

    cdef int take(self) except -1
    """What a handler raises while this waits comes out with nothing taken."""

    cdef int give(self) except -1
    cdef int retake(self) except -1
