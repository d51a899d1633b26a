# cython: language_level=3
"""Body of arrow_import.pxd."""

import errno

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset, strcmp

from pulsarx import errors
from pulsarx._core.batch_encode cimport (
    BatchEncode, batch_encode_add, batch_encode_add_plain, batch_encode_payload_size,
)
from pulsarx._core.limits cimport METADATA_SIZE_MAX
from pulsarx._core.single_metadata cimport (
    METADATA_EVENT_TIME, METADATA_NULL_VALUE, METADATA_PARTITION_KEY, METADATA_PROPERTIES,
    METADATA_SEQUENCE_ID, PropertyView, SingleMetadata,
)
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE
from pulsarx._pycore.arrow.arrow_column cimport (
    ROW_BAD_INDEX, ROW_BAD_OFFSET, ROW_BAD_TIME, ROW_NULL, ROW_NULL_PROPERTY, ROW_OK, ROW_TOO_BIG,
    arrow_bit, column_bind, column_check, column_take, map_bind, map_check, map_take, times_bind,
    times_check, times_take,
)
from pulsarx._pycore.arrow.arrow_schema cimport (
    ArrowArray, ArrowArrayStream, ArrowSchema, arrow_find_column, arrow_type_name,
)
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    VALUE = 0
    KEY = 1
    EVENT_TIME = 2
    PROPERTIES = 3
    HEADER_SIZE = 24         # of a message in a batch, about: as the other sends reckon
    PROPERTY_SIZE = 12

cdef dict REASONS = {
    ROW_NULL: "it has no value (null), which was not allowed",
    ROW_BAD_OFFSET: "its offsets are damaged: negative, falling or beyond the data",
    ROW_BAD_INDEX: "its index is outside of the dictionary",
    ROW_BAD_TIME: "event_time is before 1970 or beyond 2^63 ms",
    ROW_NULL_PROPERTY: "a property has no name or no value (null)",
}


