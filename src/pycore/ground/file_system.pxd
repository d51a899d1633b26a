"""File operations for Python callers, and the faults of tests. Any thread may call; needs the
GIL."""

cdef class FileSystem:
    pass


cdef bytes path_bytes(object path)
"""os.fsencode without its Python code, in the middle of which a signal handler could raise."""
