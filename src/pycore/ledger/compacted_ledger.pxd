"""The ledger that a compaction of a topic wrote, mapped to be read. Immutable; any thread may call.

Its entries are those of the topic that held a survivor, each with its place in the topic
(`core/compacted_entry`), in order. Their frames number entries and survivors of this file.
"""

from libc.stdint cimport uint64_t

from pulsarx._core.compacted_entry cimport CompactedPlace
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile


cdef struct CompactedCursor:
    uint64_t offset                  # of the next frame
    uint64_t entry_id                # of that frame, in this file
    uint64_t message                 # survivors before it


cdef class CompactedLedger:
    cdef readonly LedgerFile file        # None: it cannot be read, lost_why says why
    cdef readonly uint64_t ledger_id     # of the file
    cdef readonly uint64_t end
    cdef readonly uint64_t entry_count
    cdef readonly uint64_t message_count # survivors
    cdef readonly uint64_t horizon_ledger_id
    cdef readonly uint64_t horizon_message
    cdef readonly object lost_why
    cdef object __weakref__

    cdef int find(self, uint64_t ledger_id, uint64_t message, CompactedCursor* cursor) except -1
    """Find where to read on for a position of the topic: at the first entry that ends behind it, or
    at the damaged place in which it may lie; the end when there is none."""

    cdef int begin(self, uint64_t ledger_id, uint64_t message, CompactedCursor* cursor) except -1
    cdef uint64_t offset_of(self, uint64_t ledger_id, uint64_t entry_id) except? 0
    cdef bint read_chunk(self, uint64_t offset, EntryFrame* frame, CompactedPlace* place,
                         EntryParts* parts) noexcept
    cdef tuple place_at(self, uint64_t offset)
