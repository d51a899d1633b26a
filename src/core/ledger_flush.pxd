"""Gives one thread at a time the turn to flush a ledger, records what is durable, and publishes it
to readers. For ledger_append and ledger_prepare only.

One flush of a file runs at a time: the kernel reports a lost page to one flush only, so the thread
that gets the error must be able to tell all others. The order of the locks: the turn,
append_mutex, flush_mutex.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.ledger_state cimport LedgerAppend

cdef enum FlushCount:
    FLUSH_NOTHING = 0

cdef int ledger_flush_begin(LedgerAppend* self, uint64_t entry_count,
                            int64_t sleep_ns) noexcept nogil
"""Wait until entry_count entries are durable (STATUS_DUPLICATE) or it is the caller's turn
(STATUS_OK).

INTERRUPTED: sleep_ns is over (negative: it never is), or a signal arrived.
POISONED, CLOSED: neither will be. OUT_OF_RANGE: that many were never written.
"""

cdef void ledger_flush_turn(LedgerAppend* self) noexcept nogil
"""Wait for the turn, whatever the state."""

cdef void ledger_flush_end(LedgerAppend* self, int error, uint64_t end, uint64_t entry_count,
                           uint64_t message_count) noexcept nogil
"""Give the turn back. error: errno of the flush, it poisons. entry_count: durable now;
FLUSH_NOTHING: as before."""

cdef bint ledger_flush_ended(LedgerAppend* self) noexcept nogil
"""Say in the slot of a ledger that another one follows that it has ended, if all of it is
published. Called with flush_mutex held; True: then wake its readers, without a lock."""

cdef void ledger_poison(LedgerAppend* self, int error) noexcept nogil
cdef void ledger_publish(LedgerAppend* self, uint64_t end, uint64_t entry_count,
                         uint64_t message_count) noexcept nogil
"""Let readers see that much, but nothing that is held; then, without a lock, ledger_publish_wake.
Called with flush_mutex where publish_on_flush, else with append_mutex."""

cdef void ledger_publish_wake(LedgerAppend* self) noexcept nogil
