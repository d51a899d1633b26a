"""Body of unix_listener.pxd."""

from libc.errno cimport EINTR, ENAMETOOLONG, errno
from libc.string cimport memcpy, memset
from posix.unistd cimport close as c_close

from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave
from pulsarx._pycore.ground.file_system cimport path_bytes

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr:
        pass
    int c_socket "socket"(int domain, int kind, int protocol)
    int c_bind "bind"(int descriptor, const sockaddr* address, socklen_t size)
    int c_listen "listen"(int descriptor, int backlog)
    int c_accept "accept4"(int descriptor, sockaddr* address, socklen_t* size, int flags)
    int c_shutdown "shutdown"(int descriptor, int how)
    enum:
        AF_UNIX, SOCK_STREAM, SOCK_CLOEXEC, SHUT_RDWR

cdef extern from "<sys/un.h>" nogil:
    struct sockaddr_un:
        int sun_family
        char[108] sun_path

cdef extern from "Python.h":
    object PyErr_SetFromErrno(object kind)


cdef class UnixListener:
    """See the pxd. Failures are OSError."""

    def __cinit__(self) -> None:
        self.descriptor = -1
        low_descriptors_hold()               # where none is left, the next one says so
        self.descriptor = low_descriptors_leave(
            c_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
        if self.descriptor < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self) -> None:
        if self.descriptor >= 0:
            c_close(self.descriptor)

    def bind(self, address: str) -> None:
        """address: a path, or a name without a file behind a first character of 0."""
        cdef sockaddr_un to
        cdef bytes name = path_bytes(address)
        cdef size_t size = len(name)
        if size >= sizeof(to.sun_path):
            raise OSError(ENAMETOOLONG, "too long for the address of a Unix socket", address)
        memset(&to, 0, sizeof(to))
        to.sun_family = AF_UNIX
        memcpy(to.sun_path, <const char*>name, size)
        # Every byte of a name without a file counts, but a path ends with its zero.
        if c_bind(self.descriptor, <const sockaddr*>&to,
                  <socklen_t>(sizeof(to) - sizeof(to.sun_path) + size)) < 0:
            PyErr_SetFromErrno(OSError)

    def listen(self, int backlog) -> None:
        if c_listen(self.descriptor, backlog) < 0:
            PyErr_SetFromErrno(OSError)

    def accept(self) -> int:
        """The descriptor of the next connection, which the caller closes. Sleeps until there is
        one, or shutdown was called: OSError. Not for the main thread, whose signals it passes
        over."""
        cdef int descriptor = self.descriptor
        cdef int accepted
        with nogil:
            while True:
                accepted = low_descriptors_leave(
                    c_accept(descriptor, NULL, NULL, SOCK_CLOEXEC))
                if accepted >= 0 or errno != EINTR:
                    break
        if accepted < 0:
            PyErr_SetFromErrno(OSError)
        return accepted

    def shutdown(self) -> None:
        """Wake the thread that sleeps in accept. Nothing where it does not listen."""
        c_shutdown(self.descriptor, SHUT_RDWR)

    def close(self) -> None:
        """May be called twice."""
        cdef int descriptor = self.descriptor
        self.descriptor = -1
        if descriptor >= 0:
            c_close(descriptor)
