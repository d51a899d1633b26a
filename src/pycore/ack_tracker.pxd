"""The state of one subscription: which messages of the topic's ledgers are acknowledged.

Every call is made with the subscription's mutex held, except `flush` and `dirty`, which the timer thread uses without it.
A message is (ledger id, ordinal): message m of entry e has the ordinal first_message(e) + batch index.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.ack_bits cimport AckBits
from pulsarx._core.byte_reader cimport ByteReader
from pulsarx._core.cursor_record cimport CursorRecord, CursorTail
from pulsarx._pycore.cursor_store cimport CursorStore

cdef struct LedgerAcks:
    uint64_t ledger_id
    uint64_t message_count      # CURSOR_MESSAGE_END while the ledger is open
    uint32_t sealed
    AckBits bits

cdef class AckTracker:
    cdef LedgerAcks* c_ledgers          # owned, ascending by ledger id
    cdef uint64_t c_ledger_count
    cdef uint64_t c_ledger_capacity
    cdef LedgerAcks* c_last             # the ledger of the last call, inside c_ledgers; NULL: none
    cdef uint64_t c_acknowledged_below  # ledgers with a smaller id are wholly acknowledged, known or not
    cdef CursorTail* c_tail             # of the store; NULL without one
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

    cdef uint64_t position_of(self, uint64_t ledger_id) noexcept nogil
    cdef LedgerAcks* find(self, uint64_t ledger_id) noexcept nogil
    cdef LedgerAcks* insert(self, uint64_t ledger_id) noexcept nogil
    cdef LedgerAcks* found(self, object ledger_id) except NULL
    cdef int apply(self, const CursorRecord* record) noexcept nogil
    cdef void free_ledgers(self) noexcept nogil
    cdef void end(self) noexcept
    cdef int check_open(self) except -1
    cdef int copy_from(self, AckTracker other) except -1
    cdef void swap_with(self, AckTracker other) noexcept
    cdef uint64_t base_ledger_id(self) noexcept nogil
    cdef bytes ledgers_section(self)
    cdef bytes snapshot(self)
    cdef int load(self) except -1
    cdef int load_ledgers(self, bytes section) except -1
    cdef int load_ledger(self, ByteReader* reader, uint64_t* ledger_id) noexcept nogil
    cdef int load_tail(self) except -1
