# cython: language_level=3
"""Body of owner_link.pxd."""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport SIZE_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove
from posix.unistd cimport close, read, write

from pulsarx._core.atomic cimport (
    atomic_load_u32, atomic_load_u64, atomic_store_u32, atomic_store_u64, atomic_swap_if_u32,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave
from pulsarx._core.wait_event cimport WaitEvent, wait_event_wake
from pulsarx._pycore.ground.system_time cimport monotonic_ns
from pulsarx._pycore.ground.waits cimport SPIN_NS, waits_are_busy
from pulsarx._pycore.ground.watchers cimport watchers_remove

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef extern from "sys/socket.h":
    int MSG_DONTWAIT
    int SHUT_RDWR
    int shutdown(int descriptor, int how) nogil
    int MSG_NOSIGNAL
    ssize_t c_send "send"(int descriptor, const void* data, size_t size, int flags) nogil
    ssize_t recv(int descriptor, void* data, size_t size, int flags) nogil

cdef extern from "poll.h":
    short POLLIN
    short POLLOUT
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* descriptors, unsigned long count, int timeout_ms) nogil
    int ppoll(pollfd* descriptors, unsigned long count, const timespec* timeout,
              const void* signals) nogil

cdef extern from "<time.h>":
    struct timespec:
        long tv_sec
        long tv_nsec

cdef extern from "sys/epoll.h":
    int EPOLL_CLOEXEC
    int EPOLL_CTL_ADD
    int EPOLL_CTL_MOD
    uint32_t EPOLLIN
    uint32_t EPOLLOUT
    uint32_t EPOLLET
    union epoll_data:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data data
    int epoll_create1(int flags)
    int epoll_ctl(int poller, int what, int descriptor, epoll_event* event) nogil
    int epoll_wait(int poller, epoll_event* events, int count, int timeout_ms) nogil

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from "sys/eventfd.h":
    int EFD_CLOEXEC
    int EFD_NONBLOCK
    int eventfd(unsigned int initial, int flags)

cdef enum:
    LATER_MIN = 1 << 16                  # bytes of `later`, when it is made
    KEPT_SIZE = 512                      # bytes that wait until the reading thread sleeps
    LED_SIZE = 8192                      # bytes that a caller reads at a time
    # what step_led answers besides a number of bytes
    LED_TOLD = 0                         # to look at what it waits for
    LED_OVER = -1                        # the connection has ended
    LED_LATE = -2                        # the time is over, or a signal has come


cdef bint look_for(int poller, int descriptor, uint32_t events) noexcept:
    cdef epoll_event event
    event.events = events
    event.data.fd = descriptor
    return epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) == 0


cdef class LinkSender:
    """See the pxd."""

    cdef bint send_due(self, OwnerLink link) except -1:
        raise NotImplementedError


cdef class LinkTaker:
    """See the pxd."""

    cdef bint take(self, const uint8_t* data, size_t size) except -1:
        raise NotImplementedError


cdef class LinkBell:
    """See the pxd."""

    def __cinit__(self):
        low_descriptors_hold()               # where none is left, the next one says so
        self.event = low_descriptors_leave(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))

    def __dealloc__(self):
        if self.event >= 0:
            close(self.event)

    def __call__(self) -> None:
        cdef uint64_t one = 1
        if self.is_heard and atomic_swap_if_u32(&self.rung, 0, 1):
            write(self.event, &one, 8)

    cdef void hear(self) noexcept nogil:
        """It has been rung, and may be again. By the caller that reads."""
        cdef uint64_t count
        read(self.event, &count, 8)
        atomic_swap_if_u32(&self.rung, 1, 0)


