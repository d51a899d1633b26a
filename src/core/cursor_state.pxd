"""Records which messages of a topic's ledgers are acknowledged, and encodes it as a snapshot.

One thread at a time. A ledger with an id below acknowledged_below is wholly acknowledged, whether
it is known or not.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.ack_bits cimport AckBits
from pulsarx._core.cursor_record cimport CursorRecord

cdef struct LedgerAcks:
    uint64_t ledger_id
    uint64_t message_count      # CURSOR_MESSAGE_END while the ledger is open
    uint32_t sealed
    AckBits bits

cdef struct CursorState:
    LedgerAcks* ledgers         # owned, ascending by ledger id
    uint64_t ledger_count
    uint64_t ledger_capacity
    LedgerAcks* last            # the one found last, inside ledgers; NULL: none
    uint64_t acknowledged_below

cdef void cursor_state_init(CursorState* self) noexcept nogil
cdef void cursor_state_free(CursorState* self) noexcept nogil

cdef LedgerAcks* cursor_state_search(CursorState* self, uint64_t ledger_id) noexcept nogil

cdef inline LedgerAcks* cursor_state_find(CursorState* self, uint64_t ledger_id) noexcept nogil:
    """The ledger, valid until one is added or forgotten; NULL: not known."""
    if self.last != NULL and self.last.ledger_id == ledger_id:
        return self.last
    return cursor_state_search(self, ledger_id)

cdef LedgerAcks* cursor_state_add(CursorState* self, uint64_t ledger_id) noexcept nogil
"""The ledger, added as an open one if it is not known; NULL: out of memory."""

cdef void cursor_state_seal(CursorState* self, LedgerAcks* ledger,
                            uint64_t message_count) noexcept nogil
cdef void cursor_state_forget(CursorState* self, uint64_t below_ledger_id) noexcept nogil

cdef void cursor_state_forget_unused(CursorState* self, uint64_t above_ledger_id) noexcept nogil
"""Forget the ledgers above this one of which nothing is acknowledged."""

cdef int cursor_state_apply(CursorState* self, const CursorRecord* record) noexcept nogil
"""Do what a record says; a ledger that is not known is added. Records may be applied in any order,
and twice; a CURSOR_REDELIVERED changes nothing.

DUPLICATE, OUT_OF_RANGE, NO_MEMORY as of ack_bits_add.
"""

cdef void cursor_state_reset(CursorState* self, uint64_t ledger_id, uint64_t message) noexcept nogil
"""Everything before is acknowledged, everything from there on is not."""

cdef void cursor_state_mark_delete(CursorState* self, uint64_t* ledger_id,
                                   uint64_t* message) noexcept nogil
cdef uint64_t cursor_state_base(const CursorState* self) noexcept nogil
"""The smallest ledger id that can still be acknowledged."""

cdef uint64_t cursor_state_size(const CursorState* self) noexcept nogil
cdef void cursor_state_encode(const CursorState* self, uint8_t* room, uint64_t size) noexcept nogil
cdef int cursor_state_decode(CursorState* self, const uint8_t* data, uint64_t size) noexcept nogil
"""self: initialised. TRUNCATED, CORRUPT, NO_MEMORY: it holds a part."""
