"""Entries on their way to the file of a ledger that nobody reads yet: written in large blocks. For
ledger_append only.

What one call writes, at a multiple of its size, becomes one folio of the page cache, and a folio of
2 MiB is one piece of a mapping. A ledger of such is written and read at twice the speed. Blocks
begin with 64 KiB and double with the file: no more waits in memory than the file has.
"""

from libc.stdint cimport uint8_t, uint64_t

cdef enum LedgerBlockSizes:
    LEDGER_BLOCK_MIN = 65536
    LEDGER_BLOCK_MAX = 2097152

cdef struct LedgerBlock:
    uint8_t* room                     # owned; NULL: there is no block
    uint64_t size                     # of room: a power of two
    uint64_t start                    # of room in the file: a multiple of size
    uint64_t written                  # up to here it is in the file
    uint64_t end                      # up to here it was appended

cdef int ledger_block_init(LedgerBlock* self, uint64_t end) noexcept nogil
"""For a file that has end bytes, less than LEDGER_BLOCK_MIN. errno."""

cdef int ledger_block_append(LedgerBlock* self, int fd, const uint8_t* data,
                             uint64_t size) noexcept nogil
"""Take size bytes; blocks that are full are written. errno: what was taken before still waits,
these bytes do not; nothing can be appended any more."""

cdef int ledger_block_write(LedgerBlock* self, int fd) noexcept nogil
"""Write what waits. errno: it still waits."""

cdef void ledger_block_free(LedgerBlock* self) noexcept nogil
"""May be called twice."""
