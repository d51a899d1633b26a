"""Columns of received messages as they grow, in Arrow layout. For consumer_arrow, arrow_export and
range_block.

One thread fills a block; from arrow_block_finish on it never changes and any thread may read it,
as long as it holds a reference. Columns that are null in every row are not stored.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef struct TextColumn:
    int32_t* offsets         # NULL until the first value
    uint8_t* data
    int64_t data_size
    int64_t data_capacity
    int64_t count            # of values that are there
    int64_t capacity         # of offsets, where they are not one for each message

cdef struct AckRun:
    uint64_t ledger_id
    uint64_t first           # ordinal in the ledger
    uint64_t count

cdef struct ArrowBlock:
    uint32_t references
    int64_t row_count
    int64_t row_capacity
    int64_t* ledger_ids
    int64_t* entry_ids
    int32_t* partitions
    int32_t* batch_indexes
    int64_t* publish_times
    int32_t* value_offsets
    uint8_t* value_data
    int64_t value_size
    int64_t value_capacity
    uint8_t* value_validity  # NULL: no nulls
    int64_t value_nulls
    TextColumn key
    uint8_t* key_validity    # NULL: no key at all, as with event_times
    int64_t* event_times
    uint8_t* event_validity
    int64_t event_count
    int32_t* property_offsets    # NULL: no property at all
    TextColumn property_key
    TextColumn property_value
    uint8_t* zeros           # stands for every column that is not stored
    AckRun* runs
    int64_t run_count
    int64_t run_capacity

cdef struct BlockEntry:
    const uint8_t* payload       # of the entry, plain
    const uint8_t* metadata      # of the entry
    uint32_t payload_size
    uint32_t metadata_size
    uint32_t flags               # MetadataFlags of the entry
    uint32_t message_count
    uint64_t ledger_id
    uint64_t entry_id
    uint64_t first_message
    int64_t publish_time_ms

cdef ArrowBlock* arrow_block_new() noexcept nogil
"""NULL: no memory. The caller holds the one reference."""

cdef void arrow_block_hold(ArrowBlock* self) noexcept nogil
cdef void arrow_block_release(ArrowBlock* self) noexcept nogil

cdef int arrow_block_reserve(ArrowBlock* self, int64_t rows, int64_t value_bytes) noexcept nogil
"""Have room for so much more. STATUS_NO_MEMORY: nothing was lost."""

cdef int arrow_block_take_batch(ArrowBlock* self, const BlockEntry* entry, uint32_t* at,
                                uint32_t* index, uint32_t until) noexcept nogil
"""Append messages index[0]..until-1 of a batch; at and index move over what was appended.

STATUS_TOO_LARGE: a column would pass 2 GiB; the rest of the entry goes into the next block.
Room is made here. Any other status: the message at index[0] is damaged.
"""

cdef int arrow_block_take_single(ArrowBlock* self, const BlockEntry* entry) noexcept nogil
cdef int arrow_block_finish(ArrowBlock* self, int32_t partition) noexcept nogil

cdef int text_column_append(TextColumn* column, const uint8_t* data, uint32_t size) noexcept nogil
"""Append a row of UTF-8, of a column that has no row for each message. STATUS_TOO_LARGE: it would
pass 2 GiB; NO_MEMORY."""

cdef void text_column_cut(TextColumn* column, int64_t count) noexcept nogil
"""Keep the first count values; offsets must be one for each value."""

cdef void text_column_free(TextColumn* column) noexcept nogil
