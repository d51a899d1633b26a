"""The hot calls of consumers and readers: receive, acknowledge. Beneath pulsarx.Consumer and
pulsarx.Reader."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.dispatch.receiver cimport Dispatcher, Receiver
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore

cdef enum ConsumerState:
    CONSUMER_OPEN = 1
    CONSUMER_CLOSED = 2
    CONSUMER_FORKED = 3


cdef class ConsumerCore:
    cdef readonly Dispatcher dispatcher
    cdef readonly Receiver receiver      # the dispatcher's side; guarded by core.mutex
    cdef SubscriptionCore core
    cdef object subscription             # Subscription or ReaderCursor of the broker
    cdef uint32_t state                  # ConsumerState
    cdef bint zero_queue                 # receive takes no timeout
    cdef bint flush_armed                # a flush of the acknowledgements is due already
    cdef object __weakref__

    cdef bint wait(self, object deadline) except -1
    cdef bint look(self) except -1
    cdef int stop_asking(self) except -1
    cdef object deadline(self, object timeout_millis)
    cdef bint settle(self, int status, uint64_t ledger_id, uint64_t message) except -1
    cdef int after(self) except -1
    cdef int tell(self, object damage, bint passed) except -1
    cdef int refuse(self, object message, int64_t delay_ms) except -1
    cdef int refuse_foreign(self, Message message) except -1
    cdef int check_open(self) except -1
    cdef int check_open_or_closed(self) except -1
    cdef int record(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    cdef int find(self, object message, uint64_t* ledger_id, uint64_t* first,
                  uint64_t* count) except -1
