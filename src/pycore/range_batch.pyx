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

Names and types are those that Spark users know; all are declared nullable, as Spark declares them.
"""

cimport cython
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t

from pulsarx._pycore.arrow_schema cimport ARROW_NULLABLE, ArrowArray, ArrowSchema
from pulsarx._pycore.arrow_struct cimport (
    ArrowColumns, arrow_export_array, arrow_export_schema, arrow_export_stream, arrow_make_array,
    arrow_make_schema,
)
from pulsarx._pycore.range_block cimport (
    RANGE_EVENT_TIME, RANGE_KEY, RANGE_MESSAGE_ID, RANGE_PROPERTIES,
    RANGE_PUBLISH_TIME, RANGE_TOPIC, RANGE_VALUE, BytesColumn, range_block_hold,
    range_block_release,
)

# In the order of the bits of RangeColumn.
COLUMNS = ("value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
           "__messageProperties")

cdef extern from *:
    """
    static const char *const RANGE_NAMES[] = {
        "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
        "__messageProperties"};
    static const char *const RANGE_FORMATS[] = {
        "z", "z", "u", "z", "tsu:UTC", "tsu:UTC", "+m"};
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
        raise TypeError(f"columns must be a list of names, not {names!r}")
    for name in names:
        if name not in COLUMNS:
            import difflib

            near = difflib.get_close_matches(str(name), COLUMNS, 1, 0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no column {name!r}{hint} Columns: {', '.join(COLUMNS)}")
        place = COLUMNS.index(name)
        if order.columns >> place & 1:
            raise ValueError(f"column {name!r} is named twice")
        order.columns |= 1u << place
        order.places[order.count] = place
        order.count += 1
    if order.count == 0:
        raise ValueError(f"no column is named. Columns: {', '.join(COLUMNS)}")
    return 0


cdef int make_properties_schema(ArrowSchema* self) noexcept nogil:
    """The children of the map."""
    if arrow_make_schema(self.children[0], b"+s", b"entries", 0, 2) != 0:
        return ENOMEM
    if (arrow_make_schema(self.children[0].children[0], b"u", b"key", 0, 0) != 0
            or arrow_make_schema(self.children[0].children[1], b"u", b"value", ARROW_NULLABLE,
                                 0) != 0):
        return ENOMEM
    return 0


cdef int make_schema(void* it, ArrowSchema* self) noexcept nogil:
    cdef RangeBlock* block = <RangeBlock*>it
    cdef int64_t at
    cdef int place
    cdef bint is_map
    cdef int error = arrow_make_schema(self, b"+s", b"", 0, block.order.count)
    if error:
        return error
    for at in range(block.order.count):
        place = block.order.places[at]
        is_map = 1 << place == RANGE_PROPERTIES
        error = arrow_make_schema(self.children[at], RANGE_FORMATS[place], RANGE_NAMES[place],
                                  ARROW_NULLABLE, 1 if is_map else 0)
        if error == 0 and is_map:
            error = make_properties_schema(self.children[at])
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
    return columns


cdef int make_array(ArrowArray* self, RangeBlock* block, int64_t length, int64_t buffers,
                    int64_t children) noexcept nogil:
    cdef ArrowColumns columns = columns_of(block)
    return arrow_make_array(self, &columns, length, buffers, children)


cdef int make_text(ArrowArray* self, RangeBlock* block, int64_t length, const void* offsets,
                   const void* data) noexcept nogil:
    """offsets, data NULL: there is no row, or every row is empty."""
    if make_array(self, block, length, 3, 0) != 0:
        return ENOMEM
    self.buffers[1] = offsets if offsets != NULL else RANGE_NOTHING
    self.buffers[2] = data if data != NULL else RANGE_NOTHING
    return 0


cdef int make_bytes(ArrowArray* self, RangeBlock* block, const BytesColumn* column) noexcept nogil:
    if make_text(self, block, block.row_count, column.offsets, column.data) != 0:
        return ENOMEM
    if column.nulls:
        self.null_count = column.nulls
        self.buffers[0] = column.validity
    return 0


cdef int make_times(ArrowArray* self, RangeBlock* block, const int64_t* values,
                    int64_t nulls) noexcept nogil:
    if make_array(self, block, block.row_count, 2, 0) != 0:
        return ENOMEM
    self.buffers[1] = values
    if nulls:
        self.null_count = nulls
        self.buffers[0] = block.event_validity
    return 0


cdef int make_properties(ArrowArray* self, RangeBlock* block) noexcept nogil:
    cdef int64_t count = block.property_value.count
    if make_array(self, block, block.row_count, 2, 1) != 0:
        return ENOMEM
    self.buffers[1] = block.property_offsets
    if make_array(self.children[0], block, count, 1, 2) != 0:
        return ENOMEM
    if (make_text(self.children[0].children[0], block, count, block.property_key.offsets,
                  block.property_key.data) != 0
            or make_text(self.children[0].children[1], block, count,
                         block.property_value.offsets, block.property_value.data) != 0):
        return ENOMEM
    return 0


cdef int make_column(ArrowArray* self, RangeBlock* block, int place) noexcept nogil:
    cdef int column = 1 << place
    if column == RANGE_VALUE:
        return make_bytes(self, block, &block.value)
    if column == RANGE_KEY:
        return make_bytes(self, block, &block.key)
    if column == RANGE_MESSAGE_ID:
        return make_bytes(self, block, &block.message_id)
    if column == RANGE_TOPIC:
        return make_text(self, block, block.row_count, block.topic.offsets, block.topic.data)
    if column == RANGE_PUBLISH_TIME:
        return make_times(self, block, block.publish_times, 0)
    if column == RANGE_EVENT_TIME:
        return make_times(self, block, block.event_times, block.row_count - block.event_count)
    return make_properties(self, block)


cdef int make_rows(void* it, ArrowArray* self) noexcept nogil:
    cdef RangeBlock* block = <RangeBlock*>it
    cdef int64_t at
    if make_array(self, block, block.row_count, 1, block.order.count) != 0:
        return ENOMEM
    for at in range(block.order.count):
        if make_column(self.children[at], block, block.order.places[at]) != 0:
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