cdef class ArrowImport:
    """Reads a table of another library. One thread at a time. Gives everything back in close."""

    def __init__(self, data, value, key, event_time, properties):
        self.open_capsules(data)
        self.choose_columns(value, key, event_time, properties)

    def __dealloc__(self):
        free(self.rows.views)
        self.give_back()

    def close(self) -> None:
        """Release what was taken. May be called twice."""
        self.give_back()

    cdef void give_back(self) noexcept:
        if self.array.release != NULL:
            self.array.release(&self.array)
            self.array.release = NULL
        if self.stream.release != NULL:
            self.stream.release(&self.stream)
            self.stream.release = NULL
        if self.schema.release != NULL:
            self.schema.release(&self.schema)
            self.schema.release = NULL

    cdef int open_capsules(self, object data) except -1:
        """Move the structs out of their capsules, so that they are ours to release."""
        cdef ArrowArrayStream* stream
        cdef ArrowSchema* schema
        cdef ArrowArray* array
        cdef int code
        if hasattr(data, "__arrow_c_stream__"):
            capsule = data.__arrow_c_stream__()
            stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
            if stream.release == NULL:
                raise ValueError("the Arrow stream was released already")
            self.stream = stream[0]
            stream.release = NULL
            with nogil:
                code = self.stream.get_schema(&self.stream, &self.schema)
            if code != 0:
                self.schema.release = NULL
                self.raise_stream(code)
            return 0
        if not hasattr(data, "__arrow_c_array__"):
            raise TypeError(f"{type(data).__name__} has neither __arrow_c_stream__ nor "
                            "__arrow_c_array__: it is no Arrow table, record batch or data frame")
        capsules = data.__arrow_c_array__()
        schema = <ArrowSchema*>PyCapsule_GetPointer(capsules[0], "arrow_schema")
        array = <ArrowArray*>PyCapsule_GetPointer(capsules[1], "arrow_array")
        if schema.release == NULL or array.release == NULL:
            raise ValueError("the Arrow array was released already")
        self.schema = schema[0]
        schema.release = NULL
        self.array = array[0]
        array.release = NULL
        self.array_is_new = True
        return 0

    cdef int choose_columns(self, object value, object key, object event_time,
                            object properties) except -1:
        cdef ArrowSchema* top = &self.schema
        cdef int role
        if top.release == NULL or top.format == NULL or strcmp(top.format, "+s") != 0:
            raise TypeError(f"a table or record batch is needed, not {arrow_type_name(top)}")
        for role, name in enumerate((value, key, event_time, properties)):
            if role != VALUE and name is None:
                self.columns[role] = -1
                continue
            column = arrow_find_column(top, name, &self.columns[role])
            if role == EVENT_TIME:
                times_check(column)
            elif role == PROPERTIES:
                map_check(column)
            else:
                column_check(column, "value" if role == VALUE else "key", False)
        return 0

    cdef bint advance(self) except -1:
        """Go to the next batch with rows; False at the end."""
        cdef int code
        while True:
            if self.array_is_new:
                self.array_is_new = False
            else:
                self.rows_before += self.rows.length
                self.rows.length = 0
                self.release_array()
                if self.stream.release == NULL:
                    return False
                with nogil:
                    code = self.stream.get_next(&self.stream, &self.array)
                if code != 0:
                    self.array.release = NULL
                    self.raise_stream(code)
                if self.array.release == NULL:
                    return False
            if self.array.length != 0:
                self.bind()
                return True

    cdef int release_array(self) except -1:
        if self.array.release != NULL:
            self.array.release(&self.array)
            self.array.release = NULL
        return 0

    cdef int bind(self) except -1:
        """Check the batch and point self.rows at its columns."""
        cdef ArrowArray* top = &self.array
        cdef ArrowRows* rows = &self.rows
        cdef int64_t at
        cdef int role
        cdef int64_t column
        if top.length < 0 or top.offset < 0 or top.offset > INT64_MAX // 32 - top.length or (
                top.n_children != self.schema.n_children or top.children == NULL):
            raise ValueError(f"an Arrow batch of {top.length} rows at offset {top.offset} with "
                             f"{top.n_children} columns, {self.schema.n_children} are declared")
        if top.null_count != 0 and top.n_buffers > 0 and top.buffers != NULL and (
                top.buffers[0] != NULL):
            for at in range(top.length):
                if not arrow_bit(<const uint8_t*>top.buffers[0], top.offset + at):
                    raise ValueError(f"row {self.rows_before + at} is null as a whole")
        for role in range(4):
            column = self.columns[role]
            if column < 0:
                continue
            schema = self.schema.children[column]
            array = top.children[column]
            if role == VALUE:
                column_bind(&rows.value, schema, array, top.offset, top.length)
            elif role == KEY:
                column_bind(&rows.key, schema, array, top.offset, top.length)
            elif role == EVENT_TIME:
                times_bind(&rows.event_time, schema, array, top.offset, top.length)
            else:
                map_bind(&rows.properties, schema, array, top.offset, top.length)
        rows.length = top.length
        rows.at = 0
        return 0

    cdef int raise_row(self, int status) except -1:
        """Say what is wrong with the row at which encoding stopped."""
        cdef const uint8_t* data
        cdef int64_t size = 0
        row = f"row {self.rows_before + self.rows.at}"
        if status == ROW_TOO_BIG:
            column_take(&self.rows.value, self.rows.at, &data, &size)
            raise errors.MessageTooBig(
                detail=f"{row} has {size} bytes; that is over max_message_size")
        if status in REASONS:
            raise ValueError(f"{row}: {REASONS[status]}")
        raise_status(status, 0, f"add {row} to the batch")

    cdef int raise_stream(self, int code) except -1:
        cdef const char* text = NULL
        if self.stream.get_last_error != NULL:
            text = self.stream.get_last_error(&self.stream)
        reason = "no reason given" if text == NULL else text.decode("utf-8", "replace")
        what = f"the Arrow stream failed with {errno.errorcode.get(code, code)}: {reason}"
        if code == errno.ENOMEM:
            raise MemoryError(what)
        if code == errno.EINVAL:
            raise ValueError(what)
        raise OSError(code, what)