cdef class OwnerLink:
    """See the pxd."""

    def __cinit__(self):
        pthread_mutex_init(&self.mutex, NULL)
        pthread_mutex_init(&self.reading, NULL)
        self.descriptor = self.event = self.poller = -1
        self.unsent_max = SIZE_MAX
        self.turn.reader = LINK_READ_BY_THREAD    # which has not begun
        self.turn.armed = EPOLLET

    def __init__(self, int descriptor, out=None) -> None:
        """descriptor: of a connected stream socket. out: is called with the bytes instead; it may
        only enqueue them."""
        self.descriptor = descriptor
        self.out = out
        low_descriptors_hold()               # where none is left, the next one says so
        self.event = low_descriptors_leave(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
        if self.event < 0:
            raise OSError(errno, "no eventfd could be made for a connection")

    def __dealloc__(self):
        if self.event >= 0:
            close(self.event)
        if self.poller >= 0:
            close(self.poller)
        free(self.later.data)
        pthread_mutex_destroy(&self.mutex)
        pthread_mutex_destroy(&self.reading)

    @property
    def unsent(self) -> int:
        """Bytes that the socket has not taken yet."""
        return atomic_load_u64(&self.later.waiting)

    cpdef bint has_room(self) except -1:
        return atomic_load_u64(&self.later.waiting) < self.unsent_max

    def write(self, bytes data not None) -> None:
        """Send bytes. What answers the last of what has come is sent by `wait`: behind who is woken
        because of it, see `wake_soon`."""
        cdef const uint8_t* bytes_of = data
        cdef size_t size = len(data)
        cdef bint is_kept = False
        if self.defers and PyThread_get_thread_ident() == self.thread:
            with nogil:
                is_kept = self.keep_here(bytes_of, size)
        if not is_kept:
            self.send(bytes_of, size)

    def flush_kept(self) -> None:
        """Send what `write` has kept, wake whom `wake_soon` has, and keep nothing more. By the
        reading thread, before it does anything but `wait`."""
        self.defers = False
        if atomic_load_u32(&self.later.has_kept) or self.kept_event != NULL:
            with nogil:
                self.wake_kept()
                self.flush()

    cdef int defer(self, bint defers) noexcept:
        self.defers = defers and self.out is None
        return 0

    cdef bint wake_soon(self, WaitEvent* event) noexcept:
        if not self.defers or self.kept_event != NULL or (
                PyThread_get_thread_ident() != self.thread):
            return False
        self.kept_event = event
        return True

    cdef void wake_kept(self) noexcept nogil:
        """By the reading thread."""
        if self.kept_event != NULL:
            wait_event_wake(self.kept_event)
            self.kept_event = NULL

    cdef bint keep_here(self, const uint8_t* data, size_t size) noexcept nogil:
        """Whether bytes wait until the reading thread has them sent."""
        cdef bint is_kept
        pthread_mutex_lock(&self.mutex)
        is_kept = self.ended
        if not is_kept and self.later.size - self.later.at + size <= KEPT_SIZE and (
                self.keep(data, size)):
            is_kept = True
            atomic_store_u32(&self.later.has_kept, 1)
        pthread_mutex_unlock(&self.mutex)
        return is_kept

    cdef int tell(self, int kind, uint64_t consumer_id, uint64_t first, uint64_t second,
                  uint64_t third, uint64_t fourth) except -1:
        cdef uint8_t frame[LINK_FRAME_SIZE]
        link_frame_put(frame, kind, consumer_id, first, second, third, fourth)
        return self.send(frame, LINK_FRAME_SIZE)

    cdef int send(self, const uint8_t* data, size_t size) except -1:
        cdef bint kept = True
        cdef bint waits = False
        if self.out is not None:
            if not self.ended:
                self.out(PyBytes_FromStringAndSize(<const char*>data, size))
            return 0
        with nogil:
            pthread_mutex_lock(&self.mutex)
            if not self.ended:
                if atomic_load_u32(&self.later.has_kept):
                    self.flush_locked()
                if self.later.size == self.later.at:
                    self.push(&data, &size)
                if size:
                    waits = True
                    kept = self.keep(data, size)
                    if not kept:
                        # What came out may be half a frame. Both ends begin anew, with the next
                        # connection.
                        self.ended = True
                        shutdown(self.descriptor, SHUT_RDWR)
            pthread_mutex_unlock(&self.mutex)
        if waits:
            self.ring()
        if not kept:
            import logging

            logging.getLogger("pulsarx").error(
                "a connection between processes is ended: no memory for %d bytes that wait for it",
                size)
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
        cdef size_t needed = self.later.size + size
        cdef size_t capacity = self.later.capacity
        cdef uint8_t* grown
        if needed > capacity and self.later.at:
            self.later.size -= self.later.at
            memmove(self.later.data, self.later.data + self.later.at, self.later.size)
            self.later.at = 0
            needed = self.later.size + size
        if needed > capacity:
            while capacity < needed:
                capacity = 2 * capacity if capacity else <size_t>LATER_MIN
            grown = <uint8_t*>realloc(self.later.data, capacity)
            if grown == NULL:
                return False
            self.later.data = grown
            self.later.capacity = capacity
        memcpy(self.later.data + self.later.size, data, size)
        self.later.size = needed
        self.count_waiting()
        return True

    cpdef int wake(self) except -1:
        self.asked = True
        self.ring()
        return 0

    cdef int put_due(self, LinkSender sender) except -1:
        self.put_due_here(sender)
        self.ring()
        return 0

    cdef int put_due_here(self, LinkSender sender) except -1:
        if not sender.queued:
            sender.queued = True
            sender.next_due = self.first_due
            self.first_due = sender
        return 0

    cdef int ring(self) noexcept:
        cdef uint64_t one = 1
        if atomic_swap_if_u32(&self.woken, 0, 1):
            write(self.event, &one, 8)
        return 0

    cdef int send_all_due(self) except -1:
        cdef LinkSender due = self.first_due
        cdef LinkSender sender
        self.first_due = None
        while due is not None:
            sender = due
            due = sender.next_due
            sender.next_due = None
            sender.queued = False        # first: it may be due once more meanwhile
            if not sender.send_due(self):
                self.asked = True
        return 0

    def wait(self, buffer not None, bint reads, int timeout_ms=-1) -> int:
        """Sleep until something came, or `wake` was called, or the socket took something that
        waited: the number of bytes that are in buffer now; -1: the connection has ended, and all
        that came was read. reads: whether anything is to be read. timeout_ms: -1: for ever. By the
        reading thread. was_left is True afterwards where a caller that read has left something to
        it.
        """
        cdef Py_buffer view
        cdef ssize_t came = 0
        cdef bint goes_on = True
        self.thread = PyThread_get_thread_ident()
        self.end_reading(reads)
        self.defers = False
        if self.first_due is not None:
            self.flush_kept()            # that may take long
        PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
        try:
            self.send_all_due()
            while goes_on:
                goes_on = timeout_ms < 0
                with nogil:
                    came = self.step(<uint8_t*>view.buf, <size_t>view.len, timeout_ms, &goes_on)
                    self.was_left = self.take_left()
                self.send_all_due()
                self.was_asked, self.asked = self.asked, False
                if self.was_asked or self.was_left:
                    goes_on = False
                if self.was_left and came < 0:
                    came = 0             # that came before the end, which the next call tells
        finally:
            PyBuffer_Release(&view)
        return came

    cdef ssize_t step(self, uint8_t* to, size_t size, int timeout_ms,
                      bint* goes_on) noexcept nogil:
        """See wait. goes_on: false when there is something for its caller."""
        cdef uint32_t events             # at the socket
        cdef bint rung = False
        cdef uint64_t count
        cdef ssize_t came
        # First who waits here: a process has more to do with an answer.
        self.wake_kept()
        if atomic_load_u32(&self.later.has_kept):
            self.flush()
        events = self.look(timeout_ms, &rung)
        if rung:
            read(self.event, &count, 8)
            # Before the caller looks what it was woken for.
            atomic_swap_if_u32(&self.woken, 1, 0)
        if rung or events & ~EPOLLIN:
            self.flush()
        if events & ~EPOLLIN:
            goes_on[0] = False           # there may be room
        if not events & ~EPOLLOUT or not self.begin_reading():
            return 0
        goes_on[0] = False
        while True:
            came = recv(self.descriptor, to, size, MSG_DONTWAIT)
            if came > 0:
                return came
            if came == 0 or errno not in (EAGAIN, EINTR):
                return -1
            if errno == EAGAIN:
                return 0

    cdef uint32_t look(self, int timeout_ms, bint* rung) noexcept nogil:
        """Sleep until there is something to do: what there is at the socket, as epoll has it. rung:
        set where the event was."""
        cdef pollfd sources[2]
        cdef epoll_event found[2]
        cdef uint32_t events = 0
        cdef int64_t awake_ns
        cdef int at
        if self.poller < 0:
            sources[0].events = (POLLIN if self.turn.wanted else 0) | (
                POLLOUT if atomic_load_u64(&self.later.waiting) else 0)
            # An end that hung up is always ready, also while nothing of it is to be read.
            sources[0].fd = self.descriptor if sources[0].events else -1
            sources[0].revents = 0
            sources[1].fd = self.event
            sources[1].events = POLLIN
            if waits_are_busy() and timeout_ms < 0:
                awake_ns = monotonic_ns() + SPIN_NS
                while poll(sources, 2, 0) == 0 and monotonic_ns() < awake_ns:
                    sched_yield()
            if poll(sources, 2, timeout_ms) <= 0:
                return 0                 # the time is over, or a signal came
            rung[0] = sources[1].revents != 0
            return <uint32_t>sources[0].revents
        pthread_mutex_lock(&self.reading)
        self.arm()
        pthread_mutex_unlock(&self.reading)
        for at in range(epoll_wait(self.poller, found, 2, timeout_ms)):
            if found[at].data.fd == self.event:
                rung[0] = True
            else:
                events = found[at].events
        return events

    cdef void arm(self) noexcept nogil:
        """Have the poller look for what the reading thread is to do at the socket; `reading` held.
        """
        cdef epoll_event event
        # An end that hung up is always ready, also while nothing of it is to be read: so that is
        # told once.
        event.events = EPOLLET
        if atomic_load_u64(&self.later.waiting):
            event.events = EPOLLOUT
        if self.turn.wanted and self.turn.reader != LINK_READ_BY_WAITER:
            event.events = (event.events & ~EPOLLET) | EPOLLIN
        if event.events != self.turn.armed and self.poller >= 0:
            event.data.fd = self.descriptor
            self.turn.armed = event.events
            epoll_ctl(self.poller, EPOLL_CTL_MOD, self.descriptor, &event)

    # Who reads ------------------------------------------------------------------------------------

    def let_callers_read(self, LinkTaker taker) -> None:
        """Let callers that wait read the connection themselves, for `taker`, in place of the
        reading thread. By that thread."""
        cdef int poller
        if self.poller < 0:
            low_descriptors_hold()
            poller = low_descriptors_leave(epoll_create1(EPOLL_CLOEXEC))
            if poller < 0 or not (look_for(poller, self.event, EPOLLIN)
                                  and look_for(poller, self.descriptor, self.turn.armed)):
                if poller >= 0:
                    close(poller)
                return                   # it does all the same without them
            self.poller = poller
        self.taker = taker

    cdef int end_reading(self, bint reads) except -1:
        """The reading thread has done what it read."""
        pthread_mutex_lock(&self.reading)
        if self.turn.reader == LINK_READ_BY_THREAD:
            self.turn.reader = LINK_READ_BY_NOBODY
        self.turn.wanted = reads
        pthread_mutex_unlock(&self.reading)
        wanted, self.wanted_owner = self.wanted_owner, None
        if wanted is not None:
            wait_event_wake(self.wanted_event)
        return 0

    cdef bint begin_reading(self) noexcept nogil:
        """Whether the reading thread is to read."""
        cdef bint begins
        pthread_mutex_lock(&self.reading)
        begins = self.turn.wanted and self.turn.reader != LINK_READ_BY_WAITER
        if begins:
            self.turn.reader = LINK_READ_BY_THREAD
        pthread_mutex_unlock(&self.reading)
        return begins

    cdef bint take_left(self) noexcept nogil:
        """Whether there is something that a caller left to the reading thread, which has it now."""
        cdef bint found
        pthread_mutex_lock(&self.reading)
        found = self.turn.left
        if found:                        # so nobody leads
            self.turn.left = False
            self.turn.reader = LINK_READ_BY_THREAD
        pthread_mutex_unlock(&self.reading)
        return found

    cdef bint begin_leading(self, WaitEvent* event, object owner) except -1:
        """Whether this thread reads from now on. Else the event is woken when it could, unless
        another caller reads, or a third one asks meanwhile."""
        cdef bint leads = False
        cdef bint is_led                 # by another caller
        if self.taker is None:
            return False
        if self.bell is None:
            self.bell = LinkBell()
        if self.bell.event < 0:
            return False
        pthread_mutex_lock(&self.reading)
        is_led = self.turn.reader == LINK_READ_BY_WAITER
        if not (self.turn.over or self.turn.left) and self.turn.reader == LINK_READ_BY_NOBODY:
            leads = True
            self.turn.reader = LINK_READ_BY_WAITER
            self.arm()
        pthread_mutex_unlock(&self.reading)
        if not leads and not is_led:
            self.wanted_event = event
            self.wanted_owner = owner
        return leads

    cdef int end_leading(self, bint left, bint over) except -1:
        """left: the reading thread is to go on with what the taker has."""
        pthread_mutex_lock(&self.reading)
        self.turn.reader = LINK_READ_BY_NOBODY
        self.turn.left = left
        self.turn.over = over
        self.arm()
        pthread_mutex_unlock(&self.reading)
        if left:
            self.ring()
        return 0

    cdef bint lead(self, WaitEvent* event, uint32_t seen, int64_t left_ns, list watchers,
                   object owner) except -1:
        cdef uint8_t data[LED_SIZE]
        cdef int64_t until_ns = -1
        cdef ssize_t came = 0
        cdef bint left = True            # also where something is raised
        if not self.begin_leading(event, owner):
            return False
        try:
            if left_ns >= 0:
                until_ns = monotonic_ns() + left_ns
            watchers.append(self.bell)
            while True:
                # First: whoever moves the event rings afterwards.
                self.bell.is_heard = True
                if atomic_load_u32(&event.event) != seen:
                    left = False
                    break
                with nogil:
                    came = self.step_led(data, LED_SIZE, until_ns)
                # What this thread takes moves the event, too.
                self.bell.is_heard = False
                if came < LED_TOLD:
                    left = False
                    break
                if came > 0 and not self.taker.take(data, <size_t>came):
                    break
                # Also where what comes for others does not end.
                if until_ns >= 0 and monotonic_ns() >= until_ns:
                    left = False
                    break
        finally:
            self.bell.is_heard = False
            watchers_remove(watchers, self.bell)
            self.end_leading(left, came == LED_OVER)
        return True

    cdef ssize_t step_led(self, uint8_t* to, size_t size, int64_t until_ns) noexcept nogil:
        """Sleep until something came, which is read, or one of the LED_ came true."""
        cdef pollfd sources[2]
        cdef timespec timeout
        cdef int64_t left_ns
        cdef ssize_t came
        if waits_are_busy():
            return self.spin_led(to, size, until_ns)
        sources[0].fd = self.descriptor
        sources[1].fd = self.bell.event
        sources[0].events = sources[1].events = POLLIN
        if until_ns >= 0:
            left_ns = max(until_ns - monotonic_ns(), <int64_t>0)
            timeout.tv_sec = left_ns // 1000000000
            timeout.tv_nsec = left_ns % 1000000000
        if ppoll(sources, 2, &timeout if until_ns >= 0 else NULL, NULL) <= 0:
            return LED_LATE
        if sources[1].revents:
            self.bell.hear()
        if not sources[0].revents:
            return LED_TOLD
        came = recv(self.descriptor, to, size, MSG_DONTWAIT)
        if came > 0:
            return came
        return LED_TOLD if came < 0 and errno in (EAGAIN, EINTR) else LED_OVER

    cdef ssize_t spin_led(self, uint8_t* to, size_t size, int64_t until_ns) noexcept nogil:
        """Look for it without sleeping, as step_led."""
        cdef int64_t late_ns = monotonic_ns() + SPIN_NS
        cdef ssize_t came
        if until_ns >= 0:
            late_ns = min(late_ns, until_ns)
        while True:
            came = recv(self.descriptor, to, size, MSG_DONTWAIT)
            if came > 0:
                return came
            if came == 0 or errno not in (EAGAIN, EINTR):
                return LED_OVER
            if atomic_load_u32(&self.bell.rung):
                self.bell.hear()
                return LED_TOLD
            if monotonic_ns() >= late_ns:
                return LED_LATE
            sched_yield()

    cdef void flush(self) noexcept nogil:
        """Give the socket what waits."""
        pthread_mutex_lock(&self.mutex)
        self.flush_locked()
        pthread_mutex_unlock(&self.mutex)

    cdef void flush_locked(self) noexcept nogil:
        cdef const uint8_t* data
        cdef size_t size
        atomic_store_u32(&self.later.has_kept, 0)
        data = self.later.data + self.later.at
        size = self.later.size - self.later.at
        self.push(&data, &size)
        self.later.at = self.later.size - size
        if size == 0:
            self.later.at = self.later.size = 0
        self.count_waiting()

    cdef void count_waiting(self) noexcept nogil:
        """Tell how much waits to threads that have no mutex; mutex held."""
        atomic_store_u64(&self.later.waiting, self.later.size - self.later.at)

    def end(self) -> None:
        """Send nothing any more. Nobody reads it."""
        self.taker = None
        pthread_mutex_lock(&self.mutex)
        self.ended = True
        self.later.at = self.later.size = 0
        self.count_waiting()
        pthread_mutex_unlock(&self.mutex)
        # Given back here and not by the collector. Whoever rings has the GIL; who arms, `reading`.
        pthread_mutex_lock(&self.reading)
        if self.poller >= 0:
            close(self.poller)
        self.poller = -1
        if self.bell is not None and self.bell.event >= 0 and (
                self.turn.reader != LINK_READ_BY_WAITER):
            close(self.bell.event)       # else who sleeps on it lets it go
            self.bell.event = -1
        pthread_mutex_unlock(&self.reading)
        if self.event >= 0:
            close(self.event)
        self.event = -1


# As Python knows them.
ACKNOWLEDGE = LINK_ACKNOWLEDGE
ACKNOWLEDGE_THROUGH = LINK_ACKNOWLEDGE_THROUGH
NACK = LINK_NACK
GIVE_BACK = LINK_GIVE_BACK
FLOW = LINK_FLOW
REWIND = LINK_REWIND
RESET_DONE = LINK_RESET_DONE
SEQUENCE_NOTED = LINK_SEQUENCE_NOTED
GIVEN_UP = LINK_GIVEN_UP
EXPIRED = LINK_EXPIRED
SENT_AT = LINK_SENT_AT
RUN = LINK_RUN
CHUNK = LINK_CHUNK
RESET = LINK_RESET
ACTIVE = LINK_ACTIVE
CLOSED = LINK_CLOSED
RECORDED = LINK_RECORDED
TTL = LINK_TTL
SEQUENCE = LINK_SEQUENCE

# In the place of the last sequence id where a topic tells no duplicates; -1: it knows of none.
NOT_DEDUPLICATED = -2


def frame(int kind, uint64_t consumer_id, uint64_t first=0, uint64_t second=0, uint64_t third=0,
          uint64_t fourth=0) -> bytes:
    """The bytes of a fixed frame."""
    cdef uint8_t found[LINK_FRAME_SIZE]
    link_frame_put(found, kind, consumer_id, first, second, third, fourth)
    return PyBytes_FromStringAndSize(<const char*>found, LINK_FRAME_SIZE)
