"""A latch: threads wait until it is set, once and for good. Any thread, also from a signal handler;
it has no lock that an interrupted caller could leave taken.
"""

from pulsarx._core.wait_event cimport WaitEvent


cdef class Latch:
    cdef WaitEvent changed
    cdef readonly bint is_set
    cdef list told                       # what is called when it is set; None: nothing
