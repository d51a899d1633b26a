"""One end of the connection between a process that uses a folder and the one that owns it: bytes go
out in the order of the calls, without waiting.

A call writes to the socket itself, so what it sent is with the system when it returns: a process
that is killed then loses nothing of it. What the socket does not take waits in `later`, in order,
until the thread that reads the connection gives it that in `wait`. Any thread may call; one reads.

A caller that waits for what comes over the connection reads it itself in the meantime (`lead`), so
that one thread is woken for it and not two. Who reads is said by `turn`; the other end of it is
what the poller of the reading thread looks for:

  reader      the socket is       left by
  NOBODY      looked for          bytes that wake the reading thread; a caller that waits
  THREAD      not looked at       the next `wait`
  WAITER      not looked for      the end of `lead`

A caller may be interrupted between two instructions of Python, so it does only what a `LinkTaker`
does without any, and leaves the rest to the reading thread (`left`): from then on until that has
it nobody leads.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t
from pulsarx._core.wait_event cimport WaitEvent


cdef enum LinkFrame:
    # Fixed frames of consumers and producers: what their numbers are. To the owner:
    LINK_ACKNOWLEDGE = 1                 # ledger id, first, count
    LINK_ACKNOWLEDGE_THROUGH = 2         # ledger id, end: cumulative
    LINK_NACK = 3                        # ledger id, first, count, delay in ms
    LINK_GIVE_BACK = 4                   # ledger id, first, count: it was seen by nobody
    LINK_FLOW = 5                        # permits
    # ledger id, message (0, 0: all that is not acknowledged) to be delivered again, and all behind
    # it; ledger id, message that nobody has seen, nor what is behind it. Of Shared and Key_Shared:
    # 0, 0; 1: what waits for its time comes now; 0
    LINK_REWIND = 6
    LINK_RESET_DONE = 7                  # how many resets were done in all
    LINK_SEQUENCE_NOTED = 8              # of a producer: what follows is to be compared
    # of a producer: so many of the entries that it sent have timed out, or are answered; they are
    # not to be published any more
    LINK_GIVEN_UP = 9
    LINK_EXPIRED = 10                    # ledger id, first, count: too old to be handed out
    # of a producer: what follows was sent then or later, in ms of a clock of its own; and how long
    # its sends may take, 0: without end
    LINK_SENT_AT = 11
    # To the consumer:
    LINK_RUN = 16                        # ledger id, first, count, redelivery count
    LINK_CHUNK = 17                      # ledger id, message: before the run of its last chunk
    # permits that came, that are left, rewinds that are done, 1: the subscription was moved, or
    # another consumer reads on
    LINK_RESET = 18
    LINK_ACTIVE = 19                     # 1: it became the active one; 0: it is not any more
    LINK_CLOSED = 20                     # the owner has closed it
    LINK_RECORDED = 21                   # how many acknowledgements are recorded in all
    LINK_TTL = 23                        # ms: what is older is not to be handed out; 0: all is
    # To the producer:
    # 1 + the highest sequence id stored under its name: the topic is about to tell duplicates
    LINK_SEQUENCE = 22

cdef enum:
    # total size, 0 for the size of a command, kind, consumer id, four numbers
    LINK_FRAME_SIZE = 4 + 4 + 4 + 5 * 8


cdef class LinkSender:
    """Sends something over a connection when it is due, by the reading thread and without Python in
    between."""
    cdef LinkSender next_due
    cdef bint queued                     # in the list of those that are due

    cdef bint send_due(self, OwnerLink link) except -1
    """False: whoever called `wait` is to do it."""


cdef class LinkTaker:
    """Takes what comes over a connection and does it, as far as that needs no Python."""

    cdef bint take(self, const uint8_t* data, size_t size) except -1
    """Put bytes behind those that came before, and do what they say. False: what comes next is for
    the reading thread. By whoever reads the connection."""


cdef class LinkBell:
    """Wakes a caller that reads. Called as a watcher of what it waits for."""
    cdef int event
    cdef uint32_t rung                   # and it has not seen it
    cdef bint is_heard                   # it is about to sleep, or sleeps

    cdef void hear(self) noexcept nogil


cdef enum LinkReader:
    LINK_READ_BY_NOBODY = 0
    LINK_READ_BY_THREAD = 1
    LINK_READ_BY_WAITER = 2


cdef struct UnsentBytes:                 # what the socket has not taken yet
    uint8_t* data                        # owned
    size_t at
    size_t size
    size_t capacity
    # Read without the mutex, too: atomic.
    uint64_t waiting                     # size - at
    uint32_t has_kept                    # some that the socket was not asked to take


cdef struct ReadingTurn:                 # who reads, and what for
    int reader                           # LinkReader
    bint wanted                          # the reading thread wants what comes
    bint left                            # something is with the taker for the reading thread
    bint over                            # the end has come, which the reading thread is to meet
    uint32_t armed                       # what the poller looks for at the socket


cdef class OwnerLink:
    cdef readonly int descriptor         # of the socket, which the caller closes
    cdef object out                      # called with what is sent instead, for tests; or None
    # what the reading thread sleeps on where callers may read; -1: they may not
    cdef int poller
    cdef unsigned long thread            # the reading one
    cdef bint defers                     # that does the last of what has come; `wait` is next
    cdef WaitEvent* kept_event           # to be woken by that; NULL: none is
    cdef int event                       # wakes the reading thread
    cdef uint32_t woken                  # that was done, and it has not seen it
    cdef bint asked                      # it was for the caller of `wait`
    cdef readonly bint was_asked         # so it was when that returned
    cdef LinkSender first_due            # a list, by next_due
    cdef public size_t unsent_max        # bytes; with more there is no room
    cdef LinkTaker taker                 # of a caller that waits; None: none may read
    cdef LinkBell bell                   # wakes that caller; None: none has read yet
    cdef readonly bint was_left          # by a caller that read, when `wait` returned
    cdef WaitEvent* wanted_event         # of a caller that would have read, and sleeps on this
    cdef object wanted_owner             # keeps that; None: there is none
    # of what follows; never held for long
    cdef pthread_mutex_t reading
    cdef ReadingTurn turn
    cdef pthread_mutex_t mutex           # of what follows
    cdef UnsentBytes later
    cdef bint ended                      # nothing is sent any more

    cdef int tell(self, int kind, uint64_t consumer_id, uint64_t first, uint64_t second,
                  uint64_t third, uint64_t fourth) except -1
    """Send a fixed frame. Nothing when the connection has ended: its user is told that
    elsewhere."""

    cpdef int wake(self) except -1
    """Have `wait` return soon. In any thread and with any mutex held; one native step."""

    cdef int ring(self) noexcept
    cdef int defer(self, bint defers) noexcept
    """Whether what the reading thread does now is the last of what has come, so that it calls
    `wait` behind it."""

    cdef bint wake_soon(self, WaitEvent* event) noexcept
    """Wake an event, in memory that stays, when the reading thread has given up the GIL: whoever is
    woken before sleeps once more until then. False: not now, or this is another thread."""

    cdef void wake_kept(self) noexcept nogil
    cdef int put_due(self, LinkSender sender) except -1
    """Have the reading thread call sender.send_due soon. As `wake`."""

    cdef int put_due_here(self, LinkSender sender) except -1
    """Like put_due, by the reading thread, which is awake."""

    cdef int send_all_due(self) except -1
    cpdef bint has_room(self) except -1
    """Whether more is to be sent that may wait. When the socket has taken some, `wait` returns."""

    cdef bint lead(self, WaitEvent* event, uint32_t seen, int64_t left_ns, list watchers,
                   object owner) except -1
    """Read in the place of the reading thread until the event moves, which was entered, or the time
    is over, or a signal has come. False: another thread reads; the caller sleeps on the event,
    which is woken when it could. watchers: of the event. owner: keeps the event."""

    cdef bint begin_leading(self, WaitEvent* event, object owner) except -1
    cdef int end_leading(self, bint left, bint over) except -1
    cdef int end_reading(self, bint reads) except -1
    cdef bint begin_reading(self) noexcept nogil
    cdef bint take_left(self) noexcept nogil
    cdef void arm(self) noexcept nogil
    cdef bint keep_here(self, const uint8_t* data, size_t size) noexcept nogil
    cdef uint32_t look(self, int timeout_ms, bint* rung) noexcept nogil
    cdef int send(self, const uint8_t* data, size_t size) except -1
    cdef ssize_t step(self, uint8_t* to, size_t size, int timeout_ms,
                      bint* goes_on) noexcept nogil
    cdef ssize_t step_led(self, uint8_t* to, size_t size, int64_t until_ns) noexcept nogil
    cdef ssize_t spin_led(self, uint8_t* to, size_t size, int64_t until_ns) noexcept nogil
    cdef void flush(self) noexcept nogil
    cdef void flush_locked(self) noexcept nogil
    cdef void count_waiting(self) noexcept nogil
    cdef void push(self, const uint8_t** data, size_t* size) noexcept nogil
    cdef bint keep(self, const uint8_t* data, size_t size) noexcept nogil


cdef inline void put_u32(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef inline void put_u64(uint8_t* at, uint64_t value) noexcept nogil:
    put_u32(at, <uint32_t>(value >> 32))
    put_u32(at + 4, <uint32_t>value)


cdef inline void link_frame_put(uint8_t* at, int kind, uint64_t consumer_id, uint64_t first,
                                uint64_t second, uint64_t third, uint64_t fourth) noexcept nogil:
    """Write LINK_FRAME_SIZE bytes."""
    put_u32(at, LINK_FRAME_SIZE - 4)
    put_u32(at + 4, 0)
    put_u32(at + 8, <uint32_t>kind)
    put_u64(at + 12, consumer_id)
    put_u64(at + 20, first)
    put_u64(at + 28, second)
    put_u64(at + 36, third)
    put_u64(at + 44, fourth)
