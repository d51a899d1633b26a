"""Builds the sparse index and searches it."""

from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport atomic_load_u64, atomic_store_u64
from pulsarx._core.invariant cimport invariant

cdef extern from *:
    """
    static inline int highest_bit(uint64_t value) { return 63 - __builtin_clzll(value); }
    """
    int highest_bit(uint64_t value) noexcept nogil


cdef void ledger_index_init(LedgerIndex* self) noexcept nogil:
    memset(self, 0, sizeof(LedgerIndex))
    self.publish_max_ms = INT64_MIN


cdef void ledger_index_map(LedgerIndex* self, const uint8_t* records,
                           uint64_t count) noexcept nogil:
    ledger_index_init(self)
    self.mapped = records
    self.count = count


cdef void ledger_index_free(LedgerIndex* self) noexcept nogil:
    cdef uint32_t chunk
    for chunk in range(INDEX_CHUNKS_MAX):
        free(self.chunks[chunk])
    ledger_index_init(self)


cdef void ledger_index_add(LedgerIndex* self, uint64_t offset, uint64_t entry_id,
                           uint64_t first_message,
                           bint always) noexcept nogil:
    cdef uint64_t place = self.count + 64
    cdef int chunk = highest_bit(place) - 6
    cdef IndexRecord* record
    if not always and offset < self.next_offset and entry_id < self.next_entry:
        return
    if chunk >= INDEX_CHUNKS_MAX:
        return
    if self.chunks[chunk] == NULL:
        self.chunks[chunk] = <IndexRecord*>malloc((<size_t>64 << chunk) * sizeof(IndexRecord))
        if self.chunks[chunk] == NULL:
            return
    record = self.chunks[chunk] + (place - (<uint64_t>64 << chunk))
    record.offset = offset
    record.entry_id = entry_id
    record.first_message = first_message
    record.publish_max_ms = self.publish_max_ms
    self.next_offset = offset + INDEX_STEP_SIZE
    self.next_entry = entry_id + INDEX_STEP_ENTRIES
    atomic_store_u64(&self.count, self.count + 1)


cdef void ledger_index_record(const LedgerIndex* self, uint64_t position,
                              IndexRecord* record) noexcept nogil:
    cdef uint64_t place = position + 64
    cdef int chunk = highest_bit(place) - 6
    invariant(position < atomic_load_u64(&self.count))
    if self.mapped != NULL:
        memcpy(record, self.mapped + position * INDEX_RECORD_SIZE, INDEX_RECORD_SIZE)
    else:
        record[0] = self.chunks[chunk][place - (<uint64_t>64 << chunk)]


cdef inline bint record_usable(const IndexRecord* record, int kind, uint64_t value,
                               uint64_t end) noexcept nogil:
    if record.offset >= end:
        return False
    if kind == FIND_ENTRY:
        return record.entry_id <= value
    if kind == FIND_MESSAGE:
        return record.first_message <= value
    return record.publish_max_ms < <int64_t>value or record.publish_max_ms == INT64_MIN


cdef bint ledger_index_before(const LedgerIndex* self, int kind, uint64_t value, uint64_t end,
                              IndexRecord* record) noexcept nogil:
    cdef uint64_t low = 0
    cdef uint64_t high = atomic_load_u64(&self.count)
    cdef uint64_t middle
    cdef IndexRecord found
    while low < high:
        middle = low + (high - low) // 2
        ledger_index_record(self, middle, &found)
        if record_usable(&found, kind, value, end):
            record[0] = found
            low = middle + 1
        else:
            high = middle
    return low > 0
