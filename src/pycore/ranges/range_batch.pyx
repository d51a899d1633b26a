# cython: language_level=3
"""Body of range_batch.pxd.

  column               type                  null
  value                binary                without a value
  __key                binary                without a key
  __topic              string                never; of the partition
  __messageId          binary                never; as MessageId.serialize
  __publishTime        timestamp[us, UTC]    never
  __eventTime          timestamp[us, UTC]    without one
  __messageProperties  map<string, string>   never; empty
  __partition          int32                 never; -1: the topic has none
  __ledgerId           int64                 never
  __entryId            int64                 never
  __batchIndex         int32                 never; -1: in no batch
  __sequenceId         int64                 never
  __producerName       string                never
  __orderingKey        binary                without one
  __keyBytes           binary                without a key; base64 decoded
  __schemaVersion      int64                 written without a schema

The first seven are read where none is named. Names and types are those that Spark users know; all
are declared nullable, as Spark declares them.
"""

cimport cython
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t

from pulsarx import errors
from pulsarx._pycore.arrow.arrow_schema cimport ARROW_NULLABLE, ArrowArray, ArrowSchema
from pulsarx._pycore.arrow.arrow_struct cimport *
from pulsarx._pycore.ranges.range_block cimport (
    RANGE_BATCH_INDEX, RANGE_ENTRY_ID, RANGE_EVENT_TIME, RANGE_KEY, RANGE_KEY_BYTES,
    RANGE_LEDGER_ID, RANGE_MESSAGE_ID, RANGE_ORDERING_KEY, RANGE_PARTITION, RANGE_PRODUCER_NAME,
    RANGE_PROPERTIES, RANGE_PUBLISH_TIME, RANGE_SCHEMA_VERSION, RANGE_SEQUENCE_ID, RANGE_TOPIC,
    RANGE_VALUE, BytesColumn, range_block_hold, range_block_release,
)

# In the order of the bits of RangeColumn.
COLUMNS = ("value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
           "__messageProperties")
COLUMNS_ON_DEMAND = ("__partition", "__ledgerId", "__entryId", "__batchIndex", "__sequenceId",
                     "__producerName", "__orderingKey", "__keyBytes", "__schemaVersion")
cdef tuple EVERY_COLUMN = COLUMNS + COLUMNS_ON_DEMAND

cdef extern from *:
    """
    static const char *const RANGE_NAMES[] = {
        "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
        "__messageProperties", "__partition", "__ledgerId", "__entryId", "__batchIndex",
        "__sequenceId", "__producerName", "__orderingKey", "__keyBytes", "__schemaVersion"};
    static const char *const RANGE_FORMATS[] = {
        "z", "z", "u", "z", "tsu:UTC", "tsu:UTC", "+m", "i", "l", "l", "i", "l", "u", "z", "z",
        "l"};
    static const char RANGE_NOTHING[64] = {0};
    """
    const char** RANGE_NAMES
    const char** RANGE_FORMATS
    const char* RANGE_NOTHING


cdef int column_order(object names, ColumnOrder* order) except -1:
    cdef int place
    order.columns = 0
    order.count = 0
    if isinstance(names, (str, bytes)):
        raise TypeError(f"columns must be a list of names, not {errors.shown(names)}")
    for name in names:
        if name not in EVERY_COLUMN:
            import difflib

            near = difflib.get_close_matches(str(name), EVERY_COLUMN, 1, 0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"there is no column {errors.shown(name)}{hint} Columns: {', '.join(EVERY_COLUMN)}")
        place = EVERY_COLUMN.index(name)
        if order.columns >> place & 1:
            raise ValueError(f"column {errors.shown(name)} is named twice")
        order.columns |= 1u << place
        order.places[order.count] = place
        order.count += 1
    if order.count == 0:
        raise ValueError(f"no column is named. Columns: {', '.join(EVERY_COLUMN)}")
    return 0


cdef int make_schema(void* it, ArrowSchema* self) noexcept nogil:
    cdef RangeBlock* block = <RangeBlock*>it
    cdef int64_t at
    cdef int place
    cdef int error = arrow_make_schema(self, b"+s", b"", 0, block.order.count)
    if error:
        return error
    for at in range(block.order.count):
        place = block.order.places[at]
        if 1 << place == RANGE_PROPERTIES:
            error = arrow_make_properties_schema(self.children[at], RANGE_NAMES[place],
                                                 ARROW_NULLABLE, ARROW_NULLABLE)
        else:
            error = arrow_make_schema(self.children[at], RANGE_FORMATS[place], RANGE_NAMES[place],
                                      ARROW_NULLABLE, 0)
        if error:
            self.release(self)
            return error
    return 0


cdef void hold_block(void* block) noexcept nogil:
    range_block_hold(<RangeBlock*>block)


cdef void release_block(void* block) noexcept nogil:
    range_block_release(<RangeBlock*>block)


