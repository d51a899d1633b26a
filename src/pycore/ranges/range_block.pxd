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
    RANGE_COLUMN_COUNT = 7
    # What is found in the header of a message alone, and not in its place or its payload.
    RANGE_DESCRIBED = RANGE_KEY | RANGE_EVENT_TIME | RANGE_PROPERTIES

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
    int64_t* publish_times           # microseconds, as event_times
    int64_t* event_times
    uint8_t* event_validity
    int64_t event_count
    int32_t* property_offsets
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
"""As take_batch, of an entry that is no batch."""
