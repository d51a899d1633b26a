"""Says that there is something to do, to the one thread that does it. Any thread may call."""


cdef class DueFlag:
    cdef public bint is_due              # cleared before what there is to do is looked for
    # native, so that no signal comes between the two steps; or None
    cdef object wake

    cpdef int due(self) except -1
    """There is something to do. With any mutex held."""