cdef ArrowColumns columns_of(RangeBlock* block) noexcept nogil:
    cdef ArrowColumns columns
    columns.it = block
    columns.hold = hold_block
    columns.release = release_block
    columns.make_schema = make_schema
    columns.make_array = make_rows
    columns.zeros = RANGE_NOTHING
    return columns


cdef int make_bytes(ArrowArray* self, const ArrowColumns* columns, int64_t rows,
                    const BytesColumn* column) noexcept nogil:
    if arrow_make_text(self, columns, rows, column.offsets, column.data) != 0:
        return ENOMEM
    if column.nulls:
        arrow_set_nulls(self, columns, column.validity, column.nulls)
    return 0


cdef int make_column(ArrowArray* self, const ArrowColumns* columns, RangeBlock* block,
                     int place) noexcept nogil:
    cdef int column = 1 << place
    cdef int64_t rows = block.row_count
    if column == RANGE_VALUE:
        return make_bytes(self, columns, rows, &block.value)
    if column == RANGE_KEY:
        return make_bytes(self, columns, rows, &block.key)
    if column == RANGE_MESSAGE_ID:
        return make_bytes(self, columns, rows, &block.message_id)
    if column == RANGE_TOPIC:
        return arrow_make_text(self, columns, rows, block.topic.offsets, block.topic.data)
    if column == RANGE_PUBLISH_TIME:
        return arrow_make_fixed(self, columns, rows, block.publish_times)
    if column == RANGE_PRODUCER_NAME:
        return arrow_make_text(self, columns, rows, block.producer_name.offsets,
                               block.producer_name.data)
    if column == RANGE_ORDERING_KEY:
        return make_bytes(self, columns, rows, &block.ordering_key)
    if column == RANGE_KEY_BYTES:
        return make_bytes(self, columns, rows, &block.key_bytes)
    if column == RANGE_PARTITION:
        return arrow_make_fixed(self, columns, rows, block.partitions)
    if column == RANGE_BATCH_INDEX:
        return arrow_make_fixed(self, columns, rows, block.batch_indexes)
    if column == RANGE_LEDGER_ID:
        return arrow_make_fixed(self, columns, rows, block.ledger_ids)
    if column == RANGE_ENTRY_ID:
        return arrow_make_fixed(self, columns, rows, block.entry_ids)
    if column == RANGE_SEQUENCE_ID:
        return arrow_make_fixed(self, columns, rows, block.sequence_ids)
    if column == RANGE_SCHEMA_VERSION:
        if arrow_make_fixed(self, columns, rows, block.schema_versions) != 0:
            return ENOMEM
        if block.version_nulls:
            arrow_set_nulls(self, columns, block.version_validity, block.version_nulls)
        return 0
    if column == RANGE_PROPERTIES:
        return arrow_make_properties(self, columns, rows, block.property_offsets,
                                     &block.property_key, &block.property_value)
    if arrow_make_fixed(self, columns, rows, block.event_times) != 0:
        return ENOMEM
    if block.event_count < rows:
        arrow_set_nulls(self, columns, block.event_validity, rows - block.event_count)
    return 0


cdef int make_rows(void* it, ArrowArray* self) noexcept nogil:
    cdef RangeBlock* block = <RangeBlock*>it
    cdef ArrowColumns columns = columns_of(block)
    cdef int64_t at
    if arrow_make_array(self, &columns, block.row_count, 1, block.order.count) != 0:
        return ENOMEM
    for at in range(block.order.count):
        if make_column(self.children[at], &columns, block, block.order.places[at]) != 0:
            self.release(self)
            return ENOMEM
    return 0


@cython.final
cdef class RangeBatch:
    """Columns of consecutive messages of a ledger range: what `read_range` yields.

    Everything that knows the Arrow PyCapsule interface takes it without a copy
    (`pyarrow.record_batch(batch)`). It never changes, any thread may use it, and it outlives the
    file it was read from.
    """

    def __init__(self):
        raise TypeError("a RangeBatch is made by read_range")

    def __dealloc__(self):
        range_block_release(self.c_block)

    def __len__(self) -> int:
        return self.c_block.row_count

    def __arrow_c_schema__(self):
        """The types of the columns, as a capsule."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_schema(&columns)

    def __arrow_c_array__(self, requested_schema=None):
        """(schema, struct array) as capsules. requested_schema is not followed: cast afterwards."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_array(&columns)

    def __arrow_c_stream__(self, requested_schema=None):
        """A stream of one record batch, as a capsule. requested_schema is not followed."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_stream(&columns)

    def __repr__(self) -> str:
        return f"RangeBatch(rows={len(self)}, columns={self.column_names!r})"


cdef RangeBatch range_batch_new(RangeBlock* block, tuple names):
    cdef RangeBatch batch
    try:
        batch = RangeBatch.__new__(RangeBatch)
    except BaseException:
        range_block_release(block)
        raise
    batch.c_block = block
    batch.column_names = names
    return batch


def check_columns(names) -> tuple:
    """The names as a tuple, if they can be read; ValueError as column_order."""
    cdef ColumnOrder order
    column_order(names, &order)
    return tuple(names)
