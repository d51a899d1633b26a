# cython: language_level=3
"""Body of due_flag.pxd."""


cdef class DueFlag:
    """See the pxd."""

    def __init__(self, wake) -> None:
        """wake: has that thread look soon; it may only enqueue something or set an event. None:
        there is none yet."""
        self.wake = wake
        self.is_due = True               # for what came before it

    cpdef int due(self) except -1:
        self.is_due = True
        if self.wake is not None:
            self.wake()
        return 0
