"""The hot calls of consumers and readers: receive, acknowledge. Beneath pulsarx.Consumer and
pulsarx.Reader."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.consume.consumer_host cimport ConsumerHost
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.message.message cimport Message
from pulsarx._pycore.wire.command_takers cimport AckTaker

cdef enum ConsumerState:
    CONSUMER_OPEN = 1
    CONSUMER_CLOSED = 2
    CONSUMER_FORKED = 3


cdef bint is_met_again(object error, uint64_t raised) except -1
"""Whether the next call raises it too, so that this one may return what it has: not what a signal
handler raised."""


cdef class ConsumerCore(AckTaker):
    cdef readonly Dispatcher dispatcher
    cdef readonly EntrySink receiver      # the dispatcher's side; guarded by core.mutex
    cdef SubscriptionCore core
    cdef ConsumerHost host
    cdef IntervalJob flush               # the host's; None: a reader
    cdef uint32_t state                  # ConsumerState
    cdef int owner_pid                   # FORKED: the process that opened it
    cdef bint zero_queue                 # receive takes no timeout
    cdef list watchers                   # what to call when it is shut; None: nobody watches
    cdef object __weakref__

    cdef bint wait(self, Deadline deadline) except -1
    cdef int fetch_key(self) except -1
    """With no mutex held: read what the receiver's entry needs to be decrypted."""

    cdef bint look(self, bint later=*) except -1
    cdef int stop_asking(self) except -1
    cdef bint settle(self, int status, uint64_t ledger_id, uint64_t message) except -1
    cdef int after(self) except -1
    cdef int tell(self, object damage, bint passed) except -1
    cdef int refuse(self, object message, int64_t delay_ms) except -1
    cdef int refuse_later(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    cdef int refuse_foreign(self, Message message) except -1
    cdef int check_open(self) except -1
    cdef int check_open_or_closed(self) except -1
    cdef int record(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    cdef Py_ssize_t record_listed(self, list messages, Py_ssize_t at) except -1
    cdef Py_ssize_t record_there(self, list messages, Py_ssize_t at) except -1
    cdef int record_through(self, uint64_t ledger_id, uint64_t end) except -1
    cdef bint keep_chunks(self, uint64_t ledger_id, uint64_t end) except -1
    cdef int find(self, object message, uint64_t* ledger_id, uint64_t* first,
                  uint64_t* count) except -1
    cdef int check_transacts(self) except -1
    cdef int find_in(self, object message, uint64_t* ledger_id, uint64_t* first,
                     uint64_t* count) except -1
    cdef int acknowledge_within(self, object transaction, list messages) except -1
    cdef int acknowledge_runs_within(self, object transaction, list runs) except -1
    cdef int acknowledge_through_within(self, object transaction, object message) except -1
    cdef int add_within(self, TransactionCore transaction, list runs) except -1
    cdef int add_through_within(self, TransactionCore transaction, object message) except -1
