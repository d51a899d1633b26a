"""LedgerSummary: the counts, times and damage that the footer of a sealed ledger states. Values;
anybody may use them."""

from pulsarx._core.ledger_footer cimport LedgerFooter

cdef class LedgerSummary:
    cdef readonly object entry_count, message_count, size, first_publish_ms, last_publish_ms
    cdef readonly object digest, damage_count, torn_size
    cdef readonly bint recovered

cdef LedgerSummary ledger_summary(const LedgerFooter* footer)
