"""Reads values out of Arrow arrays that other libraries made. For arrow_import alone.

Their type is checked once, their lengths once a batch, every offset when its row is read. What the
C data interface cannot tell is how large a buffer is: a producer that lies about that is believed.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from pulsarx._pycore.arrow.arrow_schema cimport ArrowArray, ArrowSchema

cdef enum ColumnKind:
    COLUMN_ABSENT = 0
    COLUMN_NULL = 1          # type null: nothing but nulls
    COLUMN_32 = 2            # binary, string
    COLUMN_64 = 3            # large_binary, large_string
    COLUMN_VIEW = 4          # binary_view, string_view
    COLUMN_FIXED = 5         # fixed_size_binary

cdef enum RowStatus:
    ROW_OK = 0               # a STATUS_ of the core lies between
    ROW_NULL = 100
    ROW_BAD_OFFSET = 101     # negative, falling, or beyond the buffer as far as that is known
    ROW_BAD_INDEX = 102      # outside of the dictionary
    ROW_TOO_BIG = 103
    ROW_BAD_TIME = 104       # before 1970, or beyond 2^63 ms
    ROW_NULL_PROPERTY = 105

cdef struct ArrowColumn:
    uint32_t kind            # ColumnKind
    uint32_t width           # COLUMN_FIXED: bytes of a value
    const uint8_t* validity  # NULL: no nulls
    const void* offsets      # or the views
    const uint8_t* data
    const void** blocks      # COLUMN_VIEW: what views point into
    const int64_t* block_sizes
    int64_t block_count
    int64_t first            # where row 0 stands
    int64_t length           # rows from there on
    const uint8_t* indices   # of a dictionary, whose values are then described above
    const uint8_t* index_validity
    int64_t index_first
    uint32_t index_width     # bytes, 0: no dictionary
    bint index_signed

cdef struct ArrowTimes:
    bint present
    const uint8_t* validity
    const int64_t* values
    int64_t first
    int64_t factor           # ms = value * factor // divisor
    int64_t divisor

cdef struct ArrowMap:
    bint present
    const uint8_t* validity
    const int32_t* offsets
    int64_t first
    int64_t entry_count
    ArrowColumn key
    ArrowColumn value

cdef int column_check(const ArrowSchema* schema, str role, bint text_only) except -1
"""TypeError naming column and type unless it holds bytes or text. role: what it is to be."""

cdef int times_check(const ArrowSchema* schema) except -1
cdef int map_check(const ArrowSchema* schema) except -1

cdef int column_bind(ArrowColumn* self, const ArrowSchema* schema, const ArrowArray* array,
                     int64_t first, int64_t length) except -1
"""Point at the rows first..first+length-1 of an array of a checked type.

ValueError: it has not so many.
"""

cdef int times_bind(ArrowTimes* self, const ArrowSchema* schema, const ArrowArray* array,
                    int64_t first, int64_t length) except -1
cdef int map_bind(ArrowMap* self, const ArrowSchema* schema, const ArrowArray* array,
                  int64_t first, int64_t length) except -1

cdef int column_take_other(const ArrowColumn* self, int64_t row, const uint8_t** data,
                           int64_t* size) noexcept nogil
"""Private: column_take of the rarer kinds."""


cdef inline bint arrow_bit(const uint8_t* bits, int64_t at) noexcept nogil:
    return bits[at >> 3] >> (at & 7) & 1


cdef inline int column_take(const ArrowColumn* self, int64_t row, const uint8_t** data,
                            int64_t* size) noexcept nogil:
    """Show the bytes of a row below length; ROW_NULL: it has none."""
    cdef const int32_t* offsets
    cdef int64_t at
    if self.kind != COLUMN_32 or self.index_width != 0:
        return column_take_other(self, row, data, size)
    at = self.first + row
    if self.validity != NULL and not arrow_bit(self.validity, at):
        return ROW_NULL
    offsets = <const int32_t*>self.offsets + at
    if offsets[0] < 0 or offsets[1] < offsets[0] or (self.data == NULL and offsets[1] != 0):
        return ROW_BAD_OFFSET
    data[0] = self.data + offsets[0]
    size[0] = offsets[1] - offsets[0]
    return ROW_OK


cdef int times_take(const ArrowTimes* self, int64_t row, int64_t* time_ms) noexcept nogil
"""ROW_NULL: no time."""

cdef int map_take(const ArrowMap* self, int64_t row, int64_t* first, int64_t* end) noexcept nogil
"""Which rows of key and value are the entries of this row; none for a null."""
