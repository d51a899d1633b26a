"""Imports tables of other libraries through the Arrow PyCapsule interface, batch by batch. For
send_arrow."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.single_metadata cimport PropertyView
from pulsarx._pycore.arrow.arrow_column cimport ArrowColumn, ArrowMap, ArrowTimes
from pulsarx._pycore.arrow.arrow_schema cimport ArrowArray, ArrowArrayStream, ArrowSchema

cdef struct ArrowRows:
    ArrowColumn value
    ArrowColumn key
    ArrowTimes event_time
    ArrowMap properties
    int64_t length
    int64_t at                   # the next row
    PropertyView* views          # owned scratch
    int64_t view_capacity

cdef struct EncodeLimits:
    uint32_t batch_messages
    uint32_t batch_bytes
    uint32_t message_size
    bint refuse_null             # ROW_NULL for a row without a value, else a message without one


cdef class ArrowImport:
    cdef ArrowRows rows                  # of the current batch
    cdef ArrowSchema schema              # owned, as are stream and array; release NULL: nothing
    cdef ArrowArrayStream stream
    cdef ArrowArray array
    cdef bint array_is_new               # it came without a stream
    cdef int64_t rows_before             # in batches before this one
    cdef int64_t columns[4]              # index of each role's column, -1: none

    cdef bint advance(self) except -1
    cdef int raise_row(self, int status) except -1
    cdef int open_capsules(self, object data) except -1
    cdef int choose_columns(self, object value, object key, object event_time,
                            object properties) except -1
    cdef int bind(self) except -1
    cdef int release_array(self) except -1
    cdef void give_back(self) noexcept
    cdef int raise_stream(self, int code) except -1


cdef int arrow_rows_encode(ArrowRows* self, const EncodeLimits* limits, BatchEncode* batch,
                           uint64_t* sequence_id) noexcept nogil
"""Add rows from self.at on until the batch is full or the rows are at their end.

A RowStatus or Status other than ROW_OK: self.at is the row that it is about, and was not added.
"""
