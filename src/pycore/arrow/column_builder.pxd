"""Builds Arrow columns value by value. For avro_reader alone; one thread at a time.

Columns are numbered in one array, a nested one before its children. Lengths grow with what is
appended, and are cut back where a row turns out not to be whole.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from pulsarx._core.status cimport STATUS_OK, STATUS_TOO_LARGE

cdef enum BuilderKind:
    BUILD_BOOLEAN = 0
    BUILD_INT32 = 1              # also dates
    BUILD_INT64 = 2              # also times
    BUILD_FLOAT = 3
    BUILD_DOUBLE = 4
    BUILD_DECIMAL = 5            # of 128 bits
    BUILD_BYTES = 6              # also strings
    BUILD_LIST = 7               # also maps, whose child is the struct of their entries
    BUILD_STRUCT = 8
    BUILD_KINDS = 9

cdef struct ColumnBuilder:
    int kind                     # BuilderKind
    int32_t* children            # numbers of columns, of a list one
    int child_count
    int64_t length
    int64_t capacity             # values that there is room for
    uint8_t* validity            # NULL: there is no null yet
    void* values                 # or offsets, or bits
    uint8_t* data                # BUILD_BYTES
    int64_t data_size
    int64_t data_capacity

cdef int builder_reserve(ColumnBuilder* self, int64_t capacity) noexcept nogil
"""Room for so many values at least. STATUS_NO_MEMORY: nothing was changed."""

cdef int builder_reserve_data(ColumnBuilder* self, int64_t size) noexcept nogil
"""STATUS_NO_MEMORY, STATUS_TOO_LARGE: offsets have 32 bits."""

cdef int builder_null(ColumnBuilder* columns, int32_t at) noexcept nogil
"""Append a null, to the children of a struct too."""

cdef void builder_truncate(ColumnBuilder* columns, int32_t at, int64_t length) noexcept nogil
"""Forget all values of a column from the given one on, and what its children have of them."""

cdef void builder_clear(ColumnBuilder* self) noexcept nogil
"""Release what it has built."""

cdef int64_t builder_null_count(const ColumnBuilder* self) noexcept nogil


cdef inline int builder_grow(ColumnBuilder* self) noexcept nogil:
    if self.length < self.capacity:
        return STATUS_OK
    return builder_reserve(self, self.capacity * 2 if self.capacity > 16 else 32)


cdef inline void builder_set_bit(uint8_t* bits, int64_t at, bint value) noexcept nogil:
    if value:
        bits[at >> 3] |= <uint8_t>(1 << (at & 7))
    else:
        bits[at >> 3] &= <uint8_t>(~(1 << (at & 7)))


cdef inline void builder_end_value(ColumnBuilder* self) noexcept nogil:
    """Count the value that was stored as one that is there."""
    if self.validity != NULL:
        builder_set_bit(self.validity, self.length, True)
    self.length += 1


cdef inline int builder_integer(ColumnBuilder* self, int64_t value) noexcept nogil:
    """Append to a column of numbers; the value is within its type, or is rounded to a double."""
    cdef int status = builder_grow(self)
    if status != STATUS_OK:
        return status
    if self.kind == BUILD_INT32:
        (<int32_t*>self.values)[self.length] = <int32_t>value
    elif self.kind == BUILD_INT64:
        (<int64_t*>self.values)[self.length] = value
    else:
        (<double*>self.values)[self.length] = <double>value
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_double(ColumnBuilder* self, double value) noexcept nogil:
    cdef int status = builder_grow(self)
    if status != STATUS_OK:
        return status
    (<double*>self.values)[self.length] = value
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_float(ColumnBuilder* self, float value) noexcept nogil:
    cdef int status = builder_grow(self)
    if status != STATUS_OK:
        return status
    (<float*>self.values)[self.length] = value
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_boolean(ColumnBuilder* self, bint value) noexcept nogil:
    cdef int status = builder_grow(self)
    if status != STATUS_OK:
        return status
    builder_set_bit(<uint8_t*>self.values, self.length, value)
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_decimal(ColumnBuilder* self, const uint8_t* value) noexcept nogil:
    """value: 16 bytes, the lowest first."""
    cdef int status = builder_grow(self)
    if status != STATUS_OK:
        return status
    memcpy(<uint8_t*>self.values + self.length * 16, value, 16)
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_bytes(ColumnBuilder* self, const uint8_t* value,
                              int64_t size) noexcept nogil:
    cdef int status = builder_grow(self)
    if status == STATUS_OK and self.data_size + size > self.data_capacity:
        status = builder_reserve_data(self, self.data_size + size)
    if status != STATUS_OK:
        return status
    memcpy(self.data + self.data_size, value, <size_t>size)
    self.data_size += size
    (<int32_t*>self.values)[self.length + 1] = <int32_t>self.data_size
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_end_list(ColumnBuilder* columns, int32_t at) noexcept nogil:
    """Append a list of what its child has got since the list before it."""
    cdef ColumnBuilder* self = &columns[at]
    cdef int64_t end = columns[self.children[0]].length
    cdef int status
    if end > 0x7FFFFFFF:
        return STATUS_TOO_LARGE
    status = builder_grow(self)
    if status != STATUS_OK:
        return status
    (<int32_t*>self.values)[self.length + 1] = <int32_t>end
    builder_end_value(self)
    return STATUS_OK


cdef inline int builder_end_struct(ColumnBuilder* self) noexcept nogil:
    """Append a struct of what its children have got."""
    cdef int status = builder_grow(self)
    if status == STATUS_OK:
        builder_end_value(self)
    return status
