"""Reads a compacted topic: up to the horizon the compacted ledger, then the topic's ledgers.

As a LedgerReader, with the ids and ordinals of the topic throughout. The position it has reached is
compared with the horizon where it begins, and where it goes on to another ledger and some behind it
were trimmed: so it does not miss what a compaction took over and trimming removed meanwhile.
Elsewhere it stays with the topic, which still has the removals of keys that were read before.
"""

from libc.stdint cimport uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ledger.compacted_ledger cimport CompactedCursor, CompactedLedger
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader


cdef class CompactedReader(LedgerReader):
    cdef object source                   # the list of ledgers; asked in the control plane alone
    cdef CompactedLedger compacted       # what is being read; None: the topic's ledgers
    cdef CompactedCursor cursor          # in it
    cdef CompactedCursor before          # of the entry read last
    # whether the position lies in front of the horizon is to be found out
    cdef bint asks
    cdef uint64_t at_ledger_id           # what lies before this position was read, or passed over
    cdef uint64_t at_message
    cdef bint was_compacted              # the entry read last is of the compacted ledger
    # What lies between the entry read last, or the begin of reading, and the next one was compacted
    # away: from this position on.
    cdef bint has_gap
    cdef uint64_t gap_ledger_id
    cdef uint64_t gap_message
    # of a place that READ_DAMAGE found in a compacted ledger; 0: it was found elsewhere
    cdef uint64_t damage_key

    cdef bint ask(self) except -1
    cdef int next_compacted(self) except -1
    cdef int lose_compacted(self, uint64_t next_offset) except -1
    cdef int leave(self) except -1
