"""A deadline: how long a caller still waits, in real time. For the thread that made it."""

from libc.stdint cimport int64_t


cdef class Deadline:
    cdef int64_t due_ns                  # monotonic; negative: never

    cdef int64_t remaining_ns(self) noexcept
    """0: over; negative: it never is."""


cdef Deadline deadline_of(object timeout_millis)
"""The deadline of an API argument: an int, or None for ever. ValueError: it is neither."""
