"""File operations for Python callers, and the faults of tests. Any thread may call; needs the
GIL."""

from libc.stdint cimport uint64_t

cdef class FileSystem:
    cdef bytes c_guarded                 # path of the folder; None: nothing is guarded
    cdef uint64_t c_device
    cdef uint64_t c_inode


cdef bytes path_bytes(object path)
"""os.fsencode without its Python code, in the middle of which a signal handler could raise."""
