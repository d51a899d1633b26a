# cython: language_level=3
"""Body of arrow_column.pxd."""

from libc.stdint cimport (
    INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport strtol
from libc.string cimport memcpy, memset, strcmp, strncmp

from pulsarx._pycore.arrow.arrow_schema cimport (
    ArrowArray, ArrowSchema, arrow_column_name, arrow_type_name,
)

cdef enum:
    INLINE_SIZE_MAX = 12     # a view of so many bytes holds them itself
    VIEW_SIZE = 16


cdef uint32_t column_kind(const ArrowSchema* schema, bint text_only) noexcept:
    cdef const char* format = schema.format
    if strcmp(format, "u") == 0:
        return COLUMN_32
    if strcmp(format, "U") == 0:
        return COLUMN_64
    if strcmp(format, "vu") == 0:
        return COLUMN_VIEW
    if text_only:
        return COLUMN_ABSENT
    if strcmp(format, "n") == 0:
        return COLUMN_NULL
    if strcmp(format, "z") == 0:
        return COLUMN_32
    if strcmp(format, "Z") == 0:
        return COLUMN_64
    if strcmp(format, "vz") == 0:
        return COLUMN_VIEW
    if strncmp(format, "w:", 2) == 0 and strtol(format + 2, NULL, 10) >= 0:
        return COLUMN_FIXED
    return COLUMN_ABSENT


cdef uint32_t index_width(const ArrowSchema* schema, bint* is_signed) noexcept:
    """Bytes of the indices of a dictionary; 0: they are no integers."""
    cdef char letter = schema.format[0]
    is_signed[0] = letter >= c"a"
    if letter == 0 or schema.format[1] != 0:
        return 0
    letter |= 32
    if letter == c"c":
        return 1
    if letter == c"s":
        return 2
    if letter == c"i":
        return 4
    return 8 if letter == c"l" else 0


cdef int column_check(const ArrowSchema* schema, str role, bint text_only) except -1:
    cdef const ArrowSchema* values = schema
    cdef bint is_signed
    cdef bint fits = schema.format != NULL
    if fits and schema.dictionary != NULL:
        values = schema.dictionary
        fits = (values.format != NULL and values.dictionary == NULL
                and index_width(schema, &is_signed) != 0)
    if not fits or column_kind(values, text_only) == COLUMN_ABSENT:
        wanted = "string" if text_only else "binary or string"
        raise TypeError(f"column {arrow_column_name(schema)!r} is {arrow_type_name(schema)}; "
                        f"{role} must be {wanted} (large, view and dictionary too)")
    return 0


cdef bint times_unit(const ArrowSchema* schema, int64_t* factor, int64_t* divisor) noexcept:
    cdef const char* format = schema.format
    factor[0] = 1
    divisor[0] = 1
    if format == NULL or schema.dictionary != NULL:
        return False
    if strcmp(format, "l") == 0 or strcmp(format, "tdm") == 0 or strcmp(format, "n") == 0:
        return True
    if strncmp(format, "ts", 2) != 0 or format[2] == 0 or format[3] != c":":
        return False
    if format[2] == c"s":
        factor[0] = 1000
    elif format[2] == c"u":
        divisor[0] = 1000
    elif format[2] == c"n":
        divisor[0] = 1000000
    return format[2] == c"s" or format[2] == c"m" or format[2] == c"u" or format[2] == c"n"


cdef int times_check(const ArrowSchema* schema) except -1:
    cdef int64_t factor
    cdef int64_t divisor
    if not times_unit(schema, &factor, &divisor):
        raise TypeError(f"column {arrow_column_name(schema)!r} is {arrow_type_name(schema)}; "
                        "event_time must be timestamp, or int64 milliseconds since 1970")
    return 0


cdef int map_check(const ArrowSchema* schema) except -1:
    cdef const ArrowSchema* entries
    cdef bint fits = schema.format != NULL and schema.dictionary == NULL
    if fits and strcmp(schema.format, "n") == 0:
        return 0
    fits = fits and strcmp(schema.format, "+m") == 0 and (
        schema.n_children == 1 and schema.children[0].n_children == 2)
    if not fits:
        raise TypeError(f"column {arrow_column_name(schema)!r} is {arrow_type_name(schema)}; "
                        "properties must be map<string, string>")
    entries = schema.children[0]
    column_check(entries.children[0], "the name of a property", True)
    column_check(entries.children[1], "the value of a property", True)
    return 0


cdef int check_array(const ArrowSchema* schema, const ArrowArray* array, int64_t buffers,
                     int64_t rows) except -1:
    """Check that there are as many buffers and rows as will be looked at."""
    if array == NULL or array.release == NULL:
        raise ValueError(f"column {arrow_column_name(schema)!r} has no data: it was released")
    if array.n_buffers < buffers or (buffers > 0 and array.buffers == NULL):
        raise ValueError(f"column {arrow_column_name(schema)!r} has {array.n_buffers} buffers; "
                         f"a {arrow_type_name(schema)} has {buffers}")
    if array.offset < 0 or array.length < rows or array.offset > INT64_MAX // 32 - array.length:
        raise ValueError(f"column {arrow_column_name(schema)!r} has {array.length} rows at offset "
                         f"{array.offset}; {rows} are needed")
    return 0


cdef const uint8_t* validity_of(const ArrowArray* array) noexcept:
    if array.null_count == 0:
        return NULL
    return <const uint8_t*>array.buffers[0]


cdef int need_buffer(const ArrowSchema* schema, const void* buffer) except -1:
    if buffer == NULL:
        raise ValueError(f"column {arrow_column_name(schema)!r} has rows and no buffer for them")
    return 0


cdef int column_bind(ArrowColumn* self, const ArrowSchema* schema, const ArrowArray* array,
                     int64_t first, int64_t length) except -1:
    memset(self, 0, sizeof(ArrowColumn))
    if schema.dictionary == NULL:
        return bind_values(self, schema, array, first, length)
    check_array(schema, array, 2, first + length)
    check_array(schema.dictionary, array.dictionary, 0, 0)
    bind_values(self, schema.dictionary, array.dictionary, 0, array.dictionary.length)
    self.index_width = index_width(schema, &self.index_signed)
    self.index_validity = validity_of(array)
    self.indices = <const uint8_t*>array.buffers[1]
    self.index_first = array.offset + first
    return need_buffer(schema, self.indices) if length else 0


cdef int bind_values(ArrowColumn* self, const ArrowSchema* schema, const ArrowArray* array,
                     int64_t first, int64_t length) except -1:
    cdef int64_t at
    self.kind = column_kind(schema, False)
    if self.kind == COLUMN_NULL:
        return 0
    check_array(schema, array, 2 if self.kind == COLUMN_FIXED else 3, first + length)
    self.validity = validity_of(array)
    self.first = array.offset + first
    self.length = length
    if self.kind == COLUMN_FIXED:
        self.width = <uint32_t>strtol(schema.format + 2, NULL, 10)
        self.data = <const uint8_t*>array.buffers[1]
        return need_buffer(schema, self.data) if length and self.width else 0
    self.offsets = array.buffers[1]
    if length:
        need_buffer(schema, self.offsets)
    if self.kind != COLUMN_VIEW:
        self.data = <const uint8_t*>array.buffers[2]
        return 0
    self.blocks = array.buffers + 2
    self.block_count = array.n_buffers - 3
    self.block_sizes = <const int64_t*>array.buffers[array.n_buffers - 1]
    if self.block_count:
        need_buffer(schema, self.block_sizes)
    for at in range(self.block_count):
        if self.block_sizes[at] > 0:
            need_buffer(schema, self.blocks[at])
    return 0


cdef int times_bind(ArrowTimes* self, const ArrowSchema* schema, const ArrowArray* array,
                    int64_t first, int64_t length) except -1:
    memset(self, 0, sizeof(ArrowTimes))
    if strcmp(schema.format, "n") == 0:
        return 0
    check_array(schema, array, 2, first + length)
    times_unit(schema, &self.factor, &self.divisor)
    self.present = True
    self.validity = validity_of(array)
    self.values = <const int64_t*>array.buffers[1]
    self.first = array.offset + first
    return need_buffer(schema, self.values) if length else 0


cdef int map_bind(ArrowMap* self, const ArrowSchema* schema, const ArrowArray* array,
                  int64_t first, int64_t length) except -1:
    cdef const ArrowArray* entries
    cdef const ArrowSchema* entry = NULL
    memset(self, 0, sizeof(ArrowMap))
    if strcmp(schema.format, "n") == 0:
        return 0
    check_array(schema, array, 2, first + length)
    if array.n_children != 1 or array.children == NULL:
        raise ValueError(f"column {arrow_column_name(schema)!r} is a map without entries")
    entry = schema.children[0]
    entries = array.children[0]
    check_array(entry, entries, 0, 0)
    if entries.n_children != 2 or entries.children == NULL:
        raise ValueError(f"column {arrow_column_name(schema)!r} is a map without key and value")
    self.present = True
    self.validity = validity_of(array)
    self.offsets = <const int32_t*>array.buffers[1]
    self.first = array.offset + first
    self.entry_count = entries.length
    column_bind(&self.key, entry.children[0], entries.children[0], entries.offset, entries.length)
    column_bind(&self.value, entry.children[1], entries.children[1], entries.offset,
                entries.length)
    return need_buffer(schema, self.offsets) if length else 0


cdef int take_view(const ArrowColumn* self, int64_t at, const uint8_t** data,
                   int64_t* size) noexcept nogil:
    cdef const uint8_t* view = <const uint8_t*>self.offsets + at * VIEW_SIZE
    cdef int32_t parts[4]        # size, first four bytes, number of the block, offset in it
    memcpy(parts, view, VIEW_SIZE)
    if parts[0] < 0:
        return ROW_BAD_OFFSET
    size[0] = parts[0]
    if parts[0] <= INLINE_SIZE_MAX:
        data[0] = view + 4
        return ROW_OK
    if parts[2] < 0 or parts[2] >= self.block_count or parts[3] < 0 or (
            <int64_t>parts[3] + parts[0] > self.block_sizes[parts[2]]):
        return ROW_BAD_OFFSET
    data[0] = <const uint8_t*>self.blocks[parts[2]] + parts[3]
    return ROW_OK


cdef int take_value(const ArrowColumn* self, int64_t row, const uint8_t** data,
                    int64_t* size) noexcept nogil:
    cdef int64_t at = self.first + row
    cdef int64_t start
    cdef int64_t end
    if self.kind == COLUMN_NULL or (self.validity != NULL and not arrow_bit(self.validity, at)):
        return ROW_NULL
    if self.kind == COLUMN_VIEW:
        return take_view(self, at, data, size)
    if self.kind == COLUMN_FIXED:
        data[0] = self.data + at * self.width
        size[0] = self.width
        return ROW_OK
    if self.kind == COLUMN_32:
        start = (<const int32_t*>self.offsets)[at]
        end = (<const int32_t*>self.offsets)[at + 1]
    else:
        start = (<const int64_t*>self.offsets)[at]
        end = (<const int64_t*>self.offsets)[at + 1]
    if start < 0 or end < start or (self.data == NULL and end != 0):
        return ROW_BAD_OFFSET
    data[0] = self.data + start
    size[0] = end - start
    return ROW_OK


cdef int64_t take_index(const ArrowColumn* self, int64_t at) noexcept nogil:
    """An index that is too large for its place in an int64 comes out negative."""
    if self.index_width == 1:
        return (<const int8_t*>self.indices)[at] if self.index_signed else self.indices[at]
    if self.index_width == 2:
        if self.index_signed:
            return (<const int16_t*>self.indices)[at]
        return (<const uint16_t*>self.indices)[at]
    if self.index_width == 4:
        if self.index_signed:
            return (<const int32_t*>self.indices)[at]
        return (<const uint32_t*>self.indices)[at]
    return (<const int64_t*>self.indices)[at]


cdef int column_take_other(const ArrowColumn* self, int64_t row, const uint8_t** data,
                           int64_t* size) noexcept nogil:
    cdef int64_t at
    cdef int64_t index
    if self.index_width == 0:
        return take_value(self, row, data, size)
    at = self.index_first + row
    if self.index_validity != NULL and not arrow_bit(self.index_validity, at):
        return ROW_NULL
    index = take_index(self, at)
    if self.kind == COLUMN_NULL:
        return ROW_NULL
    if index < 0 or index >= self.length:
        return ROW_BAD_INDEX
    return take_value(self, index, data, size)


cdef int times_take(const ArrowTimes* self, int64_t row, int64_t* time_ms) noexcept nogil:
    cdef int64_t at = self.first + row
    cdef int64_t value
    if not self.present or (self.validity != NULL and not arrow_bit(self.validity, at)):
        return ROW_NULL
    value = self.values[at]
    if value < 0 or value > INT64_MAX // self.factor:
        return ROW_BAD_TIME
    time_ms[0] = value * self.factor // self.divisor
    return ROW_OK


cdef int map_take(const ArrowMap* self, int64_t row, int64_t* first, int64_t* end) noexcept nogil:
    cdef int64_t at = self.first + row
    first[0] = 0
    end[0] = 0
    if not self.present or (self.validity != NULL and not arrow_bit(self.validity, at)):
        return ROW_OK
    if self.offsets[at] < 0 or self.offsets[at + 1] < self.offsets[at] or (
            self.offsets[at + 1] > self.entry_count):
        return ROW_BAD_OFFSET
    first[0] = self.offsets[at]
    end[0] = self.offsets[at + 1]
    return ROW_OK
