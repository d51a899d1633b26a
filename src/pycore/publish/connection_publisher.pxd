"""An EntryPublisher that sends the entries of a producer over a connection, unchanged, and confirms
them as the broker at the other end does.

It keeps what is not answered. Over a link that ended it sends nothing until `resume` gives it the
next one: what the broker has stored by then is confirmed, and the rest is sent again.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.locks cimport Condition
from pulsarx._pycore.ground.owner_link cimport OwnerLink
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt


cdef class SentEntry:
    """An entry that is not answered."""
    cdef uint64_t sequence_id
    cdef Receipt receipt
    cdef uint32_t message_count
    cdef list callbacks
    cdef int64_t last_sequence_id        # of its last message
    cdef bint awaited
    cdef bint was_sent                   # it may be stored: it went out, and was not refused
    cdef bytes entry
    cdef int64_t expires_ms              # monotonic; 0: never
    cdef bint given_up                   # its send has timed out: whoever waited was told
    cdef bint compared                   # its ids tell whether it is a duplicate
    # One of batches by key that belong to one another, and not the first: its ids may lie below
    # those of the ones before it.
    cdef bint joined
    cdef bint is_part                    # a chunk, and not the last one
    cdef bint continues                  # a chunk, and not the first one
    cdef TransactionCore transaction     # it belongs to; None: to none
    # It belongs to a transaction that ended with its owner: it is not sent again, and is refused
    # when it is the oldest.
    cdef bint is_void


cdef struct StoredIds:
    # What is sent now is to be compared with what is stored. What was sent before the broker said
    # that it tells duplicates is not: its ids may lie below those of others of the same name.
    bint compares
    bint joins                           # the next entry is `joined`
    int64_t highest                      # that is known to be stored, or -1
    int64_t before                       # that, before the first of what is joined


cdef struct SendTimes:
    int64_t timeout_ms                   # of a send; 0: never
    int64_t leave_ms                     # how long a producer that closes waits; 0: without end
    bint is_leaving                      # and leave_ms is what counts
    int64_t said_ms                      # the time of sends that the broker was told last


cdef class ConnectionPublisher(EntryPublisher):
    cdef OwnerLink link                  # None: there is no connection
    cdef object encode                   # native: the frame of a SEND
    cdef uint64_t number                 # of the producer, on the link
    cdef StoredIds stored
    cdef uint64_t link_count             # entries that went out over the link
    cdef object pending                  # deque of SentEntry, the oldest first
    cdef dict refused                    # receipt: why it failed, until its `wait` is told
    cdef object failure                  # of an entry that nobody waited for
    cdef object broken                   # why a chunk failed: so does its message; None: none did
    cdef object ended                    # why nothing is taken any more; None: it is
    cdef Condition answered              # answered_count grew
    cdef uint64_t sent_count             # entries
    cdef uint64_t answered_count         # or given up
    cdef object last                     # (ledger id, entry id) of what was confirmed last, or None
    cdef ClockCore clock                 # of the send timeout
    cdef SendTimes times
    cdef Timer timer
    cdef str held_by                     # why the broker takes nothing for now; None: it does
    cdef str what                        # is sent to, for the text of a timeout
    cdef public object transacts_in      # the folder whose transactions it takes; None: of none
    cdef object unserved                 # (within): what is said of an owner that does not answer
    cdef object __weakref__

    cdef bytes command_of(self, SentEntry sent)
    cdef int refuse_void(self) except -1
    cdef int wait_until(self, uint64_t count) except -1
    cdef int tell(self) except -1
    cdef SentEntry take_oldest(self)
    cdef int confirm_once(self, SentEntry sent, uint64_t ledger_id, uint64_t entry_id,
                          list kept) except -1
    cdef int refuse_once(self, SentEntry sent, error) except -1
    cdef int confirm(self, SentEntry sent, uint64_t ledger_id, uint64_t entry_id,
                     list kept) except -1
    cdef Py_ssize_t place_in_pending(self, bytes entry) except -2
    cdef int refuse_oldest(self, error) except -1
    cdef int refuse(self, SentEntry sent, error) except -1
    cdef int arm_timeout(self) except -1
    cdef int say_sent_at(self, int64_t sent_ms) except -1
    cdef int expire(self, str silent=*) except -1
    cdef str within(self)
    cdef object timeout(self, SentEntry sent, str silent)
