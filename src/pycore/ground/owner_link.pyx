# cython: language_level=3
"""Body of owner_link.pxd."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove
from posix.unistd cimport close, read, write

from pulsarx._core.atomic cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef extern from "sys/socket.h":
    int MSG_DONTWAIT
    int MSG_NOSIGNAL
    ssize_t c_send "send"(int descriptor, const void* data, size_t size, int flags) nogil

cdef extern from "sys/eventfd.h":
    int EFD_CLOEXEC
    int EFD_NONBLOCK
    int eventfd(unsigned int initial, int flags)

cdef enum:
    LATER_MIN = 1 << 16                  # bytes of `later`, when it is made


cdef class OwnerLink:
    """See the pxd."""

    def __cinit__(self):
        pthread_mutex_init(&self.mutex, NULL)
        self.descriptor = self.event = -1

    def __init__(self, int descriptor, out=None) -> None:
        """descriptor: of a connected stream socket. out: is called with the bytes instead; it may
        only enqueue them."""
        self.descriptor = descriptor
        self.out = out
        self.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.event < 0:
            raise OSError(errno, "no eventfd could be made for a connection")

    def __dealloc__(self):
        if self.event >= 0:
            close(self.event)
        free(self.later)
        pthread_mutex_destroy(&self.mutex)

    @property
    def woken_by(self) -> int:
        """The descriptor that becomes readable when `flush` is to be called."""
        return self.event

    def write(self, bytes data not None) -> None:
        """Send bytes."""
        self.send(data, len(data))

    cdef int tell(self, int kind, uint64_t consumer_id, uint64_t first, uint64_t second,
                  uint64_t third, uint64_t fourth) except -1:
        cdef uint8_t frame[LINK_FRAME_SIZE]
        link_frame_put(frame, kind, consumer_id, first, second, third, fourth)
        return self.send(frame, LINK_FRAME_SIZE)

    cdef int send(self, const uint8_t* data, size_t size) except -1:
        cdef uint64_t one = 1
        cdef bint kept = True
        cdef bint waits = False
        if self.out is not None:
            if not self.ended:
                self.out(PyBytes_FromStringAndSize(<const char*>data, size))
            return 0
        with nogil:
            pthread_mutex_lock(&self.mutex)
            if not self.ended:
                if self.later_size == self.later_at:
                    self.push(&data, &size)
                if size:
                    waits = True
                    kept = self.keep(data, size)
            pthread_mutex_unlock(&self.mutex)
            if waits:
                write(self.event, &one, 8)
        if not kept:
            raise MemoryError(f"send {size} bytes to the owner of a folder: out of memory")
        return 0

    cdef void push(self, const uint8_t** data, size_t* size) noexcept nogil:
        """Give the socket what it takes; mutex held. An error: the reading thread is told it."""
        cdef ssize_t sent
        while size[0]:
            sent = c_send(self.descriptor, data[0], size[0], MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0:
                if errno == EINTR:
                    continue
                if errno != EAGAIN:
                    self.ended = True
                    size[0] = 0
                return
            data[0] += sent
            size[0] -= <size_t>sent

    cdef bint keep(self, const uint8_t* data, size_t size) noexcept nogil:
        """Put bytes behind what waits; mutex held. False: there is no memory."""
        cdef size_t needed = self.later_size + size
        cdef size_t capacity = self.later_capacity
        cdef uint8_t* grown
        if needed > capacity and self.later_at:
            self.later_size -= self.later_at
            memmove(self.later, self.later + self.later_at, self.later_size)
            self.later_at = 0
            needed = self.later_size + size
        if needed > capacity:
            while capacity < needed:
                capacity = 2 * capacity if capacity else <size_t>LATER_MIN
            grown = <uint8_t*>realloc(self.later, capacity)
            if grown == NULL:
                return False
            self.later = grown
            self.later_capacity = capacity
        memcpy(self.later + self.later_size, data, size)
        self.later_size = needed
        return True

    def flush(self) -> bool:
        """Give the socket what waits; False: it takes no more now. By the reading thread, when the
        socket is writable or `woken_by` readable."""
        cdef uint64_t count
        cdef const uint8_t* data
        cdef size_t size
        with nogil:
            read(self.event, &count, 8)
            pthread_mutex_lock(&self.mutex)
            data = self.later + self.later_at
            size = self.later_size - self.later_at
            self.push(&data, &size)
            self.later_at = self.later_size - size
            if size == 0:
                self.later_at = self.later_size = 0
            pthread_mutex_unlock(&self.mutex)
        return size == 0

    def end(self) -> None:
        """Send nothing any more."""
        pthread_mutex_lock(&self.mutex)
        self.ended = True
        self.later_at = self.later_size = 0
        pthread_mutex_unlock(&self.mutex)


# As Python knows them.
ACKNOWLEDGE = LINK_ACKNOWLEDGE
ACKNOWLEDGE_THROUGH = LINK_ACKNOWLEDGE_THROUGH
NACK = LINK_NACK
GIVE_BACK = LINK_GIVE_BACK
FLOW = LINK_FLOW
REWIND = LINK_REWIND
RESET_DONE = LINK_RESET_DONE
SEQUENCE_NOTED = LINK_SEQUENCE_NOTED
RUN = LINK_RUN
CHUNK = LINK_CHUNK
RESET = LINK_RESET
ACTIVE = LINK_ACTIVE
CLOSED = LINK_CLOSED
RECORDED = LINK_RECORDED
SEQUENCE = LINK_SEQUENCE


def frame(int kind, uint64_t consumer_id, uint64_t first=0, uint64_t second=0, uint64_t third=0,
          uint64_t fourth=0) -> bytes:
    """The bytes of a fixed frame."""
    cdef uint8_t found[LINK_FRAME_SIZE]
    link_frame_put(found, kind, consumer_id, first, second, third, fourth)
    return PyBytes_FromStringAndSize(<const char*>found, LINK_FRAME_SIZE)
