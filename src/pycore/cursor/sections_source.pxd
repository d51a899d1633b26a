"""The source of redelivery counts and due times whenever a cursor's snapshot is written."""

from pulsarx._core.cursor_sections cimport SectionWriter

cdef class SectionsSource:
    """Base of the object that knows the counts and due times of a subscription now.

    Its methods are called by AckTracker.fold, with the GIL and the subscription's mutex held; they
    must not change the tracker. Acknowledged messages may be left in: they are dropped when loaded.
    """

    cdef bytes redelivery_section(self)
    """A CURSOR_SECTION_REDELIVERY, made with a SectionWriter and taken with take_section."""

    cdef bytes due_section(self)
    """A CURSOR_SECTION_DUE."""

cdef bytes take_section(SectionWriter* writer)
"""End the section, answer its bytes and free the writer, after an error too."""
