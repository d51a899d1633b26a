"""The state of one subscription: which messages of the topic's ledgers are acknowledged.

Every call is made with the subscription's mutex held, except `flush` and `dirty`, which the timer thread uses without it.
A message is (ledger id, ordinal): message m of entry e has the ordinal first_message(e) + batch index.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.ack_bits cimport AckBits
from pulsarx._core.cursor_record cimport CursorTail
from pulsarx._pycore.cursor_store cimport CursorStore

cdef struct LedgerAcks:
    uint64_t ledger_id
    uint64_t message_count      # CURSOR_MESSAGE_END while the ledger is open
    uint32_t whole              # every message it will ever hold is acknowledged, their number is not known yet
    uint32_t sealed
    AckBits bits

cdef class AckTracker:
    cdef LedgerAcks* c_ledgers          # owned, ascending by ledger id
    cdef uint64_t c_ledger_count
    cdef uint64_t c_ledger_capacity
    cdef LedgerAcks* c_last             # the ledger of the last call, inside c_ledgers; NULL: none
    cdef uint64_t c_mark_index          # ledgers before it are sealed and wholly acknowledged
    cdef uint64_t c_acknowledged_below  # ledgers with a smaller id are wholly acknowledged, known or not
    cdef CursorTail* c_tail             # of the store; NULL without one
    cdef CursorTail c_no_tail           # capacity 0
    cdef uint32_t c_dirty               # atomic; 1: a record is not flushed yet
    cdef uint32_t c_closed
    cdef CursorStore store              # None: nothing is kept
    cdef dict sections

    cdef int acknowledge(self, uint64_t ledger_id, uint64_t first_message, uint64_t count,
                         uint64_t* newly) noexcept nogil
    """Acknowledge count messages from first_message on, in memory and in the tail: from then on a kill loses none.

    newly: how many were not acknowledged before; 0 unless OK. The caller has checked that messages of an open ledger exist.
    DUPLICATE: all were, or the ledger is below the mark-delete position and forgotten. FOLD: nothing was done; call
    fold() and repeat. OUT_OF_RANGE: the topic has no such ledger or the sealed ledger no such message. NO_MEMORY, CLOSED.
    """

    cdef int acknowledge_through(self, uint64_t ledger_id, uint64_t message_end) noexcept nogil
    """Cumulative: all earlier ledgers, and of this one everything below message_end. Statuses as of acknowledge."""

    cdef bint is_acknowledged(self, uint64_t ledger_id, uint64_t message) noexcept nogil
    cdef uint64_t next_unacknowledged(self, uint64_t ledger_id, uint64_t message, uint64_t end) noexcept nogil
    """The first message of [message, end) that is not acknowledged, else end."""

    cdef void mark_delete_position(self, uint64_t* ledger_id, uint64_t* message) noexcept nogil
    """The first unacknowledged message; behind the last one when there is none."""

    cdef LedgerAcks* find(self, uint64_t ledger_id) noexcept nogil
    cdef LedgerAcks* insert(self, uint64_t ledger_id) noexcept nogil
    cdef int record_run(self, uint64_t ledger_id, uint64_t first_message, uint64_t count) noexcept nogil
    cdef int apply_through(self, uint64_t ledger_id, uint64_t message_end, uint64_t* newly) noexcept nogil
    cdef int load(self) except -1
    cdef bytes snapshot(self)
