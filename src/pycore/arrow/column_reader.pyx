# cython: language_level=3
"""Body of column_reader.pxd."""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer, Py_buffer,
)
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE,
)
from pulsarx._pycore.arrow.arrow_memory cimport room_free
from pulsarx._pycore.arrow.column_builder cimport (
    BUILD_BOOLEAN as C_BOOLEAN, BUILD_BYTES as C_BYTES, BUILD_KINDS as C_KINDS,
    BUILD_LIST as C_LIST, ColumnBuilder, builder_clear, builder_null, builder_null_count,
    builder_reserve, builder_truncate,
)

BUILD_BOOLEAN, BUILD_INT32, BUILD_INT64, BUILD_FLOAT, BUILD_DOUBLE = range(5)
BUILD_DECIMAL, BUILD_BYTES, BUILD_LIST, BUILD_STRUCT = range(5, 9)
_SIZES = {
    BUILD_BOOLEAN: 0, BUILD_INT32: 4, BUILD_INT64: 8, BUILD_FLOAT: 4, BUILD_DOUBLE: 8,
    BUILD_DECIMAL: 16, BUILD_BYTES: 0, BUILD_LIST: 0, BUILD_STRUCT: 0,
}


cdef class Room:
    """Memory of a column as a buffer. Read-only, frees itself."""
    cdef void* room
    cdef Py_ssize_t size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.room, self.size, 1, flags)

    def __dealloc__(self) -> None:
        room_free(self.room)


cdef object room_of(void** room, int64_t size):
    """Take it over; None: there is none."""
    cdef Room found
    if room[0] == NULL:
        return None
    found = Room.__new__(Room)
    found.room = room[0]
    found.size = size
    room[0] = NULL
    return found


