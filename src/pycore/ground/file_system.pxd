"""File operations for Python callers, and the faults of tests. Any thread may call; needs the
GIL."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t

cdef class FileSystem:
    cdef bytes c_guarded                 # path of the folder; None: nothing is guarded
    cdef uint64_t c_device
    cdef uint64_t c_inode
    cdef bytes c_reserve                 # path of the file that keeps room; None: none does
    cdef bytes c_reserve_folder
    cdef uint64_t c_reserve_size         # wanted
    # of what follows; held while the file grows or is removed
    cdef pthread_mutex_t c_reserve_mutex
    cdef bint c_reserve_lacks            # it is smaller than that, or not there
    cdef uint32_t c_reserve_spenders     # that have its room now


cdef bytes path_bytes(object path)
"""os.fsencode without its Python code, in the middle of which a signal handler could raise."""
