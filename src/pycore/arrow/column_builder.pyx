# cython: language_level=3
"""Body of column_builder.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE
from pulsarx._pycore.arrow.arrow_memory cimport room_free, room_grow

cdef enum:
    DATA_MIN = 4096
    OFFSET_MAX = 0x7FFFFFFF


cdef int64_t values_size(const ColumnBuilder* self, int64_t count) noexcept nogil:
    """Bytes of the values, or offsets, or bits, of so many rows."""
    if self.kind == BUILD_BOOLEAN:
        return (count + 7) // 8
    if self.kind == BUILD_INT32 or self.kind == BUILD_FLOAT:
        return count * 4
    if self.kind == BUILD_INT64 or self.kind == BUILD_DOUBLE:
        return count * 8
    if self.kind == BUILD_DECIMAL:
        return count * 16
    if self.kind == BUILD_STRUCT:
        return 0
    return (count + 1) * 4


cdef int64_t values_used(const ColumnBuilder* self) noexcept nogil:
    return 0 if self.values == NULL else values_size(self, self.length)


cdef int builder_reserve(ColumnBuilder* self, int64_t capacity) noexcept nogil:
    cdef void* room
    if capacity <= self.capacity and (self.values != NULL or self.kind == BUILD_STRUCT):
        return STATUS_OK
    if self.kind != BUILD_STRUCT:
        # All of it is defined, also the bits behind the last, and the first offset.
        if room_grow(&self.values, <size_t>values_used(self),
                     <size_t>values_size(self, capacity), True) != STATUS_OK:
            return STATUS_NO_MEMORY
    if self.kind == BUILD_BYTES and self.data == NULL:
        if builder_reserve_data(self, DATA_MIN) != STATUS_OK:
            return STATUS_NO_MEMORY
    if self.validity != NULL:
        room = self.validity
        if room_grow(&room, <size_t>((self.length + 7) // 8), <size_t>((capacity + 7) // 8),
                     True) != STATUS_OK:
            return STATUS_NO_MEMORY
        self.validity = <uint8_t*>room
    self.capacity = capacity
    return STATUS_OK


cdef int builder_reserve_data(ColumnBuilder* self, int64_t size) noexcept nogil:
    cdef int64_t capacity = self.data_capacity * 2
    cdef void* room = self.data
    if size > OFFSET_MAX:
        return STATUS_TOO_LARGE
    if capacity < size:
        capacity = size
    if room_grow(&room, <size_t>self.data_size, <size_t>capacity, False) != STATUS_OK:
        return STATUS_NO_MEMORY
    self.data = <uint8_t*>room
    self.data_capacity = capacity
    return STATUS_OK


cdef int make_validity(ColumnBuilder* self) noexcept nogil:
    """All before the first null are there."""
    cdef void* room = NULL
    cdef int64_t at
    if room_grow(&room, 0, <size_t>((self.capacity + 7) // 8), True) != STATUS_OK:
        return STATUS_NO_MEMORY
    self.validity = <uint8_t*>room
    memset(room, 0xFF, <size_t>(self.length // 8))
    for at in range(self.length // 8 * 8, self.length):
        builder_set_bit(self.validity, at, True)
    return STATUS_OK


cdef int builder_null(ColumnBuilder* columns, int32_t at) noexcept nogil:
    cdef ColumnBuilder* self = &columns[at]
    cdef int32_t* offsets
    cdef int64_t size
    cdef int child
    cdef int status = builder_grow(self)
    if status == STATUS_OK and self.validity == NULL:
        status = make_validity(self)
    if status != STATUS_OK:
        return status
    if self.kind == BUILD_STRUCT:
        for child in range(self.child_count):
            status = builder_null(columns, self.children[child])
            if status != STATUS_OK:
                return status
    elif self.kind == BUILD_BYTES or self.kind == BUILD_LIST:
        offsets = <int32_t*>self.values
        offsets[self.length + 1] = offsets[self.length]
    elif self.kind == BUILD_BOOLEAN:
        builder_set_bit(<uint8_t*>self.values, self.length, False)
    else:
        size = values_size(self, 1)
        memset(<uint8_t*>self.values + self.length * size, 0, <size_t>size)
    builder_set_bit(self.validity, self.length, False)
    self.length += 1
    return STATUS_OK


cdef void builder_truncate(ColumnBuilder* columns, int32_t at, int64_t length) noexcept nogil:
    cdef ColumnBuilder* self = &columns[at]
    cdef int child
    if self.kind == BUILD_LIST:
        # Also what no list has got: the items of one that was not whole.
        if self.length >= length and self.values != NULL:
            builder_truncate(columns, self.children[0], (<int32_t*>self.values)[length])
    elif self.kind == BUILD_STRUCT:
        for child in range(self.child_count):
            builder_truncate(columns, self.children[child], length)
    elif self.kind == BUILD_BYTES and self.length > length:
        self.data_size = (<int32_t*>self.values)[length]
    if self.length > length:
        self.length = length


cdef void builder_clear(ColumnBuilder* self) noexcept nogil:
    room_free(self.validity)
    room_free(self.values)
    room_free(self.data)
    self.validity = NULL
    self.values = NULL
    self.data = NULL
    self.length = self.capacity = self.data_size = self.data_capacity = 0


cdef int64_t builder_null_count(const ColumnBuilder* self) noexcept nogil:
    cdef int64_t found = 0
    cdef int64_t at
    if self.validity == NULL:
        return 0
    for at in range(self.length):
        found += not self.validity[at >> 3] >> (at & 7) & 1
    return found
