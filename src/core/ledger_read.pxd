"""Reads entries out of a mapped ledger file, never past the end it is given. Any number of
readers."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_index cimport LedgerIndex

cdef struct LedgerRead:
    const uint8_t* base               # the mapping, borrowed
    uint64_t mapped_size
    uint32_t seed

cdef struct LedgerGap:                # a place that cannot be read
    uint64_t offset                   # where it begins; 0: there is none
    uint64_t entry_id                 # of the entry that belongs there
    uint64_t first_message            # of that entry

cdef int ledger_read_frame(const LedgerRead* self, uint64_t offset, uint64_t end,
                           EntryFrame* frame) noexcept nogil
"""The frame alone, verified. STATUS_END at offset == end."""

cdef int ledger_read_entry(const LedgerRead* self, uint64_t offset, uint64_t end,
                           EntryFrame* frame, const uint8_t** entry,
                           uint64_t* next_offset) noexcept nogil
"""An entry with its frame, both checksums verified, padding checked. STATUS_END at offset == end.

CORRUPT: frame (if it could be read) and next_offset are set only if the frame itself is good, so
that a caller may skip a damaged entry and go on with the next.
"""

cdef int ledger_read_find(const LedgerRead* self, int kind, uint64_t value, uint64_t end,
                          const LedgerIndex* index, uint64_t* offset,
                          LedgerGap* gap) noexcept nogil
"""Find where the entry looked for (LedgerFind) begins; only frames are verified. STATUS_END: it is
not below end.

index: may be NULL, then every frame is passed. Damaged entries are skipped: the answer may
then be a later one. gap: set by STATUS_OK and STATUS_END; the damaged place right in front of the
answer, or of end, in which what is looked for may have been. May be NULL.
"""

cdef int ledger_read_pass(const LedgerRead* self, uint64_t offset, uint64_t end,
                          uint64_t* next_offset) noexcept nogil
"""The next readable frame behind a damaged one at offset. STATUS_END: none below end."""
