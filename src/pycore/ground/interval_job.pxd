"""Runs a job a while after it was first asked for, once for all that ask meanwhile: flushes.

Arming is one step to a signal handler, and allowed with any mutex held.
"""

from libc.stdint cimport int64_t

from pulsarx._pycore.ground.clock_core cimport SystemClockCore, Timer
from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class IntervalJob:
    cdef SystemClockCore clock           # the interval is real time
    cdef JobQueue jobs                   # where it runs: a slow disk holds up no timer
    cdef object job                      # None: closed
    cdef Timer timer                     # None: not armed
    cdef int64_t interval_ms
    cdef bint armed                      # what is asked for now is part of the work that is due

    cpdef int arm(self) except -1
    """The job runs before the interval is over."""
