"""File operations for Python callers, and the faults of tests. Any thread may call; needs the
GIL."""

cdef class FileSystem:
    pass
