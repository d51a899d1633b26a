"""The one place that reads a clock of the system. All of pycore may use it.

What the broker decides runs on the clock a client was given (clock_core); how long a caller waits
is monotonic time.
"""

from libc.stdint cimport int64_t

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_REALTIME
    int CLOCK_MONOTONIC
    int clock_gettime(int which, timespec* now)


cdef inline int64_t wall_ns() noexcept nogil:
    """Nanoseconds since 1970 in UTC, as the system has them."""
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


cdef inline int64_t monotonic_ns() noexcept nogil:
    """Nanoseconds from an arbitrary start; they never go back."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec
