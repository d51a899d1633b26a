"""Calls of the core to C functions that fail as a test says; failing_calls.h has the way."""

cdef extern from "failing_calls.h" nogil:
    bint calls_fail(const char* name, long first, long count, long answer, int error)
    long calls_succeed()

cdef extern from "<errno.h>" nogil:
    int EBADF, EDQUOT, EFBIG, EIO, EINTR, EINVAL, ENOENT, ENOMEM, ENOSPC, ENOSYS, EPERM

cdef inline int memory_fails(const char* name, long first, long count=1) except -1:
    """name: malloc, calloc or realloc."""
    assert calls_fail(name, first, count, 0, ENOMEM), name
    return 0


cdef inline int call_fails(const char* name, int error, long count=1) except -1:
    """The next calls answer -1 with errno."""
    assert calls_fail(name, 1, count, -1, error), name
    return 0
