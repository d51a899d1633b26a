"""The sparse index of a ledger: where to start looking for an entry. One writer; any number of
readers beside it.

It lives in chunks that never move while a ledger is open, or in the mapping of a sealed one. A
record (32 bytes):

  offset  size  field            meaning
       0     8  offset           of a frame
       8     8  entry_id         of that entry
      16     8  first_message    messages in the file before that entry
      24     8  publish_max_ms   greatest publish time before it; for the first INT64_MIN
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum LedgerIndexSizes:
    INDEX_RECORD_SIZE = 32
    INDEX_STEP_SIZE = 65536            # a record at least every so many bytes
    INDEX_STEP_ENTRIES = 256           # or entries
    INDEX_CHUNKS_MAX = 26              # chunk n holds 64 << n records

cdef enum LedgerFind:
    FIND_ENTRY = 1                    # first entry with entry_id >= value
    FIND_MESSAGE = 2                  # the entry that holds the message with this ordinal
    FIND_PUBLISH_TIME = 3             # first entry with publish_time_ms >= value

cdef struct IndexRecord:
    uint64_t offset
    uint64_t entry_id
    uint64_t first_message
    int64_t publish_max_ms

cdef struct LedgerIndex:
    uint64_t count                     # atomic
    const uint8_t* mapped              # records of a sealed file, borrowed; else NULL
    IndexRecord* chunks[INDEX_CHUNKS_MAX]
    uint64_t next_offset               # the first entry at or behind these gets a record
    uint64_t next_entry
    int64_t publish_max_ms

cdef void ledger_index_init(LedgerIndex* self) noexcept nogil
cdef void ledger_index_map(LedgerIndex* self, const uint8_t* records, uint64_t count) noexcept nogil
cdef void ledger_index_free(LedgerIndex* self) noexcept nogil

cdef void ledger_index_add(LedgerIndex* self, uint64_t offset, uint64_t entry_id,
                           uint64_t first_message,
                           bint always) noexcept nogil
"""Make a record of this entry, unless the last one is near and always is false. Out of memory: no
record."""

cdef inline void ledger_index_note(LedgerIndex* self, uint64_t offset, uint64_t entry_id,
                                   uint64_t first_message, int64_t publish_time_ms) noexcept nogil:
    """To be called for every entry in order."""
    if offset >= self.next_offset or entry_id >= self.next_entry:
        ledger_index_add(self, offset, entry_id, first_message, False)
    if publish_time_ms > self.publish_max_ms:
        self.publish_max_ms = publish_time_ms

cdef void ledger_index_record(const LedgerIndex* self, uint64_t position,
                              IndexRecord* record) noexcept nogil
"""position: below count."""

cdef bint ledger_index_before(const LedgerIndex* self, int kind, uint64_t value, uint64_t end,
                              IndexRecord* record) noexcept nogil
"""The last record below end from which what is looked for (LedgerFind) can still be reached.
False: none."""
