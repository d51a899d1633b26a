# cython: language_level=3
"""Body of arrow_export.pxd.

  column        type                                                  null
  message_id    struct<ledger_id: int64, entry_id: int64,
                       partition: int32, batch_index: int32>          never
  key           string                                                without a key
  value         binary                                                without a value
  publish_time  timestamp[ms, UTC]                                    never
  event_time    timestamp[ms, UTC]                                    without one
  properties    map<string, string>                                   never; empty

Each array and each schema owns itself and holds a reference to the block, so that a child may be
moved out of its parent. They are released in any thread, with or without the GIL.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pulsarx import errors
from pulsarx._pycore.arrow_block cimport (
    AckRun, ArrowBlock, arrow_block_hold, arrow_block_release,
)
from pulsarx._pycore.arrow_schema cimport (
    ARROW_NULLABLE, ArrowArray, ArrowArrayStream, ArrowSchema,
)

cdef enum:
    CHILDREN_MAX = 6
    BUFFERS_MAX = 3

COLUMN_NAMES = ("message_id", "key", "value", "publish_time", "event_time", "properties")

cdef struct SchemaPrivate:
    ArrowSchema* pointers[CHILDREN_MAX]
    ArrowSchema children[CHILDREN_MAX]

cdef struct ArrayPrivate:
    ArrowBlock* block
    const void* buffers[BUFFERS_MAX]
    ArrowArray* pointers[CHILDREN_MAX]
    ArrowArray children[CHILDREN_MAX]

cdef struct StreamPrivate:
    ArrowBlock* block
    bint done


cdef void release_schema(ArrowSchema* self) noexcept nogil:
    cdef int64_t at
    for at in range(self.n_children):
        if self.children[at].release != NULL:
            self.children[at].release(self.children[at])
    free(self.private_data)
    self.release = NULL


cdef int make_schema(ArrowSchema* self, const char* format, const char* name, int64_t flags,
                     int64_t children) noexcept nogil:
    """ENOMEM: self.release is NULL. Children are for the caller to make."""
    cdef SchemaPrivate* own = <SchemaPrivate*>calloc(1, sizeof(SchemaPrivate))
    cdef int64_t at
    memset(self, 0, sizeof(ArrowSchema))
    if own == NULL:
        return ENOMEM
    for at in range(children):
        own.pointers[at] = &own.children[at]
    self.format = format
    self.name = name
    self.flags = flags
    self.n_children = children
    self.children = own.pointers if children else NULL
    self.private_data = own
    self.release = release_schema
    return 0


cdef int make_message_id_schema(ArrowSchema* self) noexcept nogil:
    if make_schema(self, b"+s", b"message_id", 0, 4) != 0:
        return ENOMEM
    if (make_schema(self.children[0], b"l", b"ledger_id", 0, 0) != 0
            or make_schema(self.children[1], b"l", b"entry_id", 0, 0) != 0
            or make_schema(self.children[2], b"i", b"partition", 0, 0) != 0
            or make_schema(self.children[3], b"i", b"batch_index", 0, 0) != 0):
        return ENOMEM
    return 0


cdef int make_properties_schema(ArrowSchema* self) noexcept nogil:
    if make_schema(self, b"+m", b"properties", 0, 1) != 0:
        return ENOMEM
    if (make_schema(self.children[0], b"+s", b"entries", 0, 2) != 0
            or make_schema(self.children[0].children[0], b"u", b"key", 0, 0) != 0
            or make_schema(self.children[0].children[1], b"u", b"value", 0, 0) != 0):
        return ENOMEM
    return 0


cdef int make_messages_schema(ArrowSchema* self) noexcept nogil:
    if make_schema(self, b"+s", b"", 0, CHILDREN_MAX) != 0:
        return ENOMEM
    if (make_message_id_schema(self.children[0]) != 0
            or make_schema(self.children[1], b"u", b"key", ARROW_NULLABLE, 0) != 0
            or make_schema(self.children[2], b"z", b"value", ARROW_NULLABLE, 0) != 0
            or make_schema(self.children[3], b"tsm:UTC", b"publish_time", 0, 0) != 0
            or make_schema(self.children[4], b"tsm:UTC", b"event_time", ARROW_NULLABLE, 0) != 0
            or make_properties_schema(self.children[5]) != 0):
        self.release(self)
        return ENOMEM
    return 0


cdef void release_array(ArrowArray* self) noexcept nogil:
    cdef ArrayPrivate* own = <ArrayPrivate*>self.private_data
    cdef int64_t at
    for at in range(self.n_children):
        if self.children[at].release != NULL:
            self.children[at].release(self.children[at])
    arrow_block_release(own.block)
    free(own)
    self.release = NULL


cdef int make_array(ArrowArray* self, ArrowBlock* block, int64_t length, int64_t buffers,
                    int64_t children) noexcept nogil:
    """ENOMEM: self.release is NULL. Buffers and children are for the caller to fill in."""
    cdef ArrayPrivate* own = <ArrayPrivate*>calloc(1, sizeof(ArrayPrivate))
    cdef int64_t at
    memset(self, 0, sizeof(ArrowArray))
    if own == NULL:
        return ENOMEM
    for at in range(children):
        own.pointers[at] = &own.children[at]
    arrow_block_hold(block)
    own.block = block
    self.length = length
    self.n_buffers = buffers
    self.buffers = own.buffers
    self.n_children = children
    self.children = own.pointers if children else NULL
    self.private_data = own
    self.release = release_array
    return 0


cdef int make_fixed(ArrowArray* self, ArrowBlock* block, const void* values) noexcept nogil:
    if make_array(self, block, block.row_count, 2, 0) != 0:
        return ENOMEM
    self.buffers[1] = values
    return 0


cdef int make_text(ArrowArray* self, ArrowBlock* block, int64_t length, const void* offsets,
                   const void* data) noexcept nogil:
    """offsets NULL: every row is empty."""
    if make_array(self, block, length, 3, 0) != 0:
        return ENOMEM
    self.buffers[1] = offsets if offsets != NULL else block.zeros
    self.buffers[2] = data if data != NULL else block.zeros
    return 0


cdef void set_nulls(ArrowArray* self, ArrowBlock* block, const void* validity,
                    int64_t count) noexcept nogil:
    self.null_count = count
    self.buffers[0] = validity if validity != NULL else block.zeros


cdef int make_message_ids(ArrowArray* self, ArrowBlock* block) noexcept nogil:
    if make_array(self, block, block.row_count, 1, 4) != 0:
        return ENOMEM
    if (make_fixed(self.children[0], block, block.ledger_ids) != 0
            or make_fixed(self.children[1], block, block.entry_ids) != 0
            or make_fixed(self.children[2], block, block.partitions) != 0
            or make_fixed(self.children[3], block, block.batch_indexes) != 0):
        return ENOMEM
    return 0


cdef int make_properties(ArrowArray* self, ArrowBlock* block) noexcept nogil:
    cdef int64_t count = block.property_value.count
    if make_array(self, block, block.row_count, 2, 1) != 0:
        return ENOMEM
    self.buffers[1] = block.zeros if block.property_offsets == NULL else (
        <const void*>block.property_offsets)
    if make_array(self.children[0], block, count, 1, 2) != 0:
        return ENOMEM
    if (make_text(self.children[0].children[0], block, count, block.property_key.offsets,
                  block.property_key.data) != 0
            or make_text(self.children[0].children[1], block, count,
                         block.property_value.offsets, block.property_value.data) != 0):
        return ENOMEM
    return 0


cdef int make_columns(ArrowArray* self, ArrowBlock* block) noexcept nogil:
    cdef int64_t rows = block.row_count
    cdef const void* times = block.zeros
    if block.event_times != NULL:
        times = block.event_times
    if (make_message_ids(self.children[0], block) != 0
            or make_text(self.children[1], block, rows, block.key.offsets, block.key.data) != 0
            or make_text(self.children[2], block, rows, block.value_offsets,
                         block.value_data) != 0
            or make_fixed(self.children[3], block, block.publish_times) != 0
            or make_fixed(self.children[4], block, times) != 0
            or make_properties(self.children[5], block) != 0):
        return ENOMEM
    set_nulls(self.children[1], block, block.key_validity, rows - block.key.count)
    if block.value_nulls:
        set_nulls(self.children[2], block, block.value_validity, block.value_nulls)
    set_nulls(self.children[4], block, block.event_validity, rows - block.event_count)
    return 0


cdef int make_messages(ArrowArray* self, ArrowBlock* block) noexcept nogil:
    if make_array(self, block, block.row_count, 1, CHILDREN_MAX) != 0:
        return ENOMEM
    if make_columns(self, block) != 0:
        self.release(self)
        return ENOMEM
    return 0


cdef int stream_schema(ArrowArrayStream* self, ArrowSchema* out) noexcept nogil:
    return make_messages_schema(out)


cdef int stream_next(ArrowArrayStream* self, ArrowArray* out) noexcept nogil:
    cdef StreamPrivate* own = <StreamPrivate*>self.private_data
    cdef int error
    if own.done:
        memset(out, 0, sizeof(ArrowArray))
        return 0
    error = make_messages(out, own.block)
    own.done = error == 0
    return error


cdef const char* stream_error(ArrowArrayStream* self) noexcept nogil:
    return b"out of memory"


cdef void release_stream(ArrowArrayStream* self) noexcept nogil:
    cdef StreamPrivate* own = <StreamPrivate*>self.private_data
    arrow_block_release(own.block)
    free(own)
    self.release = NULL


cdef void schema_capsule_gone(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void array_capsule_gone(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void stream_capsule_gone(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(
        capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


@cython.final
cdef class ArrowMessages:
    """Received messages as columns: what `receive_arrow` and `read_arrow` return.

    Everything that knows the Arrow PyCapsule interface takes it without a copy: `pyarrow.table(m)`,
    `pyarrow.record_batch(m)`, `polars.DataFrame(m)`, DuckDB. Columns: message_id (ledger_id,
    entry_id, partition, batch_index), key, value, publish_time, event_time, properties; in strings
    what is not UTF-8 is U+FFFD. `consumer.acknowledge_many(m)` acknowledges all of it. It never
    changes, any thread may use it, and it outlives consumer and client.
    """

    def __init__(self):
        raise TypeError("ArrowMessages are received from a consumer or a reader")

    def __dealloc__(self):
        arrow_block_release(self.c_block)

    def __len__(self) -> int:
        return self.c_block.row_count

    @property
    def column_names(self) -> tuple:
        """Names of the columns, in order."""
        return COLUMN_NAMES

    def __arrow_c_schema__(self):
        """The types of the columns, as a capsule."""
        return self.export_schema()

    def __arrow_c_array__(self, requested_schema=None):
        """(schema, struct array) as capsules. requested_schema is not followed: cast afterwards."""
        cdef ArrowArray* array = <ArrowArray*>calloc(1, sizeof(ArrowArray))
        if array == NULL:
            raise MemoryError("an Arrow array")
        capsule = PyCapsule_New(array, "arrow_array", array_capsule_gone)
        if make_messages(array, self.c_block) != 0:
            raise MemoryError("an Arrow array")
        return self.export_schema(), capsule

    def __arrow_c_stream__(self, requested_schema=None):
        """A stream of one record batch, as a capsule. requested_schema is not followed."""
        cdef StreamPrivate* own
        cdef ArrowArrayStream* stream = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
        if stream == NULL:
            raise MemoryError("an Arrow stream")
        capsule = PyCapsule_New(stream, "arrow_array_stream", stream_capsule_gone)
        own = <StreamPrivate*>calloc(1, sizeof(StreamPrivate))
        if own == NULL:
            raise MemoryError("an Arrow stream")
        arrow_block_hold(self.c_block)
        own.block = self.c_block
        stream.get_schema = stream_schema
        stream.get_next = stream_next
        stream.get_last_error = stream_error
        stream.private_data = own
        stream.release = release_stream
        return capsule

    cdef object export_schema(self):
        cdef ArrowSchema* schema = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
        if schema == NULL:
            raise MemoryError("an Arrow schema")
        capsule = PyCapsule_New(schema, "arrow_schema", schema_capsule_gone)
        if make_messages_schema(schema) != 0:
            raise MemoryError("an Arrow schema")
        return capsule

    def runs(self, topic) -> list:
        """(ledger id, first ordinal, count) of all messages; for acknowledge_many.

        topic: the LedgerTail of the consumer; NotAllowedError when they came from another.
        """
        cdef int64_t at
        cdef AckRun* run
        cdef list found = []
        if topic is not self.topic:
            raise errors.NotAllowedError(f"acknowledge {self!r}: it is not of the same topic")
        for at in range(self.c_block.run_count):
            run = self.c_block.runs + at
            found.append((run.ledger_id, run.first, run.count))
        return found

    def __repr__(self) -> str:
        return f"ArrowMessages(topic={self.topic_name!r}, rows={len(self)})"


cdef ArrowMessages arrow_messages_new(ArrowBlock* block, object topic, str topic_name):
    cdef ArrowMessages messages
    try:
        messages = ArrowMessages.__new__(ArrowMessages)
    except BaseException:
        arrow_block_release(block)
        raise
    messages.c_block = block
    messages.topic = topic
    messages.topic_name = topic_name
    return messages
