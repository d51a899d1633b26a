"""The state of one subscription: which messages of the topic's ledgers are acknowledged.

Every call is made with the subscription's mutex held, except `flush` and `dirty`, which the timer
thread uses without it. A message is (ledger id, ordinal): message m of entry e has the ordinal
first_message(e) + batch index.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.cursor_record cimport CursorTail
from pulsarx._core.cursor_sections cimport RestoredMessage
from pulsarx._core.cursor_state cimport CursorState, LedgerAcks
from pulsarx._pycore.cursor.cursor_store cimport CursorStore
from pulsarx._pycore.cursor.kept_sections cimport KeptSections
from pulsarx._pycore.cursor.sections_source cimport SectionsSource

cdef class AckTracker:
    cdef CursorState c_state
    cdef CursorTail* c_tail             # of the store; NULL without one
    cdef uint32_t c_dirty               # atomic; 1: a record is not flushed yet
    cdef uint32_t c_closed
    cdef CursorStore store              # None: nothing is kept
    cdef KeptSections kept
    cdef SectionsSource sections_source
    """Asked for redelivery counts and due times at every fold; None: what was loaded is kept."""

    cdef int acknowledge(self, uint64_t ledger_id, uint64_t first_message, uint64_t count,
                         uint64_t* newly) noexcept nogil
    """Acknowledge count messages from first_message on, in memory and in the tail: from then on a
    kill loses none.

    newly: how many were not acknowledged before; 0 unless OK. The caller has checked that messages
    of an open ledger exist.
    DUPLICATE: all were, or the ledger is below the mark-delete position and forgotten. FOLD:
    nothing was done; call fold() and repeat. OUT_OF_RANGE: the topic has no such ledger or the
    sealed ledger no such message. NO_MEMORY, CLOSED.
    """

    cdef int acknowledge_through(self, uint64_t ledger_id, uint64_t message_end) noexcept nogil
    """Cumulative: all earlier ledgers, and of this one everything below message_end.

    Statuses as of acknowledge.
    """

    cdef int record_redelivery(self, uint64_t ledger_id, uint64_t message,
                               uint32_t count) noexcept nogil
    """Keep in the tail that the message was redelivered count times in all, over what was kept
    before: from then on a kill loses it not.

    count: 1 or more; above CURSOR_REDELIVERIES_MAX it counts as that. FOLD: nothing was done; call
    fold() and repeat. DUPLICATE: the message is acknowledged, nothing is to be kept. OUT_OF_RANGE,
    CLOSED as of acknowledge. Without a store: checked, not kept.
    """

    cdef int take_restored(self, RestoredMessage** counts, size_t* counted,
                           RestoredMessage** due, size_t* due_count) except -1
    """Take the redelivery counts and due_ms that the cursor kept of single messages, ascending by
    (ledger id, ordinal).

    The caller frees the arrays with free(); NULL when empty. Messages that are acknowledged or that
    the topic does not hold are left out: call it when it was told the ledgers.
    With a sections_source set, what was loaded is forgotten: the caller keeps it from now on.
    """

    cdef bint is_acknowledged(self, uint64_t ledger_id, uint64_t message) noexcept nogil
    cdef uint64_t next_unacknowledged(self, uint64_t ledger_id, uint64_t message,
                                      uint64_t end) noexcept nogil
    """The first message of [message, end) that is not acknowledged, else end."""

    cdef void mark_delete_position(self, uint64_t* ledger_id, uint64_t* message) noexcept nogil
    """The first unacknowledged message; behind the last one when there is none."""

    cdef int acknowledge_slow(self, LedgerAcks* ledger, uint64_t first_message, uint64_t count,
                              uint64_t* newly) noexcept nogil
    cdef LedgerAcks* found(self, object ledger_id) except NULL
    cdef void end(self) noexcept
    cdef int check_open(self) except -1
    cdef int copy_ledgers(self, CursorState* target) except -1
    cdef bytes ledgers_section(self)
    cdef int write(self, dict sections) except -1
    cdef int load(self) except -1
    cdef int load_ledgers(self, bytes section) except -1
    cdef int load_tail(self) except -1
