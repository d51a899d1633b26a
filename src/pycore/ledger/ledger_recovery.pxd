"""LedgerRecovery: the result of recovering a ledger file. A value; anybody may read it."""

from libc.stdint cimport uint8_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_footer cimport LedgerHeader
from pulsarx._core.ledger_recover cimport LedgerPublished, LedgerRecover

cdef class LedgerRecovery:
    cdef LedgerRecover* c_recover        # owned
    cdef readonly object ledger_id, path
    # of entries of transactions: first message, and behind the last, of each run, ascending
    cdef readonly list transacted
    # of those whose metadata name the transaction: its number, first message, and behind the last
    cdef readonly list named

cdef LedgerRecovery ledger_recovery_scan(const LedgerHeader* header, bint unborn, bint headless,
                                         const uint8_t* base, uint64_t size, object ledger_id,
                                         object path, const LedgerPublished* published)

cdef bint entry_transaction(const uint8_t* at, const EntryFrame* frame,
                            uint64_t* number) noexcept nogil
"""The number of the transaction that the metadata of an entry name. at: its frame. False: none."""
