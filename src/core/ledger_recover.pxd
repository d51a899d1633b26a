"""Recovers and seals a ledger whose owner died before sealing it. For one thread, while nothing is
appended.

What does not hold is either a torn tail, cut off, or damage, reported and kept:
  entry id below the greatest durable_count in a valid frame,
  or, durability sync, below what was published                   damage: it was flushed
  at or above it, and there are zeros where its frame belongs     torn
  ... or no valid frame follows                                   torn
  otherwise                                                       damage
A file with a seal record that holds is all flushed: nothing is torn.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.ledger_footer cimport LedgerDamage, LedgerFooter, LedgerHeader
from pulsarx._core.ledger_index cimport LedgerIndex

cdef enum LedgerRecoverSizes:
    LEDGER_DAMAGE_MAX = 1024         # as many are kept; all are counted

cdef struct LedgerPublished:          # what readers are known to have seen; zeros: nothing
    uint64_t end
    uint64_t entry_count
    uint64_t message_count

cdef struct LedgerRecover:
    LedgerHeader header
    bint unborn                      # no entries, no uuid
    bint headless                    # the header block is not in the file; header was made up
    LedgerPublished published        # beyond doubt, in durability sync
    uint64_t end                     # frames lie in 4096..end
    uint64_t entry_count             # damaged ones included
    uint64_t message_count           # damaged ones included
    int64_t first_publish_ms
    int64_t last_publish_ms          # the greatest
    uint64_t durable_count           # greatest seen
    uint64_t torn_size               # from end to the last byte that is not zero
    uint64_t damaged_entries
    uint32_t damage_count            # of damage
    uint32_t digest
    uint32_t entry_flags             # EntryFlags that any entry has
    LedgerDamage damage[LEDGER_DAMAGE_MAX]
    LedgerIndex index                # owned

cdef int ledger_recover_header(const uint8_t* base, uint64_t size, const uint8_t* uuid,
                               const uint8_t* folder_id, LedgerHeader* header) noexcept nogil
"""Make up the header of a file of size bytes that has none which holds, though its entries are
summed with this uuid. UNBORN: no frame is."""

cdef int ledger_recover_scan(LedgerRecover* self, const LedgerHeader* header, bint unborn,
                             const uint8_t* base, uint64_t size,
                             const LedgerPublished* published) noexcept nogil
"""Look through the size bytes of the mapped file of this header.

Reads only; the same bytes give the same answer. Afterwards ledger_recover_free, whatever the
answer.
"""

cdef int ledger_recover_seal(LedgerRecover* self, int fd, LedgerFooter* footer,
                             int* error) noexcept nogil
"""Write the header if the file has none, the cut record, then index and footer at end, then the
seal record, each flushed before the next.

footer: what was written. Dying in between changes nothing: the next scan finds the same entries.
UNBORN: there is nothing to seal.
NO_SPACE, IO, POISONED as ledger_append_seal. A file that is sealed: STATUS_DUPLICATE.
"""

cdef void ledger_recover_free(LedgerRecover* self) noexcept nogil
