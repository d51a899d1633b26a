# cython: language_level=3
"""Body of due_ids.pxd."""


cdef class DueIds:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.ids = {}

    def __init__(self, wake) -> None:
        """wake: has the session take them soon; it may only enqueue something or set an event."""
        self.wake = wake

    cpdef int mark(self, object number) except -1:
        try:
            self.ids[number] = None
        except MemoryError:
            # Who marks it has just published, and cannot take that back.
            self.all_are_due = True
        self.wake()
        return 0

    def marking(self, number) -> DueMark:
        """Return the callable that marks this number as due."""
        cdef DueMark made = DueMark.__new__(DueMark)
        made.due = self
        made.number = number
        return made

    @property
    def are_any(self) -> bool:
        """Whether `take` would return some."""
        return self.all_are_due or bool(self.ids)

    def keep(self, number) -> None:
        """Keep a number due, or make it so, by what the session does just now."""
        self.ids[number] = None

    def take(self, everyone) -> list[int]:
        """Return the numbers that are due, in the order in which they became so, and unmark them.
        everyone: the numbers of all, for where there was no memory to note one."""
        cdef list found = list(self.ids)
        if self.all_are_due:
            self.all_are_due = False     # first: it may be set again meanwhile
            try:
                found = list(dict.fromkeys([*found, *everyone]))
            except BaseException:
                self.all_are_due = True
                raise
        for each in found:
            self.ids.pop(each, None)
        return found


cdef class DueMark:
    """See the pxd."""

    def __call__(self) -> None:
        self.due.mark(self.number)