cdef class ColumnReader:

    def __init__(self, list columns not None, tuple tops not None) -> None:
        """columns: (kind, numbers of its children); tops: those that have a value for each row."""
        cdef int at
        if self.columns != NULL:
            raise TypeError(f"a {type(self).__name__} is made once")
        self.columns = <ColumnBuilder*>calloc(<size_t>len(columns) + 1, sizeof(ColumnBuilder))
        if self.columns == NULL:
            raise MemoryError("columns")
        self.column_count = len(columns)
        for at in range(self.column_count):
            kind, children = columns[at]
            if not 0 <= kind < C_KINDS:
                raise ValueError(f"column {at} is of kind {kind}")
            if (kind == C_LIST and len(children) != 1) or (kind < C_LIST and children):
                raise ValueError(f"column {at} of kind {kind} has {len(children)} children")
            self.columns[at].kind = kind
            self.columns[at].children = numbers_of(children, at + 1, self.column_count)
            self.columns[at].child_count = len(children)
        self.top_numbers = numbers_of(tops, 0, self.column_count)
        self.top_count = len(tops)

    def __dealloc__(self) -> None:
        cdef int at
        for at in range(self.column_count):
            builder_clear(&self.columns[at])
            free(self.columns[at].children)
        free(self.columns)
        free(self.top_numbers)

    cdef tuple read_column(self, offsets, data, validity, int64_t first, int64_t count):
        """([(length, null count, validity, values, data) of each column], rows that were refused):
        these have nulls.

        offsets, data, validity (or None): the buffers of an Arrow column of binary; first: its
        offset.
        OverflowError: a column would hold more than 2 GiB. ValueError: the column is not whole.
        """
        cdef Py_buffer[3] views
        cdef int held = 0
        cdef uint8_t* refused = NULL
        cdef int status
        cdef int at
        cdef int64_t row
        try:
            for each in (offsets, data, b"" if validity is None else validity):
                PyObject_GetBuffer(each, &views[held], PyBUF_SIMPLE)
                held += 1
            check_buffers(&views[0], &views[1], &views[2], validity is not None, first, count)
            refused = <uint8_t*>calloc(<size_t>count // 8 + 1, 1)
            if refused == NULL:
                raise MemoryError("rows")
            with nogil:
                status = self.read_rows(
                    <const int32_t*>views[0].buf + first, <const uint8_t*>views[1].buf,
                    <const uint8_t*>views[2].buf if views[2].len else NULL, first, count, refused)
            if status == STATUS_NO_MEMORY:
                raise MemoryError(f"columns of {count} rows")
            if status != STATUS_OK:
                raise OverflowError(f"a column of {count} rows is larger than 2 GiB")
            found = [row for row in range(count) if refused[row >> 3] >> (row & 7) & 1] if (
                any_bit(refused, count)) else []
            return [self.taken(&self.columns[at]) for at in range(self.column_count)], found
        finally:
            free(refused)
            while held:
                held -= 1
                PyBuffer_Release(&views[held])
            for at in range(self.column_count):
                builder_clear(&self.columns[at])

    cdef tuple taken(self, ColumnBuilder* column):
        cdef int64_t length = column.length
        cdef int64_t nulls = builder_null_count(column)
        cdef int64_t size = _SIZES[column.kind] * length
        cdef void* room = column.validity
        if column.kind == C_BOOLEAN:
            size = (length + 7) // 8
        elif column.kind == C_BYTES or column.kind == C_LIST:
            size = (length + 1) * 4
        column.validity = NULL
        validity = room_of(&room, (length + 7) // 8)
        values = room_of(&column.values, size)
        room = column.data
        column.data = NULL
        return length, nulls, validity, values, room_of(&room, column.data_size)

    cdef int read_rows(self, const int32_t* ends, const uint8_t* data, const uint8_t* validity,
                       int64_t first, int64_t count, uint8_t* refused) noexcept nogil:
        cdef int64_t row
        cdef int place
        cdef int status
        for place in range(self.column_count):
            # Of every column, for an empty one has a first offset too.
            if builder_reserve(&self.columns[place], 0) != STATUS_OK:
                return STATUS_NO_MEMORY
        for place in range(self.top_count):
            if builder_reserve(&self.columns[self.top_numbers[place]], count) != STATUS_OK:
                return STATUS_NO_MEMORY
        for row in range(count):
            if validity == NULL or validity[(first + row) >> 3] >> ((first + row) & 7) & 1:
                status = self.read_row(row, data + ends[row], <size_t>(ends[row + 1] - ends[row]))
                if status == STATUS_OK:
                    continue
                if status == STATUS_NO_MEMORY or status == STATUS_TOO_LARGE:
                    return status
                refused[row >> 3] |= <uint8_t>(1 << (row & 7))
                for place in range(self.top_count):
                    builder_truncate(self.columns, self.top_numbers[place], row)
            status = self.null_row()
            if status != STATUS_OK:
                return status
        return STATUS_OK

    cdef int read_row(self, int64_t row, const uint8_t* data, size_t size) noexcept nogil:
        """Append a value to each top. STATUS_NO_MEMORY, STATUS_TOO_LARGE end all, any other status
        refuses the row; what was appended is cut."""
        return STATUS_CORRUPT

    cdef int null_row(self) noexcept nogil:
        cdef int place
        cdef int status
        for place in range(self.top_count):
            status = builder_null(self.columns, self.top_numbers[place])
            if status != STATUS_OK:
                return status
        return STATUS_OK


cdef int32_t* numbers_of(tuple given, int least, int end) except NULL:
    cdef int32_t* found
    cdef int at
    for each in given:
        if not least <= each < end:
            raise ValueError(f"{each} is not in {least} to {end - 1}")
    found = <int32_t*>malloc((<size_t>len(given) + 1) * sizeof(int32_t))
    if found == NULL:
        raise MemoryError("numbers")
    for at in range(len(given)):
        found[at] = given[at]
    return found


cdef bint any_bit(const uint8_t* bits, int64_t count) noexcept:
    cdef int64_t at
    for at in range((count + 7) // 8):
        if bits[at]:
            return True
    return False


cdef int check_buffers(const Py_buffer* offsets, const Py_buffer* data, const Py_buffer* validity,
                       bint has_validity, int64_t first, int64_t count) except -1:
    """ValueError: they do not hold so many rows."""
    cdef const int32_t* ends = <const int32_t*>offsets.buf + first
    cdef int64_t row
    if first < 0 or count < 0 or (first + count + 1) * 4 > offsets.len:
        raise ValueError(f"{count} rows from {first} of {offsets.len} bytes of offsets")
    if has_validity and first + count > validity.len * 8:
        raise ValueError(f"{count} rows from {first} of {validity.len} bytes of validity")
    if ends[0] < 0 or ends[count] > data.len:
        raise ValueError(f"offsets {ends[0]} to {ends[count]} of {data.len} bytes")
    for row in range(count):
        if ends[row + 1] < ends[row]:
            raise ValueError(f"the offsets fall in row {row}")
    return 0
