"""Reads the payloads of a column, a row each, into columns that it builds. One thread at a time.

Subclasses know the format; `tables/avro_columns` and `tables/json_columns` use them.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pulsarx._pycore.arrow.column_builder cimport ColumnBuilder


cdef class ColumnReader:
    cdef ColumnBuilder* columns          # owned
    cdef int column_count
    cdef int32_t* top_numbers            # owned: of the columns with a value for each row
    cdef int top_count

    cdef tuple read_column(self, offsets, data, validity, int64_t first, int64_t count)
    cdef tuple taken(self, ColumnBuilder* column)
    cdef int read_rows(self, const int32_t* ends, const uint8_t* data, const uint8_t* validity,
                       int64_t first, int64_t count, uint8_t* refused) noexcept nogil
    cdef int read_row(self, int64_t row, const uint8_t* data, size_t size) noexcept nogil
    cdef int null_row(self) noexcept nogil


cdef int32_t* numbers_of(tuple given, int least, int end) except NULL
"""Copy the numbers into a C array, which the caller frees. ValueError: one is out of bounds."""