cdef int describe_properties(ArrowRows* self, SingleMetadata* metadata,
                             int64_t* header_size) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef int64_t first
    cdef int64_t end
    cdef int64_t at
    cdef int64_t total = 0
    cdef PropertyView* views
    cdef int status = map_take(&self.properties, self.at, &first, &end)
    if status != ROW_OK or first == end:
        return status
    if end - first > METADATA_SIZE_MAX // PROPERTY_SIZE:
        return STATUS_TOO_LARGE
    if end - first > self.view_capacity:
        views = <PropertyView*>realloc(self.views, <size_t>(end - first) * sizeof(PropertyView))
        if views == NULL:
            return STATUS_NO_MEMORY
        self.views = views
        self.view_capacity = end - first
    views = self.views
    for at in range(first, end):
        status = column_take(&self.properties.key, at, &data, &size)
        views.key = data
        views.key_size = <uint32_t>size
        total += size + PROPERTY_SIZE
        if status == ROW_OK and total <= METADATA_SIZE_MAX:
            status = column_take(&self.properties.value, at, &data, &size)
            views.value = data
            views.value_size = <uint32_t>size
            total += size
        if status != ROW_OK:
            return ROW_NULL_PROPERTY if status == ROW_NULL else status
        if total > METADATA_SIZE_MAX:
            return STATUS_TOO_LARGE
        views += 1
    metadata.flags |= METADATA_PROPERTIES
    metadata.properties = self.views
    metadata.property_count = <uint32_t>(end - first)
    header_size[0] += total
    return ROW_OK


cdef int describe(ArrowRows* self, SingleMetadata* metadata, int64_t* header_size) noexcept nogil:
    """Key, event time and properties of the row; an empty key is none, as is a time of 0."""
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef int64_t time_ms = 0
    cdef int status
    metadata.property_count = 0
    if self.key.kind:
        status = column_take(&self.key, self.at, &data, &size)
        if status == ROW_OK:
            if size > METADATA_SIZE_MAX:
                return STATUS_TOO_LARGE
            if size:
                metadata.flags |= METADATA_PARTITION_KEY
                metadata.partition_key = data
                metadata.partition_key_size = <uint32_t>size
                header_size[0] += size
        elif status != ROW_NULL:
            return status
    if self.event_time.present:
        status = times_take(&self.event_time, self.at, &time_ms)
        if status == ROW_OK:
            if time_ms:
                metadata.flags |= METADATA_EVENT_TIME
                metadata.event_time_ms = <uint64_t>time_ms
        elif status != ROW_NULL:
            return status
    if self.properties.present:
        return describe_properties(self, metadata, header_size)
    return ROW_OK


cdef int arrow_rows_encode(ArrowRows* self, const EncodeLimits* limits, BatchEncode* batch,
                           uint64_t* sequence_id) noexcept nogil:
    cdef SingleMetadata metadata
    cdef const uint8_t* payload = NULL
    cdef int64_t size = 0
    cdef int64_t header_size
    cdef bint described = (
        self.key.kind != 0 or self.event_time.present or self.properties.present)
    cdef int status
    memset(&metadata, 0, sizeof(metadata))
    while self.at < self.length and batch.message_count < limits.batch_messages:
        metadata.flags = METADATA_SEQUENCE_ID
        header_size = HEADER_SIZE
        status = column_take(&self.value, self.at, &payload, &size)
        if status == ROW_NULL:
            if limits.refuse_null:
                return ROW_NULL
            metadata.flags |= METADATA_NULL_VALUE
            size = 0
        elif status != ROW_OK:
            return status
        if size > limits.message_size:
            return ROW_TOO_BIG
        if described:
            status = describe(self, &metadata, &header_size)
            if status != ROW_OK:
                return status
        if batch.message_count and (
                <int64_t>batch_encode_payload_size(batch) + header_size + size
                > limits.batch_bytes):
            return ROW_OK
        if metadata.flags == METADATA_SEQUENCE_ID and batch_encode_add_plain(
                batch, payload, <uint32_t>size, sequence_id[0]):
            sequence_id[0] += 1
            self.at += 1
            continue
        metadata.payload_size = <uint32_t>size
        metadata.sequence_id = sequence_id[0]
        status = batch_encode_add(batch, &metadata, payload)
        if status != STATUS_OK:
            return status
        sequence_id[0] += 1
        self.at += 1
    return ROW_OK
