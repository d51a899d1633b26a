"""LedgerRecovery: the result of recovering a ledger file. A value; anybody may read it."""

from libc.stdint cimport uint8_t, uint64_t

from pulsarx._core.ledger_footer cimport LedgerHeader
from pulsarx._core.ledger_recover cimport LedgerPublished, LedgerRecover

cdef class LedgerRecovery:
    cdef LedgerRecover* c_recover        # owned
    cdef readonly object ledger_id, path
    # of entries of transactions: first message, and behind the last, of each run, ascending
    cdef readonly list transacted

cdef LedgerRecovery ledger_recovery_scan(const LedgerHeader* header, bint unborn, bint headless,
                                         const uint8_t* base, uint64_t size, object ledger_id,
                                         object path, const LedgerPublished* published)
