"""File operations for Python callers, and the faults of tests. Any thread may call; needs the
GIL."""

from libc.stdint cimport uint64_t

cdef class FileSystem:
    cdef bytes c_guarded                 # path of the folder; None: nothing is guarded
    cdef uint64_t c_device
    cdef uint64_t c_inode
    cdef bytes c_reserve                 # path of the file that keeps room; None: none does
    cdef bytes c_reserve_folder
    cdef uint64_t c_reserve_size         # wanted
    cdef bint c_reserve_lacks            # it is smaller than that, or not there


cdef bytes path_bytes(object path)
"""os.fsencode without its Python code, in the middle of which a signal handler could raise."""
