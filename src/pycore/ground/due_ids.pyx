# cython: language_level=3
"""Body of due_ids.pxd."""


cdef class DueIds:
    """See the pxd."""

    def __init__(self, wake) -> None:
        """wake: has the session take them soon; it may only enqueue something or set an event."""
        self.ids = {}
        self.wake = wake

    cpdef int mark(self, object number) except -1:
        self.ids[number] = None
        self.wake()
        return 0

    def marking(self, number) -> DueMark:
        """Return the callable that marks this number as due."""
        cdef DueMark made = DueMark.__new__(DueMark)
        made.due = self
        made.number = number
        return made

    def keep(self, number) -> None:
        """Keep a number due, or make it so, by what the session does just now."""
        self.ids[number] = None

    def take(self) -> list[int]:
        """Return the numbers that are due, in the order in which they became so, and unmark
        them."""
        cdef list found = list(self.ids)
        for each in found:
            self.ids.pop(each, None)
        return found


cdef class DueMark:
    """See the pxd."""

    def __call__(self) -> None:
        self.due.mark(self.number)
