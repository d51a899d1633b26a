"""One end of the connection of a client to the process that owns its folder: bytes go out in the
order of the calls, without waiting.

A call writes to the socket itself, so what it sent is with the system when it returns: a process
that is killed then loses nothing of it. What the socket does not take waits in `later`, in order,
until the thread that reads the connection calls `flush`. Any thread may call; one reads.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t


cdef enum LinkFrame:
    # Fixed frames of consumers, and two of producers: what their numbers are. To the owner:
    LINK_ACKNOWLEDGE = 1                 # ledger id, first, count
    LINK_ACKNOWLEDGE_THROUGH = 2         # ledger id, end: cumulative
    LINK_NACK = 3                        # ledger id, first, count, delay in ms
    LINK_GIVE_BACK = 4                   # ledger id, first, count: it was seen by nobody
    LINK_FLOW = 5                        # permits
    LINK_REWIND = 6                      # ledger id, message (0, 0: all that is not acknowledged)
    # to be delivered again, and all behind it; ledger id, message that nobody has seen, nor what is
    # behind it. Of Shared and Key_Shared: 0, 0; 1: what waits for its time comes now; 0
    LINK_RESET_DONE = 7                  # how many resets were done in all
    LINK_SEQUENCE_NOTED = 8              # of a producer: all that follows is above LINK_SEQUENCE
    # To the consumer:
    LINK_RUN = 16                        # ledger id, first, count, redelivery count
    LINK_CHUNK = 17                      # ledger id, message: before the run of its last chunk
    LINK_RESET = 18                      # permits that came, that are left, rewinds that are done,
    # 1: the subscription was moved, or another consumer reads on
    LINK_ACTIVE = 19                     # 1: it became the active one; 0: it is not any more
    LINK_CLOSED = 20                     # the owner has closed it
    LINK_RECORDED = 21                   # how many acknowledgements are recorded in all
    # To the producer:
    LINK_SEQUENCE = 22                   # 1 + the highest sequence id stored under its name:
    # the topic is about to tell duplicates

cdef enum:
    # total size, 0 for the size of a command, kind, consumer id, four numbers
    LINK_FRAME_SIZE = 4 + 4 + 4 + 5 * 8


cdef class OwnerLink:
    cdef readonly int descriptor         # of the socket, which the caller closes
    cdef object out                      # called with what is sent instead, for tests; or None
    cdef int event                       # tells the reading thread that something waits
    cdef pthread_mutex_t mutex           # of what follows
    cdef bint ended                      # nothing is sent any more
    cdef uint8_t* later                  # owned
    cdef size_t later_at
    cdef size_t later_size
    cdef size_t later_capacity

    cdef int tell(self, int kind, uint64_t consumer_id, uint64_t first, uint64_t second,
                  uint64_t third, uint64_t fourth) except -1
    """Send a fixed frame. Nothing when the connection has ended: its user is told that
    elsewhere."""

    cdef int send(self, const uint8_t* data, size_t size) except -1
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
