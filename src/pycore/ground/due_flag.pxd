"""A flag by which any thread tells one other thread that it has something to do. Any thread may
call."""


cdef class DueFlag:
    cdef public bint is_due              # cleared before what there is to do is looked for
    # native, so that no signal comes between the two steps; or None
    cdef object wake

    cpdef int due(self) except -1
    """There is something to do. With any mutex held."""
