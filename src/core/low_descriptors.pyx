"""Body of low_descriptors.pxd."""

from libc.errno cimport errno

cdef extern from * nogil:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <fcntl.h>
    #include <unistd.h>
    #ifndef O_PATH
    #define O_PATH 010000000  /* Linux's, but for Alpha, PA-RISC and SPARC */
    #endif
    """
    int c_open "open"(const char* path, int flags, ...)
    int c_fcntl "fcntl"(int fd, int command, ...)
    int close(int fd)
    int F_GETFD, F_DUPFD_CLOEXEC, O_PATH, O_CLOEXEC

cdef enum:
    LOW_COUNT = 3


cdef int low_descriptors_hold() noexcept nogil:
    cdef int number
    cdef int opened
    for number in range(LOW_COUNT):
        if c_fcntl(number, F_GETFD) < 0:
            opened = c_open("/", O_PATH | O_CLOEXEC)
            if opened < 0:
                return errno
            if opened >= LOW_COUNT:
                close(opened)                # another thread was faster
    return 0


cdef int low_descriptors_leave(int opened) noexcept nogil:
    cdef int other
    if opened < 0 or opened >= LOW_COUNT:
        return opened
    other = c_fcntl(opened, F_DUPFD_CLOEXEC, LOW_COUNT)
    close(opened)                            # which is there, so errno stays as it is
    return other
