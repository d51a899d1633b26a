# cython: language_level=3
"""Body of command_output.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef extern from "<sys/socket.h>" nogil:
    ssize_t socket_send "send"(int descriptor, const void* data, size_t size, int flags)
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL

cdef enum:
    LEAST_CAPACITY = 512
    KEPT_CAPACITY = 4096         # stays allocated: a client may have thousands of connections
    # bytes that are sent while more is written: the other end works on them, and they are still in
    # the cache
    PUSHED_SIZE = 64 << 10


cdef int reserve(OutputBytes* self, size_t size) except -1:
    """Have room for so many bytes behind the others."""
    cdef uint8_t* grown
    cdef size_t capacity
    if self.capacity - self.end >= size:
        return 0
    capacity = max(self.end + size, 2 * self.capacity, <size_t>LEAST_CAPACITY)
    grown = <uint8_t*>PyMem_Realloc(self.data, capacity)
    if grown == NULL:
        raise MemoryError(f"answer a client with {size} bytes: out of memory")
    self.data = grown
    self.capacity = capacity
    return 0


cdef void clear(OutputBytes* self) noexcept:
    self.at = self.end = 0
    if self.capacity > KEPT_CAPACITY:
        PyMem_Free(self.data)
        self.data = NULL
        self.capacity = 0


cdef class CommandOutput:
    """See the pxd."""

    def __init__(self, write not None, has_room not None) -> None:
        """write: sends bytes without waiting. has_room: whether more is to be delivered."""
        self.write = write
        self.has_more_room = has_room

    def __dealloc__(self) -> None:
        PyMem_Free(self.fresh.data)

    cdef uint8_t* room(self, size_t size) except NULL:
        reserve(&self.fresh, size)
        return self.fresh.data + self.fresh.end

    cdef int filled(self, size_t size) except -1:
        cdef bytes command = PyBytes_FromStringAndSize(<const char*>self.fresh.data, size)
        clear(&self.fresh)
        self.write(command)
        return 0

    cpdef int put(self, bytes command) except -1:
        cdef size_t size = <size_t>PyBytes_GET_SIZE(command)
        memcpy(self.room(size), PyBytes_AS_STRING(command), size)
        return self.filled(size)

    cpdef bint has_room(self) except -1:
        return self.has_more_room()

    cdef int push(self) except -1:
        return 0

    def let_go(self) -> None:
        """Keep nothing back while what comes next is done, which may take long."""


cdef class SocketOutput(CommandOutput):
    """See the pxd."""

    def __cinit__(self) -> None:
        mutex_init(&self.sending)
        self.descriptor = -1

    def __init__(self, ask not None, room_came not None, size_t unsent_max) -> None:
        """ask: has the loop call `take` soon; in any thread. room_came: called when there is room
        that was wanted; in any thread. unsent_max: bytes with which there is no room."""
        self.ask = ask
        self.room_came = room_came
        self.unsent_max = unsent_max

    def __dealloc__(self) -> None:
        PyMem_Free(self.leaving.data)

    def begin(self, int descriptor) -> None:
        """Send past the loop what the socket takes. By the loop, whose transport has nothing."""
        self.descriptor = descriptor
        self.is_direct = True

    def end(self) -> None:
        """The loop is about to close the socket: nothing is sent any more."""
        self.lost = True
        mutex_lock(&self.sending)            # a number may be another socket's once it is closed
        self.descriptor = -1
        self.is_direct = False
        clear(&self.leaving)
        clear(&self.fresh)
        mutex_unlock(&self.sending)
        self.settle_room()

    @property
    def size(self) -> int:
        """Bytes that were written and have not left."""
        return self.unsent()

    cdef size_t unsent(self) noexcept:
        return self.fresh.end + self.leaving.end - self.leaving.at

    # Writing --------------------------------------------------------------------------------------

    cdef int filled(self, size_t size) except -1:
        if self.lost:
            return 0
        self.fresh.end += size
        if self.is_asked or self.holder == PyThread_get_thread_ident():
            return 0
        return self.ask_loop()

    cdef int ask_loop(self) except -1:
        self.is_asked = True
        try:
            self.ask()
        except BaseException:
            self.is_asked = False            # who writes next asks it
            raise
        return 0

    cpdef bint has_room(self) except -1:
        if self.is_roomy():
            return True
        self.wants_room = True
        return self.is_roomy()               # there may have come some before it was wanted

    cdef bint is_roomy(self) noexcept:
        return self.lost or not (self.blocked or self.unsent() >= self.unsent_max)

    def settle_room(self) -> None:
        if self.wants_room and self.is_roomy():
            self.wants_room = False
            try:
                self.room_came()
            except BaseException:
                self.wants_room = True
                raise

    # Sending --------------------------------------------------------------------------------------

    def hold(self) -> None:
        """The calling thread sends what it writes from now on when it calls release."""
        if not self.holder:
            self.holder = PyThread_get_thread_ident()

    def release(self) -> None:
        if self.holder != PyThread_get_thread_ident():
            return
        self.holder = 0
        if self.is_direct and self.fresh.end:
            mutex_lock(&self.sending)
            try:
                if self.is_direct:
                    self.send()
            finally:
                mutex_unlock(&self.sending)
        if self.unsent() and not self.is_asked and not self.lost:
            self.ask_loop()
        self.settle_room()

    def let_go(self) -> None:
        if self.fresh.end and self.holder == PyThread_get_thread_ident():
            self.release()
            self.hold()

    cdef int push(self) except -1:
        if self.fresh.end < PUSHED_SIZE or not self.is_direct:
            return 0
        mutex_lock(&self.sending)
        try:
            if self.is_direct:
                self.send()
        finally:
            mutex_unlock(&self.sending)
        if self.leaving.end and not self.is_asked:
            self.ask_loop()                  # what is behind it goes by the loop, too
        return 0

    cdef int send(self) except -1:
        cdef OutputBytes* leaving = &self.leaving
        cdef OutputBytes taken
        cdef ssize_t sent
        cdef int descriptor = self.descriptor
        while self.fresh.end or leaving.end:
            if leaving.end == 0:
                taken = leaving[0]
                leaving[0] = self.fresh
                self.fresh = taken
            with nogil:
                while leaving.at < leaving.end:
                    sent = socket_send(descriptor, leaving.data + leaving.at,
                                       leaving.end - leaving.at, MSG_DONTWAIT | MSG_NOSIGNAL)
                    if sent >= 0:
                        leaving.at += <size_t>sent
                    elif errno != EINTR:
                        break                # it is full; or it has ended, which the loop sees
            if leaving.at < leaving.end:
                self.is_direct = False
                return 0
            clear(leaving)
        return 0

    def take(self, bint is_direct) -> bytes:
        """Return what the transport is to send. By the loop. is_direct: that has nothing, so the
        socket is asked first, and there may be nothing left."""
        cdef bytes found = b""
        cdef size_t rest
        cdef char* to
        mutex_lock(&self.sending)
        try:
            self.is_asked = False            # first: what is written from here on asks again
            if is_direct and self.descriptor >= 0:
                self.is_direct = True
                self.send()
            else:
                self.is_direct = False
            if self.unsent() and not self.lost:
                rest = self.leaving.end - self.leaving.at
                found = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.unsent())
                to = PyBytes_AS_STRING(found)
                if rest:
                    memcpy(to, self.leaving.data + self.leaving.at, rest)
                if self.fresh.end:
                    memcpy(to + rest, self.fresh.data, self.fresh.end)
                clear(&self.leaving)
                clear(&self.fresh)
        except BaseException:
            self.is_asked = False
            raise
        finally:
            mutex_unlock(&self.sending)
        self.settle_room()
        return found

    def block(self, bint is_blocked) -> None:
        """The transport has too much, or not any more. By the loop."""
        self.blocked = is_blocked
        self.settle_room()
