# cython: language_level=3
"""Body of arrow_struct.pxd."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pulsarx._pycore.arrow.arrow_block cimport TextColumn
from pulsarx._pycore.arrow.arrow_schema cimport ArrowArray, ArrowArrayStream, ArrowSchema

cdef enum:
    CHILDREN_MAX = 16        # columns of a ledger range, the widest table
    BUFFERS_MAX = 3

cdef struct SchemaPrivate:
    ArrowSchema* pointers[CHILDREN_MAX]
    ArrowSchema children[CHILDREN_MAX]

cdef struct ArrayPrivate:
    ArrowColumns columns
    const void* buffers[BUFFERS_MAX]
    ArrowArray* pointers[CHILDREN_MAX]
    ArrowArray children[CHILDREN_MAX]

cdef struct StreamPrivate:
    ArrowColumns columns
    bint done


cdef void release_schema(ArrowSchema* self) noexcept nogil:
    cdef int64_t at
    for at in range(self.n_children):
        if self.children[at].release != NULL:
            self.children[at].release(self.children[at])
    free(self.private_data)
    self.release = NULL


cdef int arrow_make_schema(ArrowSchema* self, const char* format, const char* name, int64_t flags,
                           int64_t children) noexcept nogil:
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


cdef void release_array(ArrowArray* self) noexcept nogil:
    cdef ArrayPrivate* own = <ArrayPrivate*>self.private_data
    cdef int64_t at
    for at in range(self.n_children):
        if self.children[at].release != NULL:
            self.children[at].release(self.children[at])
    own.columns.release(own.columns.it)
    free(own)
    self.release = NULL


cdef int arrow_make_array(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                          int64_t buffers, int64_t children) noexcept nogil:
    cdef ArrayPrivate* own = <ArrayPrivate*>calloc(1, sizeof(ArrayPrivate))
    cdef int64_t at
    memset(self, 0, sizeof(ArrowArray))
    if own == NULL:
        return ENOMEM
    for at in range(children):
        own.pointers[at] = &own.children[at]
    columns.hold(columns.it)
    own.columns = columns[0]
    self.length = length
    self.n_buffers = buffers
    self.buffers = own.buffers
    self.n_children = children
    self.children = own.pointers if children else NULL
    self.private_data = own
    self.release = release_array
    return 0


cdef int arrow_make_fixed(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                          const void* values) noexcept nogil:
    if arrow_make_array(self, columns, length, 2, 0) != 0:
        return ENOMEM
    self.buffers[1] = values if values != NULL else columns.zeros
    return 0


cdef int arrow_make_text(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                         const void* offsets, const void* data) noexcept nogil:
    if arrow_make_array(self, columns, length, 3, 0) != 0:
        return ENOMEM
    self.buffers[1] = offsets if offsets != NULL else columns.zeros
    self.buffers[2] = data if data != NULL else columns.zeros
    return 0


cdef int arrow_make_properties(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                               const void* offsets, const TextColumn* key,
                               const TextColumn* value) noexcept nogil:
    cdef ArrowArray* entries
    if arrow_make_array(self, columns, length, 2, 1) != 0:
        return ENOMEM
    self.buffers[1] = offsets if offsets != NULL else columns.zeros
    entries = self.children[0]
    if (arrow_make_array(entries, columns, value.count, 1, 2) != 0
            or arrow_make_text(entries.children[0], columns, value.count, key.offsets,
                               key.data) != 0
            or arrow_make_text(entries.children[1], columns, value.count, value.offsets,
                               value.data) != 0):
        return ENOMEM
    return 0


cdef void arrow_set_nulls(ArrowArray* self, const ArrowColumns* columns, const void* validity,
                          int64_t count) noexcept nogil:
    self.null_count = count
    self.buffers[0] = validity if validity != NULL else columns.zeros


cdef int arrow_make_properties_schema(ArrowSchema* self, const char* name, int64_t flags,
                                      int64_t value_flags) noexcept nogil:
    cdef ArrowSchema* entries
    if arrow_make_schema(self, b"+m", name, flags, 1) != 0:
        return ENOMEM
    entries = self.children[0]
    if (arrow_make_schema(entries, b"+s", b"entries", 0, 2) != 0
            or arrow_make_schema(entries.children[0], b"u", b"key", 0, 0) != 0
            or arrow_make_schema(entries.children[1], b"u", b"value", value_flags, 0) != 0):
        return ENOMEM
    return 0


cdef int stream_schema(ArrowArrayStream* self, ArrowSchema* out) noexcept nogil:
    cdef StreamPrivate* own = <StreamPrivate*>self.private_data
    return own.columns.make_schema(own.columns.it, out)


cdef int stream_next(ArrowArrayStream* self, ArrowArray* out) noexcept nogil:
    cdef StreamPrivate* own = <StreamPrivate*>self.private_data
    cdef int error
    if own.done:
        memset(out, 0, sizeof(ArrowArray))
        return 0
    error = own.columns.make_array(own.columns.it, out)
    own.done = error == 0
    return error


cdef const char* stream_error(ArrowArrayStream* self) noexcept nogil:
    return b"out of memory"


cdef void release_stream(ArrowArrayStream* self) noexcept nogil:
    cdef StreamPrivate* own = <StreamPrivate*>self.private_data
    own.columns.release(own.columns.it)
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


cdef object arrow_export_schema(const ArrowColumns* columns):
    cdef ArrowSchema* schema = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError("an Arrow schema")
    capsule = PyCapsule_New(schema, "arrow_schema", schema_capsule_gone)
    if columns.make_schema(columns.it, schema) != 0:
        raise MemoryError("an Arrow schema")
    return capsule


cdef object arrow_export_array(const ArrowColumns* columns):
    cdef ArrowArray* array = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError("an Arrow array")
    capsule = PyCapsule_New(array, "arrow_array", array_capsule_gone)
    if columns.make_array(columns.it, array) != 0:
        raise MemoryError("an Arrow array")
    return arrow_export_schema(columns), capsule


cdef object arrow_export_stream(const ArrowColumns* columns):
    cdef StreamPrivate* own
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError("an Arrow stream")
    capsule = PyCapsule_New(stream, "arrow_array_stream", stream_capsule_gone)
    own = <StreamPrivate*>calloc(1, sizeof(StreamPrivate))
    if own == NULL:
        raise MemoryError("an Arrow stream")
    columns.hold(columns.it)
    own.columns = columns[0]
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.private_data = own
    stream.release = release_stream
    return capsule
