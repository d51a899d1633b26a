"""Writes index, damage records, footer and the seal record of a ledger file. For ledger_append and
ledger_recover."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.ledger_footer cimport LedgerDamage, LedgerFooter
from pulsarx._core.ledger_index cimport LedgerIndex

cdef int ledger_seal_write(int fd, uint32_t seed, const LedgerIndex* index,
                           const LedgerDamage* damage,
                           LedgerFooter* footer, bint flush, int* error) noexcept nogil
"""footer in: end, counts, times, digest, damage_count, torn_size, flags. Out: the rest. Space
behind the footer is given back.

NO_SPACE: nothing was written. IO: a write failed. POISONED: a flush failed. error: the errno.
"""
