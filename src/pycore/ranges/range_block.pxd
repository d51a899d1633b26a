"""The named columns of messages read from a ledger range, in Arrow layout. For range_reader and
range_batch.

One thread fills a block; afterwards it never changes and any thread may read it, as long as it
holds a reference. Columns that were not named are not decoded.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pulsarx._pycore.arrow.arrow_block cimport BlockEntry, TextColumn

cdef enum RangeColumn:
    RANGE_VALUE = 1
    RANGE_KEY = 2
    RANGE_TOPIC = 4
    RANGE_MESSAGE_ID = 8
    RANGE_PUBLISH_TIME = 16
    RANGE_EVENT_TIME = 32
    RANGE_PROPERTIES = 64
    RANGE_PARTITION = 128
    RANGE_LEDGER_ID = 256
    RANGE_ENTRY_ID = 512
    RANGE_BATCH_INDEX = 1024
    RANGE_SEQUENCE_ID = 2048
    RANGE_PRODUCER_NAME = 4096
    RANGE_ORDERING_KEY = 8192
    RANGE_KEY_BYTES = 16384
    RANGE_SCHEMA_VERSION = 32768
    RANGE_COLUMN_COUNT = 16
    # What is found in the header of a message alone, and not in its place or its payload.
    RANGE_DESCRIBED = (RANGE_KEY | RANGE_EVENT_TIME | RANGE_PROPERTIES | RANGE_SEQUENCE_ID
                       | RANGE_ORDERING_KEY | RANGE_KEY_BYTES)
    # What is the same for all messages of an entry and stands in its metadata.
    RANGE_OF_METADATA = RANGE_PRODUCER_NAME | RANGE_SCHEMA_VERSION

cdef enum RangeLimits:
    RANGE_ROWS_MAX = 16777216
    RANGE_BYTES_MAX = 1073741824     # with one message more every column is below 2 GiB

cdef struct ColumnOrder:
    uint32_t columns                 # all of them, as bits of RangeColumn
    uint32_t count
    uint8_t places[RANGE_COLUMN_COUNT]   # which bit the first one is, the second ...

cdef struct BytesColumn:             # all NULL: it was not asked for
    int32_t* offsets
    uint8_t* data
    int64_t size
    int64_t capacity
    uint8_t* validity
    int64_t nulls

cdef struct TopicColumn:             # the same text in all rows; shared by the blocks of a reader
    uint32_t references
    int64_t rows
    int32_t* offsets
    uint8_t* data

cdef struct RangeBlock:
    uint32_t references
    uint32_t columns                 # RangeColumn
    int32_t partition
    ColumnOrder order
    int64_t row_count
    int64_t row_capacity             # full when reached
    int64_t bytes_max                # full when values, keys and properties would pass it
    BytesColumn value
    BytesColumn key
    BytesColumn message_id
    BytesColumn ordering_key
    BytesColumn key_bytes
    int32_t* partitions
    int32_t* batch_indexes           # -1: of a message that is in no batch
    int64_t* ledger_ids
    int64_t* entry_ids
    int64_t* sequence_ids
    int64_t* schema_versions
    uint8_t* version_validity
    int64_t version_nulls
    int64_t* publish_times           # microseconds, as event_times
    int64_t* event_times
    uint8_t* event_validity
    int64_t event_count
    int32_t* property_offsets
    TextColumn producer_name
    TextColumn property_key
    TextColumn property_value
    TopicColumn* topic

cdef TopicColumn* topic_column_new(const uint8_t* name, uint32_t size, int64_t rows) noexcept nogil
"""NULL: no memory. The caller holds the one reference."""

cdef void topic_column_release(TopicColumn* self) noexcept nogil

cdef RangeBlock* range_block_new(const ColumnOrder* order, int64_t rows, int64_t bytes_max,
                                 int64_t bytes_expected, TopicColumn* topic) noexcept nogil
"""Room for so many rows. topic: NULL unless it is a column; held. NULL: no memory. The caller
holds the one reference."""

cdef void range_block_hold(RangeBlock* self) noexcept nogil
cdef void range_block_release(RangeBlock* self) noexcept nogil

cdef int range_block_take_batch(RangeBlock* self, const BlockEntry* entry, uint32_t* at,
                                uint32_t* index, uint32_t until) noexcept nogil
"""Append messages index[0]..until-1 of a batch; at and index move over what was appended.

STATUS_TOO_LARGE: the block is full; the rest of the entry goes into the next one. Any other status:
the message at index[0] is damaged, or there is no memory for it.
"""

cdef int range_block_take_single(RangeBlock* self, const BlockEntry* entry) noexcept nogil
"""Like take_batch, for an entry that is no batch."""
