"""Keeps the sections of a cursor's snapshot besides its ledgers until a subscription takes them.

Used by AckTracker alone, with the subscription's mutex held.
"""

from libc.stdint cimport uint32_t

from pulsarx._core.cursor_record cimport CursorTail
from pulsarx._core.cursor_sections cimport RestoredMessage, RestoredMessages
from pulsarx._core.cursor_state cimport CursorState
from pulsarx._pycore.cursor.sections_source cimport SectionsSource

cdef class KeptSections:
    cdef CursorState* c_state           # borrowed of the tracker
    cdef CursorTail* c_tail             # borrowed of the store; NULL: none
    cdef dict sections

    cdef bytes load(self, bytes snapshot, str path)
    """Become what the snapshot holds; answers the section of ledgers."""

    cdef dict current(self, SectionsSource source)
    """Return the sections that the next snapshot holds besides the ledgers."""

    cdef int adopt(self, dict sections, SectionsSource source) except -1
    """A snapshot with these was written; what the source tells it will tell again."""

    cdef int take(self, SectionsSource source, RestoredMessage** counts, size_t* counted,
                  RestoredMessage** due, size_t* due_count) except -1
    """See AckTracker.take_restored."""

    cdef list counts(self)
    cdef list due_times(self)
    cdef list listed(self, uint32_t tag)
    cdef int check(self, uint32_t tag, str path) except -1
    cdef int restore(self, uint32_t tag, bint unknown_too, RestoredMessages* found) except -1
    cdef void drop_acknowledged(self, bint unknown_too, RestoredMessages* found) noexcept nogil

cdef bytes join_sections(dict sections)
"""The snapshot: each section that is not empty, by ascending tag."""
