"""The hot calls of consumers and readers: receive, acknowledge. Beneath pulsarx.Consumer and
pulsarx.Reader."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.dispatcher cimport Dispatcher
from pulsarx._pycore.entry_view cimport EntryView
from pulsarx._pycore.message cimport Message

cdef enum ConsumerState:
    CONSUMER_OPEN = 1
    CONSUMER_CLOSED = 2
    CONSUMER_FORKED = 3


cdef class ConsumerCore:
    cdef readonly Dispatcher dispatcher
    cdef object subscription             # Subscription or ReaderCursor of the broker
    # the entry being handed out; guarded by the dispatcher's mutex
    cdef EntryView view
    cdef uint64_t view_generation
    cdef uint32_t view_at                # offset of its next message in the payload
    cdef uint32_t view_index             # batch index of its next message
    cdef bint view_filtered              # some of its messages are not wanted
    cdef uint32_t state                  # ConsumerState
    cdef bint zero_queue                 # receive takes no timeout
    cdef bint flush_armed                # a flush of the acknowledgements is due already
    cdef object __weakref__

    cdef Message take(self)
    cdef bint fill(self) except -1
    cdef bint wait(self, object deadline) except -1
    cdef bint is_whole(self, EntryView view) noexcept
    cdef object deadline(self, object timeout_millis)
    cdef bint settle(self, int status, uint64_t ledger_id, uint64_t message) except -1
    cdef int refuse_foreign(self, Message message) except -1
    cdef int check_open(self) except -1
    cdef int check_open_or_closed(self) except -1
    cdef int record(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
