"""Collects the producers or consumers of a connection that have something due, so that the others
are not looked at: a client may have thousands of them. Any thread may call, with any mutex held.
"""


cdef class DueIds:
    cdef dict ids                        # in the order in which they became due; no values
    cdef bint all_are_due                # one was not noted: there was no memory
    cdef object wake                     # native, so that no signal comes between the two steps

    cpdef int mark(self, object number) except -1
    """There is something to do, and the session is woken."""


cdef class DueMark:
    """Marks one of them, when it is called."""
    cdef DueIds due
    cdef object number
